"""Programs with buffers on a device: where each end's buffers are, who computes, what is copied through the host.

OMB's words for the places are ``H D M MD MH``; ``-r cpu|gpu|both`` says who computes between and beside calls. For a
library that takes host memory only, what a step sends is copied to the host before it and what it receives is copied
to the device after it, or after the wait for it; all of that is timed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from omb_py.engine.devices import OTHER_STREAM, synchronise
from omb_py.engine.program.benchmark import World
from omb_py.engine.program.language import (
    Blocks,
    Body,
    Node,
    Program,
    Region,
    Repeat,
    Requests,
    RequestSlot,
    Step,
    each_body,
    each_node,
    steps_changed,
    walk,
)
from omb_py.engine.program.steps import MATMUL, barrier, base
from omb_py.errors import EnvironmentProblem

HOST, DEVICE, MANAGED, MANAGED_ON_DEVICE, MANAGED_ON_HOST = PLACES = ("H", "D", "M", "MD", "MH")
"""Host; device; managed memory, wherever it is; the same, brought to the device or to the host before each call."""
TO_HOST: Final = -1
"""Number of the host among devices, for cuMemPrefetchAsync and hipMemPrefetchAsync."""


def is_managed(place: str) -> bool:
    """Whether host and device both use the memory at a place."""
    return place.startswith(MANAGED)


def place_of_rank(placement: str, rank: int, size: int) -> str:
    """The word of a rank: the first of ``SOURCE DESTINATION`` for the first half of the ranks, else the second.

    >>> [place_of_rank("H D", rank, 4) for rank in range(4)]
    ['H', 'H', 'D', 'D']
    >>> place_of_rank("", 0, 2)
    'D'
    """
    words = placement.split() or [DEVICE, DEVICE]
    return words[0] if rank < max(1, size // 2) else words[1]


def settled(program: Program, placement: str, place: str, device: int) -> Program:
    """The program in which managed memory is where it is wanted when an iteration begins.

    After each iteration (and in the setup) it is brought there, outside the timer, and the ranks meet: otherwise the
    time would hold the other rank's pages. Ranks whose memory stays where it is meet them all the same.

    Raises:
        EnvironmentProblem: the program has threads, which have no common end of an iteration.
    """
    if not {MANAGED_ON_DEVICE, MANAGED_ON_HOST} & set(placement.split()):
        return program
    if any(stage.threads > 1 for stage in program.stages):
        raise EnvironmentProblem(f"buffers {placement}: threaded benchmarks have none of these: H, D or M")
    moves: Body = ()
    if place in (MANAGED_ON_DEVICE, MANAGED_ON_HOST):
        where = device if place == MANAGED_ON_DEVICE else TO_HOST
        moves = tuple(
            Step("prefetch", {"region": Region(b.name, 0, b.nbytes), "where": where})
            for b in program.buffers
            if b.nbytes
        )
        moves = (*moves, synchronise("settled"))
    end = (*moves, barrier())
    stages = tuple(
        replace(stage, setup=(*stage.setup, *end), variants=tuple((*body, *end) for body in stage.variants))
        for stage in program.stages
    )
    return replace(program, stages=stages)


FILLERS: Final = ("cpu", "gpu", "both")
_WAIT: Final = replace(synchronise("filler"), operands={"why": "filler", "stream": OTHER_STREAM})


def on_device(program: Program, filler: str) -> Program:
    """The program whose ``compute`` steps keep the device busy for that long, on a stream of its own.

    As in OMB the host waits for the device before it goes on; with ``both`` it computes meanwhile. The lap ``compute``
    is what that took. Matrix products are always the device's, where their matrices are.
    """
    return each_body(program, lambda body: _compute_on_device(body, filler))


def _compute_on_device(nodes: Body, filler: str) -> Body:
    out: list[Node] = []
    for number, node in enumerate(nodes):
        if _multiplies(node):
            out += steps_changed((node,), _enqueue)
            if number + 1 == len(nodes) or not _multiplies(nodes[number + 1]):
                out.append(_WAIT)
        elif isinstance(node, Repeat):
            out.append(replace(node, body=_compute_on_device(node.body, filler)))
        elif isinstance(node, Step) and node.op == "compute" and filler not in ("", "cpu"):
            out.append(Step("spin", {"ns": node["ns"], "stream": OTHER_STREAM}))
            out += [node] if filler == "both" else []
            out.append(_WAIT)
        else:
            out.append(node)
    return tuple(out)


def _multiplies(node: Node) -> bool:
    if isinstance(node, Repeat):
        return bool(node.body) and all(map(_multiplies, node.body))
    return isinstance(node, Step) and node.op == MATMUL


def _enqueue(step: Step) -> Step:
    return Step(step.op, {**step.operands, "stream": OTHER_STREAM})


_REFUSED = frozenset({"start", "startall", "pready", "parrived", "test"})


def staged(program: Program, world: World) -> Program:
    """The program with its copies. Raises EnvironmentProblem for what binds its buffers before the loop."""
    if program.window is not None or any(stage.threads > 1 for stage in program.stages):
        raise EnvironmentProblem("one-sided and threaded benchmarks have no staged form: use --device cpu")
    for stage in program.stages:
        for node in each_node((*stage.setup, *(n for body in stage.variants for n in body))):
            if isinstance(node, Step) and (node.op.endswith("_init") or node.op in _REFUSED):
                raise EnvironmentProblem(f"{node.op} has no staged form: use --device cpu, or leave out its option")
    return each_body(program, lambda body: _body(body, world))


def _body(nodes: Body, world: World) -> Body:
    out: list[Node] = []
    posted: list[tuple[set[int], list[Node]]] = []
    for node in nodes:
        before = _copies("copy_out", node, world)
        after = _copies("copy_in", node, world)
        if before:
            out += (*before, synchronise("copied out"))
        out.append(node)
        finished = _slots(node)
        if _posts(node):
            posted.append((finished, after))
            continue
        # sends may be waited for before receives: copy in only what this wait completes
        ready = [(slots, copies) for slots, copies in posted if slots <= finished]
        posted = [entry for entry in posted if entry not in ready]
        after = [*(copy for _, copies in ready for copy in copies), *after]
        if after:
            out += (*after, synchronise("copied in"))
    return tuple(out)


def spoiled(program: Program) -> Program:
    """The program whose injected faults reach the device: the byte goes to the host, is inverted, and goes back."""
    return each_body(program, _spoil)


def _spoil(nodes: Body) -> Body:
    out: list[Node] = []
    for node in nodes:
        if isinstance(node, Step) and node.op == "flip":
            byte = {"region": replace(node["recv"], nbytes=1)}
            out += [Step("copy_out", byte), synchronise("copied out"), node]
            out += [Step("copy_in", byte), synchronise("copied in")]
        else:
            out.append(node)
    return tuple(out)


def _slots(node: Node) -> set[int]:
    slots: set[int] = set()
    for step, k in walk((node,)):
        for operand in step.operands.values() if isinstance(step, Step) else ():
            if isinstance(operand, RequestSlot):
                slots.add(operand.index + k * operand.stride)
            elif isinstance(operand, Requests):
                slots |= set(range(operand.first, operand.first + operand.count))
    return slots


def _posts(node: Node) -> bool:
    """Whether a node only begins an operation, for which a later node waits."""
    if isinstance(node, Repeat):
        return all(_posts(inner) for inner in node.body)
    return isinstance(node, Step) and "request" in node.operands and node.op not in ("wait", "test")


def _copies(op: str, node: Node, world: World) -> list[Node]:
    if isinstance(node, Repeat):
        inner = [copy for part in node.body for copy in _copies(op, part, world)]
        return [Repeat(node.times, tuple(inner))] if inner else []
    if not isinstance(node, Step) or node.op == "flip":
        return []
    regions = _read(node, world) if op == "copy_out" else _list_written(node, world)
    return [Step(op, {"region": region}) for region in regions if region.nbytes]


def _plain(value: object) -> Region:
    if isinstance(value, Blocks):
        ends = [at + size for at, size in zip(value.offsets, value.sizes, strict=True)]
        low = min(value.offsets, default=0)
        return Region(value.buffer, low, max(ends, default=low) - low, turn=value.turn)
    assert isinstance(value, Region)
    return value


def _read(step: Step, world: World) -> Iterator[Region]:
    if "send" in step.operands and not (base(step.op) in ("scatter", "scatterv") and step["root"] != world.rank):
        yield _plain(step["send"])
    if "replaced" in step.operands:
        yield _plain(step["replaced"])
    if "buf" in step.operands and step["root"] == world.rank:
        yield _plain(step["buf"])


def _list_written(step: Step, world: World) -> Iterator[Region]:
    at_root = base(step.op) in ("reduce", "gather", "gatherv")
    if "recv" in step.operands and not (at_root and step["root"] != world.rank):
        yield _plain(step["recv"])
    if "replaced" in step.operands:
        yield _plain(step["replaced"])
    if "buf" in step.operands and step["root"] != world.rank:
        yield _plain(step["buf"])
