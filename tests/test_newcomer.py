"""The script that plays a newcomer: it reads the README's commands, and a failure among them is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import newcomer
from tests.newcomer import ROOT, Step, commands, report, typed

GOOD = "# OSU MPI Allreduce Latency Test v7.5\n# Size       Avg Latency(us)\n4                       1.05\n"


def test_the_commands_are_those_of_the_readme_in_their_order() -> None:
    words = commands((ROOT / "README.md").read_text())
    assert words[:2] == ["make run", "make test"]
    assert len(words) > 4 and all("#" not in command for command in words)


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        (Step("make run", 1, 0, GOOD), ""),
        (Step("make run", 1, 0, "done\n"), "it printed no table"),
        (Step("make run", 1, 2, GOOD), "exit code 2"),
        (Step(".venv/bin/omb-py doctor", 1, 0, " \n"), "it printed nothing"),
        (Step(".venv/bin/omb-py doctor", 1, 0, "ok\n"), ""),
    ],
)
def test_what_counts_as_a_failure(step: Step, problem: str, tmp_path: Path) -> None:
    assert step.problem == problem
    assert (f"<- {problem}" in report([step], tmp_path)) == bool(problem)


def test_a_command_has_nothing_but_a_newcomers_environment(tmp_path: Path) -> None:
    step = typed("echo $HOME $LEFT; exit 3", tmp_path, {"HOME": "/empty", "PATH": "/usr/bin:/bin"})
    assert (step.status, step.output) == (3, "/empty\n")


def test_a_command_that_fails_is_the_scripts_own_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def played(command: str, folder: Path, environ: object) -> Step:
        if command.startswith("git clone"):
            target = Path(command.split()[3])
            target.mkdir()
            (target / "README.md").write_text("```sh\nmake run\nmake test\nfalse\n```\n")
            return Step(command, 0, 0, "cloned")
        return Step(command, 0, int(command == "false"), GOOD)

    monkeypatch.setattr(newcomer, "typed", played)
    assert newcomer.main([]) == 1
    out = capsys.readouterr().out
    assert "false  <- exit code 1" in out and "make test" not in out
