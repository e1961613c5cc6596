"""Steps on a part of the ranks: a collective with the operand ``group`` runs on a communicator of these ranks.

Within such a step ranks count from 0 in the order of the group: its root is a place in it. Peers of messages stay ranks
of the world.
"""

from __future__ import annotations

from omb_py.engine.program.benchmark import World
from omb_py.engine.program.language import Program, Step, walk
from omb_py.engine.program.step_text import parts

GROUP = "group"
Group = tuple[int, ...]


def on(call: Step, group: Group) -> Step:
    """The call on a communicator of these ranks; an empty group means the communicator of all ranks."""
    return Step(call.op, {**call.operands, GROUP: group}) if group else call


def group_of(step: Step) -> Group:
    """The ranks of a step's communicator, in its order; empty: all."""
    group = step.operands.get(GROUP)
    return group if isinstance(group, tuple) else ()


def groups_of(program: Program) -> list[Group]:
    """Every group of a program, in an order that is the same on all ranks: so they can be made one after the other."""
    groups = {
        group_of(node)
        for stage in program.stages
        for part in parts(stage)
        for node, _ in walk(part)
        if isinstance(node, Step)
    }
    return sorted(groups - {()})


def place_in(step: Step, world: World) -> World:
    """The place of a rank in the communicator of a step."""
    group = group_of(step)
    return World(group.index(world.rank), len(group)) if group else world
