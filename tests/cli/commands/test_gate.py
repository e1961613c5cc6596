"""``omb-py gate``: trust, exit codes, files."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.cli import main
from omb_py.errors import NO_VERDICT, OK, USAGE

FILE = """
[[command]]
name = "app"
base = "true"
new = "sh -c 'touch MARK'"
"""


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "gate.toml"
    path.write_text(FILE.replace("MARK", str(tmp_path / "mark")))
    return path


def call(gate: Path, *words: str) -> int:
    return main(["gate", str(gate), "--store", str(gate.parent / "store"), "--quiet", *words])


def test_a_file_that_nobody_trusts_starts_nothing(gate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(gate) == USAGE
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "line 4: base = 'true' starts a program" in err and "omb-py gate --trust" in err
    assert not (gate.parent / "mark").exists()


@pytest.mark.slow
def test_a_trusted_file_is_run_and_is_not_green_without_a_measurement(gate: Path) -> None:
    comment, verdicts = gate.parent / "comment.md", gate.parent / "verdicts.xml"
    assert call(gate, "--trust", "-o", str(comment), "-o", str(verdicts)) == NO_VERDICT
    assert comment.read_text().startswith("<!-- omb-py gate: gate -->")
    assert "NO VERDICT" in verdicts.read_text()
    assert call(gate, "--advisory") == OK  # trusted from now on
    gate.write_text(gate.read_text() + "\n")
    assert call(gate) == USAGE  # another file now


def test_a_form_that_there_is_not_is_refused_first(gate: Path) -> None:
    assert call(gate, "--trust", "-o", "comment.txt") == USAGE
