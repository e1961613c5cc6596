from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import omb_py.suites
from omb_py.engine.program.benchmark import Benchmark
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.suites import registry
from omb_py.suites.registry import BENCHMARKS, find, names
from tests.support.entries import ABSENT, GONE, forget_plug_ins, install_entries
from tests.support.machines.mpi import run_command

MINE = replace(BENCHMARKS["allreduce"], name="mine", summary="another package's")


def test_ours_come_first() -> None:
    assert names()[: len(BENCHMARKS)] == list(BENCHMARKS) and len(BENCHMARKS) > 50
    assert all(find(name) is benchmark for name, benchmark in BENCHMARKS.items())


@pytest.mark.parametrize("word", ["osu_allreduce", "ALLREDUCE", "Osu_AllReduce"])
def test_omb_s_prefix_and_any_case_are_accepted(word: str) -> None:
    assert find(word) is BENCHMARKS["allreduce"]


@pytest.mark.parametrize(
    ("word", "ours"),
    [("PingPong", "latency"), ("put_local", "put_latency"), ("Sendrecv", "sendrecv"), ("BCAST", "bcast")],
)
def test_imb_s_names_are_accepted_where_they_are_no_name_of_ours(word: str, ours: str) -> None:
    assert find(word) is BENCHMARKS[ours]


@pytest.mark.parametrize(
    ("word", "near"),
    [("alreduce", "allreduce"), ("osu_latancy", "latency"), ("broadcast", "bcast"), ("all2all", "alltoall")],
)
def test_an_unknown_one_is_refused_with_the_nearest(word: str, near: str) -> None:
    with pytest.raises(UsageError, match=rf"unknown benchmark '{word}': did you mean {near}\?"):
        find(word)


def test_what_is_like_nothing_lists_them_all() -> None:
    with pytest.raises(UsageError, match=r"unknown benchmark 'xyz': valid: .*allreduce.*latency"):
        find("xyz")


class TestOtherPackages:
    @pytest.fixture(autouse=True)
    def installed(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        entries = {"mine": MINE, "absent": ABSENT, "strange": object(), "latency": MINE, "gone": GONE}
        install_entries(monkeypatch, registry.ENTRY_POINTS, entries)
        yield
        forget_plug_ins()

    def test_are_found_and_listed_after_ours(self) -> None:
        assert find("mine") is find("osu_mine") is MINE
        assert names() == [*BENCHMARKS, "mine"]

    def test_that_are_broken_keep_their_reason_and_break_nothing_else(self) -> None:
        assert find("mine") is MINE
        broken = registry.broken()
        assert set(broken) == {"absent", "strange", "gone"}
        assert broken["absent"].startswith("AttributeError: ")
        assert broken["gone"] == "ModuleNotFoundError: No module named 'no_such_module_of_anybody'"
        assert "object" in broken["strange"]

    @pytest.mark.parametrize("name", ["absent", "strange", "gone"])
    def test_that_are_broken_are_refused_with_the_reason(self, name: str) -> None:
        with pytest.raises(EnvironmentProblem, match=f"benchmark {name} cannot be loaded: .*"):
            find(name)

    def test_do_not_replace_ours(self) -> None:
        assert find("latency") is BENCHMARKS["latency"]


def test_the_package_offers_the_registry() -> None:
    assert set(omb_py.suites.__all__) == {"BENCHMARKS", "find", "names"}
    assert omb_py.suites.find is find


def test_every_declaration_is_complete() -> None:
    for name, benchmark in BENCHMARKS.items():
        assert isinstance(benchmark, Benchmark) and benchmark.name == name
        assert benchmark.summary and benchmark.metric.formula
        assert (benchmark.metric.unit == "MB/s") == bool(benchmark.metric.bytes_of or benchmark.metric.bytes_over)


def test_reading_the_registry_loads_no_numpy() -> None:
    code = (
        "import sys, omb_py.suites as s; s.find('bw'); "
        "print([m for m in ('numpy', 'llvmlite', 'mpi4py') if m in sys.modules])"
    )
    done: Any = run_command([sys.executable, "-c", code], check=True)
    assert done.stdout.strip() == "[]"
