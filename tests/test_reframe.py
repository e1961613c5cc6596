"""The ReFrame test class: ReFrame itself runs it, and its figures are those of the store."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.support.machines.mpi import run_command

ROOT = Path(__file__).resolve().parent.parent

CHECK = """
import sys
import reframe as rfm
from omb_py.reframe import OmbPyTest

@rfm.simple_test
class Tiny(OmbPyTest):
    suite = "tiny.toml"
    command = f"{{sys.executable}} -m omb_py"
    reference = {{"*": {{{cell!r}: (2.0, -0.2, 0.2, "us")}}}}

    @run_before("run")
    def choose(self):
        self.options = ["--backend", "mock", "--launches", "3", "--mock", {mock!r}, "-c"]
"""
SUITE = """name = "tiny"
description = "one"
[[entry]]
benchmarks = ["allreduce"]
message-size = "8:64:8"
iterations = 5
ranks = [2, 4]
"""


@pytest.fixture(autouse=True)
def reframe() -> None:
    pytest.importorskip("reframe", reason="ReFrame is not installed: pip install reframe-hpc")


def run(folder: Path, mock: str, cell: str = "allreduce 8 B, 4 ranks") -> tuple[int, str, dict]:  # type: ignore[type-arg]
    """(exit code, what it prints, its report) of ReFrame."""
    (folder / "tiny.toml").write_text(SUITE)
    (folder / "check.py").write_text(CHECK.format(mock=mock, cell=cell))
    report = folder / "report.json"
    done = run_command(
        [
            str(Path(sys.executable).parent / "reframe"),
            "-c",
            str(folder / "check.py"),
            "-r",
            "--prefix",
            str(folder),
            "--report-file",
            str(report),
            "--performance-report",
            "--keep-stage-files",
        ],
        cwd=folder,
        HOME=str(folder),
        PYTHONPATH=f"{ROOT}:{os.environ.get('PYTHONPATH', '')}",
    )
    return done.returncode, done.stdout + done.stderr, json.loads(report.read_text()) if report.exists() else {}


def test_reframe_reads_the_figures_of_a_store(tmp_path: Path) -> None:
    from omb_py.reframe import STORE, figures
    from omb_py.results.store.read import load

    code, said, report = run(tmp_path, "noise=0.01")
    assert code == 0, said
    (case,) = report["runs"][0]["testcases"]
    assert case["result"] == "pass"
    told = {key.split(":")[-1]: value for key, value in case["perfvalues"].items()}
    (store,) = tmp_path.rglob(STORE)
    frame = load(store)
    assert frame["launch_id"].nunique() == 6 and frame["validated"].all()
    wanted = figures(frame.to_dict("records"))
    assert (
        set(wanted)
        == set(told)
        == {f"{name}, {ranks} ranks" for name in ("allreduce 8 B", "allreduce 64 B") for ranks in (2, 4)}
    )
    for name, (value, unit) in wanted.items():
        assert told[name][0] == pytest.approx(value) and told[name][4] == unit


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mock", "cell", "said"),
    [
        ("flip=1", "allreduce 8 B, 4 ranks", "omb-py ended with 1"),
        ("noise=0.01", "allreduce 8 B", "no cell is called 'allreduce 8 B': did you mean allreduce 8 B, "),
    ],
    ids=["a byte is wrong", "a reference has no cell"],
)
def test_reframe_fails(tmp_path: Path, mock: str, cell: str, said: str) -> None:
    code, output, report = run(tmp_path, mock, cell)
    assert code == 1, output
    (case,) = report["runs"][0]["testcases"]
    assert case["result"] == "fail" and said in output
