"""How often does ``bisect`` name the right commit? Real git histories of 16 commits, one of which adds 8 %.

``python -m tests.lab.error_rates.bisect [HISTORIES] [SPREAD]``: 20 histories, and 4 % from launch to launch.
"""

from __future__ import annotations

import math
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from omb_py.errors import OmbError
from omb_py.orchestrate.bisect.builds import Builds
from omb_py.orchestrate.bisect.commits import find_range
from omb_py.orchestrate.bisect.search import BisectDesign, BuiltProgram, bisect
from omb_py.results.compare.judge import CompareRules

COMMITS, SLOWER = 16, 1.08
PROGRAM = """
import os, random, sys
noise = random.Random(os.urandom(8))
print("# OSU MPI Latency Test v7.5")
print("# Size          Avg Latency(us)")
print(f"8 {100 * float(open(sys.argv[1]).read()) * noise.lognormvariate(0, float(sys.argv[2])):.2f}")
"""


def history(folder: Path, culprit: int) -> None:
    """A repository with the tags ``c0`` to ``c16``; the first one that is slower is the culprit."""
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")

    def git(*words: str) -> None:
        subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True)

    git("init", "--quiet")
    for number in range(COMMITS + 1):
        (folder / "cost").write_text(str(SLOWER if number >= culprit else 1.0))
        (folder / "text").write_text(str(number))
        git("add", "--all")
        git("commit", "--quiet", "--message", f"change {number}")
        git("tag", f"c{number}")


def search(folder: Path, culprit: int, spread: float) -> tuple[str, int, float]:
    """What is said of one history, the launches a side that it took, and how sure it was."""
    repository = folder / "repository"
    repository.mkdir()
    history(repository, culprit)
    program = folder / "latency.py"
    program.write_text(PROGRAM)
    run = f"{sys.executable} -I -S {program} {{build}}/cost {spread}"
    commits = find_range(repository, "c0", f"c{COMMITS}")
    builds = Builds(repository, "true", folder / "builds", lambda text: None)
    design = BisectDesign(commits, builds, BuiltProgram(run), 10, folder / "store", CompareRules(rounds=3))
    try:
        found = bisect(design)
    except OmbError as error:
        return f"nothing: {error}", 0, math.nan
    launches = max(found.between.launches) + sum(tried.launches for tried in found.tried)
    names = [commit.subject.removeprefix("change ") for commit in found.possible]
    said = "right" if names == [str(culprit)] else "among several" if str(culprit) in names else "wrong"
    return said, launches, found.certainty


def main(histories: int = 20, spread: float = 0.04) -> None:
    drawn = random.Random()
    said = []
    for number in range(histories):
        culprit = drawn.randint(1, COMMITS)
        with tempfile.TemporaryDirectory() as folder:
            said.append(search(Path(folder), culprit, spread))
        print(f"{number + 1:3} commit {culprit:2}: {said[-1][0]}, {said[-1][1]} launches a side", flush=True)
    right = sum(each[0] == "right" for each in said)
    sure = [each[2] for each in said if not math.isnan(each[2])]
    print(f"right: {right} of {histories}; said to be right: {100 * sum(sure) / max(1, len(sure)):.0f} %")


if __name__ == "__main__":
    main(*(kind(text) for kind, text in zip((int, float), sys.argv[1:], strict=False)))
