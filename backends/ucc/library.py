"""libucc through ctypes: the library, its context of all ranks, and the teams of some.

As a program it is a child process that says whether a library can be used: ``python -m omb_py.backends.ucc.library
FILE``.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from array import array
from collections.abc import Callable, Mapping, Sequence
from ctypes import byref, c_char_p, c_int, c_uint, c_void_p
from typing import Final

from omb_py.backends.ucc.structures import (
    ALLGATHER,
    IN_PROGRESS,
    NO_MESSAGE,
    OF_REQUEST,
    OK,
    VARIABLE,
    ContextParameters,
    EndpointMap,
    LibraryParameters,
    OutOfBand,
    TeamParameters,
)
from omb_py.engine.samples import address_of_array
from omb_py.errors import EnvironmentProblem

NAME: Final = "UCC"
FILES: Final = ("libucc.so.1", "libucc.so")
FIX: Final = (
    "install UCC with UCX (libucc1 of Debian sid, HPC-X, or built from github.com/openucx/ucc), or "
    f"name the library in {VARIABLE}"
)
_USUAL: Final = {"UCX_LOG_FILE": "stderr"}
"""Variables that are set where the user has not: both libraries print their warnings to stdout, where a table is."""
_REQUEST: Final = 1
"""The request of an exchange, which is done when it is asked for: any address but null."""

Exchange = Callable[[bytes], Sequence[bytes]]
"""Gives all ranks the bytes of each, in the order of ranks."""


def candidates(environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Files of the library in the order in which they are tried."""
    return (environ[VARIABLE],) if environ.get(VARIABLE) else FILES


def load() -> UccLibrary:
    """The library of this machine. Raises EnvironmentProblem with what to install."""
    reasons = []
    for name in candidates():
        try:
            return UccLibrary(name)
        except (OSError, AttributeError) as error:
            reasons.append(str(error))
    raise EnvironmentProblem(f"backend ucc: no UCC library ({reasons[0]}): {FIX}")


class UccLibrary:
    """libucc, initialised for one thread.

    Raises:
        AttributeError: it is no UCC library.
        OSError: it cannot be used here.
    """

    def __init__(self, path: str) -> None:
        for name, value in _USUAL.items():
            os.environ.setdefault(name, value)
        self.handle, self.path = ctypes.CDLL(path), path
        self.handle.ucc_status_string.restype = c_char_p
        self.handle.ucc_get_version_string.restype = c_char_p
        self.version: str = self.handle.ucc_get_version_string().decode()
        self.lib = c_void_p()
        config = c_void_p()
        try:
            self.call("ucc_lib_config_read", None, None, byref(config))
            self._initialise(config)
        except EnvironmentProblem as problem:
            raise OSError(str(problem)) from None

    def _initialise(self, config: c_void_p) -> None:
        major, minor, patch = c_uint(), c_uint(), c_uint()
        self.handle.ucc_get_version(byref(major), byref(minor), byref(patch))
        self.call("ucc_init_version", major, minor, byref(LibraryParameters()), config, byref(self.lib))
        self.handle.ucc_lib_config_release(config)

    def call(self, function: str, *operands: object) -> None:
        """Call a function that returns a status. Raises EnvironmentProblem with its meaning."""
        status = getattr(self.handle, function)(*operands)
        if status < 0:
            raise EnvironmentProblem(f"{function}: {self.error_text(status)}")

    def error_text(self, status: int) -> str:
        """The meaning of a status."""
        text: bytes = self.handle.ucc_status_string(c_int(status)) or b"unknown"
        return f"{NAME}: {text.decode(errors='replace')}"

    def address_of(self, function: str) -> int:
        """Address of a function."""
        return ctypes.cast(getattr(self.handle, function), c_void_p).value or 0

    def close(self) -> None:
        """Finalise the library."""
        self.handle.ucc_finalize(self.lib)


