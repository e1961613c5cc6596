"""The one-sided benchmarks: OMB's nine, and two with requests. Exactly two ranks; data checked in all of them.

With passive synchronisation rank 0 works alone, and a sample is the whole operation. With active synchronisation
(pscw, fence) both ranks act in turn in the latency benchmarks, and a sample is half an iteration. A sample is a lap
around the operation and its synchronisation. OMB times the whole loop once and divides; since OMB 7.5 also reads the
clock twice in each iteration, its mean (not its percentiles) includes these readings. The printed mean here does, too:
the lap ``clock`` is what passes between the samples (``--mean lap`` leaves it out).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from omb_py.engine.program import rma
from omb_py.engine.program.benchmark import Benchmark, Cell, Metric, Sizes, World
from omb_py.engine.program.dtypes import DTYPES
from omb_py.engine.program.language import (
    Body,
    Buffer,
    Lap,
    Node,
    Program,
    Region,
    Repeat,
    RequestSlot,
    Stage,
    Step,
    Window,
    body,
)
from omb_py.engine.program.steps import barrier, wait
from omb_py.suites.shared import BANDWIDTH_COUNTS, EXACTLY_TWO, LATENCY_COUNTS, PT2PT_SIZES, message_bytes, window_bytes

_WINDOW = "window"
_CLOCK = "clock"
"""The lap from the end of one sample to the beginning of the next: a reading of the clock."""
_OPTIONS = frozenset({"type", "validation", "window_kind", "sync", "mean"})
_PASSIVE = tuple(kind for kind in rma.SYNCS if kind not in rma.ACTIVE)
_ONE_ELEMENT = ("compare_and_swap", "fetch_and_op")
_SIZE = Sizes(1, PT2PT_SIZES.maximum)

Call = Callable[[Cell, int, int], Step]
"""(cell, bytes, target rank) -> the operation."""
Make = Callable[[World, Cell], Program]


def _region_at(buffer: str, nbytes: int, stride: int = 0) -> Region:
    return Region(buffer, 0, nbytes, stride)


def _put(cell: Cell, nbytes: int, target: int, stride: int = 0) -> Step:
    return rma.put(_region_at("send", nbytes, stride), _region_at(_WINDOW, nbytes, stride), target, cell.dtype)


def _get(cell: Cell, nbytes: int, target: int, stride: int = 0) -> Step:
    return rma.get(_region_at("recv", nbytes, stride), _region_at(_WINDOW, nbytes, stride), target, cell.dtype)


def _accumulate(cell: Cell, nbytes: int, target: int) -> Step:
    return rma.accumulate(_region_at("send", nbytes), _region_at(_WINDOW, nbytes), target, cell.dtype, cell.options.op)


def _get_accumulate(cell: Cell, nbytes: int, target: int) -> Step:
    send, recv, place = _region_at("send", nbytes), _region_at("recv", nbytes), _region_at(_WINDOW, nbytes)
    return rma.get_accumulate(send, recv, place, target, cell.dtype, cell.options.op)


def _fetch_and_op(cell: Cell, nbytes: int, target: int) -> Step:
    send, recv, place = _region_at("send", nbytes), _region_at("recv", nbytes), _region_at(_WINDOW, nbytes)
    return rma.fetch_and_op(send, recv, place, target, cell.dtype, cell.options.op)


def _compare_and_swap(cell: Cell, nbytes: int, target: int) -> Step:
    send, compare, recv = _region_at("send", nbytes), _region_at("compare", nbytes), _region_at("recv", nbytes)
    return rma.compare_and_swap(send, compare, recv, _region_at(_WINDOW, nbytes), target, cell.dtype)


def _rput(cell: Cell, nbytes: int, target: int) -> Step:
    return rma.with_request(_put(cell, nbytes, target), RequestSlot(0))


def _rget(cell: Cell, nbytes: int, target: int) -> Step:
    return rma.with_request(_get(cell, nbytes, target), RequestSlot(0))


@dataclass(frozen=True, slots=True)
class _Epochs:
    """Synchronisation around the operations: of each iteration (before, after), of all together (setup, teardown)."""

    before: Body = ()
    after: Body = ()
    setup: Body = ()
    teardown: Body = ()


def _make_passive_epochs(cell: Cell, target: int, op: str) -> _Epochs:
    """The origin's epochs with passive synchronisation. With a flush the lock is taken once, outside the iterations.

    As in OMB locks are shared, but exclusive around a get_accumulate, and around an atomic of one element that takes
    a lock of its own.
    """
    lock = rma.win_lock(target, op == "get_accumulate" or (cell.options.sync == "lock" and op in _ONE_ELEMENT))
    match cell.options.sync:
        case "lock":
            return _Epochs((lock,), (rma.win_unlock(target),))
        case "lock_all":
            return _Epochs((rma.win_lock_all(),), (rma.win_unlock_all(),))
    flush = rma.win_flush(target) if cell.options.sync == "flush" else rma.win_flush_local(target)
    return _Epochs((), (flush,), (lock,), (rma.win_unlock(target),))


def _program(cell: Cell, call: Step, span: int, stage: Stage) -> Program:
    """The program of a stage whose operands have buffers of `span` bytes each.

    The window of an operation on one element has OMB's largest message nevertheless, as there.
    """
    opened = PT2PT_SIZES.maximum if call.op in _ONE_ELEMENT else span
    names = dict.fromkeys(o.buffer for o in call.operands.values() if isinstance(o, Region))
    from_library = cell.options.window_kind in rma.OF_THE_LIBRARY
    spans = {name: opened if name == _WINDOW else span for name in names}
    buffers = tuple(Buffer(name, nbytes, name == _WINDOW and from_library) for name, nbytes in spans.items())
    return Program(buffers, (stage,), Window(cell.options.window_kind, _WINDOW))


def _time_nodes(world: World, cell: Cell, nodes: Body, around: _Epochs) -> Stage:
    """The stage of one rank. Rank 0 reads the clock."""
    timed = (Lap(_CLOCK), *nodes, Lap("time")) if world.rank == 0 else nodes
    completion: Body = ()
    # a passive target cannot see when an operation is complete, so where each iteration is checked it waits for the
    # origin; a local flush completes nothing at the target, hence the flush before the barrier
    if cell.distinct and cell.options.sync not in rma.ACTIVE:
        flush = (rma.win_flush(1 - world.rank),) if cell.options.sync == "flush_local" and around.setup else ()
        completion = (*flush, barrier())
    return Stage(body(*timed, *completion), setup=around.setup, teardown=around.teardown)


def _latency(call_of: Call) -> Make:
    def program(world: World, cell: Cell) -> Program:
        nbytes, peer = message_bytes(cell), 1 - world.rank
        call = call_of(cell, nbytes, peer)
        act: Body = (call, wait(call["request"])) if "request" in call.operands else (call,)
        seen = rma.exposed(call, peer)
        around, nodes = _Epochs(), act
        if cell.options.sync not in rma.ACTIVE:
            if world.rank == 0:
                around = _make_passive_epochs(cell, peer, call.op)
                nodes = (*around.before, *act, *around.after)
            else:
                nodes = (seen,)
        elif cell.options.sync == "fence":
            turns: tuple[Body, Body] = (act, (seen,)) if world.rank == 0 else ((seen,), act)
            nodes = (rma.win_fence(), *turns[0], rma.win_fence(), *turns[1], rma.win_fence())
        else:
            access: Body = (rma.win_start(peer), *act, rma.win_complete(peer))
            exposure: Body = (rma.win_post(peer), seen, rma.win_wait(peer))
            nodes = (*access, *exposure) if world.rank == 0 else (*exposure, *access)
        return _program(cell, call, nbytes, _time_nodes(world, cell, nodes, around))

    return program


def _bandwidth(call_of: Callable[[Cell, int, int, int], Step], both: bool = False) -> Make:
    """Programs of a window of operations at different places with one synchronisation, from rank 0 or from both."""

    def program(world: World, cell: Cell) -> Program:
        nbytes, peer = message_bytes(cell), 1 - world.rank
        call = call_of(cell, nbytes, peer, nbytes)
        acts, is_seen = both or world.rank == 0, both or world.rank == 1
        act: tuple[Node, ...] = (Repeat(cell.options.window, (call,)),) if acts else ()
        seen: tuple[Node, ...] = (Repeat(cell.options.window, (rma.exposed(call, peer),)),) if is_seen else ()
        around, work = _Epochs(), (*act, *seen)
        if cell.options.sync == "fence":
            nodes: Body = (rma.win_fence(), *work, rma.win_fence())
        elif cell.options.sync == "pscw":
            opens: Body = ((rma.win_post(peer),) if is_seen else ()) + ((rma.win_start(peer),) if acts else ())
            closes: Body = ((rma.win_complete(peer),) if acts else ()) + ((rma.win_wait(peer),) if is_seen else ())
            nodes = (*opens, *work, *closes)
        else:
            around = _make_passive_epochs(cell, peer, call.op) if acts else _Epochs()
            nodes = (*around.before, *work, *around.after)
        return _program(cell, call, nbytes * cell.options.window, _time_nodes(world, cell, nodes, around))

    return program


_LATENCY = Metric(
    "us",
    "time of the loop / iterations on rank 0, with two readings of the clock in each; / 2 with -s pscw or fence",
    beside=_CLOCK,
    parts_by=lambda cell: 2 if cell.options.sync in rma.ACTIVE else 1,
)


def _refuse_other_syncs(name: str, syncs: tuple[str, ...]) -> Callable[[Cell], str]:
    def refuses(cell: Cell) -> str:
        return "" if cell.options.sync in syncs else f"{name} has no -s {cell.options.sync}: use {', '.join(syncs)}"

    return refuses


def _integers(cell: Cell) -> str:
    if DTYPES[cell.dtype].kind == "integer":
        return ""
    return f"{cell.benchmark} has no type {cell.dtype}: MPI_Compare_and_swap takes integers: use -T char or int32"


def _latency_benchmark(name: str, summary: str, call: Call, **more: Any) -> Benchmark:
    base = Benchmark(
        name,
        "one-sided",
        summary,
        _latency(call),
        _LATENCY,
        _SIZE,
        LATENCY_COUNTS,
        EXACTLY_TWO,
        "rank 0",
        "char",
        _OPTIONS,
        bytes_total=lambda size, ranks: size,
    )
    return replace(base, **more)


def _bandwidth_benchmark(name: str, summary: str, program: Make, directions: int = 1) -> Benchmark:
    return Benchmark(
        name,
        "one-sided",
        summary,
        program,
        replace(window_bytes(directions), beside=_CLOCK),
        _SIZE,
        BANDWIDTH_COUNTS,
        EXACTLY_TWO,
        "rank 0",
        "char",
        _OPTIONS | {"window"},
        bytes_total=lambda size, ranks: size,
    )


_REDUCES = _OPTIONS | {"op"}

BENCHMARKS = (
    _latency_benchmark("put_latency", "time to write into the memory of another rank", _put),
    _latency_benchmark("get_latency", "time to read the memory of another rank", _get),
    _bandwidth_benchmark("put_bw", "bandwidth of a window of writes into the memory of another rank", _bandwidth(_put)),
    _bandwidth_benchmark("get_bw", "bandwidth of a window of reads of the memory of another rank", _bandwidth(_get)),
    replace(
        _bandwidth_benchmark(
            "put_bibw", "bandwidth of windows of writes in both directions", _bandwidth(_put, both=True), directions=2
        ),
        defaults=(("sync", "pscw"),),
        refuses=_refuse_other_syncs("put_bibw", ("pscw", "fence")),
    ),
    _latency_benchmark("acc_latency", "time to reduce into the memory of another rank", _accumulate, options=_REDUCES),
    _latency_benchmark(
        "get_acc_latency",
        "time to read the memory of another rank and reduce into it",
        _get_accumulate,
        options=_REDUCES,
        defaults=(("window_kind", "create"), ("sync", "lock")),
    ),
    _latency_benchmark(
        "cas_latency",
        "time of a compare-and-swap of one element of another rank",
        _compare_and_swap,
        sizes=None,
        one_element=True,
        refuses=_integers,
    ),
    _latency_benchmark(
        "fop_latency",
        "time of a fetch-and-op of one element of another rank",
        _fetch_and_op,
        sizes=None,
        one_element=True,
        options=_REDUCES,
    ),
    _latency_benchmark(
        "rput_latency",
        "time to write into the memory of another rank, with a request that is waited on",
        _rput,
        refuses=_refuse_other_syncs("rput_latency", _PASSIVE),
    ),
    _latency_benchmark(
        "rget_latency",
        "time to read the memory of another rank, with a request that is waited on",
        _rget,
        refuses=_refuse_other_syncs("rget_latency", _PASSIVE),
    ),
)
