"""How often a comparison of programs errs: launches that were recorded, and planted changes, through all of it.

``ping_pong_stream.txt`` has 69 launches of a C ping-pong over MPICH, one after the other, on two cores that other
programs shared: launches spread by half, and neighbours resemble each other. A line has the µs of 64, 256 and 1024 KiB.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from omb_py.orchestrate.programs import session
from omb_py.orchestrate.programs.execution import Execution
from omb_py.orchestrate.programs.session import compare_programs
from omb_py.results.compare.judge import CompareRules
from omb_py.results.statistics.order_statistics import share_bound
from tests.orchestrate.programs.conftest import Make

STREAM = [
    [float(word) for word in line.split()]
    for line in (Path(__file__).parent / "ping_pong_stream.txt").read_text().splitlines()
]
HEAD = "# OSU MPI Latency Test v7.5\n# Datatype: MPI_CHAR.\n# Size          Avg Latency(us)\n"
Report = Callable[[Iterator[Sequence[float]], int, int], bool]


@pytest.fixture
def alarm(design: Make, monkeypatch: pytest.MonkeyPatch) -> Report:
    """Make a report of launches that are not started, but print these times; whether it says that something changed."""
    monkeypatch.setattr(session, "write_launch", lambda *words: None)

    def report(times: Iterator[Sequence[float]], seed: int, launches: int) -> bool:
        def run(argv: Sequence[str], environ: Mapping[str, str], *more: object) -> Execution:
            factor = 1.1 if argv[-1] == "slower" else 1.0
            lines = [
                f"{size:<10}{us * factor:18.2f}\n"
                for size, us in zip((65536, 262144, 1048576), next(times), strict=False)
            ]
            return Execution((HEAD + "".join(lines)).encode(), b"", 0, 1.0, 1)

        monkeypatch.setattr(session, "run_program", run)
        rules = CompareRules(rounds=3)
        asked = design(
            "true a", "true slower" if launches == 10 else "true b", rules=rules, launches=launches, seed=seed
        )
        return any(judged.alarm for judged in compare_programs(asked).judged)

    return report


@pytest.mark.slow
def test_a_program_against_itself_seldom_raises_an_alarm(alarm: Report) -> None:
    reports = 60  # of which none may raise one

    def recorded(start: int) -> Iterator[Sequence[float]]:
        return (STREAM[(start + number) % len(STREAM)] for number in range(len(STREAM)))

    alarms = sum(alarm(recorded(seed * 7), seed, 8) for seed in range(reports))
    assert share_bound(alarms, reports, 0.95) <= 0.05


@pytest.mark.slow
def test_a_tenth_is_found_with_ten_launches(alarm: Report) -> None:
    noise, reports = random.Random(1), 40

    def spread() -> Iterator[Sequence[float]]:
        while True:
            launch = noise.gauss(1, 0.02)
            yield [us * launch * noise.gauss(1, 0.005) for us in (20.0, 80.0, 300.0)]

    assert sum(alarm(spread(), seed, 10) for seed in range(reports)) >= 0.95 * reports
