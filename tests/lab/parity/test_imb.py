"""The comparison with IMB's binaries, played by a launcher that prints what each program would."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.suites.registry import find
from tests.lab.parity import imb

PRINTED = Path(__file__).parents[2] / "results" / "dialects" / "imb" / "printed" / "p2p.txt"
LAUNCHER = """#!/bin/sh
case "$*" in
  *omb_py*) sed 's/115.21/230.42/' {text} ;;
  *) cat {text} ;;
esac
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder as the wheel's, whose launcher prints a table of Corandom; omb-py is half as fast at one byte."""
    lines = PRINTED.read_text().splitlines(keepends=True)
    begin = next(n for n, line in enumerate(lines) if "Benchmarking Corandom" in line)
    (tmp_path / "text").write_text("".join([*lines[:21], "\n", *lines[begin - 1 : begin + 7], "\n\n"]))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "IMB-MPI1").touch()
    launcher = tmp_path / "bin" / "mpiexec.hydra"
    launcher.write_text(LAUNCHER.format(text=tmp_path / "text"))
    launcher.chmod(0o755)
    return tmp_path


def run(folder: Path, capsys: pytest.CaptureFixture[str], *names: str) -> tuple[int, str, str]:
    words = ["--impi", str(folder), "--sizes", "1,2", "--launches", "3", "--scratch", str(folder)]
    code = imb.main([*words, *names])
    return code, *capsys.readouterr()


def test_ratios_are_of_medians_by_size(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(folder, capsys, "corandom")
    assert code == 0
    assert [line.split() for line in out.splitlines() if line.startswith("corandom")] == [
        ["corandom", "1", "115.21", "230.42", "2.000", "2.000"],
        ["corandom", "2", "7.75", "7.75", "1.000", "1.000"],
    ]
    assert "# load " in out and out.rstrip().endswith("layout of the tables: the same")


def test_another_layout_is_shown_and_fails(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    launcher = folder / "bin" / "mpiexec.hydra"
    launcher.write_text(launcher.read_text().replace("s/115.21/230.42/", "s/Mbytes.sec/GB/"))
    code, out, _ = run(folder, capsys, "corandom")
    assert code == 1 and "layout of the tables: DIFFERENT" in out
    assert "  IMB   : " in out and "  omb-py: " in out


def test_where_imb_flushes_once_ours_have_many_rounds_a_flush() -> None:
    for name in imb.FLUSHED_AT_THE_END:
        ours = imb.commands(name, Path("impi"), [8], 100, 2, Path("lengths"))["omb-py"]
        assert " ".join(imb.AS_FLUSHED) in " ".join(ours) and {"window", "window_kind"} <= find(name).options
    assert "-W" not in imb.commands("exchange_put", Path("impi"), [8], 100, 2, Path("lengths"))["omb-py"]
