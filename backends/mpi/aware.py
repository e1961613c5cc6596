"""Does this MPI take device buffers? A wrong guess is a segmentation fault, so only a positive answer counts.

In this order: the user's word, MPI-4.1's ``mpi_memory_alloc_kinds``, the library's own query functions, vendors'
variables; and then a child process passes one message in device memory, with a time limit.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import ModuleType
from typing import Any, Final

from omb_py.backends.child import MARK, answer_of
from omb_py.engine.devices.kind import MpiSupport
from omb_py.engine.devices.registry import SIMULATED, find_kind
from omb_py.launchers.mpiexec_family import INTEL, MPICH, OPEN_MPI

VARIABLE: Final = "OMB_PY_GPU_AWARE"
"""1: the library takes device buffers; 0: it does not."""
_VENDOR_VARIABLES: Final = (
    "MPICH_GPU_SUPPORT_ENABLED",
    "I_MPI_OFFLOAD",
    *(f"{family}_USE_{gpu}" for family in ("MV2", "MVP") for gpu in ("CUDA", "ROCM")),
)
_CHILD_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Support:
    """The support of an MPI library for one kind of device."""

    aware: bool
    how: str
    """The source of the answer."""
    reason: str = ""
    """The reason why it does not take them."""
    fix: str = ""


def fix_for(vendor: str, device: str) -> str:
    """The remedy by which a library of this vendor takes buffers of a device, in its own terms."""
    support = find_kind(device).mpi_support
    with_ = support.configure.get(vendor, support.configure[""]) if support else ""
    words = {
        OPEN_MPI: f"an Open MPI configured {with_} --with-ucx (the PyPI wheel is not), run with OMPI_MCA_pml=ucx",
        MPICH: f"an MPICH configured {with_} (the PyPI wheel is not), run with MPIR_CVAR_ENABLE_GPU=1; Cray's: "
        "MPICH_GPU_SUPPORT_ENABLED=1 and its GTL library linked",
        INTEL: "I_MPI_OFFLOAD=1 I_MPI_OFFLOAD_MODE=cuda I_MPI_OFFLOAD_CUDA_LIBRARY=libcuda.so.1, on a machine with a "
        "GPU (elsewhere it ends the job)",
    }
    return f"{words.get(vendor, 'a library built for GPUs')}; or --staging auto"


def declared(mpi: ModuleType, vendor: str, device: str, environ: Mapping[str, str] = os.environ) -> Support:
    """The answer of user, library and variables, without touching device memory.

    Args:
        mpi: mpi4py's MPI module, initialised.
    """
    no = Support(False, "", f"{vendor} does not take buffers on {device}", fix_for(vendor, device))
    if environ.get(VARIABLE) in ("0", "1"):
        return Support(True, VARIABLE) if environ[VARIABLE] == "1" else _because(no, f"{VARIABLE}=0")
    support = find_kind(device).mpi_support
    if support is None:
        return _because(no, f"no library knows {'the simulated device' if device == SIMULATED else device}")
    kinds = _alloc_kinds(mpi)
    if device in kinds:
        return Support(True, "mpi_memory_alloc_kinds")
    answer = _query(mpi, support)
    if answer is not None:
        return Support(True, "the library's query function") if answer else _because(no, "its query function says no")
    named = next((name for name in _VENDOR_VARIABLES if environ.get(name) == "1"), "")
    return Support(True, named) if named else _because(no, "nothing says that it does")


def _because(support: Support, how: str) -> Support:
    return Support(False, how, f"{support.reason} ({how})", support.fix)


def _alloc_kinds(mpi: ModuleType) -> list[str]:
    try:
        info = mpi.COMM_WORLD.Get_info()
        kinds = info.Get("mpi_memory_alloc_kinds") or ""
        info.Free()
    except (mpi.Exception, NotImplementedError):
        return []
    return [kind.partition(":")[0] for kind in str(kinds).split(",")]


def _query(mpi: ModuleType, kind: MpiSupport) -> bool | None:
    """The answer of the library's own function; None where it has none."""
    library = ctypes.CDLL(mpi.__file__)
    if hasattr(library, "MPIX_GPU_query_support"):
        supported = ctypes.c_int(0)
        if library.MPIX_GPU_query_support(kind.mpich_number, ctypes.byref(supported)) == 0:
            return bool(supported.value)
    if hasattr(library, kind.query):
        return bool(getattr(library, kind.query)())
    return None


def confirmed(device: str, support: Support, timeout: float = _CHILD_S) -> Support:
    """Test a positive answer: a child process with its own MPI world sends itself a message in device memory."""
    if not support.aware or support.how == VARIABLE or find_kind(device).mpi_support is None:
        return support
    answer = _child(device, "message", timeout)
    if answer.get("moved"):
        return support
    why = answer.get("error") or "it did not arrive"
    reason = f"{support.how} says yes, but a message in device memory failed in a child process ({why})"
    return Support(False, "child process", reason, support.fix)


def report(device: str) -> Support:
    """The confirmed answer for ``doctor``: nothing of MPI is started in this process."""
    answer = _child(device, "declared", _CHILD_S)
    if "support" not in answer:
        return Support(False, "", f"it could not be asked ({answer.get('error', 'no answer')})", fix_for("", device))
    return confirmed(device, Support(**answer["support"]))


def _child(device: str, question: str, timeout: float) -> dict[str, Any]:
    return answer_of("omb_py.backends.mpi.aware", device, question, timeout=timeout)


def _message(mpi: ModuleType, device: str) -> bool:
    from omb_py.engine.devices.memory import DeviceMemory
    from omb_py.engine.devices.registry import open_device

    memory, nbytes = DeviceMemory(open_device(device, 0)), 1 << 16
    for name in ("send", "recv"):
        memory.reserve(name, nbytes)
    sent = memory.view("send", nbytes)
    sent[:] = [i % 251 for i in range(nbytes)]
    memory.hand_over()
    out, into = (_bytes_at(mpi, memory.address(name), nbytes) for name in ("send", "recv"))
    mpi.COMM_WORLD.Sendrecv([out, mpi.BYTE], 0, 1, [into, mpi.BYTE], 0, 1)
    return bool((memory.view("recv", nbytes) == sent).all())


def _bytes_at(mpi: ModuleType, address: int, nbytes: int) -> Any:
    kind = mpi.buffer if hasattr(mpi, "buffer") else mpi.memory  # its name before mpi4py 4
    return kind.fromaddress(address, nbytes)


def main() -> None:
    """The child: ``python -m omb_py.backends.mpi.aware DEVICE declared|message``."""
    from omb_py.backends.mpi.start import initialise, vendor

    device, question = sys.argv[1:]
    mpi, _ = initialise("single")
    answer: dict[str, object]
    if question == "declared":
        answer = {"support": asdict(declared(mpi, vendor(mpi)[0], device))}
    else:
        answer = {"moved": _message(mpi, device)}
    print(MARK + json.dumps(answer), flush=True)
    mpi.Finalize()


if __name__ == "__main__":
    main()
