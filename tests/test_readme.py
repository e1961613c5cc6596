"""Every command of the tour prints what it is there for; .ci/run and tests/newcomer.py run those of the README.

A command of the tour that measures until its means are known, or the bytes of a whole model, has few iterations here.
newcomer.py shortens none.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.newcomer import commands
from tests.support.machines.mpi import run_command

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
README = (ROOT / "README.md").read_text()
COMMANDS = commands((ROOT / "docs" / "tour.md").read_text())


def test_the_make_commands_are_what_ci_runs() -> None:
    ci = (ROOT / ".ci" / "run").read_text()
    makes = [command for command in commands(README) if command.startswith("make ")]
    assert makes == ["make run", "make test"]
    assert re.search(r"^make test$", ci, re.M)
    assert re.search(r"^python3 tests/newcomer.py$", ci, re.M)  # it types the other one, and what follows in the README


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all commands, in their order, as a reader has it after `make run`."""
    return tmp_path_factory.mktemp("reader")


def test_the_readme_needs_no_activated_environment() -> None:
    lines = commands(README)
    assert len(lines) >= 5
    assert all(line.startswith(("make ", ".venv/bin/")) for line in lines)


def test_the_readme_fits_a_screen() -> None:
    assert len(README.splitlines()) <= 60


NUMBER = r"\d+\.\d\d"
SHOWN: dict[str, tuple[tuple[str, int], ...]] = {
    "omb-py allreduce -n 2": ((rf"^\d+ +{NUMBER}$", 19), (r"^# OSU MPI Allreduce Latency Test v7.5$", 1)),
    "mpirun -n 2 omb-py allreduce": ((rf"^\d+ +{NUMBER}$", 19), (r"^omb-py: stored in omb-results/", 1)),
    "omb-py latency -z50,99 -c": ((rf"^\d+ +{NUMBER} +Pass +{NUMBER} +{NUMBER}$", 23),),
    "omb-py bw -m 1M:4M -W 128": ((rf"^(1048576|2097152|4194304) +{NUMBER}$", 3),),
    "omb-py latency --binding native,mpi4py": (
        (r"^  \S+-0 +native ", 23),
        (r"^  \S+-1 +mpi4py ", 23),
        (r"^latency: ", 1),
    ),
    "omb-py allgather --backend mpi,gloo -i 50": (
        (r"^  \S+-0 +mpi ", 21),
        (r"^  \S+-1 +gloo ", 21),
        (r"^allgather: ", 1),
    ),
    "omb-py allreduce -i 100 --launches 3": (
        (r"^omb-py: launch [123] of 3: ", 3),
        (r"^omb-py: stored in omb-results/", 3),
    ),
    "omb-py step --workload ddp:model=resnet50 -i 10": (
        (rf"^ *({NUMBER} +){{5}}{NUMBER}$", 1),
        (rf"^# bucket, 1 × \d+ B +{NUMBER} us ", 5),
    ),
    "omb-py run quick": ((r"^# OSU MPI .* Test v7\.5$", 6), (r"^omb-py: launch 1: .* 26 cells$", 1)),
    "omb-py explain allreduce -n 4": (
        (r"^What each of the 4 ranks does", 1),
        (r"^  ranks 0–3$", 1),
        (r"^  \| allreduce 8 B int32 sum", 1),
    ),
    "omb-py list": ((r"^Runs here$", 1), (r"^  mpi +cpu +native, mpi4py$", 1)),
    "omb-py doctor": (
        (r"^ok +backend mpi +\w+", 1),
        (r"^ok +mpi4py +\d", 1),
        (r"^ok +Python +3\.", 1),
        (r"^ok +store +\./omb-results is writable$", 1),
    ),
    "omb-py results list": ((r"^  20\d{6}T\d{6}-[0-9a-f]{6} ", 9), (r" +allreduce .* 57 +3 +$", 1)),
    "omb-py report": ((r"^omb-py: \d+ rows from 13 launches: .* written to report\.html$", 1),),
}
"""Command -> what it prints, as a pattern of lines and how many lines there are of it."""


FEW = {r"omb-py (allreduce|latency|bw)\b(?!.* -i )": ("-i", "20"), r"omb-py step ": ("-i", "2", "-x", "1")}
"""Commands that choose their iterations by themselves, and one whose iterations take a second -> fewer of them."""


@pytest.fixture(scope="module")
def printed(folder: Path) -> dict[str, subprocess.CompletedProcess[str]]:
    """What every command printed. They run once, in the order in which a reader meets them."""
    results = {}
    for command in SHOWN:
        results[command] = run_command(
            [*shlex.split(command), *(word for long, few in FEW.items() if re.search(long, command) for word in few)],
            timeout=300,
            cwd=folder,
            PATH=f"{BIN}:{os.environ['PATH']}",
            COLUMNS="200",
        )
    return results


def test_the_output_of_every_command_is_known() -> None:
    assert list(SHOWN) == COMMANDS


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.timeout(1500)  # the first one waits for all of them
@pytest.mark.parametrize("command", SHOWN)
def test_it_prints_what_it_is_there_for(
    command: str, printed: dict[str, subprocess.CompletedProcess[str]], folder: Path
) -> None:
    done = printed[command]
    assert done.returncode == 0, done.stderr
    text = done.stdout + done.stderr
    assert [(p, len(re.findall(p, text, re.M))) for p, _ in SHOWN[command]] == list(SHOWN[command]), text
    if command == "omb-py report":
        assert (folder / "report.html").stat().st_size > 100_000
