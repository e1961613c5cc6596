"""A git history whose program becomes slower at one commit."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from omb_py.orchestrate.bisect.builds import Builds
from omb_py.orchestrate.bisect.commits import find_range
from omb_py.orchestrate.bisect.search import BisectDesign, BuiltProgram
from omb_py.results.compare.judge import CompareRules
from tests.orchestrate.programs.conftest import calm

__all__ = ["calm"]

Make = Callable[..., BisectDesign]
PROGRAM = """echo >> "$2"
awk -v cost="$1" -v seed="$(wc -l < "$2")" 'BEGIN {
  x = seed * 7919
  for (i = 0; i < 24; i++) { x = x * 16807 % 2147483647; if (i > 11) sum += x / 2147483647 }
  print "# OSU MPI Latency Test v7.5\\n# Datatype: MPI_CHAR.\\n# Size          Avg Latency(us)"
  printf "8 %.2f\\n", 100 * cost * (1 + 0.005 * (sum - 6))
}'
"""
"""Prints a latency of 100 µs times its cost, with a noise that launch n of a test has in every run of it.

No awk's own random numbers: they differ from one awk to another.
"""


def git(repository: Path, *words: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    # of two commits that halve a history alike, git takes the one with the lower name, which follows from the dates
    dates = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), "2026-11-20T10:00:00Z")
    command = ["git", "-C", str(repository), *identity, *words]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **dates})


@pytest.fixture
def repository(tmp_path: Path) -> Callable[..., Path]:
    """Make a history of which commit k has the tag ``ck``, and the cost of the last change at or before it."""

    def make(commits: int, costs: Mapping[int, float], broken: tuple[int, ...] = ()) -> Path:
        folder = tmp_path / "repository"
        folder.mkdir()
        git(folder, "init", "--quiet")
        for number in range(commits):
            if number in costs:
                (folder / "cost").write_text(str(costs[number]))
            (folder / "text").write_text(f"text {number}")
            (folder / "ready").write_text("no" if number in broken else "yes")
            git(folder, "add", "--all")
            git(folder, "commit", "--quiet", "--message", f"change {number}")
            git(folder, "tag", f"c{number}")
        return folder

    return make


@pytest.fixture
def design(tmp_path: Path) -> Make:
    """A bisection of two revisions; notes go to a list."""

    def make(folder: Path, good: str, bad: str, notes: list[str] | None = None, run: str = "") -> BisectDesign:
        program = tmp_path / "latency.sh"
        program.write_text(PROGRAM)
        usual = f"sh {program} $(cat {{build}}/cost) {tmp_path}/launches"
        told = [] if notes is None else notes
        builds = Builds(folder, "grep -q yes ready", tmp_path / "builds", told.append)
        commits = find_range(folder, good, bad)
        return BisectDesign(
            commits, builds, BuiltProgram(run or usual), 8, tmp_path / "store", CompareRules(rounds=3), 1
        )

    return make


@pytest.fixture
def builds(tmp_path: Path) -> Callable[..., Builds]:
    """Builds of a repository by a command."""

    def make(folder: Path, command: str, notes: list[str]) -> Builds:
        return Builds(folder, command, tmp_path / "builds", notes.append)

    return make
