"""Device buffers for a library that takes host memory only: copy out, communicate, copy in, all of it timed.

A transformation of any program: what a step sends is copied to the host before it, what it receives is copied to the
device after it, or after the wait for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from omb_py.engine.devices import synchronise
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
    walk,
)
from omb_py.engine.program.steps import base
from omb_py.errors import EnvironmentProblem

_REFUSED = frozenset({"start", "startall", "pready", "parrived", "test"})


def staged(program: Program, world: World) -> Program:
    """The program with its copies. Raises EnvironmentProblem for what binds its buffers before the loop."""
    if program.window is not None or any(stage.threads > 1 for stage in program.stages):
        raise EnvironmentProblem("one-sided and threaded benchmarks have no staged form: use --device cpu")
    for stage in program.stages:
        for node, _ in walk((*stage.setup, *(n for body in stage.variants for n in body))):
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
    return each_body(program, _spoiled)


def _spoiled(nodes: Body) -> Body:
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
    regions = _read(node, world) if op == "copy_out" else _written(node, world)
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


def _written(step: Step, world: World) -> Iterator[Region]:
    at_root = base(step.op) in ("reduce", "gather", "gatherv")
    if "recv" in step.operands and not (at_root and step["root"] != world.rank):
        yield _plain(step["recv"])
    if "replaced" in step.operands:
        yield _plain(step["replaced"])
    if "buf" in step.operands and step["root"] != world.rank:
        yield _plain(step["buf"])
