"""Communicators of NCCL: their making, their configuration, their buffers, and groups of ranks."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from omb_py.backends.nccl.config import (
    PEERS_SINCE,
    PER_CALL_SINCE,
    CollectiveConfig,
    collective_config,
    communicator_config,
)
from omb_py.backends.nccl.library import Library
from omb_py.backends.nccl.options import Settings
from omb_py.engine.devices import GATE, Device
from omb_py.engine.devices.memory import DeviceMemory
from omb_py.engine.measuring.payload import from_numbers
from omb_py.engine.program.dtypes import factor
from omb_py.engine.program.groups import Group
from omb_py.errors import EnvironmentProblem

if TYPE_CHECKING:
    from omb_py.backends.nccl.session import NcclSession
    from omb_py.backends.oneccl.session import HostBuffers, OnecclSession

GROW: Final = "comm_grow"
NO_COLOR: Final = -1
"""``NCCL_SPLIT_NOCOLOR``: this rank gets no communicator."""


def splits(groups: Sequence[Group]) -> list[list[Group]]:
    """The groups in as few splits as they need in this order: those of a split have no rank in common."""
    in_splits: list[list[Group]] = []
    for group in groups:
        free = next((split for split in in_splits if not any(set(group) & set(other) for other in split)), None)
        if free is None:
            in_splits.append([group])
        else:
            free.append(group)
    return in_splits


def communicators(library: Library, world: int, rank: int, groups: Sequence[Group]) -> Iterator[tuple[Group, int]]:
    """Make the communicators of some groups, together with all ranks, which name the same groups in the same order.

    Args:
        world: handle of the communicator of all ranks, whose configuration they inherit.
        groups: ranks, in the order that they have in their communicator.

    Yields:
        The groups of this rank, each with its handle.

    Raises:
        EnvironmentProblem: the library refused, or has no ncclCommSplit.
    """
    for split in splits(groups):
        color, mine = next(((c, group) for c, group in enumerate(split) if rank in group), (NO_COLOR, ()))
        handle = library.split(world, color, mine.index(rank) if mine else 0)
        if mine:
            yield mine, handle


SCRATCH: Final = "barrier's byte"
"""The buffer of the reduction that stands for a barrier."""
INTERNAL: Final = 3
"""``ncclInternalError``."""
SYMMETRIC: Final = 1
"""``NCCL_WIN_COLL_SYMMETRIC``."""
REGISTER_SINCE: Final = (2, 19, 0)
WINDOW_SINCE: Final = (2, 27, 0)
CONFIG_SINCE: Final = (2, 17, 0)
POLICY_SINCE: Final = (2, 27, 0)
ZERO_SINCE: Final = (2, 28, 0)
"""First version with the policy ``zero``."""
_ABOVE: Final = {"min_ctas": "NCCL_MIN_CTAS", "max_ctas": "NCCL_MAX_CTAS", "cta_policy": "NCCL_CTA_POLICY"}
"""Settings of a communicator's configuration -> variables that hold instead of it."""
CHOOSING: Final = ("NCCL_ALGO", "NCCL_PROTO", "NCCL_SYM_KERNEL")
"""Variables that make NCCL ignore the algorithms of a call's configuration."""


def check(settings: Settings, library: Library) -> None:
    """Raises EnvironmentProblem for what this version of the library cannot do."""
    for requested, since, feature in (
        (settings.registration == "register", REGISTER_SINCE, "ncclCommRegister"),
        (settings.registration == "window", WINDOW_SINCE, "ncclCommWindowRegister"),
        (settings.min_ctas or settings.max_ctas, CONFIG_SINCE, "minCTAs and maxCTAs"),
        (settings.cta_policy, POLICY_SINCE, "CTAPolicy"),
        (settings.cta_policy == "zero", ZERO_SINCE, "CTA policy zero"),
    ):
        if requested and (library.version < since or (feature.startswith("nccl") and not library.has(feature))):
            number = ".".join(map(str, since[:2]))
            raise EnvironmentProblem(
                f"{library.name} {library.version_text} has no {feature}, which came with {number}: "
                "a newer version, or leave it out of --nccl"
            )
    for key, variable in _ABOVE.items():
        if getattr(settings, key) and os.environ.get(variable):
            raise EnvironmentProblem(
                f"{variable} is set, which {library.name} puts above {key} of --nccl: unset it, or leave {key} out"
            )
    if os.environ.get("NCCL_COMM_BLOCKING") == "0":
        raise EnvironmentProblem("NCCL_COMM_BLOCKING is 0: unset it, since omb-py waits for each communicator")


