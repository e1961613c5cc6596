"""One answer for all commands of a gate: the worst, and never green for what was not measured."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from omb_py.errors import NEGATIVE, NO_VERDICT, OK, Interrupted, UsageError
from omb_py.orchestrate.gate import gate as gate_module
from omb_py.orchestrate.gate.gate import GateReport, gate_document, run_gate
from omb_py.orchestrate.gate.gate_file import read_gate
from omb_py.printing.writers.markdown import to_markdown
from omb_py.results.store.read import load

Osu = Callable[..., str]


def gated(tmp_path: Path, *commands: tuple[str, str, str], top: str = "") -> GateReport:
    lines = [f'[[command]]\nname = "{name}"\nbase = """{base}"""\nnew = """{new}"""' for name, base, new in commands]
    path = tmp_path / "gate.toml"
    path.write_text("\n".join([top, *lines]))
    return run_gate(read_gate(str(path)), tmp_path / "store", 1, True, lambda text: None)


@pytest.mark.slow
def test_the_worst_decides_and_the_others_are_judged_all_the_same(osu: Osu, tmp_path: Path) -> None:
    report = gated(
        tmp_path,
        ("broken", osu(1, "8"), "false"),
        ("slow", osu(1, "8", "x"), osu(1.1, "8")),
        ("same", osu(1, "8", "y"), osu(1, "8", "z")),
        top='name = "mine"\nrounds = 1',
    )
    assert [outcome.code(False) for outcome in report.outcomes] == [NO_VERDICT, NEGATIVE, OK]
    document = gate_document(report)
    assert (document.exit_code, document.headline) == (NEGATIVE, "mine: SLOWER")
    text = to_markdown(document)
    assert text.startswith("<!-- omb-py gate: mine -->\n\n**mine: SLOWER**\n")
    assert "| slow | latency 8 B |" in text and "| same |" not in text
    assert "not judged: broken: NEW (false) ended with exit code 1" in text
    assert "repeat it: omb-py gate" in text
    outcomes = [(case.group.partition(".")[0], case.outcome) for case in document.cases]
    assert outcomes == [("broken", "error"), ("slow", "failure"), ("same", None)]
    frame = load(tmp_path / "store")
    assert {dict(tags)["gate"] for tags in frame["tags"]} == {"mine"}


@pytest.mark.slow
def test_a_command_that_measured_nothing_is_never_green(osu: Osu, tmp_path: Path) -> None:
    report = gated(
        tmp_path, ("empty", "true", "true -x"), ("same", osu(1, "8", "a"), osu(1, "8", "b")), top="rounds = 1"
    )
    document = gate_document(report)
    assert (document.exit_code, document.headline) == (NO_VERDICT, "gate: NO VERDICT")
    assert any("empty" in problem and "printed nothing" in problem for problem in document.problems)


def test_a_gate_that_could_not_decide_says_so(osu: Osu, tmp_path: Path) -> None:
    report = gated(
        tmp_path, ("wide", osu(1, "8", "a"), osu(1, "8", "b")), top='rounds = 1\nlaunches = 6\ndelta = "0.01%"'
    )
    document = gate_document(report)
    assert (document.exit_code, document.headline) == (OK, "gate: nothing is shown to be slower, and 1 cell undecided")
    assert any(note.startswith("repeat it: omb-py gate ") and " --store " in note for note in document.notes)


def test_an_advisory_gate_says_all_and_fails_nothing(osu: Osu, tmp_path: Path) -> None:
    document = gate_document(gated(tmp_path, ("empty", "true", "false")), advisory=True)
    assert document.exit_code == OK
    assert document.headline == "gate: NO VERDICT"
    assert "advisory: the exit code is 0; without --advisory it is 5" in document.notes


@pytest.mark.slow
def test_too_little_time_is_no_verdict(osu: Osu, tmp_path: Path) -> None:
    report = gated(tmp_path, ("a", osu(1), osu(1.1)), top='time-budget = "1ms"')
    assert report.code == NO_VERDICT
    assert "launches a side" in report.outcomes[0].problem and "give it" in report.outcomes[0].problem


def test_a_wrong_command_is_refused_before_anything_is_started(osu: Osu, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"gate.toml:\d+: \[command 2\]: NEW: no program 'no-such-program'"):
        gated(tmp_path, ("a", osu(1), osu(1.1)), ("b", osu(1), "no-such-program"))
    assert not (tmp_path / "store").exists()


@pytest.mark.slow
def test_ctrl_c_between_two_commands_says_what_is_kept(
    osu: Osu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def keep(*words: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(gate_module, "keep", keep)
    with pytest.raises(Interrupted, match=r"^interrupted: 0 commands of 2 judged; launches are kept in "):
        gated(
            tmp_path,
            ("a", osu(1, "8"), osu(1, "8", "x")),
            ("b", osu(1, "8", "y"), osu(1, "8", "z")),
            top='name = "mine"\nrounds = 1',
        )
