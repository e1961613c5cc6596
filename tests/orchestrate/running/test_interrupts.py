"""What ends a run early, Ctrl-C or a full disk: the exit code, and a line that says what is kept and how to go on."""

from __future__ import annotations

import errno
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from omb_py.cli import main
from omb_py.errors import Interrupted
from omb_py.orchestrate.checks import guidelines
from omb_py.orchestrate.running import rank_process, suite_run
from omb_py.orchestrate.running.interrupts import InterruptedLaunches, resumable
from omb_py.process_end import TYPED
from omb_py.results.store import write
from omb_py.results.store.runs import runs


def ctrl_c(*words: Any, **named: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("error", [KeyboardInterrupt(), Interrupted("interrupted")])
def test_the_outermost_says_what_is_kept(error: BaseException) -> None:
    with (
        pytest.raises(InterruptedLaunches, match=r"^interrupted: all is kept$"),
        resumable(lambda: "all is kept"),
        resumable(lambda: "a part is kept"),
    ):
        raise error


def test_nothing_is_said_where_nothing_is_kept() -> None:
    with pytest.raises(InterruptedLaunches, match=r"^interrupted$"), resumable(lambda: ""):
        raise KeyboardInterrupt


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C comes once the launches of a suite are there."""
    make_launches = suite_run.make_launches

    def measure_first(*words: Any, **named: Any) -> None:
        make_launches(*words, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(suite_run, "make_launches", measure_first)


def test_a_suite_without_a_cell_has_nothing_to_go_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(suite_run, "describe_launch", ctrl_c)
    assert main(f"run quick --backend mock -n 2 --store {tmp_path}".split()) == 130
    assert capsys.readouterr().err.splitlines()[-1] == "omb-py: error: interrupted: nothing was measured"


@pytest.mark.usefixtures("late")
def test_a_suite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(f"run quick --backend mock -n 2 --store {tmp_path}".split()) == 130
    err, hint = capsys.readouterr().err.splitlines()[-2:]
    assert err.startswith(f"omb-py: error: interrupted: what was measured is kept in {tmp_path}, run "), err
    assert "; --resume=" in err and err.endswith(" measures the rest")
    assert hint.startswith("omb-py: to go on: omb-py run --resume=") and hint.endswith(f"-n 2 --store {tmp_path}")


def test_the_table_over_launches_has_those_before_the_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = tmp_path / "s.toml"
    suite.write_text(
        'name = "s"\ndescription = "x"\n[defaults]\nlaunches = 3\n[[entry]]\nbenchmarks = ["latency"]\n'
        'message-size = "8:16"\n'
    )
    line = f"run {suite} --backend mock -n 2 --store {tmp_path / 'st'}".split()
    start, begun = suite_run.start_on_nodes, []

    def start_one(*words: Any) -> None:
        if begun:
            raise KeyboardInterrupt
        begun.append(start(*words))

    with monkeypatch.context() as patch:
        patch.setattr(suite_run, "start_on_nodes", start_one)
        assert main(line) == 130
    assert "launches" not in capsys.readouterr().out
    assert main([*line, "--resume"]) == 0
    heads = [text for text in capsys.readouterr().out.splitlines() if "launches" in text]
    assert heads == ["# latency: latency (us) over 3 launches"]


@pytest.mark.usefixtures("late")
def test_a_rehearsal_goes_on_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(TYPED, "rehearse --nodes 3 run quick -n 2 --tag 'a=b c'")  # as in the nodes' namespaces
    monkeypatch.setattr(sys, "argv", [])
    assert main(f"run quick --backend mock -n 2 --store {tmp_path}".split()) == 130
    assert sys.argv == ["omb-py", "rehearse", "--nodes", "3", "run", "quick", "-n", "2", "--tag", "a=b c"]
    assert TYPED not in os.environ
    hint = capsys.readouterr().err.splitlines()[-1]
    assert hint.startswith("omb-py: to go on: omb-py rehearse --nodes 3 run --resume=2")
    assert hint.endswith(" quick -n 2 --tag 'a=b c'")
    monkeypatch.setenv(TYPED, shlex.join(shlex.split(hint)[5:]))
    assert main(f"run quick --backend mock -n 2 --resume --store {tmp_path}".split()) == 130
    again = capsys.readouterr().err.splitlines()[-1]
    assert again.startswith("omb-py: to go on: omb-py rehearse --nodes 3 run --resume=2")


def test_guidelines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(guidelines, "report_of", ctrl_c)
    line = f"guidelines gl5 --backend mock -n 4 -m 8:8 -i 5 --launches 2 --rounds 1 --store {tmp_path}"
    assert main(line.split()) == 130
    err = capsys.readouterr().err.splitlines()[-1]
    assert err.startswith(f"omb-py: error: interrupted: what was measured is kept in {tmp_path}, run "), err


SUITE = """
name = "mine"
[[entry]]
benchmarks = ["latency"]
message-size = "8:16"
iterations = 20
[[criterion]]
id = "a"
benchmark = "latency"
max = "1 ms"
"""
MANY_LAUNCHES = {
    "accept ./mine.toml -n 2": 2,
    "run ./mine.toml -n 2 --launches 4": 2,
    "compare --option NEW:mock=alpha=2us --launches 4 latency -m 8:8 -i 20": 2,
    "aa --launches 4 latency -m 8:8 -i 20": 2,
    "links -n 4 -i 20": 2,
    "links --isolate -n 8 -i 20": 12,
    "guidelines gl5 -n 4 -m 8:8 -i 20 --launches 4": 2,
}
"""Command line -> the number of a launch in its midst."""


def fill_disk(monkeypatch: pytest.MonkeyPatch, launch: int) -> None:
    """From now on the disk is too full for the file of a launch, by its number."""
    write_atomically = write.write_atomically

    def full(target: Path, content: bytes) -> None:
        if target.name.endswith(f"-{launch}.parquet"):
            raise OSError(errno.ENOSPC, "full")
        write_atomically(target, content)

    monkeypatch.setattr(write, "write_atomically", full)


@pytest.mark.parametrize(("line", "launch"), MANY_LAUNCHES.items())
def test_a_full_disk_is_no_end(
    line: str, launch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It marks the run, accuses no side, and says how to go on wherever ``--resume`` can."""
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(SUITE)
    words = f"{line} --backend mock --store kept".split()
    monkeypatch.setattr(sys, "argv", ["omb-py", *words])
    with monkeypatch.context() as patched:
        fill_disk(patched, launch)
        assert main(words) == 3
    err = capsys.readouterr().err.splitlines()
    (run,) = runs("kept")
    assert run.state == "failed"
    (error,) = [text for text in err if text.startswith("omb-py: error: ")]
    assert error.startswith("omb-py: error: cannot write 'kept/date=") and "make room, then run: omb-py" in error
    if words[0] in ("links", "guidelines"):
        assert err[-1] == error
    else:
        command, *rest = words
        assert err[-1] == f"omb-py: to go on: omb-py {command} --resume={run.run_id} {' '.join(rest)}"
        assert main(["results", "recover", "--store", "kept"]) == 0
        assert main([command, "--resume", "--store", "kept"]) in (0, 1)
        assert [(again.run_id, again.state) for again in runs("kept")] == [(run.run_id, None)]


def test_an_acceptance_without_a_cell_has_nothing_to_go_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(SUITE)
    monkeypatch.setattr(rank_process, "run_cells", ctrl_c)
    assert main("accept ./mine.toml --backend mock -n 2 --store kept".split()) == 130
    assert capsys.readouterr().err.splitlines()[-1] == "omb-py: error: interrupted: nothing was measured"


@pytest.mark.parametrize("line", MANY_LAUNCHES)
def test_a_store_that_cannot_be_written_is_no_reason_for_an_option_that_is_lacking(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(SUITE)
    Path("kept").touch()
    assert main(f"{line} --backend mock --store kept".split()) == 3
    advice = capsys.readouterr().err.splitlines()[-1].endswith("--store DIR, or measure with --no-store")
    assert main(f"{line} --backend mock --no-store".split()) == (0 if advice else 2)
