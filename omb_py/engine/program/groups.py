"""Groups of ranks: a step on some of the ranks, and one benchmark in several groups at once (``--groups``).

A step with the operand ``group`` runs on a communicator of these ranks. Within it ranks count from 0 in the order of
the group: its root is a place in it. Peers of messages stay ranks of the world. With ``--groups`` the program of a rank
is the benchmark's own for its place in its group, and no group waits for another between iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from omb_py.engine.program.benchmark import Benchmark, Cell, World
from omb_py.engine.program.language import Program, Step, all_steps, each_step
from omb_py.engine.program.steps import COLLECTIVES, PREFIXES, base
from omb_py.errors import UsageError
from omb_py.grammar.rank_groups import Groups, groups_of_ranks

GROUP = "group"
DUPLICATE = "duplicate"
Group = tuple[int, ...]


def on_group(call: Step, group: Group) -> Step:
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
    return sorted({(group_of(step), duplicate_of(step)) for step in all_steps(program) if duplicate_of(step)})


def group_of(step: Step) -> Group:
    """The ranks of a step's communicator, in its order; empty: all."""
    group = step.operands.get(GROUP)
    return group if isinstance(group, tuple) else ()


def groups_of(program: Program) -> list[Group]:
    """Every group of a program, in an order that is the same on all ranks: so they can be made one after the other."""
    return sorted({group_of(step) for step in all_steps(program)} - {()})


def place_in(step: Step, world: World) -> World:
    """The place of a rank in the communicator of a step."""
    group = group_of(step)
    return World(group.index(world.rank), len(group)) if group else world


OPTION = "groups"
_FAMILIES = ("pt2pt", "collective", "non-blocking", "persistent")
_ENDS = ("peer", "target", "source")
"""Operands that name another rank."""


def divided(cell: Cell, ranks: int, hosts: Sequence[str] = ()) -> Groups:
    """The groups of a cell; one of all ranks without ``--groups``. Raises UsageError."""
    return groups_of_ranks(cell.options.groups, ranks, hosts)


def own_group(world: World, cell: Cell) -> Sequence[int]:
    """The ranks of the group of this rank; all ranks without ``--groups``. Raises UsageError."""
    if not cell.options.groups:
        return range(world.size)
    return next(group for group in divided(cell, world.size, world.hosts) if world.rank in group)


def timed_ranks(benchmark: Benchmark, cell: Cell, ranks: int, hosts: Sequence[str]) -> tuple[int, ...]:
    """The ranks whose samples count, in order: those that count in each group."""
    if not cell.options.groups:
        return benchmark.timed_ranks(ranks, hosts)
    groups = divided(cell, ranks, hosts)
    timed = (group[place] for group in groups for place in benchmark.timed_ranks(len(group)))
    return tuple(sorted(timed))


def grouped(benchmark: Benchmark) -> Benchmark:
    """The benchmark, which takes ``--groups`` where its ranks can be divided."""
    if benchmark.family not in _FAMILIES or benchmark.once or benchmark.runs or benchmark.ranks.over_nodes:
        return benchmark
    original = benchmark.program

    def program(world: World, cell: Cell) -> Program:
        if not cell.options.groups:
            return original(world, cell)
        mine = tuple(own_group(world, cell))
        if not benchmark.ranks.admits(len(mine)):
            raise UsageError(f"{benchmark.name} needs {benchmark.ranks.text} in a group, not {len(mine)}")
        hosts = tuple(world.hosts[rank] for rank in mine) if world.hosts else ()
        built = original(World(mine.index(world.rank), len(mine), hosts), cell)
        return each_step(built, lambda step: _move_to_group(step, mine))

    return replace(benchmark, program=program, options=benchmark.options | {OPTION})


def _move_to_group(step: Step, group: Group) -> Step:
    if base(step.op) in (*COLLECTIVES, *PREFIXES):
        return on_group(step, group)
    ends = {name: group[step[name]] for name in _ENDS if name in step.operands}
    return Step(step.op, {**step.operands, **ends}) if ends else step
