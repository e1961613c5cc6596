"""The series of ``make test``: each run on its kind of machine, and one red run makes all red."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path
from typing import TextIO

import pytest

from omb_py.engine.measuring.cache_rotation import CACHE_BYTES
from tests.lab.tiers import again


@pytest.mark.parametrize("codes", [[0] * 6, [0, 0, 2, 0, 0, 0]])
def test_a_series(
    codes: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    left = iter(codes)
    asked: list[dict[str, str]] = []

    def make(words: list[str], *, stdout: TextIO, stderr: int, env: dict[str, str]) -> int:
        asked.append(env)
        stdout.write("==== 120 passed, 4 skipped in 3.1s ====\n1 failed, 17 passed, 9 deselected in 2s\n")
        return next(left)

    monkeypatch.setattr(subprocess, "call", make)
    loads: list[int] = []
    monkeypatch.setattr(again, "beside", lambda processes: loads.append(processes) or contextlib.nullcontext())
    assert again.main(["--times", "6", "--logs", str(tmp_path)]) == int(any(codes))
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == f"red: {sum(map(bool, codes))} of 6"
    assert ["RED" in line for line in lines[:-1]] == [code != 0 for code in codes]
    assert all("120 + 17 passed" in line for line in lines[:-1])
    assert loads == [0, 4, 0, 0, 0, 0]
    assert [env.get(CACHE_BYTES) for env in asked[3:5]] == [str(480 << 20), str(8 << 20)]
    assert "shuffled" in asked[2]["PYTEST_ADDOPTS"] and asked[2][again.ORDER] == "3"
