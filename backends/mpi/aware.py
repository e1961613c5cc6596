"""Does this MPI take device buffers? A wrong guess is a segmentation fault, so only a positive answer counts.

In this order: the user's word, MPI-4.1's ``mpi_memory_alloc_kinds``, the library's own query functions, vendors'
variables; and then child processes pass messages in device memory, with a time limit.
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

import numpy as np

from omb_py.backends.child import MARK, Variables, Words, answer_of
from omb_py.engine.devices import Device
from omb_py.engine.devices.kind import MpiSupport
from omb_py.engine.devices.registry import SIMULATED, find_kind, open_device
from omb_py.errors import EnvironmentProblem
from omb_py.launchers.mpiexec_family import INTEL, MPICH, OPEN_MPI

VARIABLE: Final = "OMB_PY_GPU_AWARE"
"""1: the library takes device buffers; 0: it does not."""
_VENDOR_VARIABLES: Final = (
    "MPICH_GPU_SUPPORT_ENABLED",
    "I_MPI_OFFLOAD",
    *(f"{family}_USE_{gpu}" for family in ("MV2", "MVP") for gpu in ("CUDA", "ROCM")),
)
_CHILD_S: Final = 60.0
_MESSAGES: Final = (1 << 16, 1 << 22)
"""Bytes of a message that may be copied, and of one that libraries move by mapping the other's memory."""


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


def answer_at_once(vendor: str, device: str, environ: Mapping[str, str] = os.environ) -> Support | None:
    """The answer of the user's word, or for a device that no library knows; None where the library is to be asked."""
    if environ.get(VARIABLE) in ("0", "1"):
        return (
            Support(True, VARIABLE) if environ[VARIABLE] == "1" else _because(_refuse(vendor, device), f"{VARIABLE}=0")
        )
    if find_kind(device).mpi_support is None:
        unknown = f"no library knows {'the simulated device' if device == SIMULATED else device}"
        return _because(_refuse(vendor, device), unknown)
    return None


def declared(mpi: ModuleType, vendor: str, device: str, environ: Mapping[str, str] = os.environ) -> Support:
    """The answer of user, library and variables, without touching device memory.

    Args:
        mpi: mpi4py's MPI module, initialised.
    """
    no, support = _refuse(vendor, device), find_kind(device).mpi_support
    if (answered := answer_at_once(vendor, device, environ)) is not None or support is None:
        return answered or no
    kinds = _alloc_kinds(mpi)
    if device in kinds:
        return Support(True, "mpi_memory_alloc_kinds")
    answer = _query(mpi, support)
    if answer is not None:
        return Support(True, "the library's query function") if answer else _because(no, "its query function says no")
    named = next((name for name in _VENDOR_VARIABLES if environ.get(name) == "1"), "")
    return Support(True, named) if named else _because(no, "nothing says that it does")


def _refuse(vendor: str, device: str) -> Support:
    return Support(False, "", f"{vendor} does not take buffers on {device}", fix_for(vendor, device))


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


def probe(device: str, local: int = 0, timeout: float = _CHILD_S) -> Support:
    """The answer, and the proof of a positive one: messages in device memory have come to where they were sent.

    They travel in child processes on the device of a rank, which must not have opened it yet: it may take one process
    at a time. Where it takes several, two of them exchange messages as ranks do.

    Args:
        local: the rank's number on its machine.
        timeout: seconds for each world of children.
    """
    answer = _child(device, "alone", local, timeout)
    if "support" not in answer:
        return Support(False, "", f"it could not be asked ({answer.get('error', 'no answer')})", fix_for("", device))
    support = Support(**answer["support"])
    if not support.aware or support.how == VARIABLE:
        return support
    if not answer.get("moved"):
        return _unproved(support, answer, "in a child process", device)
    if answer.get("several"):
        pair = _child(device, "pair", local, timeout)
        if pair.get("begun") and not pair.get("moved"):
            return _unproved(support, pair, "between two child processes", device)
    return support


def _unproved(support: Support, answer: Mapping[str, Any], where: str, device: str) -> Support:
    why = answer.get("error") or "it did not arrive"
    reason = f"{support.how} says yes, but a message in device memory failed {where} ({why})"
    return Support(False, "child process", reason, fix_for("", device))


def _child(device: str, question: str, local: int, timeout: float) -> dict[str, Any]:
    start = {"start": _make_two_rank_command} if question == "pair" else {}
    return answer_of("omb_py.backends.mpi.aware", device, question, str(local), timeout=timeout, **start)


def _make_two_rank_command(words: Words, environ: Variables) -> tuple[Words, Variables]:
    """The command that starts two ranks on this machine. Raises OSError where there is none."""
    from omb_py.launchers.launcher import RankRequest
    from omb_py.launchers.machine import LaunchMachine
    from omb_py.launchers.mpiexec import LAUNCHER

    ranks = RankRequest(tuple(words), 2, hosts=("localhost",), bind=False)
    try:
        command = LAUNCHER.command(ranks, LaunchMachine(environ))
    except EnvironmentProblem as problem:
        raise OSError(str(problem)) from None
    return command.words, command.environ


def _message(mpi: ModuleType, device: Device) -> bool:
    """Whether what a rank sends to its neighbour arrives, on all ranks; a world of one sends to itself."""
    from omb_py.engine.devices.memory import DeviceMemory

    world, memory = mpi.COMM_WORLD, DeviceMemory(device)
    peer, whole = (world.rank + 1) % world.size, max(_MESSAGES)
    for name in ("send", "recv"):
        memory.reserve(name, whole)
    right = True
    for nbytes in _MESSAGES:
        memory.view("send", whole)[:] = (np.arange(whole) + world.rank) % 251
        memory.hand_over()
        out, into = (_bytes_at(mpi, memory.address(name), nbytes) for name in ("send", "recv"))
        world.Sendrecv([out, mpi.BYTE], peer, 1, [into, mpi.BYTE], peer, 1)
        right &= bool((memory.view("recv", nbytes) == (np.arange(nbytes) + peer) % 251).all())
    return bool(world.allreduce(right, mpi.LAND))


def _bytes_at(mpi: ModuleType, address: int, nbytes: int) -> Any:
    kind = mpi.buffer if hasattr(mpi, "buffer") else mpi.memory  # its name before mpi4py 4
    return kind.fromaddress(address, nbytes)


def main() -> None:
    """A child: ``python -m omb_py.backends.mpi.aware DEVICE alone|pair LOCAL``."""
    from omb_py.backends.mpi.start import initialise, vendor

    kind, question, local = sys.argv[1:]
    mpi, _ = initialise("single")
    speaks = mpi.COMM_WORLD.rank == 0
    if question == "alone":
        support = declared(mpi, vendor(mpi)[0], kind)
        _tell({"support": asdict(support)})  # what follows may end the process
        tried = support.aware and support.how != VARIABLE
    elif tried := mpi.COMM_WORLD.size == 2:
        _tell({"begun": True}, speaks)
    if tried:
        device = open_device(kind, int(local))
        _tell({"moved": _message(mpi, device), "several": find_kind(kind).takes_several(device.index)}, speaks)
    mpi.Finalize()


def _tell(answer: Mapping[str, object], speaks: bool = True) -> None:
    if speaks:
        print(MARK + json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
