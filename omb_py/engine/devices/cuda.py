"""NVIDIA GPUs."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

from omb_py.engine.devices.kind import GpuKind, MpiSupport

if TYPE_CHECKING:
    from omb_py.engine.devices.gpu_counters import GpuCounter
    from omb_py.engine.rank.launch_facts import GpuInventory


_COMPUTE_MODE: Final = 20
"""cudaDevAttrComputeMode."""
_EXCLUSIVE_PROCESS: Final = 3


class CudaKind(GpuKind):
    """CUDA's driver; NVML counts and describes."""

    def count_all(self) -> int:
        from omb_py.engine.devices import nvml

        return len(nvml.inventory().gpus)

    def takes_several(self, index: int) -> bool:
        from omb_py.engine.devices.gpu import load_cupy

        mode = load_cupy(self).cuda.runtime.deviceGetAttribute(_COMPUTE_MODE, index)
        return bool(mode != _EXCLUSIVE_PROCESS)

    def counter(self, identity: str) -> AbstractContextManager[GpuCounter]:
        from omb_py.engine.devices.gpu_counters import count_nvidia

        return count_nvidia(identity)

    def machine_facts(self) -> GpuInventory:
        from omb_py.engine.devices import nvml

        return nvml.facts()

    def capability(self, properties: Mapping[str, Any]) -> tuple[int, int] | None:
        return (int(properties["major"]), int(properties["minor"])) if "major" in properties else None

    def error_text(self, driver: ctypes.CDLL, code: int) -> str:
        text = ctypes.c_char_p()
        driver.cuGetErrorString(code, ctypes.byref(text))
        return (text.value or b"unknown error").decode()


_PACKAGE: Final = "pip install cupy-cuda13x (or cupy-cuda12x)"
_ADVICE: Final = {
    35: f"the driver is older than CuPy's CUDA: {_PACKAGE}, as nvidia-smi names its CUDA, or a newer driver",
    100: "no GPU is visible: ask the batch system for one, or look at CUDA_VISIBLE_DEVICES",
    802: "the NVLink switches are not ready: start nvidia-fabricmanager of the driver's own version",
    803: "library and kernel module of the driver are of different versions: load the new module, or start the machine "
    "anew",
}
"""cudaErrorInsufficientDriver, NoDevice, SystemNotReady, SystemDriverMismatch."""

KIND: Final = CudaKind(
    "cuda",
    maker="NVIDIA",
    driver_files=("/dev/nvidia0", "/dev/nvidiactl", "/dev/dxg"),
    visible=("CUDA_VISIBLE_DEVICES",),
    mpi_support=MpiSupport("MPIX_Query_cuda_support", 0, {"": "--with-cuda"}),
    torch_version="cuda",
    libraries=("libcuda.so.1",),
    symbols={
        "synchronise": "cuStreamSynchronize",
        "copy_in": "cuMemcpyHtoDAsync_v2",
        "copy_out": "cuMemcpyDtoHAsync_v2",
        "fill": "cuMemsetD8Async",
        "record": "cuEventRecord",
        "begin_capture": "cuStreamBeginCapture_v2",
        "end_capture": "cuStreamEndCapture",
        "instantiate": "cuGraphInstantiateWithFlags",
        "launch": "cuGraphLaunch",
        "destroy_graph": "cuGraphDestroy",
        "destroy_executable": "cuGraphExecDestroy",
        "wait_value": "cuStreamWaitValue32_v2",
        "launch_host": "cuLaunchHostFunc",
        "prefetch": "cuMemPrefetchAsync",
    },
    now="""
__device__ long long now() { long long t; asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t)); return t; }""",
    uuid_functions=("cuDeviceGet", "cuDeviceGetUuid_v2"),  # the second form gives a MIG instance its own
    package=_PACKAGE,
    advice=_ADVICE,
    clock_numbers={"clock": 13, "memory_clock": 36},  # of cudaDeviceAttr
)
