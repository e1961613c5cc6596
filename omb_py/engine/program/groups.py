"""Steps on a part of the ranks: a collective with the operand ``group`` runs on a communicator of these ranks.

Within such a step ranks count from 0 in the order of the group: its root is a place in it. Peers of messages stay ranks
of the world.
"""

from __future__ import annotations

from collections.abc import Iterator

from omb_py.engine.program.benchmark import World
from omb_py.engine.program.language import Program, Step, walk
from omb_py.engine.program.step_text import parts

GROUP = "group"
DUPLICATE = "duplicate"
Group = tuple[int, ...]


def on(call: Step, group: Group) -> Step:
    """The call on a communicator of these ranks; an empty group means the communicator of all ranks."""
    return Step(call.op, {**call.operands, GROUP: group}) if group else call


def duplicated(call: Step, number: int) -> Step:
    """The call on duplicate `number` of its communicator, from 1 on: what two threads do at once must not meet."""
    return Step(call.op, {**call.operands, DUPLICATE: number})


def duplicate_of(step: Step) -> int:
    """The number of the duplicate of its communicator on which a step runs; 0: the communicator itself."""
    number = step.operands.get(DUPLICATE, 0)
    return number if isinstance(number, int) else 0


def duplicates_of(program: Program) -> list[tuple[Group, int]]:
    """(group, number) of every duplicate of a program, in an order that is the same on all ranks."""
    return sorted({(group_of(step), duplicate_of(step)) for step in _steps(program) if duplicate_of(step)})


def group_of(step: Step) -> Group:
    """The ranks of a step's communicator, in its order; empty: all."""
    group = step.operands.get(GROUP)
    return group if isinstance(group, tuple) else ()


def groups_of(program: Program) -> list[Group]:
    """Every group of a program, in an order that is the same on all ranks: so they can be made one after the other."""
    return sorted({group_of(step) for step in _steps(program)} - {()})


def _steps(program: Program) -> Iterator[Step]:
    for stage in program.stages:
        for part in parts(stage):
            yield from (node for node, _ in walk(part) if isinstance(node, Step))


def place_in(step: Step, world: World) -> World:
    """The place of a rank in the communicator of a step."""
    group = group_of(step)
    return World(group.index(world.rank), len(group)) if group else world