def per_call(settings: Settings, library: Library) -> bool:
    """Whether the algorithm is chosen call by call; else by NCCL_ALGO when the communicator is made.

    A call's choice does not hold beside one by a variable, and with RCCL for symmetric kernels alone.
    """
    able = library.name == "NCCL" and library.version >= PER_CALL_SINCE and library.has("ncclAllReduceConfig")
    return bool(settings.algorithm) and able and not settings.protocol and not any(map(os.environ.get, CHOOSING))


def of_communicator(settings: Settings) -> Settings:
    """The part that a communicator is made with: cells that differ in the rest share it."""
    return replace(settings, aggregate=1, replays=1, unaligned=0, log="off")


def allocates(settings: Settings, library: Library) -> bool:
    """Whether buffers come from ncclMemAlloc without being registered, as those of nccl-tests from 2.19 on.

    Those of rccl-tests do with the newest HIP alone, for whose sake RCCL is left out.
    """
    return settings.method == "nccl-tests" and library.name == "NCCL" and library.version >= REGISTER_SINCE


def peers_of(benchmark: str, settings: Settings, library: Library) -> int:
    """``maxP2pPeers`` of a benchmark's communicator: 2 where nccl-tests say so, in sendrecv from 2.30 on; else 0."""
    alike = settings.method == "nccl-tests" and benchmark == "sendrecv" and library.version >= PEERS_SINCE
    return 2 if alike else 0


def barrier_apart(benchmark: str, settings: Settings, library: Library) -> bool:
    """Whether the barrier between iterations has a communicator of its own.

    A choice by variables holds for all calls of a communicator, and the barrier is an AllReduce of bytes: NVLS has no
    bytes and PAT no AllReduce, and NCCL refuses a call for which nothing is left. The benchmark ``barrier`` measures
    the choice.
    """
    chosen = settings.protocol or (settings.algorithm and not per_call(settings, library))
    return benchmark != "barrier" and bool(chosen or any(map(os.environ.get, CHOOSING)))


