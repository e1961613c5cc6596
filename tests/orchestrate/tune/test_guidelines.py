"""A guideline that the library violates as it is, and that the files mend, is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.errors import EnvironmentProblem, Interrupted
from omb_py.orchestrate.tune import proof

from .conftest import Tuned

FILE = "MOCK_COLL_RULES_FILE"
LINE = "allreduce -n 2 -m 8:8 -i 5 -x 0 --mock algorithm=tree:2us:1ns,algorithm=slow:50us:1ns,launch=0.01"


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A library whose allreduce is slow, and whose other collectives are not; the candidate that makes it fast."""
    (tmp_path / "slow").write_text("allreduce 2 0 - slow\n")
    (tmp_path / "fast").write_text("allreduce 2 0 - tree\n")
    monkeypatch.setenv(FILE, str(tmp_path / "slow"))
    return f"--candidate fast={FILE}={tmp_path / 'fast'}"


def test_a_violated_guideline_that_is_mended_is_named(tune_line: Tuned, planted: str) -> None:
    code, report, err = tune_line(f"{LINE} {planted}")
    assert code == 0, err
    assert [rule["setting"]["name"] for rule in report["rules"]] == ["fast"]
    mended = {(each["guideline"], each["size_bytes"]): each for each in report["guidelines"]}
    each = mended["gl5_allreduce", 8]
    assert (each["ranks"], each["word"]) == (2, "mended")
    assert (each["before"]["verdict"], each["after"]["verdict"]) == ("VIOLATED", "HOLDS")
    assert each["before"]["ratio"] > 10 > 1 > each["after"]["ratio"]
    assert {each["word"] for each in report["guidelines"]} <= {"mended", "still violated", "unclear"}


@pytest.mark.slow
def test_guidelines_can_be_left_out_and_a_check_that_fails_loses_nothing(
    tune_line: Tuned, planted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*arguments: object, **named: object) -> None:
        raise EnvironmentProblem("no launcher")

    monkeypatch.setattr(proof, "check_guidelines", refused)
    code, report, err = tune_line(f"{LINE} {planted}")
    assert (code, len(report["rules"]), report["guidelines"]) == (0, 1, [])
    assert "guidelines of allreduce on 2 ranks were not checked: no launcher" in err
    code, report, err = tune_line(f"{LINE} {planted} --no-guidelines")
    assert (code, len(report["rules"]), "not checked" in err) == (0, 1, False)


@pytest.mark.slow
def test_the_files_are_written_before_guidelines_are_checked(
    tune_line: Tuned, planted: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(*arguments: object, **named: object) -> None:
        raise Interrupted("interrupted")

    monkeypatch.setattr(proof, "check_guidelines", interrupted)
    code, _, err = tune_line(f"{LINE} {planted}")
    assert (code, (tmp_path / "tuned" / "rules.json").exists()) == (130, True)
    assert "while guidelines were checked" in err and "--resume=" in err
    monkeypatch.undo()
    monkeypatch.setenv(FILE, str(tmp_path / "slow"))
    code, report, _ = tune_line(f"{LINE} {planted} --resume")
    assert (code, report["guidelines"][0]["word"]) == (0, "mended")
