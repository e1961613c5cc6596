"""Bad input: the exit code, and one line with the rule or the nearest choice."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from omb_py.cli import main
from omb_py.cli.commands.benchmark import command, request_of
from omb_py.errors import EnvironmentProblem, LaunchFailed
from omb_py.orchestrate.planning.resolution import CheckedRequest
from omb_py.suites.registry import find
from tests.support.patience import PATIENCE_S

Refuse = Callable[[str], tuple[int, str]]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("latency M M", "buffers M M need a GPU: "),
        ("allreduce --backend gloo --op avg", "Gloo averages floats alone: -T float32, or --op sum"),
        ("put_bw --backend nccl,gloo", "no backend can run this here: nccl: has no buffers on cpu"),
        ("allreduce -d cuda", "--device cuda: "),
        ("allreduce --device rocm", "use --device cpu"),
        ("allreduce --backend nccl", "--device cuda: no NVIDIA GPU found here"),
        ("allreduce --backend nccl -n 1 -d cuda", "take a machine with one, or --backend mpi --device cpu"),
        ("allreduce --backend nccl -d cpu", "backend nccl has no buffers on cpu: use --device cuda or rocm"),
        ("allreduce --backend nccl -d cuda", "take a machine with one, or --backend mpi --device cpu"),
        ("latency D D", "buffers D D need a GPU: "),
        ("bw MD H", "buffers MD H need a GPU: "),
    ],
)
def test_what_cannot_be_done_here(refusal: Refuse, line: str, says: str) -> None:
    code, text = refusal(line)
    assert code == 3
    assert says in text


@pytest.mark.parametrize(
    ("line", "settings"),
    [
        ("allreduce --nccl max_ctas=2 --nccl log=tuning", {"nccl": "max_ctas=2,log=tuning"}),
        (
            "allreduce --nccl max_ctas=2 --mock alpha=1us --mock beta=1ns",
            {"nccl": "max_ctas=2", "mock": "alpha=1us,beta=1ns"},
        ),
        ("allreduce", {}),
    ],
)
def test_settings_of_a_backend_that_stand_in_several_words_all_count(line: str, settings: dict[str, str]) -> None:
    name, *words = line.split()
    with command(find(name)).make_context(name, words) as context:
        assert request_of(find(name), dict(context.params)).settings == settings


def test_a_log_folder_must_be_new(refusal: Refuse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log").mkdir()
    code, text = refusal("bcast -clog:log")
    assert code == 2
    assert text.endswith("exists already: choose another with -clog:DIR")


def test_nothing_at_all_shows_the_help_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    out, err = capsys.readouterr()
    assert out == "" and "Type first:" in err


def in_a_class_body() -> RuntimeError:
    """What Python 3.11 makes of Ctrl-C in the body of a class."""
    error = RuntimeError("Error calling __set_name__")
    error.__cause__ = KeyboardInterrupt()
    return error


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Make the measuring run raise."""

    def install(error: BaseException) -> None:
        def execute(checked: CheckedRequest) -> int:
            raise error

        module = ModuleType("omb_py.orchestrate.running.run")
        module.execute = execute  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "omb_py.orchestrate.running.run", module)

    return install


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (EnvironmentProblem("no MPI library:\n install one"), 3, "no MPI library: install one"),
        (LaunchFailed("rank 1 on node2 died in send"), 3, "rank 1 on node2 died in send"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (in_a_class_body(), 130, "interrupted"),
        (ValueError("odd"), 3, "ValueError: odd: this is a bug in omb-py; use --debug for the traceback"),
    ],
)
def test_errors_of_a_run(
    failing: Callable[[BaseException], None],
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    code: int,
    text: str,
) -> None:
    failing(error)
    assert main(["bcast"]) == code
    assert capsys.readouterr().err == f"omb-py: error: {text}\n"
    assert main(["bcast", "--debug"]) == code
    err = capsys.readouterr().err
    assert "Traceback (most recent call last)" in err
    assert err.splitlines()[-1].startswith("omb-py: error: ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("bcast --backend mock -m 8:16 -i 5", 0),
        pytest.param("bcast --backend mock -m 8:16 -i 5 -c --inject flip:1:8", 1, marks=pytest.mark.slow),
        pytest.param("run {suite}", 0, marks=pytest.mark.slow),
        pytest.param("accept {suite} --quiet", 1, marks=pytest.mark.slow),
    ],
)
def test_without_a_reader_everything_is_measured_and_the_exit_code_is_that_of_the_result(
    line: str, code: int, tmp_path: Path
) -> None:
    """As in ``omb-py accept nightly | head -1``."""
    suite = tmp_path / "s.toml"
    suite.write_text(
        'name = "s"\n[[entry]]\nbenchmarks = ["latency"]\nbackend = "mock"\nmessage-size = 8\niterations = 20\n'
        '[[criterion]]\nid = "fast"\nbenchmark = "latency"\nmax = "1 ns"\n'
    )
    reading, writing = os.pipe()
    os.close(reading)
    words = [str(suite) if word == "{suite}" else word for word in line.split()]
    done = subprocess.run(
        [sys.executable, "-m", "omb_py", *words, "--store", "kept"],
        stdout=writing,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        timeout=PATIENCE_S,
        check=False,
    )
    os.close(writing)
    assert b"Traceback" not in done.stderr and b"error" not in done.stderr
    assert done.returncode == code
    assert list((tmp_path / "kept").rglob("*.parquet"))


def test_ctrl_c_is_told_once_in_one_write(
    failing: Callable[[BaseException], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """mpirun sends the signal to every rank; two lines must not run into each other."""
    failing(KeyboardInterrupt())
    written: list[str] = []
    monkeypatch.setattr(sys.stderr, "write", written.append)
    assert main(["bcast"]) == 130
    assert written == ["omb-py: error: interrupted\n"]
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "1")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    assert main(["bcast"]) == 130
    assert len(written) == 1


@pytest.mark.slow
def test_inside_a_launcher_only_rank_0_speaks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for rank, speaks in (("0", True), ("1", False)):
        monkeypatch.setenv("OMPI_COMM_WORLD_RANK", rank)
        monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
        for line, code in (("bcast --op sum", 2), ("bcast -d cuda", 3), ("alreduce", 2), ("bcast --mesage-size 4", 2)):
            assert main(line.split()) == code
            assert bool(capsys.readouterr().err) == speaks


def test_a_reader_that_goes_away(tmp_path: Path) -> None:
    """``omb-py --help | head -1``: no traceback, exit code 0."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "omb_py", "--help"],
        stdout=writing,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        timeout=PATIENCE_S,
    )
    os.close(writing)
    assert done.stderr == b""
    assert done.returncode == 0


def test_a_word_of_thousands_of_characters_is_cut_in_its_middle(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["allreduce", "--backend", "mock", "-n", "9" * 5000, "--no-store"]) == 2
    line = capsys.readouterr().err
    assert len(line) < 300 and "9…9" in line and line.endswith("is not a whole number\n")
