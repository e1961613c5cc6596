"""The explanation of a benchmark says what its program does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import Cell, World
from omb_py.engine.program.language import Host, Lap, Program, Region, Repeat, RequestSlot, Stage, body
from omb_py.errors import UsageError
from omb_py.orchestrate.info.explain import explain
from omb_py.suites import BENCHMARKS, find
from tests.support.kinds import one_of_each_family


@pytest.mark.parametrize("name", [*one_of_each_family(BENCHMARKS), "init", "bcast_mt", "latency_mt"])
def test_every_benchmark(name: str) -> None:
    """Each has a timed line, its formula, its counts and its rank rule, in lines that fit a terminal."""
    benchmark = find(name)
    text = explain(benchmark, next(n for n in range(2, 9) if benchmark.ranks.admits(n)))
    assert ("  | " in text) == (not benchmark.once)
    for part in (benchmark.summary, benchmark.metric.formula, benchmark.ranks.text, str(benchmark.counts.small)):
        assert " ".join(part.split()) in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 120
    assert not any(line != line.rstrip() for line in text.splitlines())


def test_refusals() -> None:
    with pytest.raises(UsageError, match="latency needs exactly 2 ranks, not 5"):
        explain(find("latency"), 5)
    with pytest.raises(UsageError, match="3 bytes hold no element of int32"):
        explain(find("allreduce"), 2, 3)


def test_programs_too_wide_for_a_terminal_stand_under_each_other() -> None:
    """Different programs on many ranks: groups with gaps in their numbers, one under the other."""

    def program(world: World, cell: Cell) -> Program:
        kind = {0: 0, 3: 0}.get(world.rank, world.rank)
        step = steps.send(Region("send", 0, 8), 10**12 + kind, "char")
        return Program((), (Stage(body(Lap(), step, Lap("time"))),))

    text = explain(replace(find("allreduce"), program=program), 8)
    assert "\n  ranks 0, 3\n" in text
    assert "\n\n  rank 1\n" in text


def test_everything_that_a_program_may_hold() -> None:
    """Stages, variants, setup, teardown, nested repeats, several laps; time before an unnamed lap is not counted."""
    part = Region("send", 0, 8)
    inner = Repeat(2, (steps.isend(part, 1, "char", RequestSlot(0)), steps.wait(RequestSlot(0))))

    def program(world: World, cell: Cell) -> Program:
        first = Stage(
            ((Lap(), steps.barrier(), Lap("a"), steps.compute(5), Lap("b"), steps.barrier()), (Lap(), inner, Lap("a"))),
            name="pure",
            setup=(Host("make the window", lambda session: None),),
            teardown=(steps.barrier(),),
        )
        second = Stage(body(Lap(), inner, Lap("a"), steps.barrier(), Lap(), steps.barrier(), Lap("b")), name="overlap")
        return Program((), (first, second))

    text = explain(replace(find("allreduce"), program=program), 2)
    listing = text.split("timed:\n\n")[1].split("\n\nprinted")[0]
    assert [line.removeprefix("  ") for line in listing.splitlines()] == [
        "ranks 0–1",
        "stage pure",
        "  before the iterations:",
        "  make the window",
        "  iterations 0, 2, …:",
        "  lap start",
        "| barrier",
        "  lap a",
        "| compute 5 ns",
        "  lap b",
        "  barrier",
        "  iterations 1, 3, …:",
        "  lap start",
        "| 2 times:",
        "|   isend 8 B to 1, request 0",
        "|   wait for request 0",
        "  lap a",
        "  after the iterations:",
        "  barrier",
        "stage overlap",
        "  lap start",
        "| 2 times:",
        "|   isend 8 B to 1, request 0",
        "|   wait for request 0",
        "  lap a",
        "  barrier",
        "  lap start",
        "| barrier",
        "  lap b",
    ]
