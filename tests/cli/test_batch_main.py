"""The exit code that a batch job leaves in a file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from omb_py.cli.batch_main import run


def test_the_code_is_left_and_an_older_one_is_not_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [])
    file = tmp_path / "41.code"
    file.write_text("0\n")
    assert run(file, ["suite", "check", "nowhere.toml"]) == 2
    assert file.read_text() == "2\n" and [path.name for path in tmp_path.iterdir()] == ["41.code"]
    assert sys.argv == ["omb-py", "suite", "check", "nowhere.toml"]
    assert "cannot read suite nowhere.toml" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_said_and_the_code_is_that_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [])
    assert run(tmp_path / "gone" / "41.code", ["--version"]) == 0
    assert capsys.readouterr().err.startswith("omb-py: error: cannot write ")
