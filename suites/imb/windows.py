"""One-sided benchmarks of IMB-RMA among several ranks, with passive targets.

Patterns: Intel MPI Benchmarks User Guide 2021.8, "IMB-RMA Benchmarks". As there the lock is taken once, before the
first iteration. IMB's text calls one flush after all iterations of the …_all benchmarks; here each iteration has its
own, and ``-W N`` repeats the operations N times before it. Every origin has its own place in a window, so that each
byte can be checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from omb_py.engine.program import rma
from omb_py.engine.program.benchmark import Benchmark, Cell, Metric, RankRule, Timed, World
from omb_py.engine.program.language import Body, Buffer, Lap, Program, Region, Repeat, Result, Stage, Step, Window, body
from omb_py.engine.program.steps import barrier, compute
from omb_py.suites.shared import EXACTLY_TWO, LATENCY_COUNTS, PT2PT_SIZES, TWO_OR_MORE, message_bytes

_WINDOW = "window"
Make = Callable[[World, Cell], Program]


def _call(way: str, cell: Cell, target: int, mine: int, place: int) -> Step:
    """A put or get of place `mine` of the origin's buffer at `place` of the target's window."""
    size = message_bytes(cell)
    own, there = Region("send" if way == "put" else "recv", mine * size, size), Region(_WINDOW, place * size, size)
    return rma.put(own, there, target, cell.dtype) if way == "put" else rma.get(own, there, target, cell.dtype)


def _program(cell: Cell, slots: int, way: str, stages: tuple[Stage, ...]) -> Program:
    nbytes = slots * message_bytes(cell)
    own = Buffer("send" if way == "put" else "recv", nbytes)
    window = Buffer(_WINDOW, nbytes, cell.options.window_kind in rma.OF_THE_LIBRARY)
    return Program((own, window), stages, Window(cell.options.window_kind, _WINDOW))


def _stage(
    cell: Cell, calls: Body, seen: Body, flushes: Body, locks: Body, unlocks: Body, complete: Body = ()
) -> Stage:
    """The stage of a rank, which times its operations and their flushes if it has any."""
    timed: Body = (Lap(), Repeat(cell.options.window, calls), *flushes, Lap("time")) if calls else ()
    # a passive target cannot see when an operation is complete, so where each iteration is checked it waits
    end = (*complete, barrier()) if cell.distinct else ()
    return Stage(body(*timed, *seen, *end), setup=locks, teardown=unlocks)


def _access_all(way: str, everyone: bool, local: bool = False) -> Make:
    """Programs in which rank 0, or every rank, accesses all others; a rank begins with the next one, as in IMB."""

    def program(world: World, cell: Cell) -> Program:
        me, n = world.rank, world.size
        origins = range(n) if everyone else (0,)
        acts = me in origins
        others = [(me + step) % n for step in range(1, n)] if acts else []
        calls = tuple(_call(way, cell, target, target, me) for target in others)
        seen = tuple(rma.exposed(_call(way, cell, me, 0, origin), origin) for origin in origins if origin != me)
        flush = rma.win_flush_local_all() if local else rma.win_flush_all()
        locks: Body = (rma.win_lock_all(),) if acts else ()
        unlocks: Body = (rma.win_unlock_all(),) if acts else ()
        complete: Body = (rma.win_flush_all(),) if acts and local else ()
        return _program(cell, n, way, (_stage(cell, calls, seen, (flush,), locks, unlocks, complete),))

    return program


def _access_neighbors(way: str, both: bool) -> Make:
    """Programs in which every rank accesses the ranks before and after it in a ring, or (one other rank) that one."""

    def program(world: World, cell: Cell) -> Program:
        left, right = (world.rank - 1) % world.size, (world.rank + 1) % world.size
        ends = ((left, 0), (right, 1)) if both else ((right, 0),)
        calls = tuple(_call(way, cell, peer, place, place) for peer, place in ends)
        # what the left rank does to its right one lies in place 1
        origins = ((left, 1), (right, 0)) if both else ((right, 0),)
        seen = tuple(rma.exposed(_call(way, cell, world.rank, place, place), origin) for origin, place in origins)
        peers = dict.fromkeys(peer for peer, _ in ends)
        locks, flushes, unlocks = (tuple(map(step, peers)) for step in (rma.win_lock, rma.win_flush, rma.win_unlock))
        return _program(cell, 2, way, (_stage(cell, calls, seen, flushes, locks, unlocks),))

    return program


def _passive_put(world: World, cell: Cell) -> Program:
    """A put, a flush and a barrier: first with a target that waits in the barrier, then with one that computes before.

    If the library needs the target's help, the second takes longer by what the target computes: as long as an
    iteration of the first took.
    """
    origin = world.rank == 0
    call = _call("put", cell, 1, 0, 0)
    calls: Body = (call, rma.win_flush(1)) if origin else (rma.exposed(call, 0),)
    locks, unlocks = ((rma.win_lock(1),), (rma.win_unlock(1),)) if origin else ((), ())
    busy: Body = () if origin else (compute(Result("pure", "time")),)
    stages = (
        Stage(body(Lap(), *calls, barrier(), Lap("time")), "pure", locks, unlocks),
        Stage(body(Lap(), *busy, *calls, barrier(), Lap("time")), "busy", locks, unlocks),
    )
    return _program(cell, 1, "put", stages)


def passive_columns(laps: Mapping[str, list[float]]) -> dict[str, float]:
    """IMB's columns t_pure and t_ovrl in µs: the time of the origin while the target waits, and while it computes."""
    return {"pure": laps["pure.time"][0], "overall": laps["busy.time"][0]}


