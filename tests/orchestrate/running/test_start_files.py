"""How many files a rank of a real launch opens as it starts, and how many bytes it reads: events, not seconds.

`python -m tests.lab.startup` counts the libraries' own files too, under strace.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import source_from_cache
from pathlib import Path
from typing import Any

import pytest

import omb_py
from omb_py.orchestrate.running import run
from tests.support.machines.mpi import environment
from tests.support.sessions import counted_opens

MOST_FILES, MOST_BYTES = 100, 20_000_000
ANALYSIS = ("pandas", "pyarrow", "scipy", "plotly", "click")
"""Packages that no rank loads (design, section 3)."""


@pytest.mark.slow
@pytest.mark.mpi
def test_a_rank_opens_few_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command_for = run.command_for

    def counted(launcher: str, program: list[str], *rest: Any, **more: Any) -> Any:
        return command_for(launcher, [program[0], "-m", counted_opens.__name__, program[-1]], *rest, **more)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # others may empty the user's
    words = ("allreduce", "-n", "2", "-m", "8:64", "-i", "10", "--no-store", "--quiet")
    # it keeps the modules of its ranks in one file, which pytest's own loader prevents
    subprocess.run([sys.executable, "-m", "omb_py", *words], check=True, env=environment())
    monkeypatch.setattr(run, "command_for", counted)
    monkeypatch.setenv(counted_opens.FOLDER, str(counts := tmp_path / "counts"))
    counts.mkdir()
    root = str(Path(__file__).parents[3])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", "")))))
    omb_py.run("allreduce", backends=("mpi",), ranks=2, sizes="8:64", iterations="10", store=None, quiet=True)
    ranks = [file.read_text().splitlines() for file in counts.iterdir()]
    assert len(ranks) == 2
    for lines in ranks:
        opened = [line.partition(" ")[2] for line in lines]
        elsewhere = {source_of(path) for path in opened if not path.startswith(("/proc", "/sys", "/dev"))}
        assert 10 < len(elsewhere) <= MOST_FILES, "the count sees Python's modules"
        assert 500_000 < int(lines[-1].partition(" ")[0]) <= MOST_BYTES
        assert not [path for path in elsewhere if any(f"/{name}/" in path for name in ANALYSIS)]


def source_of(path: str) -> str:
    """The source of compiled Python, which is opened too where it was not compiled before."""
    compiled = re.sub(r"\.pyc\.\d+$", ".pyc", path)  # as it is being written
    return source_from_cache(compiled) if compiled.endswith(".pyc") else path
