"""The end of a process of omb-py: Python's own would take apart all that was loaded, which takes a while."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from typing import NoReturn

from omb_py.errors import ENVIRONMENT, NEGATIVE, USAGE

_OWN_END = frozenset({"cupy", "torch"})
"""Packages whose libraries end while Python takes itself apart."""
TYPED = "OMB_PY_TYPED"
"""Variable of a command that is rehearsed: the words that the user wrote after ``omb-py``, quoted for a shell."""


def end_process(code: int) -> NoReturn:
    """End as ``sys.exit`` does, after all that was registered for the end, but leave the modules as they are.

    The C library ends the process, so that what is preloaded, such as a profiler, writes its files. Where somebody
    waits for Python's own end (a thread, a tracer, a library that is still in use), it comes.
    """
    if _is_awaited():
        sys.exit(code)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or nobody reads it
            stream.flush()
    import ctypes

    ctypes.PyDLL(None).exit(code)  # it keeps the lock: no other thread of Python goes on meanwhile
    raise AssertionError("exit(3) does not return")


def called_as_omb() -> bool:
    """Whether this program was started by a name of OMB's, as the links of ``omb-py osu-names`` are."""
    return os.path.basename(sys.argv[0]).startswith("osu_")


def code_for_caller(code: int) -> int:
    """The exit code as the caller of this program knows it: OMB's programs have one for every failure."""
    return NEGATIVE if called_as_omb() and code in (USAGE, ENVIRONMENT) else code


def _is_awaited() -> bool:
    here = threading.main_thread()
    mpi = sys.modules.get("mpi4py.MPI")
    return bool(
        any(thread is not here and not thread.daemon for thread in threading.enumerate())
        or sys.gettrace()
        or sys.getprofile()
        or not _OWN_END.isdisjoint(sys.modules)
        or (mpi and mpi.Is_initialized() and not mpi.Is_finalized())
    )
