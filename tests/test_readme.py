"""Every command of the README and of the tour runs as it is written. The two make commands are what .ci/run runs."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.machines.mpi import AS_ROOT

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
TEXT = (ROOT / "README.md").read_text() + (ROOT / "docs" / "tour.md").read_text()
BLOCKS = re.findall(r"```sh\n(.*?)```", TEXT, re.S)
COMMANDS = [line.partition("#")[0].strip() for block in BLOCKS for line in block.splitlines() if line.strip()]


def test_the_make_commands_are_what_ci_runs() -> None:
    ci = (ROOT / ".ci" / "run").read_text()
    makes = [command for command in COMMANDS if command.startswith("make ")]
    assert makes == ["make run", "make test"]
    assert re.search(r"^make test$", ci, re.M)
    assert re.search(r"^python3 tests/newcomer.py$", ci, re.M)  # it types the other one, and what follows in the README


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all commands, in their order, as a reader has it after `make run`."""
    folder = tmp_path_factory.mktemp("reader")
    (folder / ".venv").mkdir()
    (folder / ".venv" / "bin").symlink_to(BIN)
    return folder


def test_the_readme_needs_no_activated_environment() -> None:
    readme = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    lines = [line for block in readme for line in block.splitlines() if line.strip()]
    assert len(lines) >= 5
    assert all(line.startswith(("make ", ".venv/bin/")) for line in lines)


def test_the_readme_fits_a_screen() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 60


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.parametrize("command", [c for c in COMMANDS if not c.startswith("make ")])
def test_runs_as_written(command: str, folder: Path) -> None:
    told = subprocess.run(
        shlex.split(command),
        cwd=folder,
        env={**os.environ, **AS_ROOT, "PATH": f"{BIN}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    assert told.stdout.strip() or told.stderr.strip()  # report writes a file and says which
