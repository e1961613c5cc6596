"""What is tortured: small runs of every command that makes launches, and what each says of its rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SUITE = """
name = "tortured"
description = "two benchmarks in two launches"
[defaults]
launches = 2
[[entry]]
benchmarks = ["latency", "allreduce"]
message-size = "8:512:8"
iterations = "300"
ranks = 2
"""
CRITERION = """
[accept]
launches = 2
most-launches = 4
confidence = "75%"
[[criterion]]
id = "quick"
benchmark = "latency"
max = "10 s"
"""
PATIENCE_S = 20
"""``--timeout`` of every workload."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One command line."""

    name: str
    words: tuple[str, ...]
    ranks: int = 2
    calm: frozenset[int] = frozenset({0})
    """Exit codes where nothing was killed; a side or a node that was starved is slower, which is a true verdict."""
    rows_known: bool = True
    """Whether each run that ends well stores the same number of rows."""

    def prepared(self, folder: Path) -> list[str]:
        """The words of the command, once its files are in `folder`."""
        (folder / "suite.toml").write_text(SUITE + (CRITERION if self.name == "accept" else ""))
        return [word.replace("FOLDER", str(folder)) for word in self.words]


_TIMEOUT = ("--timeout", str(PATIENCE_S))
WORKLOADS = {
    work.name: work
    for work in (
        Workload("run", ("run", "FOLDER/suite.toml", *_TIMEOUT)),
        Workload(
            "compare",
            (
                "compare",
                "--option",
                "NEW:binding=mpi4py",
                *("--launches", "2", "--rounds", "1", "latency", "-m", "8:16", "-i", "300"),
                *_TIMEOUT,
            ),
            calm=frozenset({0, 1}),
        ),
        Workload("accept", ("accept", "FOLDER/suite.toml", *_TIMEOUT), calm=frozenset({0, 1}), rows_known=False),
        Workload(
            "links",
            ("links", "--backend", "mpi", "-n", "4", "--passes", "1", "--launches", "1", "--windows", "2", *_TIMEOUT),
            4,
            calm=frozenset({0, 1}),
            rows_known=False,
        ),
        Workload(
            "tune",
            (
                "tune",
                "bcast",
                *("-n", "2", "-m", "8:8", "-i", "100", "--budget", "6s", "--folder", "FOLDER/tuned"),
                *("--candidate", "patient=OMB_PY_TORTURE=1", *_TIMEOUT),
            ),
            calm=frozenset({0, 1}),
            rows_known=False,
        ),
    )
}


def announced(stdout: str) -> list[tuple[int, str]]:
    """Size and value of each row that was printed whole, as OMB's text has it."""
    return [(int(m[1]), m[2]) for m in re.finditer(r"^(\d+) +(\d+\.\d\d)\b.*\n", stdout, re.M)]


def missing(rows: Sequence[tuple[int, str]], stored: Sequence[tuple[int, float]]) -> list[tuple[int, str]]:
    """The printed rows that are not among the stored ones, each of which counts once."""
    left = [(size, f"{value:.2f}") for size, value in stored]
    lost = []
    for row in rows:
        if row in left:
            left.remove(row)
        else:
            lost.append(row)
    return lost
