"""A tuning of simulated ranks, run by the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omb_py.cli import main

VARIABLE = "MOCK_COLL_ALGORITHM"
Tuned = Callable[[str], tuple[int, dict[str, Any], str]]


@pytest.fixture
def tune_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Tuned:
    """Runs ``omb-py tune`` with a store and a folder of its own; its exit code, its report as data, and stderr."""

    def call(line: str) -> tuple[int, dict[str, Any], str]:
        capsys.readouterr()
        report = tmp_path / "report.json"
        report.unlink(missing_ok=True)
        where = ["--store", str(tmp_path / "s"), "--folder", str(tmp_path / "tuned"), "--output", str(report)]
        code = main(["tune", *line.split(), "--backend", "mock", "--seed", "1", *where])
        return code, json.loads(report.read_text()) if report.exists() else {}, capsys.readouterr().err

    return call
