"""A workload as a program of steps: its calls one by one, all in flight, and beside computing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import World
from omb_py.engine.program.groups import on
from omb_py.engine.program.language import (
    Blocks,
    Body,
    Buffer,
    Lap,
    Node,
    Program,
    Region,
    Repeat,
    Request,
    Requests,
    Result,
    Stage,
    Step,
    body,
)
from omb_py.suites.workloads.calls import EXCHANGE, Call, Product

if TYPE_CHECKING:
    from omb_py.suites.workloads.families import Workload

ARENA_BYTES: Final = 1 << 30
"""Calls have memory of their own up to so many bytes a buffer; beyond, a call waits for those whose memory it takes."""
_LINE: Final = 64
SERIAL, FLIGHT, STEP = "serial", "flight", "step"
COMPUTE, EXPOSED = "compute", "exposed"


@dataclass(frozen=True, slots=True)
class Laid:
    """A call with its memory."""

    call: Call
    posts: tuple[Step, ...]
    """Blocking, or for an exchange non-blocking without their requests."""
    wraps: bool
    """It begins again at the start of the memory."""

    @property
    def requests(self) -> int:
        """Request slots that it takes when it does not block."""
        return len(self.posts)

    def started(self, first: int) -> Iterator[Step]:
        """The call without waiting for it."""
        for number, post in enumerate(self.posts):
            yield steps.nonblocking(post, Request(first + number))

    def blocking(self) -> tuple[Step, ...]:
        """The call until it is done."""
        if self.call.op != EXCHANGE:
            return self.posts
        return (*self.started(0), steps.waitall(Requests(0, self.requests)))


class _Arena:
    """Gives out memory of the buffers ``send`` and ``recv``, from the start again where it would grow too large."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.at = {"send": 0, "recv": 0}
        self.needed = {"send": 0, "recv": 0}

    def restarts(self, send: int, recv: int) -> bool:
        """Whether so much more would be too much; if so all begins anew."""
        full = any(at and at + n > self.most for at, n in zip(self.at.values(), (send, recv), strict=True))
        if full:
            self.at = dict.fromkeys(self.at, 0)
        return full

    def take(self, name: str, nbytes: int) -> int:
        """Where so many bytes begin."""
        start = self.at[name]
        self.at[name] = start + -(-nbytes // _LINE) * _LINE
        self.needed[name] = max(self.needed[name], start + nbytes)
        return start


def _room(call: Call, ranks: int, me: int) -> tuple[int, int]:
    """Bytes that a call needs to send from and to receive into."""
    match call.op:
        case "exchange":
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


def _posts(call: Call, ranks: int, me: int, send: int, recv: int) -> tuple[Step, ...]:
    """The steps of a call whose memory begins at `send` and `recv`."""
    room = _room(call, ranks, me)
    out, into = Region("send", send, room[0]), Region("recv", recv, room[1])
    made: Step
    match call.op:
        case "exchange":
            posts = []
            for message in call.receives:
                region = Region("recv", recv, message.nbytes)
                posts.append(steps.recv(region, message.peer, call.dtype, message.tag))
                recv += message.nbytes
            for message in call.sends:
                region = Region("send", send, message.nbytes)
                posts.append(steps.send(region, message.peer, call.dtype, message.tag))
                send += message.nbytes
            return tuple(posts)
        case "alltoallv":
            made = steps.alltoallv(_blocks("send", call.out, send), _blocks("recv", call.back, recv), call.dtype)
        case "allreduce":  # frameworks reduce a gradient where it lies
            made = steps.in_place(steps.allreduce(into, into, call.dtype, "sum"))
        case "bcast":
            made = steps.bcast(into, call.root, call.dtype)
        case "reduce_scatter_block":
            made = steps.reduce_scatter_block(out, into, call.dtype, "sum")
        case "allgather" | "alltoall":
            made = getattr(steps, call.op)(out, into, call.dtype)
        case "gather" | "scatter":
            made = getattr(steps, call.op)(out, into, call.root, call.dtype)
        case "reduce":
            made = steps.reduce(out, into, call.root, call.dtype, "sum")
        case _:
            made = steps.barrier()
    return (on(made, call.group),)


def _blocks(buffer: str, sizes: tuple[int, ...], start: int) -> Blocks:
    packed = Blocks.packed(buffer, sizes)
    return Blocks(buffer, sizes, tuple(start + at for at in packed.offsets))


def laid_out(calls: tuple[Call, ...], world: World, most: int = ARENA_BYTES) -> tuple[list[Laid], tuple[Buffer, ...]]:
    """The calls of a rank with their memory, of at most `most` bytes a buffer where no call alone needs more."""
    arena, made = _Arena(most), []
    for call in calls:
        ranks = len(call.group) or world.size
        me = call.group.index(world.rank) if call.group else world.rank
        send, recv = _room(call, ranks, me)
        wraps = arena.restarts(send, recv)
        made.append(Laid(call, _posts(call, ranks, me, arena.take("send", send), arena.take("recv", recv)), wraps))
    return made, tuple(Buffer(name, nbytes) for name, nbytes in arena.needed.items())


def _after(sync: str) -> tuple[Step, ...]:
    return (steps.barrier(),) if sync == "barrier" else ()


def _serial(workload: Workload, made: list[Laid], world: World, sync: str) -> Stage:
    """Each call by itself, its time in the slot of its row."""
    rows = workload.labels(world.rank, world.size)
    nodes: list[Node] = [Lap(), *map(Lap, dict.fromkeys(rows.values()))]  # on every rank the same slots
    for laid in made:
        nodes += [Lap(), *laid.blocking(), Lap(rows[laid.call.label, laid.call.size])]
    return Stage(body(*nodes, *_after(sync)), SERIAL)


def _flight(made: list[Laid], sync: str) -> Stage:
    """All calls started, then all waited for."""
    nodes: list[Node] = [Lap()]
    first = 0
    for laid in made:
        if laid.wraps:
            nodes.append(steps.waitall(Requests(0, first)))
            first = 0
        nodes += laid.started(first)
        first += laid.requests
    if first:
        nodes.append(steps.waitall(Requests(0, first)))
    return Stage(body(*nodes, Lap("time"), *_after(sync)), FLIGHT)


def _step(made: list[Laid], before: list[Body], after: Body, sync: str) -> Stage:
    """Computing before each call, which runs beside what follows as long as it may.

    Args:
        made: the calls.
        before: what is computed before each.
        after: and at the end.
        sync: what the iterations are kept together by.
    """
    nodes: list[Node] = [Lap(), Lap(COMPUTE), Lap(EXPOSED), Lap()]  # on every rank the same slots
    first = 0
    pending: list[tuple[int, Requests]] = []  # (number of the call, its slots) of calls that may still run
    for number, laid in enumerate(made):
        nodes += [*before[number], Lap(COMPUTE)] if before[number] else []
        if laid.wraps:
            nodes += [steps.waitall(slots) for _, slots in pending]
            first, pending = 0, []
        nodes += laid.started(first)
        pending.append((number, Requests(first, laid.requests)))
        first += laid.requests
        due = [one for one in pending if _due(made[one[0]].call, number - one[0])]
        pending = [one for one in pending if one not in due]
        nodes += [steps.waitall(slots) for _, slots in due]
        if not pending:
            first = 0
        nodes.append(Lap(EXPOSED))
    nodes += [*after, Lap(COMPUTE)] if after else []
    nodes += [steps.waitall(slots) for _, slots in pending]
    return Stage(body(*nodes, Lap(EXPOSED), *_after(sync)), STEP)


def _due(call: Call, since: int) -> bool:
    return call.until is not None and since >= call.until


def _timed(calls: list[Call], compute: int | None) -> tuple[list[Body], Body]:
    """Computing of so many ns in all, or as long as the calls take one by one: before each call, and at the end."""
    whole = sum(call.work for call in calls)
    if not whole:  # no call says what comes before it
        at_once = _computing(1.0, compute)
        return ([at_once, *[()] * (len(calls) - 1)], ()) if calls else ([], at_once)
    return [_computing(call.work / whole, compute) if call.work else () for call in calls], ()


def _computing(share: float, compute: int | None) -> Body:
    if compute is None:
        return (steps.compute(Result(SERIAL, "", 1 / share)),)
    return (steps.compute(round(share * compute)),)


def _multiplied(products: Iterable[Product]) -> Body:
    """Matrix products, those of one shape that follow each other as one repeat."""
    shapes = (product.shape for product in products)
    made = ((key, sum(times for *_, times in some)) for key, some in groupby(shapes, lambda shape: shape[:2]))
    nodes = ((steps.matmul(rows, side), times) for (rows, side), times in made)
    return tuple(step if times == 1 else Repeat(times, (step,)) for step, times in nodes)


def _matrices(calls: list[Call]) -> tuple[Buffer, ...]:
    """Room for the largest product of a rank; empty matrices where it has none: all ranks have buffers of one name."""
    wanted = [steps.matmul(*product.shape[:2]) for call in calls for product in (*call.before, *call.after)]
    return tuple(
        Buffer(name, max((step[operand].nbytes for step in wanted), default=0))
        for name, operand in zip(steps.MATRICES, ("left", "right", "out"), strict=True)
    )


def program_of(workload: Workload, world: World, sync: str = "barrier", most: int = ARENA_BYTES) -> Program:
    """What a rank does: the stages ``serial``, ``flight`` and ``step``.

    Raises:
        UsageError: the number of ranks does not fit the workload.
    """
    made, buffers = laid_out(workload.calls(world.rank, world.size), world, most)
    given, calls = workload.values["compute"], [laid.call for laid in made]
    if given is not None and given.products:
        buffers += _matrices(calls)
        before = [_multiplied(call.before) for call in calls]
        after = _multiplied(product for call in calls for product in call.after)
    else:
        before, after = _timed(calls, None if given is None else given.of(world.size))
    stages = _serial(workload, made, world, sync), _flight(made, sync), _step(made, before, after, sync)
    return Program(buffers, stages)
