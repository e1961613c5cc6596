"""NVIDIA and AMD GPUs: CuPy opens them, the driver's own C functions are called in loops.

docs/nccl.md says on which GPU it was run.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from omb_py.engine.devices import FUNCTIONS, cuda
from omb_py.engine.devices.callbacks import DeviceFunctions, store
from omb_py.engine.devices.kind import GpuKind
from omb_py.engine.program.steps import MATMUL
from omb_py.errors import EnvironmentProblem

SPIN: Final = "spin"
STORE: Final = "store"
OWN: Final = (SPIN, MATMUL, STORE)
"""Functions that the driver does not have: a kernel of ours, CuPy's product (cuBLAS, hipBLAS), a store by the host."""
_SPIN: Final = """
extern "C" __global__ void spin(long long ns, float *keep) {
    long long until = now() + ns;
    float x = threadIdx.x;
    while (now() < until) for (int i = 0; i < 64; i++) x = x * 0.999f + 1.0f;
    if (x < 0) *keep = x;
}
"""
"""Keeps each multiprocessor busy in additions until a time is over; what it computes is never written."""
_SPIN_THREADS: Final = 256
_GLOBAL: Final = 1
"""cudaMemAttachGlobal."""
_MAPPED: Final = 2
"""cudaHostAllocMapped."""
_SIGNAL_MEMORY: Final = 2
"""hipMallocSignalMemory, for hipExtMallocWithFlags."""
_SIGNAL_BYTES: Final = 8
"""The only size that such memory has."""
_NON_BLOCKING: Final = 1


def load_cupy(kind: GpuKind) -> ModuleType:
    """CuPy, which is optional. Raises EnvironmentProblem with the line that installs it."""
    try:
        return import_module("cupy")
    except ImportError as error:
        raise EnvironmentProblem(f"--device {kind.name} needs CuPy ({error}): {kind.package}") from None


def load_driver(kind: GpuKind) -> ctypes.CDLL:
    """The driver's library. Raises EnvironmentProblem where there is none."""
    reasons = []
    for name in kind.libraries:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            reasons.append(str(error))
    raise EnvironmentProblem(
        f"--device {kind.name}: the GPU's driver is missing ({reasons[0]}): install it, or --device cpu"
    )


def driver_version() -> int:
    """The CUDA that NVIDIA's driver takes, as 12080 for 12.8; 0 where it does not say."""
    number = ctypes.c_int()
    try:
        ctypes.CDLL(cuda.KIND.libraries[0]).cuDriverGetVersion(ctypes.byref(number))
    except (OSError, AttributeError):
        return 0
    return number.value


def count_gpus(kind: GpuKind) -> int:
    """Visible GPUs. Raises EnvironmentProblem: no driver, no CuPy, or a CuPy for another CUDA."""
    load_driver(kind)
    runtime = load_cupy(kind).cuda.runtime
    try:
        return int(runtime.getDeviceCount())
    except Exception as error:  # CuPy's own class: no device, or a driver older than its CUDA
        advice = kind.advice.get(getattr(error, "status", -1)) or "check the driver with nvidia-smi or rocm-smi"
        raise EnvironmentProblem(f"--device {kind.name}: CuPy finds no usable GPU ({error}): {advice}") from None