class Communicators:
    """One communicator or several, over the same ranks, with a stream for each, and the buffers that go with them.

    The Python bindings use the buffers and have communicators of their own: these are made when the native binding
    needs them (:meth:`make`).
    """

    def __init__(
        self,
        session: NcclSession | OnecclSession,
        settings: Settings | None = None,
        peers: int = 0,
        apart: bool = False,
        memory: HostBuffers | None = None,
    ) -> None:
        self.settings, self.peers, self._apart = settings or Settings(), peers, apart
        self.library, self.device, self._session = session.nccl, session.device, session
        self.config: CollectiveConfig | None = None
        """Configuration of each call, where the library takes one."""
        self.handles = np.zeros(0, np.int64)
        self.streams = np.zeros(0, np.int64)
        self._makers: dict[tuple[str, Group], Any] = {}
        self.groups: dict[Group, int] = {}
        """The communicators of some ranks that this rank is in."""
        self._barriers: dict[Group, int] = {}
        """Communicators for the barrier alone, of all ranks (empty group) and of groups."""
        self._known: set[Group] = set()
        self._mulsums: dict[tuple[str, Group], NDArray[np.int64]] = {}
        """(type, group) -> the reduction ``mulsum`` of each communicator."""
        self.memory = cast("DeviceMemory", memory)  # which has what is used of one
        if self.settings.registration != "none":
            self.memory = RegisteredMemory(session, self)
            return
        if memory is None:
            own = allocates(self.settings, self.library)
            self.memory = DeviceMemory(NcclDevice(self.device, self.library) if own else self.device)
        self.memory.reserve(SCRATCH, 1)

    def make(self) -> None:
        """The communicators themselves, together with all other ranks; nothing where they are there already.

        Raises EnvironmentProblem: the library refused.
        """
        if self.handles.size:
            return
        settings = self.settings
        if per_call(settings, self.library):
            self.config = collective_config(settings.algorithm)
        with self._choose():
            comms = [self.created() for _ in range(settings.communicators)]
        if self._apart:
            with without_choice():
                self._barriers[()] = self.created()
        streams = [self.device.stream, *(self.device.new_stream() for _ in comms[1:])]
        self.streams, self.handles = np.array(streams, np.int64), np.array(comms, np.int64)
        self.memory.reserve(SCRATCH, 1)

    def make_groups(self, groups: Sequence[Group]) -> None:
        """Communicators of the groups of all ranks, which call this together with the same ones; each is made once.

        Raises EnvironmentProblem: the library refused.
        """
        new = [group for group in groups if group not in self._known]
        rank = self._session.rank
        with self._choose():  # which the library reads for each communicator that it makes
            self.groups.update(communicators(self.library, self.first, rank, new))
        if self._apart:
            with without_choice():
                self._barriers.update(communicators(self.library, self._barriers[()], rank, new))
        self._known.update(new)

    def _choose(self) -> AbstractContextManager[None]:
        """Algorithm and protocol in the environment, as far as they are not chosen call by call."""
        return environment_of(replace(self.settings, algorithm="") if self.config is not None else self.settings)

    def barrier_of(self, group: Group) -> int:
        """The communicator of the barrier of a group, or of all ranks."""
        return self._barriers.get(group) or self.handle_of(group)

    def window_of(self, buffer: str) -> int:
        """The window of a buffer with the first communicator.

        Raises EnvironmentProblem: the library has made none, or buffers are not registered as windows.
        """
        handle = self.memory.window_of(buffer) if isinstance(self.memory, RegisteredMemory) else 0
        if not handle:
            raise EnvironmentProblem(
                f"{self.library.name} made no window of the buffer {buffer}, since not all ranks' GPUs reach each "
                "other's memory: --backend mpi"
            )
        return handle

    def handle_of(self, group: Group) -> int:
        """The communicator of a group of this rank; of an empty one that of all ranks."""
        return self.groups[group] if group else self.first

    def created(self) -> int:
        """A further communicator of all ranks, which make it together. Raises EnvironmentProblem."""
        session = self._session
        unique = session.share(self.library.unique_id() if session.rank == 0 else b"")
        return self.library.init_rank(session.size, unique, session.rank, self._configuration())

    def _configuration(self) -> ctypes.Structure | None:
        """Of a communicator that inherits none."""
        return communicator_config(self._session.limited(self.settings), self.peers)

    def grown(self, old: Group) -> int:
        """A communicator of all ranks from that of the old ones; empty: this rank joins. Raises EnvironmentProblem.

        The first of them, rank 0, has the id by which the others join.
        """
        session, comm = self._session, self.groups[old] if old else 0
        unique = session.share(self.library.grow_id(comm) if session.rank == 0 else b"")
        if session.rank == 0:
            return self.library.grow(comm, session.size, unique, -1)
        if comm:
            return self.library.grow(comm, session.size, b"", -1)
        return self.library.grow(0, session.size, unique, session.rank, self._configuration())

    def maker(self, op: str, old: Group) -> int:
        """Address of a C function of one operand: it makes a communicator and stores its handle.

        The id's way to the other ranks is a part of it, as in every program.

        Args:
            op: ``comm_create`` as :meth:`created`, ``comm_grow`` as :meth:`grown`.
            old: the ranks from which it grows.
        """
        if (op, old) not in self._makers:

            def make(where: int) -> int:
                try:
                    handle = self.grown(old) if op == GROW else self.created()
                except EnvironmentProblem:
                    return INTERNAL  # whose text is the library's own last error
                ctypes.c_int64.from_address(where).value = handle
                return 0

            self._makers[op, old] = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64)(make)
        return ctypes.cast(self._makers[op, old], ctypes.c_void_p).value or 0

    def memory_counted(self) -> list[Mapping[str, int]]:
        """What the library counts of the GPU's memory, of each communicator that there is."""
        return [self.library.memory_of(handle) for handle in self._list_handles() if handle]

    def mulsum(self, dtype: str, number: int, group: Group = ()) -> NDArray[np.int64]:
        """The reduction ``mulsum`` of each communicator, or of that of a group, made when it is asked for first.

        Args:
            group: its ranks; empty: all.

        Raises:
            EnvironmentProblem: the library refused.
        """
        if (dtype, group) not in self._mulsums:
            rank = self._session.rank
            scalar = from_numbers(np.array([factor(group.index(rank) if group else rank)]), dtype).tobytes()
            operations = [self.library.mulsum(comm, scalar, number) for comm in self._multiplying(group)]
            self._mulsums[dtype, group] = np.array(operations, np.int64)
        return self._mulsums[dtype, group]

    def _multiplying(self, group: Group) -> list[int]:
        return [self.groups[group]] if group else list(map(int, self.handles))

    @property
    def first(self) -> int:
        """The only one, or the first; 0 where none was needed."""
        return int(self.handles[0]) if self.handles.size else 0

    def _list_handles(self) -> tuple[int, ...]:
        """Those of all communicators."""
        return (*map(int, self.handles), *self.groups.values(), *self._barriers.values())

    def async_error(self) -> tuple[int, str] | None:
        """The error that an operation met after its call had returned."""
        for handle in self._list_handles():
            code = self.library.async_error(handle)
            if code:
                return code, self.library.error_text(code, handle)
        return None

    def abort(self, revoke: Callable[[Sequence[int]], None] = lambda handles: None) -> None:
        """End everything that still runs, and free them.

        Args:
            revoke: takes them from a loop that runs; one that loads them (:attr:`handles`) finds none from now on.
        """
        handles = [*self.groups.values(), *self._barriers.values(), *map(int, self.handles)]
        self.groups, self._barriers, self.handles[:] = {}, {}, 0
        revoke(handles)
        for handle in handles:
            self.library.abort(handle)

    def destroy(self) -> None:
        """Free buffers and communicators."""
        self.memory.close()
        for (_, group), operations in self._mulsums.items():
            for op, handle in zip(map(int, operations), self._multiplying(group), strict=True):
                self.library.free_mulsum(op, handle)
        for handle in (*self.groups.values(), *reversed(self._barriers.values()), *map(int, self.handles)):
            self.library.destroy(handle)


