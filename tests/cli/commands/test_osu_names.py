"""Programs by OMB's names: a folder of links, OMB's exit code, and words that OMB passes over."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from omb_py.cli import main, typed_words
from omb_py.results.dialects.omb.titles import TITLES
from tests.support.machines.mpi import run_command, start

ON_MOCK = ("--backend", "mock", "-n", "2", "-m", "8:8", "--no-store")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("osu")
    assert main(["osu-names", str(folder)]) == 0
    return folder


def run(program: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run_command([program, *words], env=os.environ)


def test_every_program_of_omb_is_there_twice(programs: Path) -> None:
    """For PATH, and where OMB installs it."""
    names = {f"osu_{name}" for name in TITLES}
    of_nccl = {path.name for path in (programs / "xccl").rglob("osu_*")}
    assert len(of_nccl) == 9 and {"osu_xccl_reduce_scatter", "osu_xccl_bibw"} < of_nccl
    assert {path.name for path in programs.iterdir()} == names | of_nccl | {"mpi", "xccl"}
    assert {path.name for path in (programs / "mpi").rglob("osu_*")} == names
    for path in ("pt2pt/osu_bw", "pt2pt/persistent/osu_bw_persistent", "congestion/osu_bw_fan_in"):
        assert os.access(programs / "mpi" / path, os.X_OK)
    for path in ("collective/osu_ibarrier", "one-sided/osu_put_bw", "startup/osu_init"):
        assert os.access(programs / "mpi" / path, os.X_OK)


@pytest.mark.slow
def test_a_program_measures_and_ignores_words_as_omb_does(programs: Path) -> None:
    ended = run(programs / "mpi/collective/osu_bcast", *ON_MOCK, "--iter", "5", "foo", "D")
    assert (ended.returncode, "\n8 " in ended.stdout) == (0, True), ended.stderr
    assert "omb-py: ignored, as in OMB: 'foo' 'D'" in ended.stderr


@pytest.mark.parametrize("words", [("--no-such-option",), ("-m", "foo"), ("-d", "no-such-device")])
def test_a_refusal_ends_as_in_omb(programs: Path, words: tuple[str, ...]) -> None:
    ended = run(programs / "osu_latency", *words)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("omb-py: error: ")


@pytest.mark.mpi
def test_what_ranks_find_out_together_ends_as_in_omb(programs: Path) -> None:
    ended = start([str(programs / "osu_bw_fan_in"), "-m", "8:8"], 2)
    assert ended.returncode in (1, 9), "9: mpiexec killed the rank that was left"
    assert "bw_fan_in needs several nodes" in ended.stderr


def test_a_program_for_nccl_measures_over_nccl(programs: Path) -> None:
    ended = run(programs / "osu_xccl_bw", "-m", "8:8", "-d", "cpu")
    assert ended.returncode == 1 and ended.stderr.startswith("omb-py: error: backend nccl has no buffers on cpu")


def test_a_program_of_its_own_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "osu_latency").write_text("C")
    assert main(["osu-names", str(tmp_path)]) == 2
    assert "osu_latency is a file of its own" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["osu_latency"]


def test_names_are_the_first_word() -> None:
    assert typed_words(["/a/osu_bw", "-i", "5"]) == ["osu_bw", "-i", "5"]
    assert typed_words(["/a/omb-py", "bw"]) == ["bw"]
