"""``omb-py compare --run``: what its options say, and what bad ones get."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from omb_py.cli import main
from omb_py.errors import ENVIRONMENT, NEGATIVE, NO_VERDICT, OK

APP = """
import sys
started = open(f"{__file__}.started", "a")
started.write("x")
noise = 1 + started.tell() * 37 % 97 / 9000
print(f"step took {float(sys.argv[1]) * noise:.7f} ms")
"""
METRIC = "--metric 'step ms lower step took ([0-9.]+) ms'"


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    (tmp_path / "app.py").write_text(APP)

    def call(line: str) -> tuple[int, str, str]:
        app = f"{sys.executable} -I -S {tmp_path}/app.py"
        words = [word.replace("APP", app) for word in shlex.split(line)]
        code = main([*words, "--store", str(tmp_path / "store")])
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.mark.slow
def test_two_commands_get_a_verdict_and_show_it_again(run) -> None:  # type: ignore[no-untyped-def]
    line = f"compare --run 'BASE: APP 10' --run 'NEW: APP 11' {METRIC} --launches 8 --rounds 1 --format json --quiet"
    code, out, err = run(line)
    report = json.loads(out)
    assert (code, err) == (NEGATIVE, "")
    assert report["verdicts"] == {"SLOWER": 1}
    code, again, _ = run("compare last --format json")
    assert (code, json.loads(again)["cells"]) == (NEGATIVE, report["cells"])
    code, out, _ = run("results show last --format table")
    assert code == OK and "step" in out


@pytest.mark.slow
def test_one_command_with_two_settings(run) -> None:  # type: ignore[no-untyped-def]
    line = "compare --run 'sh -c \"APP ${T:-10}\"' --set NEW:T=8"
    code, out, err = run(f"{line} {METRIC} --launches 8 --rounds 1")
    assert code == OK, err
    assert "FASTER" in out and "variable T: not set → 8; nothing else" in out


def test_no_verdict_has_an_exit_code_of_its_own(run) -> None:  # type: ignore[no-untyped-def]
    code, out, err = run("compare --run 'BASE: APP 10' --run 'NEW: true' --quiet " + METRIC)
    assert (code, out) == (NO_VERDICT, "")
    assert err.count("\n") == 1 and "NEW (true) printed nothing" in err


def test_a_program_that_dies_is_a_matter_of_the_environment(run) -> None:  # type: ignore[no-untyped-def]
    code, _, err = run("compare --run 'BASE: APP 10' --run 'NEW: false' --quiet " + METRIC)
    assert code == ENVIRONMENT and err.count("\n") == 1