def environment_of(settings: Settings) -> AbstractContextManager[None]:
    """Set algorithm and protocol in the variables that NCCL reads when any binding makes a communicator."""
    values: dict[str, str] = {}
    if settings.algorithm:
        values["NCCL_ALGO"] = settings.algorithm.replace("+", ",")
    if settings.protocol:
        values["NCCL_PROTO"] = settings.protocol.upper() if settings.protocol != "simple" else "Simple"
    return _variables(values)


def without_choice() -> AbstractContextManager[None]:
    """Let NCCL choose freely for the communicators that are made meanwhile."""
    return _variables(dict.fromkeys(CHOOSING))


@contextmanager
def _variables(values: Mapping[str, str | None]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    _set(values)
    try:
        yield
    finally:
        _set(before)


def _set(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


class NcclDevice:
    """The device, whose memory ncclMemAlloc gives."""

    def __init__(self, device: Device, library: Library) -> None:
        self._device, self._library = device, library
        self._own: set[int] = set()

    def allocate(self, nbytes: int) -> int:
        address = self._library.mem_alloc(nbytes)
        self._own.add(address)
        return address

    def free(self, address: int) -> None:
        if address in self._own:
            self._own.remove(address)
            self._library.mem_free(address)
        else:
            self._device.free(address)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)


class RegisteredMemory(DeviceMemory):
    """Buffers that are registered with communicators: equally large on all ranks, as symmetric windows must be."""

    def __init__(self, session: NcclSession | OnecclSession, comms: Communicators) -> None:
        super().__init__(NcclDevice(session.device, session.nccl))
        self._session, self._comms = session, comms
        self._window = comms.settings.registration == "window"
        self._known: dict[str, list[int]] = {}
        """Handles of the registrations of each buffer, one a communicator; 0: NCCL made no window."""

    def reserve(self, name: str, nbytes: int) -> None:
        """Make buffer `name` at least `nbytes` large; all ranks call it together, since they register it together."""
        if name == GATE:  # NCCL does not touch it
            super().reserve(name, nbytes)
            return
        nbytes = int(self._session.maximum(np.array([float(max(1, nbytes))]))[0])
        if name in self._places and self._places[name][1] >= nbytes:
            return
        self._deregister(name)
        super().reserve(name, nbytes)
        library, address = self._comms.library, self.address(name)
        self._known[name] = [
            library.register(comm, address, nbytes, SYMMETRIC if self._window else None)
            for comm in map(int, self._comms.handles)
        ]

    def windows(self) -> str:
        """Whether buffers are windows: ``symmetric``, or ``none`` where NCCL answered yes and made none of some buffer.

        It does so where the ranks' GPUs do not all reach each other's memory. Empty where none was asked for.
        """
        handles = [handle for registered in self._known.values() for handle in registered]
        return ("symmetric" if all(handles) else "none") if self._window and handles else ""

    def window_of(self, name: str) -> int:
        """The window of a buffer with the first communicator; 0 where there is none."""
        return self._known.get(name, [0])[0] if self._window else 0

    def _deregister(self, name: str) -> None:
        for comm, handle in zip(map(int, self._comms.handles), self._known.pop(name, []), strict=False):
            if handle:
                self._comms.library.deregister(comm, handle, self._window)

    def close(self) -> None:
        for name in list(self._known):
            self._deregister(name)
        super().close()


def pointer_to(config: Any) -> int:
    """Address of a configuration; 0 for none."""
    return ctypes.addressof(config) if config is not None else 0
