"""The suites that come with omb-py."""

from __future__ import annotations

from itertools import pairwise

import pytest

from omb_py.cli.suite_options import LINE_ONLY, RUN_WIDE, CommandLine
from omb_py.orchestrate.accept.criteria_file import CRITERION_KEYS, RULE_KEYS, read_criteria
from omb_py.orchestrate.accept.session import check_suite
from omb_py.orchestrate.planning.plan import plan_launches
from omb_py.orchestrate.planning.resolution import CheckedRequest
from omb_py.orchestrate.suites.expand import Ranks, expand, load_suite
from omb_py.orchestrate.suites.node_layout import ANY_NODES
from omb_py.orchestrate.suites.suite_file import parse_suite
from omb_py.results.accept.criteria import METRICS
from omb_py.results.dialects.omb.titles import TITLES
from omb_py.suites import BENCHMARKS, find
from omb_py.suites.shipped import shipped
from tests.support.machines.mpi import ROOT


def checked(name: str, ranks: int = 4) -> list[CheckedRequest]:
    return expand(load_suite(name), CommandLine(), {}, Ranks(ranks, ranks, given=True), ANY_NODES).checked


def test_which() -> None:
    assert {"quick", "osu", "acceptance", "nightly", "stability", "interference"} <= set(shipped())
    for name in shipped():
        assert load_suite(name).name == name


@pytest.mark.parametrize("name", list(shipped()))
@pytest.mark.parametrize("ranks", [2, 3])
def test_each_can_be_planned(name: str, ranks: int) -> None:
    made = checked(name, ranks)
    assert all(each.benchmark.ranks.admits(each.request.ranks or 0) for each in made)
    assert plan_launches(made)


def test_osu_has_every_benchmark_of_omb_that_is_registered() -> None:
    """Who adds a benchmark with a title of OMB's adds it to suites/shipped/osu.toml."""
    named = [named.name for entry in load_suite("osu").entries for named in entry.benchmarks]
    assert len(named) == len(set(named))
    assert [name for name in BENCHMARKS if name in TITLES and name not in named] == []
    assert [name for name in named if name not in TITLES] == []


@pytest.mark.slow
def test_osu_is_ombs_counts_and_sizes() -> None:
    cells = [cell for launch in plan_launches(checked("osu")) for cell in launch.cells]
    for name in {cell.benchmark for cell in cells}:
        benchmark = find(name)
        mine = [cell for cell in cells if cell.benchmark == name]
        for cell in mine:
            assert (cell.sampling.iterations, cell.sampling.warmup) == benchmark.counts.of(cell.size)
            assert not cell.sampling.auto and cell.sampling.time_limit is None
        if benchmark.sizes:
            assert (mine[0].size, mine[-1].size) == (benchmark.sizes.minimum, benchmark.sizes.maximum)
            assert all(b.size == 2 * a.size for a, b in pairwise(mine))


def test_quick_is_short() -> None:
    cells = [cell for launch in plan_launches(checked("quick")) for cell in launch.cells]
    assert {cell.benchmark for cell in cells} == {"latency", "bw", "allreduce", "bcast", "allgather", "alltoall"}
    assert len(cells) <= 30
    assert all(cell.sampling.auto and cell.sampling.time_limit == 5.0 for cell in cells)


@pytest.mark.parametrize("name", list(shipped()))
def test_tails_that_are_compared_are_of_a_fixed_count(name: str) -> None:
    """The count of ``auto`` differs from night to night, and a percentile of other counts is not compared."""
    compared = {
        criterion.benchmark
        for criterion in read_criteria(load_suite(name))
        if METRICS[criterion.metric].counted and criterion.source not in ("contract", "promise")
    }
    cells = [cell for launch in plan_launches(checked(name)) for cell in launch.cells if cell.benchmark in compared]
    assert bool(cells) == (name == "nightly") and not any(cell.sampling.auto for cell in cells)


def test_the_example_of_the_documentation_is_a_suite() -> None:
    text = (ROOT / "docs" / "suites.md").read_text()
    example = parse_suite(text.partition("```toml\n")[2].partition("```")[0], "docs/suites.md")
    made = expand(example, CommandLine(), {}, Ranks(2, 8)).requests
    assert [(r.benchmark, r.ranks) for r in made if r.benchmark != "allreduce"] == [
        ("latency", 2),
        ("latency", 2),
        ("bw", 2),
        ("bw", 2),
    ]
    assert [r.ranks for r in made if r.benchmark == "allreduce"] == [2, 4, 8, 2, 4, 8], "3 × 2 sweeps"
    for key in (*RUN_WIDE, *(LINE_ONLY - {"debug", "inject", "no-store"})):
        assert f"`{key}`" in text, key


@pytest.mark.parametrize("name", ["acceptance", "nightly", "stability", "interference"])
@pytest.mark.parametrize("ranks", [2, 4])
def test_criteria_are_about_what_is_measured(name: str, ranks: int) -> None:
    suite = load_suite(name)
    made = expand(suite, CommandLine(), {}, Ranks(ranks, ranks, given=True))
    assert check_suite(suite, made) >= 2 and made.skips == []


def test_the_example_of_acceptance_is_a_suite() -> None:
    text = (ROOT / "docs" / "accept.md").read_text()
    example = parse_suite(text.partition("```toml\n")[2].partition("```")[0], "docs/accept.md")
    assert check_suite(example, expand(example, CommandLine(), {}, Ranks(2, 8))) == 5
    for key in (*RULE_KEYS, *CRITERION_KEYS):
        assert f"`{key}`" in text or f"\n{key} = " in text, key
    assert all(f"`{name}`" in text for name in METRICS)
