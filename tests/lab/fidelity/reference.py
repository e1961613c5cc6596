"""The C reference: compiled with the MPI library's own ``mpicc``, called in this process through ctypes."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from tests.support.machines.mpi import run_command

HERE = Path(__file__).parent
SOURCES = (HERE / "reference.c", HERE / "families.c")
HEADER = HERE / "reference.h"
BUILD = Path(__file__).resolve().parents[3] / "build" / "bench"
FLAGS = ("-O3", "-shared", "-fPIC", "-Wall")
COLLECTIVES = ("barrier", "bcast", "allreduce", "allgather", "alltoall")
FAMILIES = tuple(
    (
        "iallreduce.pure iallreduce.exposed allreduce_persistent neighbor_allgather put_latency "
        "put_latency.loop mbw_mr latency_persistent comm_dup"
    ).split()
)
"""Loops of families.c, ``benchmark`` or ``benchmark.part``, in C with an underscore for the dot."""
FUNCTIONS = ("latency", "bw", "bibw", *COLLECTIVES, *FAMILIES)
BUFFERS = {
    "bcast": ("buf", "buf"),
    "barrier": (None, None),
    "comm_dup": (None, None),
    "put_latency": ("send", None),
    "put_latency.loop": ("send", None),
}
"""benchmark -> the buffers of ours that stand for (send, recv); else they have these names."""


class NoCompiler(Exception):
    """The reference cannot be built here."""


def beside_python(name: str) -> Path | None:
    """A program of the virtual environment that runs this, else the one on the PATH."""
    local = Path(sys.executable).parent / name
    if local.is_file():
        return local
    found = shutil.which(name)
    return Path(found) if found else None


def compile_reference() -> Path:
    """Build the shared library, or find the one built before. Raises NoCompiler."""
    mpicc = beside_python("mpicc")
    if mpicc is None:
        raise NoCompiler(f"no mpicc beside {sys.executable} nor on the PATH")
    text = b"".join(part.read_bytes() for part in (*SOURCES, HEADER))
    key = hashlib.sha256(text + f"{mpicc} {FLAGS}".encode()).hexdigest()[:12]
    library = BUILD / f"reference-{key}.so"
    if library.exists():
        return library
    BUILD.mkdir(parents=True, exist_ok=True)
    fresh = library.with_suffix(f".{os.getpid()}")
    command = [str(mpicc), *FLAGS, "-o", str(fresh), *map(str, SOURCES)]
    try:
        done = run_command(command, timeout=120)
    except OSError as error:
        raise NoCompiler(f"{mpicc.name} cannot be run ({error})") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise NoCompiler(f"{mpicc.name} failed ({last}); is a C compiler installed?")
    fresh.replace(library)
    return library


class Reference:
    """The compiled loops, on a communicator and on the buffers of a session."""

    def __init__(self, library: Path, mpi: Any, comm: Any) -> None:
        self._library = ctypes.CDLL(str(library))
        self._mpi = mpi
        handle_type = ctypes.c_void_p if mpi._sizeof(mpi.Comm) == 8 else ctypes.c_int
        pointer, number = ctypes.c_void_p, ctypes.c_int
        for name in (*FUNCTIONS, *(f"{name}_late" for name in COLLECTIVES)):
            function = getattr(self._library, in_c(name))
            function.restype = ctypes.c_double
            function.argtypes = [handle_type, pointer, pointer, number, number, number, number, pointer]
        self._library.use_objects.restype = None
        self._library.use_objects.argtypes = [handle_type, handle_type, ctypes.c_ssize_t, pointer]
        self._comm = mpi._handleof(comm)
        # both sides must call the same copy of the library, not two that lie at different addresses
        ours, theirs = ctypes.CDLL(mpi.__file__), self._library
        for name in ("MPI_Send", "MPI_Allreduce"):
            if _address(ours, name) != _address(theirs, name):
                raise RuntimeError(f"mpi4py and the reference use different copies of {name}")

    def use(self, graph: Any = None, window: Any = None, displacement: int = 0, reply: int = 0) -> None:
        """Let the loops of families.c use these objects of mpi4py, and the reply's byte at this address."""
        of = self._mpi._handleof
        self._library.use_objects(
            of(graph or self._mpi.COMM_NULL), of(window or self._mpi.WIN_NULL), displacement, reply
        )

    def run(self, name: str, memory: Any, size: int, iterations: int, warmup: int, window: int) -> float:
        """The number that OMB would print, on rank 0; `memory` is the session's own HostMemory."""
        send, recv = BUFFERS.get(name.removesuffix("_late"), ("send", "recv"))
        function = getattr(self._library, in_c(name))
        value: float = function(
            self._comm, _start(memory, send), _start(memory, recv), size, iterations, warmup, window, None
        )
        return value


def in_c(name: str) -> str:
    """The function of a loop."""
    return name.replace(".", "_")


def _address(library: ctypes.CDLL, name: str) -> int:
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0


def _start(memory: Any, buffer: str | None) -> int:
    return memory.address(buffer) if buffer else 0
