"""The program of a workload: its calls one by one, then all in flight, then beside computing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count, groupby
from typing import TYPE_CHECKING, Final

from omb_py.engine.program import rma, steps
from omb_py.engine.program.benchmark import World
from omb_py.engine.program.dtypes import DTYPES
from omb_py.engine.program.groups import on_group
from omb_py.engine.program.language import (
    Blocks,
    Body,
    Buffer,
    Lap,
    Node,
    Program,
    Region,
    Repeat,
    Requests,
    RequestSlot,
    Result,
    Stage,
    Step,
    Window,
    body,
)
from omb_py.suites.shared import barrier_after
from omb_py.suites.workloads.calls import NOTIFY, OF_MESSAGES, WRITE, Call, Product

if TYPE_CHECKING:
    from omb_py.suites.workloads.families import Workload

ARENA_BYTES: Final = 1 << 30
"""Bytes of a buffer in which calls have memory of their own; beyond, a call waits for those whose memory it reuses."""
_AS_IT_IS: Final = ("recv_next", "put", "win_flush", rma.EXPOSED)
"""Steps without a non-blocking form; the answer after a ``recv_next`` goes to the rank that came."""
_LINE: Final = 64
"""Bytes of a cache line, to which calls are aligned."""
SERIAL, FLIGHT, STEP = "serial", "flight", "step"
COMPUTE, EXPOSED = "compute", "exposed"


@dataclass(frozen=True, slots=True)
class PlacedCall:
    """A call with its place in the buffers."""

    call: Call
    posts: tuple[Step, ...]
    """Its steps in blocking form. Those of an exchange and a server's answers are made non-blocking before they run."""
    wraps: bool
    """Whether its memory begins at the start of the buffers again."""
    flushes: tuple[Step, ...] = ()
    """Where it does: the steps that complete what was written since the last time."""

    @property
    def requests(self) -> int:
        """Number of request slots of the non-blocking call."""
        return sum(post.op not in _AS_IT_IS for post in self.posts)

    def started(self, first: int) -> Iterator[Step]:
        """The steps that start the call, with requests from number `first` on."""
        numbers = count(first)
        for post in self.posts:
            yield post if post.op in _AS_IT_IS else steps.nonblocking(post, RequestSlot(next(numbers)))

    def blocking(self) -> tuple[Step, ...]:
        """The steps of the call until it is complete."""
        if self.call.op not in OF_MESSAGES:
            return self.posts
        if self.call.op == WRITE:
            return (*self.posts, *_flushes([self.call]))
        return (*self.started(0), steps.waitall(Requests(0, self.requests)))


