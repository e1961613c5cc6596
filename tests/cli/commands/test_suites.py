"""``omb-py run`` and ``omb-py suite``."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import pytest

from omb_py.backends.registry import own_options
from omb_py.cli import main
from omb_py.cli.commands.benchmark import command
from omb_py.cli.commands.suites import run_command
from omb_py.cli.suite_options import LINE_ONLY, RUN_WIDE, CommandLine, long_name
from omb_py.engine.rank.link import Message
from omb_py.options.table import takes
from omb_py.orchestrate.running.collector import Collector
from omb_py.results.store.read import load
from omb_py.suites import BENCHMARKS, find
from tests.support.kinds import one_of_each_family

SUITE = """\
name = "mine"
description = "two of them"
[defaults]
iterations = 5
[[entry]]
benchmarks = ["latency", "allreduce"]
message-size = "8:16"
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A suite in the current folder."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mine.toml"
    file.write_text(SUITE)
    return file


@pytest.mark.parametrize("name", one_of_each_family(BENCHMARKS))
def test_every_option_is_a_key(name: str) -> None:
    """What a command takes a suite takes, less what belongs to the line; nothing is listed twice."""
    keys = CommandLine().keys(find(name))
    options = {long_name(p): p for p in command(find(name)).params if isinstance(p, click.Option)}
    assert set(keys) == set(options) - {"debug", "ranks", "version", "help-all"}
    of_backends = {name for name, option in own_options().items() if option.run_wide}
    assert {n for n, key in keys.items() if key.scope == "run"} == RUN_WIDE | of_backends
    assert {n for n, key in keys.items() if key.scope == "line"} == LINE_ONLY - {"debug"}
    for option, key in (("window-size", "window"), ("op", "op"), ("full", "full"), ("type", "type")):
        assert keys[option].fits == takes(find(name), key)


@pytest.mark.slow
def test_run_has_every_option_of_every_benchmark() -> None:
    """Not hidden where any benchmark takes it."""
    mine = {long_name(p): p for p in run_command().params if isinstance(p, click.Option)}
    for name in BENCHMARKS:
        for param in command(find(name)).params:
            if isinstance(param, click.Option) and param.expose_value:
                assert param.hidden or not mine[long_name(param)].hidden, param.name


def test_run(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "mine.toml", "--backend", "mock", "-n", "2", "--tag", "a=1", "-c", "--quiet"]) == 0
    out, err = capsys.readouterr()
    assert err == "" and out.count("# OSU MPI ") == 2 and out.count("Pass") == 4
    frame = load("omb-results")
    assert {(tags["suite"], tags["a"]) for tags in frame["tags"]} == {("mine", "1")}
    assert set(frame["iterations"]) == {5}


def test_the_command_line_is_stronger_than_defaults_and_weaker_than_entries(mine: Path) -> None:
    assert main(["run", "mine.toml", "--backend", "mock", "-i", "7", "-m", "64:64", "--quiet"]) == 0
    frame = load("omb-results")
    assert set(frame["iterations"]) == {7} and set(frame["size_bytes"]) == {8, 16}


@pytest.mark.slow
def test_what_is_skipped_is_said_at_the_end(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "mine.toml", "--backend", "mock", "-n", "3"]) == 0
    err = capsys.readouterr().err.splitlines()
    assert err[0] == "omb-py: launch 1: mock, native binding, 3 ranks, 2 cells"
    assert err[-1] == "omb-py: skipped: latency: latency needs exactly 2 ranks, not 3: use -n 2"


@pytest.mark.parametrize("form", ["--resume", "--resume={run}", "--resume {run}"])
def test_resume(form: str, mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "mine.toml", "--backend", "mock", "--quiet"]) == 0
    (run,) = set(load("omb-results")["run_id"])
    capsys.readouterr()
    assert main(["run", "mine.toml", "--backend", "mock", *form.format(run=run).split()]) == 0
    assert f"run {run} goes on: 4 of 4 cells are in the store, 0 are left" in capsys.readouterr().err
    assert load("omb-results")["run_id"].nunique() == 1


def test_a_resumed_run_that_never_began_says_so(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "mine.toml", "--backend", "mock", "--resume"]) == 0
    assert "--resume: no run of suite mine in 'omb-results': a new one begins\n" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["suite check bad.toml", "run bad.toml", "suite show bad.toml"])
def test_a_wrong_key_is_refused_by_its_line_and_nothing_is_measured(
    line: str, mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (mine.parent / "bad.toml").write_text(SUITE.replace("message-size", "mesage-size"))
    assert main(line.split()) == 2
    out, err = capsys.readouterr()
    assert out == "" and err == (
        "omb-py: error: bad.toml:7: [entry 1] key 'mesage-size': there is no such key: did you mean message-size?\n"
    )
    assert not Path("omb-results").exists()


@pytest.mark.slow
def test_an_interrupted_run_is_marked_and_says_how_to_go_on(
    mine: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = ["run", "mine.toml", "--backend", "mock", "-n", "2"]
    finished, real = [], Collector.cell

    def cell(collector: Collector, message: Message) -> None:
        if len(finished) == 2:
            raise KeyboardInterrupt
        real(collector, message)
        finished.append(message)

    with monkeypatch.context() as patched:
        patched.setattr(Collector, "cell", cell)
        patched.setattr(sys, "argv", ["omb-py", *line])
        assert main(line) == 130
    (run,) = set(load("omb-results")["run_id"])
    again = f"omb-py run --resume={run} mine.toml --backend mock -n 2"
    assert capsys.readouterr().err.splitlines()[-1] == f"omb-py: to go on: {again}"
    assert main(["results", "list"]) == 0
    out, err = capsys.readouterr()
    assert "interrupted" in out and err == f"omb-py: run {run}: interrupted; to go on: {again}\n"
    assert main(again.split()[1:]) == 0
    assert "2 of 4 cells are in the store, 2 are left" in capsys.readouterr().err
    assert main(["results", "list"]) == 0
    out, err = capsys.readouterr()
    assert "interrupted" not in out and err == ""
