"""The base classes of kinds of devices. A kind is declared without loading anything; a rank opens its device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from omb_py.errors import EnvironmentProblem

if TYPE_CHECKING:
    import ctypes

    from omb_py.engine.devices import Device
    from omb_py.engine.devices.gpu_counters import GpuCounter
    from omb_py.engine.rank.launch_facts import GpuInventory


@dataclass(frozen=True, eq=False)
class MpiSupport:
    """How an MPI library says that it takes buffers of a device. Its memory kind in MPI-4.1 is the device's name."""

    query: str
    """The function of Open MPI that answers: ``MPIX_Query_cuda_support``."""
    mpich_number: int
    """The number for MPICH's MPIX_GPU_query_support."""
    configure: Mapping[str, str]
    """Vendor of the library -> option with which it is configured; ``""``: any other."""


@dataclass(frozen=True, eq=False)
class DeviceKind:
    """A kind of device on which buffers live.

    A kind of another package is an object that an entry point of the group ``omb_py.devices`` names::

        from omb_py.plugin import Device, DeviceKind

        class Xpu(DeviceKind):
            def count(self) -> int:
                import dpctl
                return len(dpctl.get_devices("gpu"))

            def open(self, index: int) -> Device:
                from omb_xpu.device import XpuDevice  # memory, streams, events and clocks
                return XpuDevice(index)

        KIND = Xpu("xpu", maker="Intel", driver_files=("/dev/dri/renderD128",), visible=("ZE_AFFINITY_MASK",))

    ``omb-py latency -d xpu`` then measures MPI with copies through the host; directly, where `mpi_support` says how
    a library tells that it takes such buffers.
    """

    name: str
    """The word of ``--device``."""
    maker: str = ""
    """The maker of its GPUs, for messages; empty: it is no GPU."""
    driver_files: tuple[str, ...] = ()
    """One of these files exists when its driver is loaded."""
    visible: tuple[str, ...] = ()
    """Variables that hide GPUs; the first that is set counts."""
    mpi_support: MpiSupport | None = None
    """None: no MPI library knows it, so buffers are copied through the host."""
    arrays: tuple[str, ...] = ("cupy", "torch", "numba")
    """Packages whose arrays may hold its memory (:data:`omb_py.engine.program.buffers.ON_DEVICE`)."""
    plain_arrays: bool = False
    """Its memory is shown as an array by omb-py itself, whatever package is asked for."""
    torch_version: str = ""
    """The attribute of ``torch.version`` that a PyTorch built for it has, in upper case the name of that build."""

    @property
    def is_gpu(self) -> bool:
        """Whether it is a GPU, which launchers may have to be asked for."""
        return bool(self.maker)

    def has_driver(self, exists: Callable[[Path], bool] = Path.exists) -> bool:
        """Whether its driver is loaded on this machine."""
        return any(exists(Path(name)) for name in self.driver_files)

    def count(self) -> int:
        """Devices that this process sees. Raises EnvironmentProblem where they cannot be used, with what to do."""
        raise NotImplementedError

    def count_all(self) -> int:
        """Devices of this machine, also hidden ones where that can be known. Raises EnvironmentProblem."""
        return self.count()

    def open(self, index: int) -> Device:
        """Open the device with this number."""
        raise NotImplementedError

    def takes_several(self, index: int) -> bool:
        """Whether several processes may have one of its devices at a time."""
        return True

    def problem(self) -> str:
        """Why none can be used here; empty where one can."""
        try:
            return "" if self.count() else f"no {self.name} GPU is visible"
        except EnvironmentProblem as problem:
            return str(problem)

    def counter(self, identity: str) -> AbstractContextManager[GpuCounter]:
        """The counters of the device with this identity. Raises EnvironmentProblem."""
        raise EnvironmentProblem(f"nothing counts the energy of {self.name}")

    def machine_facts(self) -> GpuInventory | None:
        """What a launch stores of the devices of its node; None: nothing."""
        return None

    def open_for(self, rank: int) -> Device:
        """The device of a local rank: ranks take the devices that they see in turn.

        Whether several have the same one is known when all have opened theirs (:mod:`omb_py.engine.devices.buffers`).

        Raises:
            EnvironmentProblem: there is no such device.
        """
        return self.open(choose_device(rank, self.count(), self.name))


@dataclass(frozen=True, eq=False)
class GpuKind(DeviceKind):
    """A GPU that CuPy opens, and whose driver has the same functions as CUDA's."""

    libraries: tuple[str, ...] = ()
    """File names of the driver's library."""
    symbols: Mapping[str, str] = field(default_factory=dict)
    """Our names -> the driver's. Operands are in the same order (:data:`~omb_py.engine.devices.FUNCTIONS`)."""
    now: str = ""
    """Source of a device function ``long long now()``, in ns."""
    uuid_functions: tuple[str, str] = ("", "")
    package: str = ""
    """The line that installs CuPy for it."""
    advice: Mapping[int, str] = field(default_factory=dict)
    """What to do where the runtime finds no usable GPU, by its return code."""
    clock_numbers: Mapping[str, int] = field(default_factory=dict)
    """Numbers of attributes whose values are in kHz."""
    signal_function: str = ""
    """The function that allocates the word which holds a stream back, where mapped memory does not do."""

    def count(self) -> int:
        from omb_py.engine.devices.gpu import count_gpus  # loads ctypes and CuPy

        return count_gpus(self)

    def open(self, index: int) -> Device:
        from omb_py.engine.devices.gpu import Gpu

        return Gpu(self, index)

    def capability(self, properties: Mapping[str, object]) -> tuple[int, int] | None:
        """Compute capability; None for GPUs of other makers."""
        return None

    def error_text(self, driver: ctypes.CDLL, code: int) -> str:
        """The driver's text of a return code."""
        raise NotImplementedError


def choose_device(rank: int, count: int, kind: str) -> int:
    """Number of the device of a local rank. Raises EnvironmentProblem where none is visible."""
    if count < 1:
        raise EnvironmentProblem(f"--device {kind}: no such device is visible to local rank {rank}: use --device cpu")
    return rank % count
