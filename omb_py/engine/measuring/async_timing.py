"""Modes of ``--timing``, for calls that return before they are done, as a transformation of a collective's program.

``isolated``: each call is waited for, as OMB's xccl benchmarks do; the sample is the time to enqueue and to
synchronise.  ``pipelined``: a batch of calls is enqueued and then waited for, as nccl-tests do; the sample is the
batch's time over its calls, which use other parts of the buffers in turn.  ``graph``: the same batch as a captured
graph, launched once a sample.  ``event``: the device's own time between two events around each call.  ``spin-gated``:
the same around a batch that the device holds back until all of it is enqueued, as nvbandwidth does, so that the cost of
enqueueing is not in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from omb_py.engine.devices import GATE, synchronise
from omb_py.engine.program.benchmark import Benchmark, Cell, World
from omb_py.engine.program.language import (
    Blocks,
    Body,
    Buffer,
    Lap,
    Node,
    Operand,
    Program,
    Region,
    Repeat,
    Stage,
    Stamp,
    Step,
    each_node,
)
from omb_py.engine.program.steps import COMMUNICATORS
from omb_py.errors import UsageError

MODES: Final = ("isolated", "pipelined", "graph", "event", "spin-gated")
BATCHED: Final = frozenset({"pipelined", "graph", "spin-gated"})
"""Modes in which a sample holds several calls."""
UNHELD: Final = frozenset({"graph", "spin-gated"})
"""Modes that make one call before the iterations: the first call of a communicator connects, allocates and loads
kernels, which may wait for a device that a closed gate holds back, and does not belong into a graph."""
BATCH: Final = 20
"""Calls of a sample: the default of nccl-tests."""
ENQUEUE, SYNCHRONISE, TIME = "enqueue", "synchronise", "time"
"""Laps: until the calls have returned, and from there until all is done; their sum."""
SLOTS: Final = 4
"""Handles that steps refer to: two events, a graph, and what launches it."""
START_EVENT, STOP_EVENT, GRAPH, EXECUTABLE = range(SLOTS)
MOST_GATED: Final = 256
"""Most calls behind a closed gate: a launch queue of a GPU holds about a thousand, and enqueueing more would wait."""
LANES: Final = "lanes"
"""Operand of a step in a repeat: the number of lanes. Pass k uses the communicator and the stream number k."""
TURN_BYTES: Final = 64 << 20
"""The calls of a batch use other memory in turn as long as all of it is no larger."""
_ALIGNED: Final = 512
_ENQUEUED = Step("enqueued", {})
"""Placeholder of a wait: the synchronise at the end does its work."""


@dataclass(frozen=True, slots=True)
class Multiplicity:
    """Number of equal calls that a sample makes at once, from the settings of a backend."""

    communicators: int = 1
    """Communicators, each with a stream of its own, that the calls are spread over."""
    aggregate: int = 1
    """Calls in one group (``ncclGroupStart`` … ``ncclGroupEnd``)."""
    replays: int = 1
    """How often a sample launches its graph."""
    flag: str = ""
    """The option that sets the two, for error texts."""


@dataclass(frozen=True, slots=True)
class CutBody:
    """A body of a blocking collective, cut at its laps: before the clock starts, the timed call, after it."""

    before: Body
    call: Body
    after: Body


def split(nodes: Body) -> CutBody | None:
    """The parts of a body with the laps ``Lap()`` and ``Lap("time")`` and no other; None where it has others."""
    laps = [number for number, node in enumerate(nodes) if isinstance(node, (Lap, Stamp))]
    if len(laps) != 2 or nodes[laps[0]] != Lap() or nodes[laps[1]] != Lap(TIME):
        return None
    if nodes[laps[0] + 1 : laps[1]] in ((), (Step("barrier", {}),)):
        return None  # nothing is enqueued, or its own synchronise is a part of it
    if any(isinstance(node, Step) and node.op in COMMUNICATORS for node in nodes):
        return None  # they are done when they return, so there is nothing to wait for
    waits = {"wait", "waitall"}
    call = tuple(
        _ENQUEUED if isinstance(node, Step) and node.op in waits else node for node in nodes[laps[0] + 1 : laps[1]]
    )
    return CutBody(nodes[: laps[0]], call, nodes[laps[1] + 1 :])


def copies_of(buffers: tuple[Buffer, ...], call: Body, batch: int) -> int:
    """Number of parts of its buffers that a batch uses in turn: a divisor of `batch`."""
    regions = [value for node in each_node(call) if isinstance(node, Step) for value in node.operands.values()]
    if any(isinstance(value, Blocks) for value in regions) or any(isinstance(node, Repeat) for node in call):
        return 1
    most = TURN_BYTES // max(1, sum(_pitch(buffer.nbytes) for buffer in buffers))
    return max(n for n in range(1, batch + 1) if batch % n == 0 and n <= max(1, most))


def _pitch(nbytes: int) -> int:
    return -(-max(1, nbytes) // _ALIGNED) * _ALIGNED


def batched(buffers: tuple[Buffer, ...], call: Body, cell: Cell) -> tuple[tuple[Buffer, ...], Body]:
    """The buffers and nodes of a batch of calls. A check runs each part of the memory once."""
    copies = copies_of(buffers, call, cell.options.batch)
    times = 1 if cell.distinct else cell.options.batch // copies
    if copies > 1:
        pitch = {buffer.name: _pitch(buffer.nbytes) for buffer in buffers}
        buffers = tuple(Buffer(b.name, pitch[b.name] * (copies - 1) + b.nbytes) for b in buffers)
        call = (Repeat(copies, tuple(_stride(node, pitch) for node in call)),)
    return buffers, (Repeat(times, call),) if times > 1 else call


def _stride(node: Node, pitch: Mapping[str, int], **more: int) -> Node:
    if not isinstance(node, Step):
        return node
    moved: dict[str, Operand] = {
        name: replace(value, stride=pitch[value.buffer]) if isinstance(value, Region) else value
        for name, value in node.operands.items()
    }
    return Step(node.op, {**moved, **more})


def multiplied(buffers: tuple[Buffer, ...], call: Body, many: Multiplicity) -> tuple[tuple[Buffer, ...], Body]:
    """The buffers and nodes of a call that is made several times at once: in a group, or on several communicators.

    Raises:
        UsageError: the parts of the call cannot run beside each other.
    """
    times = many.aggregate * many.communicators
    if times == 1:
        return buffers, call
    steps = [node for node in call if isinstance(node, Step)]
    if len(steps) != len(call) or any(isinstance(v, Blocks) for step in steps for v in step.operands.values()):
        raise UsageError(
            f"{many.flag} takes no communicators or aggregate with blocks of different sizes: leave them out"
        )
    if many.communicators > 1 and len(steps) != 1:
        raise UsageError(f"{many.flag} takes no communicators with sends and receives: leave it out")
    pitch = {buffer.name: _pitch(buffer.nbytes) for buffer in buffers}
    buffers = tuple(Buffer(b.name, pitch[b.name] * (times - 1) + b.nbytes) for b in buffers)
    more = {LANES: many.communicators} if many.communicators > 1 else {}
    repeated = Repeat(times, tuple(_stride(node, pitch, **more) for node in call))
    return buffers, (repeated,) if more else (Step("group_start"), repeated, Step("group_end"))


def _record(slot: int) -> Step:
    return Step("record", {"slot": slot})


def _store(value: int) -> Step:
    return Step("store", {"address": Region(GATE, 0, 4), "value": value})


def _time_by_wait(parts: CutBody, call: Body) -> Body:
    return (*parts.before, Lap(), *call, Lap(ENQUEUE), synchronise("result"), Lap(SYNCHRONISE), *parts.after)


def _time_by_events(parts: CutBody, call: Body) -> Body:
    events = (_record(START_EVENT), *call, _record(STOP_EVENT))
    # the runner puts the time between the events where the stamp stands
    return _time_by_wait(replace(parts, after=(Stamp(TIME), *parts.after)), events)


def _spin_gated(parts: CutBody, call: Body) -> Body:
    gate = Step("wait_value", {"address": Region(GATE, 0, 4), "value": 1, "flags": 0})
    events = (gate, _record(START_EVENT), *call, _record(STOP_EVENT))
    # a second stream could not open it: with one hardware queue it stands behind the first
    opened = (Lap(ENQUEUE), _store(1), synchronise("result"), Lap(SYNCHRONISE), Stamp(TIME))
    return (*parts.before, _store(0), Lap(), *events, *opened, *parts.after)


_BODIES: Final[Mapping[str, Callable[[CutBody, Body], Body]]] = {
    "isolated": _time_by_wait,
    "pipelined": _time_by_wait,
    "graph": _time_by_wait,  # the backend captures what stands between the laps
    "event": _time_by_events,
    "spin-gated": _spin_gated,
}


def timed(program: Program, cell: Cell, many: Multiplicity) -> Program:
    """The program timed by the mode of its cell. Raises UsageError where that mode means nothing."""
    mode, calls = cell.options.timing, cell.options.batch * many.aggregate
    if many.replays > 1 and mode != "graph":
        raise UsageError(f"{many.flag} replays is for --timing graph: leave it out")
    parts = [split(body) for stage in program.stages for body in stage.variants]
    if len(program.stages) > 1 or any(part is None for part in parts):
        if mode == "isolated" and many.communicators * many.aggregate > 1:
            raise UsageError(
                f"{many.flag} communicators and aggregate are for blocking collectives, not {cell.benchmark}"
            )
        if mode == "isolated":
            return program
        raise UsageError(f"--timing {mode} is for blocking collectives, not for {cell.benchmark}: leave it out")
    (stage,) = program.stages
    if mode in BATCHED and (stage.copies > 1 or (mode == "graph" and len(parts) > 1)):
        raise UsageError(f"--timing {mode} takes neither --cache rotate nor a rotating root: leave them out")
    if mode == "spin-gated" and calls > MOST_GATED:
        raise UsageError(
            f"--timing spin-gated holds back at most {MOST_GATED} calls, not {calls}: the "
            "GPU's launch queue would be full: choose a smaller --batch"
        )
    if many.communicators > 1 and (mode != "isolated" or stage.copies > 1):
        raise UsageError(f"{many.flag} communicators is for --timing isolated and --cache hot: leave the other out")
    first: Body = ()
    buffers, bodies = program.buffers, []
    for part in parts:
        assert part is not None
        buffers, call = multiplied(program.buffers, part.call, many)
        if mode in UNHELD:
            first = (*first, *call, synchronise("result"))
        if mode in BATCHED:
            buffers, call = batched(buffers, call, cell)
        bodies.append(_BODIES[mode](part, call))
    if mode == "spin-gated":
        buffers = (*buffers, Buffer(GATE, 4))
    return Program(buffers, (replace(stage, setup=(*stage.setup, *first), variants=tuple(bodies)),), program.window)


def captured(stage: Stage, replays: int = 1) -> Stage:
    """The lowered stage, its work between ``Lap()`` and the lap ``enqueue`` captured in the setup, then launched."""
    (body,) = stage.variants
    start, stop = body.index(Lap()), body.index(Lap(ENQUEUE))
    setup = (
        Step("begin_capture", {"mode": 1}),
        *body[start + 1 : stop],
        Step("end_capture", {"slot": GRAPH}),
        Step("instantiate", {"slot": EXECUTABLE, "flags": 0}),
    )
    launch = (Step("launch", {"slot": EXECUTABLE}),)
    launches = (Repeat(replays, launch),) if replays > 1 else launch
    return replace(stage, setup=(*stage.setup, *setup), variants=((*body[: start + 1], *launches, *body[stop:]),))


def uses_events(stage: Stage) -> bool:
    return any(isinstance(node, Step) and node.op == "record" for body in stage.variants for node in each_node(body))


def with_timing(
    benchmark: Benchmark, multiplicity: Callable[[Cell], Multiplicity] = lambda cell: Multiplicity()
) -> Benchmark:
    """The benchmark whose program is timed by the mode of its cell; cells without a mode stay as they are.

    Args:
        benchmark: a declaration.
        multiplicity: gives the calls that a sample of a cell makes at once, from the settings of its backend.
    """
    original, metric = benchmark.program, benchmark.metric

    def program(world: World, cell: Cell) -> Program:
        built = original(world, cell)
        return timed(built, cell, multiplicity(cell)) if cell.options.timing else built

    def parts_of(cell: Cell) -> int:
        many = multiplicity(cell)
        calls = many.aggregate * (cell.options.batch if cell.options.timing in BATCHED else 1)
        calls *= many.replays if cell.options.timing == "graph" else 1
        return metric.parts_of(cell) * calls

    adds = metric.adds or (ENQUEUE, SYNCHRONISE)
    return replace(benchmark, program=program, metric=replace(metric, parts_by=parts_of, adds=adds))
