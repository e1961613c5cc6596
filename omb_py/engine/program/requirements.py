"""Checks that a communicator has the properties that a benchmark needs: thread level, nodes, types."""

from __future__ import annotations

from omb_py.engine.program.benchmark import Benchmark
from omb_py.engine.program.language import Program, all_steps
from omb_py.engine.session import Session
from omb_py.errors import EnvironmentProblem

LEVELS = ("single", "funneled", "serialized", "multiple")
"""MPI's thread levels, each with more than the one before."""


def enough(level: str, needed: str) -> bool:
    """Whether thread level `level` is at least `needed`."""
    return LEVELS.index(level) >= LEVELS.index(needed)


def check_needs(benchmark: Benchmark, session: Session) -> None:
    """Raises EnvironmentProblem, on every rank alike, when the communicator lacks what the benchmark needs."""
    needed = benchmark.needs.thread_level
    # libraries may provide less than funneled where one thread is all there is
    if needed == "multiple" and not enough(session.thread_level, needed):
        raise EnvironmentProblem(
            f"{benchmark.name} needs thread level {needed}, but {session.library} {session.library_version} provides "
            f"{session.thread_level}: use an MPI library that was built with threads"
        )
    over_nodes = benchmark.ranks.over_nodes
    if over_nodes and not over_nodes(session.hosts):
        counts: dict[str, int] = {}
        for host in session.hosts:
            counts[host] = counts.get(host, 0) + 1
        placed = ", ".join(f"{count} on {host}" for host, count in counts.items())
        raise EnvironmentProblem(
            f"{benchmark.name} needs {benchmark.ranks.text}, but here are {placed}: name more nodes with --hosts A,B"
        )


def types_of(program: Program) -> list[str]:
    """The element types of a program's steps, in the order of their names."""
    dtypes = {step.operands.get("dtype") for step in all_steps(program)}
    return sorted(str(name) for name in dtypes if name)