_CALLS = Metric("us", "mean over origins of each one's mean lap / window", parts_by=lambda cell: cell.options.window)
_PASSIVE = Metric("us", "mean lap on rank 0 while the target computes; pure: while it waits", derive=passive_columns)


def _benchmark(
    name: str, summary: str, program: Make, timed: Timed = "all", ranks: RankRule = TWO_OR_MORE
) -> Benchmark:
    return Benchmark(
        name,
        "one-sided",
        summary,
        program,
        _CALLS,
        PT2PT_SIZES,
        LATENCY_COUNTS,
        ranks,
        timed,
        "char",
        frozenset({"type", "validation", "window_kind", "window"}),
        bytes_total=lambda size, ranks: size,
        defaults=(("window", 1),),
    )


BENCHMARKS = (
    _benchmark(
        "bidir_put",
        "two ranks write into each other's memory at once",
        _access_neighbors("put", False),
        "all",
        EXACTLY_TWO,
    ),
    _benchmark(
        "bidir_get", "two ranks read each other's memory at once", _access_neighbors("get", False), "all", EXACTLY_TWO
    ),
    _benchmark("one_put_all", "rank 0 writes into the memory of all others", _access_all("put", False), "rank 0"),
    _benchmark("one_get_all", "rank 0 reads the memory of all others", _access_all("get", False), "rank 0"),
    _benchmark(
        "put_all_local",
        "the same as one_put_all, complete at the origin alone",
        _access_all("put", False, True),
        "rank 0",
    ),
    _benchmark(
        "get_all_local", "the same as one_get_all with a local flush", _access_all("get", False, True), "rank 0"
    ),
    _benchmark("all_put_all", "every rank writes into the memory of all others", _access_all("put", True)),
    _benchmark("all_get_all", "every rank reads the memory of all others", _access_all("get", True)),
    _benchmark("exchange_put", "every rank writes into the memory of both neighbors", _access_neighbors("put", True)),
    _benchmark("exchange_get", "every rank reads the memory of both neighbors", _access_neighbors("get", True)),
    replace(
        _benchmark(
            "passive_put", "whether a write completes while its target computes", _passive_put, "rank 0", EXACTLY_TWO
        ),
        metric=_PASSIVE,
        options=frozenset({"type", "validation", "window_kind"}),
    ),
)