class _Arena:
    """Allocates memory of the buffers ``send`` and ``recv``, from the start again where they would grow too large."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.at = {"send": 0, "recv": 0}
        self.needed = {"send": 0, "recv": 0}

    def restarts(self, send: int, recv: int) -> bool:
        """Whether so many more bytes do not fit; if so both buffers begin again."""
        full = any(at and at + n > self.most for at, n in zip(self.at.values(), (send, recv), strict=True))
        if full:
            self.at = dict.fromkeys(self.at, 0)
        return full

    def take(self, name: str, nbytes: int) -> int:
        start = self.at[name]
        self.at[name] = start + -(-nbytes // _LINE) * _LINE
        self.needed[name] = max(self.needed[name], start + nbytes)
        return start


def _room(call: Call, ranks: int, me: int) -> tuple[int, int]:
    match call.op:
        case "exchange" | "serve" | "write" | "notify":
            return sum(m.nbytes for m in call.sends), sum(m.nbytes for m in call.receives)
        case "alltoallv":
            return sum(call.out), sum(call.back)
        case "allreduce" | "bcast":
            return 0, call.nbytes
        case "reduce_scatter_block":
            return call.nbytes, call.nbytes // ranks
        case "allgather":
            return call.nbytes, call.nbytes * ranks
        case "alltoall":
            return call.nbytes, call.nbytes
        case "gather" | "reduce":
            return call.nbytes, (call.nbytes * (ranks if call.op == "gather" else 1)) if me == call.root else 0
        case "scatter":
            return call.nbytes * ranks if me == call.root else 0, call.nbytes
    return 0, 0


def carrier(dtype: str) -> str:
    """The type as which data is moved that nobody adds up: 16-bit floats, which few libraries have, as bytes."""
    return dtype if DTYPES[dtype].mpi.startswith("MPI_") else "uint8"


def _posts(call: Call, ranks: int, me: int, send: int, recv: int) -> tuple[Step, ...]:
    """The steps of a call whose memory begins at these places; of :data:`WRITE` and :data:`NOTIFY` the messages."""
    room, moved = _room(call, ranks, me), carrier(call.dtype)
    out, into = Region("send", send, room[0]), Region("recv", recv, room[1])
    step: Step
    match call.op:
        case "exchange" | "write" | "notify":
            posts = []
            for message in call.receives:
                region = Region("recv", recv, message.nbytes)
                receive = steps.recv(region, message.peer, moved, message.tag)
                posts.append(steps.answered(receive) if message.answer else receive)
                recv += message.nbytes
            for message in call.sends:
                region = Region("send", send, message.nbytes)
                posts.append(steps.send(region, message.peer, moved, message.tag))
                send += message.nbytes
            return tuple(posts)
        case "serve":
            return tuple(_answer_messages(call, moved, send, recv))
        case "alltoallv":
            step = steps.alltoallv(_blocks("send", call.out, send), _blocks("recv", call.back, recv), moved)
        case "allreduce":  # frameworks reduce a gradient where it lies
            step = steps.in_place(steps.allreduce(into, into, call.dtype, "sum"))
        case "bcast":
            step = steps.bcast(into, call.root, moved)
        case "reduce_scatter_block":
            step = steps.reduce_scatter_block(out, into, call.dtype, "sum")
        case "allgather" | "alltoall":
            step = getattr(steps, call.op)(out, into, moved)
        case "gather" | "scatter":
            step = getattr(steps, call.op)(out, into, call.root, moved)
        case "reduce":
            step = steps.reduce(out, into, call.root, call.dtype, "sum")
        case _:
            step = steps.barrier()
    return (on_group(step, call.group),)


def _answer_messages(call: Call, dtype: str, send: int, recv: int) -> Iterator[Step]:
    """Take and answer as many messages as there are workers, whichever of them comes."""
    workers = tuple(message.peer for message in call.receives)
    for number, (taken, answer) in enumerate(zip(call.receives, call.sends, strict=True)):
        at, answer_at = recv + number * taken.nbytes, send + number * answer.nbytes
        yield steps.recv_next(Region("recv", at, taken.nbytes), workers, dtype, taken.tag)
        yield steps.answer(Region("send", answer_at, answer.nbytes), workers, dtype, answer.tag)


def _blocks(buffer: str, sizes: tuple[int, ...], start: int) -> Blocks:
    packed = Blocks.packed(buffer, sizes)
    return Blocks(buffer, sizes, tuple(start + at for at in packed.offsets))


@dataclass(frozen=True, slots=True)
class _Memory:
    """The memory of a call."""

    send: int
    recv: int
    written: tuple[Region, ...]
    """Where other ranks write what the call's notifications tell of."""
    wraps: bool


@lru_cache(maxsize=64)
def _arrange(workload: Workload, rank: int, ranks: int, most: int) -> tuple[list[_Memory], dict[str, int]]:
    """The memory of a rank's calls, and the bytes of its buffers."""
    arena, memories = _Arena(most), []
    for call in workload.calls(rank, ranks):
        room = _room(call, len(call.group) or ranks, call.group.index(rank) if call.group else rank)
        wraps = arena.restarts(*room)
        starts = arena.take("send", room[0]), arena.take("recv", room[1])
        written = []
        for message in call.written:
            wraps |= arena.restarts(0, message.nbytes)
            written.append(Region("recv", arena.take("recv", message.nbytes), message.nbytes))
        memories.append(_Memory(*starts, tuple(written), wraps))
    return memories, arena.needed


