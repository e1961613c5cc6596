"""Suites: those that come with omb-py, and one with every kind of criterion."""

from __future__ import annotations

from collections.abc import Callable

from tests.golden.running import Place

SHIPPED = ("acceptance", "dl-inference", "dl-training", "interference", "ml", "nightly", "osu", "quick", "stability")
MINE = """\
name = "mine"
description = "several kinds of entries and criteria"

[defaults]
backend = "mock"
iterations = 5
warmup = 1

[accept]
launches = 3
most-launches = 6
confidence = "75%"
undecided = "marginal"

[[entry]]
benchmarks = ["latency", "bw"]
ranks = 2
message-size = "8,64K"

[[entry]]
benchmarks = ["allreduce"]
message-size = "8,64K"
type = ["int32", "float64"]

[[criterion]]
id = "small"
text = "annex B, 3.1"
benchmark = "latency"
max = { 8 = "2 us", 64K = "10 us" }

[[criterion]]
id = "bandwidth"
benchmark = "bw"
message-size = "64K"
min = "100 GB/s"

[[criterion]]
id = "tail"
benchmark = "allreduce"
metric = "mean"
message-size = "8"
max = "2.26 us"

[[criterion]]
id = "efficiency"
benchmark = "allreduce"
message-size = "64K"
efficiency = "25%"

[[criterion]]
id = "not-slower"
benchmark = "allreduce"
message-size = "64K"
guideline = "reduce + bcast"
tolerance = "10%"
"""
SWEEP = """\
name = "sweep"
description = "two benchmarks, one of them on several numbers of ranks"
[defaults]
backend = "mock"
iterations = "20"
[[entry]]
benchmarks = ["allreduce"]
ranks = [2, 4]
message-size = "8:64:8"
[[entry]]
benchmarks = ["latency", "bcast"]
ranks = 2
message-size = "8:8"
"""


def files() -> dict[str, Callable[[Place], str]]:
    """Name of a file -> what makes it."""
    return {
        "suites/list.txt": lambda place: place.shown("suite list", *(f"suite check {name}" for name in SHIPPED)),
        **{f"suites/{name}.txt": _shown(name) for name in SHIPPED},
        "suites/own.txt": _own,
        "suites/run.txt": _run,
    }


def _shown(name: str) -> Callable[[Place], str]:
    return lambda place: place.shown(f"suite show {name} --backend mock -n 4")


def _own(place: Place) -> str:
    place.write("mine.toml", MINE)
    place.write("sweep.toml", SWEEP)
    return place.shown(
        "suite check mine.toml", "suite show mine.toml -n 4", "suite check sweep.toml", "suite show sweep.toml",
        "suite show sweep.toml -n 3 --launches 2 -m 1K:1K --tag a=1",
    )  # fmt: skip


def _run(place: Place) -> str:
    place.write("mine.toml", MINE)
    place.write("sweep.toml", SWEEP)
    few = "-i 3 -x 1 --seed 5 --no-store"
    return place.shown(
        f"run quick --backend mock --mock noise=0.05,data=off -n 4 {few}",
        f"run sweep.toml --mock noise=0.05 -n 4 -c --format table {few}",
        f"run ml --backend mock --mock data=off -n 2 {few}",
        f"run dl-inference --backend mock --mock data=off -n 2 {few}",
        f"run mine.toml --mock noise=0.05 -n 4 {few}",
        "run sweep.toml --mock noise=0.05 -n 3 -i 3 --seed 5 --store kept",
        "run sweep.toml --mock noise=0.05 -n 3 -i 3 --seed 5 --store kept --resume",
        "results list --store kept",
    )
