"""Buffers on a device and their mirrors on the host; which device a rank takes. The device is simulated."""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.engine.devices import FUNCTIONS, OTHER_STREAM, cuda, gpu, rocm
from omb_py.engine.devices import memory as arrays
from omb_py.engine.devices.buffers import DeviceBuffers, crowd, refuse_sharing
from omb_py.engine.devices.gpu import OWN, Gpu
from omb_py.engine.devices.kind import GpuKind, choose_device
from omb_py.engine.devices.memory import DeviceMemory, StagingMemory
from omb_py.engine.program.buffers import ON_DEVICE
from omb_py.engine.program.language import Step
from omb_py.errors import EnvironmentProblem
from omb_py.orchestrate.running.rank_process import device_map
from omb_py.testing.simulated_device import SimulatedDevice
from tests.support.sessions.synchronises import left_out


@pytest.fixture
def device() -> Iterator[SimulatedDevice]:
    made = SimulatedDevice(delay_us=math.inf)  # however busy the machine is, nothing begins before a synchronise
    yield made
    made.close()


class TestArrays:
    """Packages that need a GPU are stood in for; the simulated device has arrays of its own."""

    @pytest.mark.parametrize("kind", ON_DEVICE)
    def test_a_package_is_asked_for_bytes_on_the_device(self, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[Any] = []

        def made(*words: Any, **more: Any) -> Any:
            asked.append((words[0], str(more.get("device", ""))))
            return SimpleNamespace(__cuda_array_interface__={"data": (4096, False)})

        there = SimpleNamespace(
            empty=made,
            device_array=made,
            uint8="u1",
            select_device=asked.append,
            cuda=SimpleNamespace(Device=lambda index: nullcontext(asked.append(index))),
        )
        monkeypatch.setattr(arrays, "import_module", lambda name: there)
        device: Any = SimpleNamespace(kind="cuda", index=3, name="a GPU")
        assert arrays.address_of(arrays.array(kind, device, 100)) == 4096
        assert asked in ([3, (100, "")], [(100, "cuda:3")])

    @pytest.mark.parametrize(
        ("error", "says"), [(ImportError("no x"), "needs a package"), (MemoryError(), "no 9 B on")]
    )
    def test_what_is_missing_is_said(self, error: Exception, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(name: str) -> None:
            raise error

        monkeypatch.setattr(arrays, "import_module", refuse)
        with pytest.raises(EnvironmentProblem, match=says):
            arrays.array("numba", SimpleNamespace(kind="cuda", index=0, name="a GPU"), 9)  # type: ignore[arg-type]

    def test_memory_of_arrays_grows_and_is_given_back(self, device: SimulatedDevice) -> None:
        memory, left = DeviceMemory(device, array="cupy"), device.memory_left()
        memory.reserve("send", 64)
        memory.reserve("send", 128)
        assert device.memory_left() == left - 128
        memory.view("send", 128)[:] = 5
        memory.hand_over()
        memory.host.view("send", 128)[:] = 0
        assert (memory.view("send", 128) == 5).all()
        memory.close()
        assert device.memory_left() == left

    def test_an_array_that_has_no_truth_value_is_the_owner(
        self, device: SimulatedDevice, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Several(arrays.PlainArray):
            def __bool__(self) -> bool:
                raise ValueError("the truth value of an array with more than one element is ambiguous")

        monkeypatch.setattr("omb_py.engine.devices.memory.PlainArray", Several)
        memory = DeviceMemory(device, array="cupy")
        memory.reserve("send", 64)
        assert isinstance(memory.owner("send"), Several)
        memory.close()

    @pytest.mark.parametrize(("name", "byte"), [("send", 1), ("recv", 0)])
    def test_nothing_of_the_host_is_taken_until_somebody_looks(
        self, device: SimulatedDevice, name: str, byte: int
    ) -> None:
        memory = DeviceMemory(device)
        memory.reserve(name, 1 << 16)
        assert memory.host._places == {}
        assert (memory.view(name, 64) == byte).all() and memory.host._places[name][1] == 1 << 16
        memory.close()


class TestStaging:
    def test_what_is_copied_lies_where_the_device_reads_it_by_itself(self, device: SimulatedDevice) -> None:
        left, buffers = device.memory_left(), DeviceBuffers(device, False)
        buffers.reserve("", {"send": 64})
        at = buffers.stage.address("send")
        assert at in device._mapped and (buffers.stage.view("send", 64) == 1).all()
        assert device.memory_left() == left - 64, "memory of the host is none of the device"
        buffers.reserve("", {"send": 3 << 12})
        assert buffers.stage.view("send", 3 << 12).sum() == 3 << 12
        assert [memory.nbytes for memory in device._mapped.values()] == [3 << 12], "the smaller one is given back"
        buffers.close()
        assert not device._mapped

    def test_memory_that_is_being_read_is_not_given_back(self, device: SimulatedDevice) -> None:
        stage = StagingMemory(device)
        stage.reserve("send", 8)
        device.call("fill", device.allocate(8), 1, 8, device.stream)
        stage.reserve("send", 1 << 14)
        stage.close()

    def test_direct_buffers_have_no_stage(self, device: SimulatedDevice) -> None:
        buffers = DeviceBuffers(device, True)
        buffers.reserve("", {"send": 64})
        assert device._mapped == {}
        buffers.close()


class TestManaged:
    def test_pages_travel_and_are_wrong_until_they_are_there(self, device: SimulatedDevice) -> None:
        memory = DeviceMemory(device, managed=True)
        memory.reserve("send", 64)
        there = memory.address("send")
        for where in (-1, 0):
            gate = ctypes.c_uint32(0)
            device.call("wait_value", device.stream, ctypes.addressof(gate), 1, 0, 0xFFFFFFFF)
            device.call("prefetch", there, 64, where, device.stream)
            assert (np.ctypeslib.as_array((ctypes.c_uint8 * 64).from_address(there)) != 1).all()
            gate.value = 1
            device.call("synchronise", device.stream)
            assert (np.ctypeslib.as_array((ctypes.c_uint8 * 64).from_address(there)) == 1).all()
            assert device.resides == {there: where}
        memory.close()
        assert device.resides == {}

    def test_other_memory_does_not_travel(self, device: SimulatedDevice) -> None:
        with pytest.raises(EnvironmentProblem, match="only managed memory"):
            device.call("prefetch", device.allocate(8), 8, -1, device.stream)

    def test_the_device_computes_while_the_host_goes_on(
        self, device: SimulatedDevice, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        done, slept = threading.Event(), list[float]()
        stream = device.new_stream()
        clock = SimpleNamespace(sleep=lambda seconds: (slept.append(seconds), done.wait(60)))
        monkeypatch.setattr("omb_py.testing.simulated_device.time", clock)
        device.call("spin", 200_000_000, stream)
        assert device.busy(), "the call came back before the device was done"
        done.set()
        device.call("synchronise", stream)
        assert slept[-1] == 0.2 and not device.busy()


class TestMemory:
    def test_what_is_written_on_the_host_arrives_and_comes_back(self, device: SimulatedDevice) -> None:
        memory = DeviceMemory(device)
        memory.reserve("send", 64)
        memory.view("send", 64)[:] = np.arange(64)
        memory.hand_over()
        memory.host.view("send", 64)[:] = 0
        assert (memory.view("send", 64) == np.arange(64)).all()

    def test_a_mirror_that_is_held_is_not_overwritten(self, device: SimulatedDevice) -> None:
        memory = DeviceMemory(device)
        memory.reserve("send", 64)
        memory.view("send", 8)[:] = 9
        assert (memory.view("send", 64)[:8] == 9).all()

    @pytest.mark.parametrize("left", ["", "handed over"])
    def test_the_host_may_write_again_after_handing_over(self, device: SimulatedDevice, left: str) -> None:
        memory = DeviceMemory(device)
        memory.reserve("send", 64)
        with left_out(left, TestMemory):
            memory.view("send", 64)[:] = 3
            memory.hand_over()
            memory.host.view("send", 64)[:] = 0
        assert (memory.view("send", 64) == 3).all() == (left == "")

    @pytest.mark.parametrize("left", ["", "free"])
    def test_memory_is_given_back_when_nothing_uses_it(self, device: SimulatedDevice, left: str) -> None:
        memory = DeviceMemory(device)
        memory.reserve("send", 8)
        device.call("fill", memory.address("send"), 1, 8, device.stream)
        with left_out(left, TestMemory):
            if left:
                with pytest.raises(EnvironmentProblem, match="a synchronise is missing"):
                    memory.reserve("send", 800)
            else:
                memory.reserve("send", 800)

    def __call__(self) -> None:
        """No resolver here: :func:`left_out` replaces it."""


@given(st.integers(0, 100), st.integers(1, 16))
def test_ranks_take_the_devices_that_they_see_in_turn(rank: int, count: int) -> None:
    assert choose_device(rank, count, "cuda") == rank % count
    with pytest.raises(EnvironmentProblem, match="no such device is visible to local rank"):
        choose_device(rank, 0, "cuda")


def places(*devices: str) -> list[dict[str, Any]]:
    """The devices of ranks, given as HOST:IDENTITY; each sees its own as number 0."""
    return [
        {"rank": rank, "host": host, "device": "cuda:0", "name": "a GPU", "identity": identity}
        for rank, (host, identity) in enumerate(device.split(":") for device in devices)
    ]


def test_ranks_that_each_see_one_device_share_it_only_where_it_is_the_same() -> None:
    each_its_own, over_hosts = places("n0:17", "n0:65", "n1:17"), places("n0:17", "n1:17")
    assert crowd(each_its_own) == crowd(over_hosts) == 1
    refuse_sharing(each_its_own)
    refuse_sharing(over_hosts)
    both = places("n0:65", "n1:17", "n0:17", "n0:17")
    assert crowd(both) == 2
    with pytest.raises(
        EnvironmentProblem, match=r"ranks 2, 3 would share cuda:0 \(a GPU\) of n0, where 3 ranks have 2:"
    ):
        refuse_sharing(both)


def test_the_map_tells_devices_apart_that_ranks_number_alike() -> None:
    assert device_map(places("n0:17", "n1:17")) == "rank → device: 0 → n0 cuda:0, 1 → n1 cuda:0 (a GPU)"
    assert device_map(places("n0:17", "n0:65")) == "rank → device: 0 → n0 cuda:0 17, 1 → n0 cuda:0 65 (a GPU)"


def test_every_kind_of_gpu_has_every_function() -> None:
    for kind in (cuda.KIND, rocm.KIND):
        assert {*kind.symbols, *OWN} == set(FUNCTIONS)


@pytest.mark.parametrize(("kind", "numbers"), [(cuda.KIND, {13: 1, 36: 2}), (rocm.KIND, {5: 1, 60: 2})])
def test_clocks_are_asked_for_by_the_numbers_of_the_makers_own_library(kind: GpuKind, numbers: dict[int, int]) -> None:
    gpu = object.__new__(Gpu)
    gpu._maker, gpu.index = kind, 0
    gpu._runtime = SimpleNamespace(deviceGetAttribute=lambda number, index: numbers[number])
    assert gpu.clocks() == {"clock": 1, "memory_clock": 2}
    numbers.clear()  # as newer drivers drop attributes
    assert gpu.clocks() == {}


def test_without_a_driver_it_is_said_what_is_missing() -> None:
    from pathlib import Path

    if Path("/dev/nvidiactl").exists():
        assert cuda.KIND.count() >= 1
    else:
        with pytest.raises(EnvironmentProblem, match="--device cuda"):
            cuda.KIND.count()


@pytest.mark.parametrize("managed", [False, True])
def test_a_buffer_that_does_not_fit_leaves_the_memory_usable(
    device: SimulatedDevice, managed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omb_py.testing.simulated_device.MEMORY_BYTES", 1 << 20)
    memory = DeviceMemory(device, managed=managed)
    memory.reserve("send", 100)
    with pytest.raises(EnvironmentProblem, match="B left"):
        memory.reserve("send", 2 << 20)
    memory.reserve("send", 1 << 19)
    assert memory.view("send", 1 << 19).sum() == 1 << 19
    with pytest.raises(EnvironmentProblem, match="B left"):
        memory.reserve("send", 2 << 20)
    memory.close()  # what was given back is not given back again
    assert device.memory_left() == 1 << 20


@pytest.mark.parametrize(
    ("code", "uuid", "identity"), [(0, 7, "07" * 16), (1, 7, "0:1"), (0, 0, "0:1"), (None, 0, "0:1")]
)
def test_a_gpu_is_told_by_its_uuid_which_mig_instances_do_not_share(code: int | None, uuid: int, identity: str) -> None:
    def ask(buffer: Any, device: Any) -> int:
        assert device.value == 3
        buffer[:] = [uuid] * 16
        return code or 0

    def get(device: Any, index: int) -> int:
        device._obj.value = index
        return 0

    driver = {"cuDeviceGet": get} | ({"cuDeviceGetUuid_v2": ask} if code is not None else {})
    gpu = Gpu.__new__(Gpu)
    gpu._maker, gpu.index = cuda.KIND, 3
    gpu._driver, gpu._runtime = SimpleNamespace(**driver), SimpleNamespace(deviceGetPCIBusId=lambda index: "0:1")
    assert gpu.identity() == identity


@pytest.mark.parametrize(
    ("kind", "nbytes", "failed", "address"),
    [
        (rocm.KIND, 4, 0, 0x5000),
        (rocm.KIND, 4, 1, 0x9000),  # a GPU without such memory
        (rocm.KIND, 4, None, 0x9000),  # a driver without the function
        (rocm.KIND, 16, 0, 0x9000),
        (cuda.KIND, 4, 0, 0x9000),
    ],
)
def test_the_word_that_holds_a_stream_back_is_of_the_kind_that_hip_wants(
    kind: GpuKind, nbytes: int, failed: int | None, address: int
) -> None:
    freed: list[str] = []

    def signal(where: Any, size: Any, flags: Any) -> int:
        assert (size.value, flags.value) == (8, 2), "HIP takes no other size of signal memory"
        where._obj.value = 0x5000
        return failed or 0

    gpu = Gpu.__new__(Gpu)
    gpu._maker, gpu.name, gpu._mapped = kind, "a GPU", set()
    gpu._driver = SimpleNamespace(**({} if failed is None else {"hipExtMallocWithFlags": signal}))  # type: ignore[assignment]
    gpu._runtime = SimpleNamespace(
        hostAlloc=lambda size, flags: 0x9000,
        freeHost=lambda at: freed.append(f"host {at:x}"),
        free=lambda at: freed.append(f"device {at:x}"),
    )
    assert gpu.allocate_mapped(nbytes) == address
    gpu.free(address)
    assert freed == ["device 5000" if address == 0x5000 else "host 9000"]


def test_cupy_is_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "import_module", lambda name: f"the package {name}")
    assert gpu.load_cupy(cuda.KIND) == "the package cupy"


def test_there_is_one_other_stream() -> None:
    streams = iter(range(7, 9))
    buffers: Any = SimpleNamespace(device=SimpleNamespace(stream=1, new_stream=lambda: next(streams)), _other=0)
    plain, other = Step("barrier", {}), Step("barrier", {"stream": OTHER_STREAM})
    assert [DeviceBuffers._stream(buffers, step) for step in (plain, other, other, plain)] == [1, 7, 7, 1]


class StandInCupy:
    """What a GPU's own functions use of CuPy."""

    int64 = int
    float32 = "f4"

    def __init__(self, compile_error: Exception | None = None, launch_error: Exception | None = None) -> None:
        self.streams: list[int] = []
        self._compile_error, self._launch_error = compile_error, launch_error
        self.cuda = SimpleNamespace(ExternalStream=self._stream)

    def _stream(self, handle: int, index: int) -> Any:
        self.streams.append(handle)
        return nullcontext()

    def zeros(self, shape: int, dtype: str) -> list[int]:
        return [0] * shape

    def RawKernel(self, source: str, name: str) -> Any:
        return self

    def compile(self) -> None:
        if self._compile_error:
            raise self._compile_error

    def __call__(self, *operands: Any) -> None:
        if self._launch_error:
            raise self._launch_error


def a_gpu(cupy: StandInCupy, monkeypatch: pytest.MonkeyPatch) -> Gpu:
    monkeypatch.setattr(gpu, "import_module", lambda name: cupy)
    made = Gpu.__new__(Gpu)
    made.kind, made._maker, made.index, made.name, made._callbacks = "cuda", cuda.KIND, 0, "a GPU", {}
    made._runtime = SimpleNamespace(getDeviceProperties=lambda index: {"multiProcessorCount": 1})
    made._driver = SimpleNamespace(cuGetErrorString=lambda code, text: 1)  # type: ignore[assignment]
    return made


def test_the_error_of_a_function_of_ours_is_told_and_no_text_of_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    made = a_gpu(StandInCupy(launch_error=RuntimeError("CUDA_ERROR_LAUNCH_FAILED")), monkeypatch)
    kernel = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64, ctypes.c_int64)(made.function("spin"))
    assert made.error_text(kernel(1000, 7), "spin") == "CUDA_ERROR_LAUNCH_FAILED"
    assert made.error_text(1, "copy_in") == "unknown error"


def test_a_part_of_cupy_that_fails_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    made = a_gpu(StandInCupy(compile_error=RuntimeError("libnvrtc.so.13: cannot open")), monkeypatch)
    with pytest.raises(EnvironmentProblem, match=r"spin needs a part of CuPy .*libnvrtc.*: pip install cupy.*\[ctk\]"):
        made.function("spin")


def test_the_object_of_a_stream_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cupy = StandInCupy()
    made = a_gpu(cupy, monkeypatch)
    for stream in (7, 7, 9, 7):
        made.call("spin", 1000, stream)
    assert cupy.streams == [7, 9]


@pytest.mark.parametrize(
    ("kind", "code", "advice"),
    [
        (cuda.KIND, 35, "pip install cupy"),
        (cuda.KIND, 100, "CUDA_VISIBLE_DEVICES"),
        (cuda.KIND, 802, "nvidia-fabricmanager"),
        (cuda.KIND, 803, "kernel module"),
        (cuda.KIND, 999, "nvidia-smi"),
        (rocm.KIND, 100, "HIP_VISIBLE_DEVICES"),
    ],
)
def test_each_reason_why_no_gpu_is_usable_has_its_own_advice(
    kind: GpuKind, code: int, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class RuntimeFailure(RuntimeError):
        status = code

    def count() -> int:
        raise RuntimeFailure("no")

    runtime = SimpleNamespace(getDeviceCount=count)
    monkeypatch.setattr(gpu, "load_driver", lambda kind: None)
    monkeypatch.setattr(gpu, "import_module", lambda name: SimpleNamespace(cuda=SimpleNamespace(runtime=runtime)))
    with pytest.raises(EnvironmentProblem, match=rf"no usable GPU \(no\): .*{advice}"):
        gpu.count_gpus(kind)