def place_calls(
    workload: Workload, world: World, most: int = ARENA_BYTES
) -> tuple[list[PlacedCall], tuple[Buffer, ...]]:
    """The calls of a rank with their memory, and the buffers: at most `most` bytes each, unless one call needs more."""
    calls = workload.calls(world.rank, world.size)
    memories, needed = _arrange(workload, world.rank, world.size, most)
    targets = {message.peer for call in calls if call.op == WRITE for message in call.sends}
    places = {target: _list_written(world.rank, workload, target, world.size, most) for target in targets}
    placed: list[PlacedCall] = []
    writing: list[Call] = []  # not yet completed
    for call, memory in zip(calls, memories, strict=True):
        flushes = _flushes(writing) if memory.wraps else ()
        writing = [] if memory.wraps else writing
        me = call.group.index(world.rank) if call.group else world.rank
        posts = _posts(call, len(call.group) or world.size, me, memory.send, memory.recv)
        if call.op == WRITE:
            writing.append(call)
            posts = tuple(rma.put(p["send"], next(places[p["peer"]]), p["peer"], p["dtype"]) for p in posts)
        elif call.op == NOTIFY:
            posts = (*_flushes(writing), *_expose(call, memory, world.rank), *posts)
        placed.append(PlacedCall(call, posts, memory.wraps, flushes))
    return placed, tuple(Buffer(name, nbytes, name == "recv" and workload.one_sided) for name, nbytes in needed.items())


def _list_written(origin: int, workload: Workload, target: int, ranks: int, most: int) -> Iterator[Region]:
    """Where a rank writes into the memory of another one, in the order of its writes."""
    for call, memory in zip(workload.calls(target, ranks), _arrange(workload, target, ranks, most)[0], strict=True):
        for message, place in zip(call.written, memory.written, strict=True):
            if message.peer == origin:
                yield place


def _expose(call: Call, memory: _Memory, me: int) -> Iterator[Step]:
    for message, place in zip(call.written, memory.written, strict=True):
        yield rma.exposed(rma.put(place, place, me, carrier(call.dtype)), message.peer)


def _flushes(writing: Iterable[Call]) -> tuple[Step, ...]:
    """The steps that complete these writes, at their targets too."""
    targets = dict.fromkeys(message.peer for call in writing if call.op == WRITE for message in call.sends)
    return tuple(map(rma.win_flush, targets))


def _serial(workload: Workload, placed: list[PlacedCall], world: World, sync: str) -> Stage:
    """The stage of the calls one by one; the time of each goes to the slot of its row."""
    rows = workload.labels(world.rank, world.size)
    nodes: list[Node] = [Lap()]
    for each in placed:
        nodes += [Lap(), *each.blocking(), Lap(rows[each.call.label, each.call.size])]
    return Stage(body(*nodes, *barrier_after(sync)), SERIAL, slots=tuple(dict.fromkeys(rows.values())))


def _flight(placed: list[PlacedCall], sync: str) -> Stage:
    nodes: list[Node] = [Lap()]
    first = 0
    for each in placed:
        if each.wraps:
            nodes += [*each.flushes, *([steps.waitall(Requests(0, first))] if first else [])]
            first = 0
        nodes += each.started(first)
        first += each.requests
    if first:
        nodes.append(steps.waitall(Requests(0, first)))
    return Stage(body(*nodes, Lap("time"), *barrier_after(sync)), FLIGHT)