class Gpu:
    """A GPU, made current for this process."""

    def __init__(self, kind: GpuKind, index: int) -> None:
        self.kind, self.index, self._maker = kind.name, index, kind
        self._driver = load_driver(kind)
        self._runtime = load_cupy(kind).cuda.runtime
        self._runtime.setDevice(index)
        properties = self._runtime.getDeviceProperties(index)
        name = properties["name"]
        self.name = name.decode() if isinstance(name, bytes) else str(name)
        self.capability = kind.capability(properties)
        """Compute capability; None for GPUs of other makers."""
        self.cache_bytes = int(properties.get("l2CacheSize") or 0)
        self._streams: list[int] = []
        self._events: list[int] = []
        self._mapped: set[int] = set()
        self.stream = self.new_stream()
        self._callbacks: dict[str, DeviceFunctions] = {}

    def allocate(self, nbytes: int) -> int:
        try:
            return int(self._runtime.malloc(max(1, nbytes)))
        except Exception as error:
            raise EnvironmentProblem(f"{self.name}: no {nbytes} B to be had ({error}): choose a smaller -m") from None

    def allocate_managed(self, nbytes: int) -> int:
        try:
            return int(self._runtime.mallocManaged(max(1, nbytes), _GLOBAL))
        except Exception as error:
            raise EnvironmentProblem(
                f"{self.name}: no {nbytes} B of managed memory to be had ({error}): choose a smaller -m, or buffers D"
            ) from None

    def allocate_mapped(self, nbytes: int) -> int:
        if signal := self._signal_memory(nbytes):
            return signal
        try:
            address = int(self._runtime.hostAlloc(max(1, nbytes), _MAPPED))
        except Exception as error:
            raise EnvironmentProblem(f"{self.name}: no mapped host memory to be had ({error})") from None
        self._mapped.add(address)
        return address

    def _signal_memory(self, nbytes: int) -> int:
        """A word of the kind that hipStreamWaitValue32 is documented for; 0 for more, on CUDA, where there is none."""
        address = ctypes.c_void_p()
        try:
            allocate = getattr(self._driver, self._maker.signal_function) if self._maker.signal_function else None
        except AttributeError:  # older than the function
            return 0
        if allocate is None or nbytes > _SIGNAL_BYTES:
            return 0
        failed = allocate(ctypes.byref(address), ctypes.c_size_t(_SIGNAL_BYTES), ctypes.c_uint(_SIGNAL_MEMORY))
        return 0 if failed else address.value or 0

    def free(self, address: int) -> None:
        if address in self._mapped:
            self._mapped.remove(address)
            self._runtime.freeHost(address)
        else:
            self._runtime.free(address)

    def new_stream(self) -> int:
        self._streams.append(int(self._runtime.streamCreateWithFlags(_NON_BLOCKING)))
        return self._streams[-1]

    def event(self) -> int:
        self._events.append(int(self._runtime.eventCreate()))
        return self._events[-1]

    def elapsed_ns(self, start: int, stop: int) -> int:
        try:
            return int(float(self._runtime.eventElapsedTime(start, stop)) * 1e6)
        except Exception as error:
            raise EnvironmentProblem(f"{self.name}: events cannot be read: {error}") from None

    def memory_left(self) -> int:
        return int(self._runtime.memGetInfo()[0])

    def clocks(self) -> Mapping[str, int]:
        rates = {}
        for name, number in self._maker.clock_numbers.items():
            try:
                rates[name] = int(self._runtime.deviceGetAttribute(number, self.index))
            except Exception:  # newer drivers drop attributes
                continue
        return rates

    def identity(self) -> str:
        """The UUID, which tells the MIG instances of one GPU apart; the PCI address where the driver gives none."""
        return self._uuid() or str(self._runtime.deviceGetPCIBusId(self.index))

    def _uuid(self) -> str:
        get, ask = self._maker.uuid_functions
        device, uuid = ctypes.c_int(), (ctypes.c_ubyte * 16)()
        try:
            failed = getattr(self._driver, get)(ctypes.byref(device), self.index)
            failed = failed or getattr(self._driver, ask)(uuid, device)
        except AttributeError:  # an old driver
            return ""
        return "" if failed or not any(uuid) else bytes(uuid).hex()

    def function(self, name: str) -> int:
        if name in OWN:
            return self._make_callback(name).address(name, self.kind)
        return ctypes.cast(self._function(name), ctypes.c_void_p).value or 0

    def _make_callback(self, name: str) -> DeviceFunctions:
        """The callback of one of :data:`OWN`, which generated code can call; made when first asked for."""
        if name not in self._callbacks:
            makers: dict[str, Callable[[], Callable[..., None]]] = {SPIN: self._spinner, MATMUL: self._multiplier}
            try:
                function = store if name == STORE else makers[name]()
            except Exception as error:  # CuPy's own classes: no NVRTC, no cuBLAS
                raise EnvironmentProblem(
                    f"{self.name}: {name} needs a part of CuPy that fails ({type(error).__name__}: {error}): "
                    f"{self._maker.package} with [ctk] behind its name, or another --timing or -r"
                ) from None
            self._callbacks[name] = DeviceFunctions(**{name: function})
        return self._callbacks[name]

    def _streams_of(self, cupy: ModuleType) -> Callable[[int], Any]:
        """CuPy's object of a stream, made once: making one takes part of the time that is measured."""
        return cache(lambda handle: cupy.cuda.ExternalStream(handle, self.index))

    def _spinner(self) -> Callable[[int, int], None]:
        cupy = load_cupy(self._maker)
        kernel = cupy.RawKernel(self._maker.now + _SPIN, SPIN)
        keep = cupy.zeros(1, cupy.float32)
        blocks = int(self._runtime.getDeviceProperties(self.index)["multiProcessorCount"])
        kernel.compile()
        stream_of = self._streams_of(cupy)

        def spin(ns: int, stream: int) -> None:
            with stream_of(stream):
                kernel((blocks,), (_SPIN_THREADS,), (cupy.int64(ns), keep))

        return spin

    def _multiplier(self) -> Callable[..., None]:
        cupy = load_cupy(self._maker)

        @cache
        def matrix(address: int, rows: int, side: int) -> object:
            memory = cupy.cuda.UnownedMemory(address, 4 * rows * side, None, self.index)
            return cupy.ndarray((rows, side), cupy.float32, cupy.cuda.MemoryPointer(memory, 0))

        cupy.cuda.cublas  # noqa: B018  # loaded here, where a missing library can be named
        stream_of = self._streams_of(cupy)

        def matmul(left: int, right: int, out: int, rows: int, side: int, stream: int) -> None:
            with stream_of(stream):
                cupy.matmul(matrix(left, rows, side), matrix(right, side, side), out=matrix(out, rows, side))

        return matmul

    def _function(self, name: str) -> Any:
        try:
            return getattr(self._driver, self._maker.symbols[name])
        except AttributeError:
            raise EnvironmentProblem(
                f"this driver has no {self._maker.symbols[name]}: a newer driver, or another --timing"
            ) from None

    def call(self, name: str, *operands: int) -> None:
        if name in OWN:
            self._make_callback(name).call(name, self.kind, operands)
            return
        function = self._function(name)
        kinds = [ctypes.c_int64] * len(FUNCTIONS[name].split())
        code = int(function(*(kind(value) for kind, value in zip(kinds, operands, strict=True))))
        if code:
            raise EnvironmentProblem(f"{self.name}: {self._maker.symbols[name]} failed: {self.error_text(code, name)}")

    def error_text(self, code: int, function: str) -> str:
        if function in self._callbacks:  # its code says only that it failed
            return self._callbacks[function].last_error
        return self._maker.error_text(self._driver, code)

    def attach(self, library: object) -> None:
        """The library knows GPUs by itself."""

    def close(self) -> None:
        for event in self._events:
            self._runtime.eventDestroy(event)
        for stream in self._streams:
            self._runtime.streamDestroy(stream)