class Teams:
    """The context of this process, and teams: one of all ranks, others of some.

    Args:
        exchange: how ranks tell each other bytes while the context is made.

    Raises:
        EnvironmentProblem: the library refused.
    """

    def __init__(self, library: UccLibrary, rank: int, size: int, exchange: Exchange) -> None:
        self.library, self.rank = library, rank
        self._exchange = exchange
        self._failure: Exception | None = None
        self._callbacks = ALLGATHER(self._allgather), OF_REQUEST(lambda request: OK), OF_REQUEST(lambda request: OK)
        self.context = c_void_p()
        self._handles: dict[tuple[int, ...], int] = {}
        self._maps: list[array[int]] = []
        """The ranks of each team, which the library reads as long as the team lives."""
        config = c_void_p()
        library.call("ucc_context_config_read", library.lib, None, byref(config))
        oob = OutOfBand(*self._callbacks, None, size, rank)
        given = ContextParameters(mask=ContextParameters.HAS_OOB, oob=oob)
        try:
            library.call("ucc_context_create", library.lib, byref(given), config, byref(self.context))
        except EnvironmentProblem as problem:
            raise (self._failure or problem) from None
        finally:
            library.handle.ucc_context_config_release(config)
        self._handles[()] = self._create(tuple(range(size)))

    def _allgather(self, sent: int, received: int, nbytes: int, info: int, request: ctypes.Array[c_void_p]) -> int:
        """``ucc_oob_coll_t.allgather``: it blocks, so its request is done at once."""
        try:
            parts = self._exchange(ctypes.string_at(sent, nbytes))
        except Exception as error:  # nothing may leave a function that C has called
            self._failure = error
            return NO_MESSAGE
        ctypes.memmove(received, b"".join(parts), nbytes * len(parts))
        request[0] = _REQUEST
        return OK

    def make(self, groups: Sequence[tuple[int, ...]]) -> None:
        """Make the teams of the groups of all ranks, which name the same ones in the same order; each once.

        Raises EnvironmentProblem: the library refused.
        """
        for group in groups:
            if self.rank in group and group not in self._handles:
                self._handles[group] = self._create(group)

    def _create(self, group: tuple[int, ...]) -> int:
        ranks, team = array("Q", group), c_void_p()
        self._maps.append(ranks)
        where = EndpointMap(EndpointMap.ARRAY, len(group), address_of_array(ranks), ranks.itemsize)
        mask = TeamParameters.HAS_EP | TeamParameters.HAS_EP_RANGE | TeamParameters.HAS_EP_MAP
        given = TeamParameters(mask=mask, ep=group.index(self.rank), ep_map=where)
        self.library.call("ucc_team_create_post", byref(self.context), c_uint(1), byref(given), byref(team))
        while (status := self.library.handle.ucc_team_create_test(team)) == IN_PROGRESS:
            self.library.call("ucc_context_progress", self.context)
        if status < 0:
            raise EnvironmentProblem(f"ucc_team_create_test: {self.library.error_text(status)}")
        return team.value or 0

    def handle_of(self, group: tuple[int, ...]) -> int:
        """The team of a group of this rank; of an empty one that of all ranks."""
        return self._handles[group]

    def close(self) -> None:
        """Destroy the teams, then the context; all ranks call it together."""
        for handle in reversed(self._handles.values()):
            while self.library.handle.ucc_team_destroy(c_void_p(handle)) == IN_PROGRESS:
                self.library.call("ucc_context_progress", self.context)
        self._handles.clear()
        self.library.handle.ucc_context_destroy(self.context)


def loaded_file(path: str) -> str:
    """The file of a loaded library."""
    name = path.rpartition("/")[2]
    with open("/proc/self/maps") as maps:
        return next((line.split()[-1] for line in maps if "/" + name in line), path)


def main() -> None:
    """Load a library and initialise it, and print what it is."""
    from omb_py.backends.child import MARK  # ranks need none of it

    try:
        library = UccLibrary(sys.argv[1])
        answer = {"version": library.version, "file": loaded_file(library.path)}
    except (OSError, AttributeError) as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(MARK + json.dumps(answer))


if __name__ == "__main__":
    main()
