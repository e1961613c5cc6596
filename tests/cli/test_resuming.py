"""``--resume`` alone takes the words of the run that it continues."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from omb_py.cli import main
from omb_py.cli.registry import OURS
from omb_py.cli.resuming import takes_resume, whole_line
from omb_py.errors import UsageError
from omb_py.orchestrate.running.collector import Collector
from omb_py.orchestrate.running.resume import COMPARISON, TUNING, declare_design
from omb_py.results.store.journal import RunLock
from omb_py.results.store.write import write_launch
from tests.support.rows import row_of


def begun(store: Path, run_id: str, *words: str) -> None:
    """A run of ``omb-py`` with these words that was interrupted after its first launch."""
    write_launch(store, [row_of(run_id, 0)], {"run": {"tool": {"command_line": ["omb-py", *words]}}})
    RunLock(store, run_id).ended_early("interrupted")
    if words[0] in ("compare", "tune"):
        declare_design(store, run_id, {}, TUNING if words[0] == "tune" else COMPARISON)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store, which is the usual one, with interrupted runs of two commands and one that has ended."""
    monkeypatch.setenv("OMB_PY_STORE", str(tmp_path))
    begun(tmp_path, "r1", "run", "osu", "-n", "4")
    begun(tmp_path, "r2", "run", "quick", "--resume", "--tag", "a=b c")
    begun(tmp_path, "c1", "compare", "--set", "NEW:TOKEN=<redacted>", "latency")
    write_launch(tmp_path, [row_of("r3", 0)], {"run": {"tool": {"command_line": ["omb-py", "run", "quick"]}}})
    return tmp_path


@pytest.mark.parametrize(
    ("line", "whole"),
    [
        ("run --resume", "run --resume=r2 quick --tag 'a=b c'"),
        ("run --resume=r1", "run --resume=r1 osu -n 4"),
        ("run --resume r1", "run --resume=r1 osu -n 4"),
        ("run osu --resume=r1", ""),
        ("run --resume=r1 -n 4", ""),
        ("latency --resume", ""),
    ],
)
def test_the_words_of_the_run_stand_in_for_those_left_out(line: str, whole: str, store: Path) -> None:
    said: list[str] = []
    assert whole_line(line.split(), said.append) == shlex.split(whole or line)
    assert said == ([f"omb-py: goes on: omb-py {whole}\n"] if whole else [])


def test_a_store_of_the_line_is_that_of_what_goes_on(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMB_PY_STORE")
    words = whole_line(["run", "--resume=r1", "--store", str(store)], len)
    assert words == ["run", "--resume=r1", "--store", str(store), "osu", "-n", "4"]


def test_a_quiet_line_goes_on_quietly(store: Path) -> None:
    said: list[str] = []
    words = whole_line(["run", "--resume=r1", "--quiet"], said.append)
    assert (words, said) == (["run", "--resume=r1", "--quiet", "osu", "-n", "4"], [])


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("run --resume=r3", "--resume=r3: no interrupted run in "),
        ("accept --resume", "--resume: no interrupted accept in "),
        ("compare --resume", r"--resume=c1: a secret of its command line is not stored: fill it in: omb-py compare "),
        ("run --resume --store nowhere", "--resume: no interrupted run in 'nowhere'"),
    ],
)
def test_what_cannot_go_on_by_itself(line: str, why: str, store: Path) -> None:
    with pytest.raises(UsageError, match=f"^{why}"):
        whole_line(line.split(), len)


def test_the_parts_of_a_tuning_do_not_go_on_by_themselves(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The comparison that proves it and its guidelines are runs of the same command line, and newer."""
    begun(store, "t1", "tune", "allreduce")
    begun(store, "t2", "tune", "allreduce")
    (store / ".reports" / "t2.tuning").rename(store / ".reports" / "t2.begun")
    assert whole_line(["tune", "--resume"], len) == ["tune", "--resume=t1", "allreduce"]
    assert main(["results", "list", "--store", str(store)]) == 0
    (hint,) = [line for line in capsys.readouterr().err.splitlines() if "to go on: omb-py tune" in line]
    assert hint == "omb-py: run t1: interrupted; to go on: omb-py tune --resume=t1 allreduce"


def test_the_commands_with_resume_are_those_with_the_option() -> None:
    assert {name for name in OURS if takes_resume(name)} == {"run", "compare", "aa", "accept", "tune"}
    assert not takes_resume("latency") and not takes_resume("no-such")


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "run mine.toml --backend mock -n 2",
        "compare --option NEW:mock=alpha=2us --launches 4 --seed 1 allreduce --backend mock -n 2 -m 8:64:8 -i 20",
    ],
)
def test_an_interrupted_command_goes_on_without_its_words(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text('name = "mine"\n[[entry]]\nbenchmarks = ["latency", "bcast"]\nmessage-size = "8:16"\n')
    finished, real = [], Collector.cell

    def cell(collector: Collector, message: dict[str, object]) -> None:
        finished.append(message)
        if len(finished) == 3:
            raise KeyboardInterrupt
        real(collector, message)

    with monkeypatch.context() as patched:
        patched.setattr(Collector, "cell", cell)
        patched.setattr(sys, "argv", ["omb-py", *line.split()])
        assert main(line.split()) == 130
    hint = capsys.readouterr().err.splitlines()[-1].removeprefix("omb-py: to go on: ")
    assert main([line.split()[0], "--resume"]) in (0, 1)
    assert f"omb-py: goes on: {hint}\n" in capsys.readouterr().err