def _step(placed: list[PlacedCall], before: list[Body], after: Body, sync: str) -> Stage:
    """The stage that computes before each call, and lets the call run beside what follows as long as it may.

    Args:
        placed: the calls.
        before: computing before each call.
        after: computing at the end.
        sync: `Cell.process_sync`.
    """
    nodes: list[Node] = [Lap()]
    first = 0
    pending: list[tuple[int, Requests]] = []  # (number, request slots) of calls that may still run
    for number, each in enumerate(placed):
        nodes += [*before[number], Lap(COMPUTE)] if before[number] else []
        if each.wraps:
            nodes += [*each.flushes, *(steps.waitall(slots) for _, slots in pending)]
            first, pending = 0, []
        nodes += each.started(first)
        pending += [(number, Requests(first, each.requests))] if each.requests else []
        first += each.requests
        due = [entry for entry in pending if _due(placed[entry[0]].call, number - entry[0])]
        pending = [entry for entry in pending if entry not in due]
        nodes += [steps.waitall(slots) for _, slots in due]
        if not pending:
            first = 0
        nodes.append(Lap(EXPOSED))
    nodes += [*after, Lap(COMPUTE)] if after else []
    nodes += [steps.waitall(slots) for _, slots in pending]
    return Stage(body(*nodes, Lap(EXPOSED), *barrier_after(sync)), STEP, slots=(COMPUTE, EXPOSED))


def _due(call: Call, since: int) -> bool:
    return call.until is not None and since >= call.until


def _place_computing(calls: list[Call], compute: int | None, slowness: float) -> tuple[list[Body], Body]:
    """Computing before each call, and at the end: `compute` ns in all; None: as long as the calls take one by one.

    `slowness` multiplies all of it.
    """
    whole = sum(call.work for call in calls) / slowness
    if not whole:  # no call says what comes before it
        everything = _computing(slowness, compute)
        return ([everything, *[()] * (len(calls) - 1)], ()) if calls else ([], everything)
    return [_computing(call.work / whole, compute) if call.work else () for call in calls], ()


def _computing(share: float, compute: int | None) -> Body:
    if compute is None:
        return (steps.compute(Result(SERIAL, "", 1 / share)),)
    return (steps.compute(round(share * compute)),)


def _multiply(products: Iterable[Product]) -> Body:
    """Matrix products; consecutive ones of one shape become one Repeat."""
    shapes = (product.shape for product in products)
    groups = ((key, sum(times for *_, times in group)) for key, group in groupby(shapes, lambda shape: shape[:2]))
    nodes = ((steps.matmul(rows, side), times) for (rows, side), times in groups)
    return tuple(step if times == 1 else Repeat(times, (step,)) for step, times in nodes)


def _matrices(calls: list[Call]) -> tuple[Buffer, ...]:
    """Buffers for the largest product of a rank. Without products they are empty: all ranks need the same names."""
    products = [steps.matmul(*product.shape[:2]) for call in calls for product in (*call.before, *call.after)]
    return tuple(
        Buffer(name, max((step[operand].nbytes for step in products), default=0))
        for name, operand in zip(steps.MATRICES, ("left", "right", "out"), strict=True)
    )


def program_of(workload: Workload, world: World, sync: str = "barrier", most: int = ARENA_BYTES) -> Program:
    """The program of a rank, with the stages ``serial``, ``flight`` and ``step``.

    Raises:
        UsageError: the number of ranks does not fit the workload.
    """
    placed, buffers = place_calls(workload, world, most)
    compute, calls = workload.values["compute"], [each.call for each in placed]
    if compute is not None and compute.products:
        buffers += _matrices(calls)
        before = [_multiply(call.before) for call in calls]
        after = _multiply(product for call in calls for product in call.after)
    else:
        time_ns = None if compute is None else compute.of(world.size)
        before, after = _place_computing(calls, time_ns, workload.slowness(world.rank))
    stages = _serial(workload, placed, world, sync), _flight(placed, sync), _step(placed, before, after, sync)
    if not workload.one_sided:
        return Program(buffers, stages)
    opened, closed = (rma.win_lock_all(),), (rma.win_unlock_all(),)
    epochs = (replace(stage, setup=opened, teardown=closed) for stage in stages)
    return Program(buffers, tuple(epochs), Window("allocate", "recv"))
