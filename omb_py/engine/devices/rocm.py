"""AMD GPUs."""

from __future__ import annotations

import ctypes
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final

from omb_py.engine.devices.kind import GpuKind, MpiSupport

if TYPE_CHECKING:
    from omb_py.engine.devices.gpu_counters import GpuCounter


class RocmKind(GpuKind):
    """HIP's driver; amdsmi counts."""

    def counter(self, identity: str) -> AbstractContextManager[GpuCounter]:
        from omb_py.engine.devices.gpu_counters import count_amd

        return count_amd(identity)

    def error_text(self, driver: ctypes.CDLL, code: int) -> str:
        driver.hipGetErrorString.restype = ctypes.c_char_p
        return (driver.hipGetErrorString(code) or b"").decode()


KIND: Final = RocmKind(
    "rocm",
    maker="AMD",
    driver_files=("/dev/kfd",),
    visible=("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
    mpi_support=MpiSupport("MPIX_Query_rocm_support", 2, {"Open MPI": "--with-rocm", "": "--with-hip"}),
    arrays=("cupy", "torch"),
    torch_version="hip",
    libraries=("libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6"),
    symbols={
        "synchronise": "hipStreamSynchronize",
        "copy_in": "hipMemcpyHtoDAsync",
        "copy_out": "hipMemcpyDtoHAsync",
        "fill": "hipMemsetAsync",
        "record": "hipEventRecord",
        "begin_capture": "hipStreamBeginCapture",
        "end_capture": "hipStreamEndCapture",
        "instantiate": "hipGraphInstantiateWithFlags",
        "launch": "hipGraphLaunch",
        "destroy_graph": "hipGraphDestroy",
        "destroy_executable": "hipGraphExecDestroy",
        "wait_value": "hipStreamWaitValue32",
        "launch_host": "hipLaunchHostFunc",
        "prefetch": "hipMemPrefetchAsync",
    },
    now="__device__ long long now() { return wall_clock64() * 10; }",  # it counts 100 MHz
    uuid_functions=("hipDeviceGet", "hipDeviceGetUuid"),
    package="pip install cupy-rocm-7-0",
    advice={
        35: "the driver is older than CuPy's ROCm: pip install cupy-rocm-7-0 needs ROCm 7",
        100: "no GPU is visible: ask the batch system for one, or look at HIP_VISIBLE_DEVICES",
    },
    clock_numbers={"clock": 5, "memory_clock": 60},  # of hipDeviceAttribute_t, ROCm 6.1 and later
    signal_function="hipExtMallocWithFlags",
)
