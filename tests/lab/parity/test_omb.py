"""The comparison with C OMB, played by an empty program and by a launcher that starts one rank."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.results.dialects.omb.titles import TITLES
from tests.lab.parity import omb

TEXT = "\n# OSU MPI Latency Test v7.5\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n"
ROWS = "4                       1.00\n8                       2.00\n"
LAUNCHER = """#!/bin/sh
case "$*" in
  *-b*) exit 3 ;;
  *-T*all*omb_py*|*omb_py*-T*all*) cat {folder}/other ;;
  *omb_py*) sed 's/1\\.00/3.00/' {folder}/text ;;
  *) cat {folder}/text ;;
esac
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one program; both programs print one text, but for -T all and -b."""
    folder = tmp_path / "omb"
    folder.mkdir()
    for name, content in {"osu_latency": "#!/bin/sh\n", "text": TEXT + ROWS, "other": TEXT}.items():
        (folder / name).write_text(content)
        (folder / name).chmod(0o755)
    launcher = tmp_path / "mpiexec"
    launcher.write_text(LAUNCHER.format(folder=folder))
    launcher.chmod(0o755)
    return folder


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = omb.main(words)
    return code, *capsys.readouterr()


def test_without_programs_one_line_says_what_to_give(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys) == (2, "", f"{omb.GIVE}\n")
    assert run(capsys, str(tmp_path)) == (2, "", f"{tmp_path} has no osu_* program: {omb.GIVE}\n")


def test_texts_are_compared_variant_by_variant(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = (str(folder), "--mpiexec", str(folder.parent / "mpiexec"), "--benchmarks", "latency,bw")
    code, out, err = run(capsys, *words)
    lines = out.splitlines()
    assert (code, err) == (1, "")
    assert lines[0] == "same  osu_latency -m 4:64 -i 20 -x 2: 2.00"  # the median of 3.00 / 1.00 and 2.00 / 2.00
    assert "DIFFERENT  osu_latency -m 4:64 -i 20 -x 2 -T all: nan" in lines
    assert f"    - 4{'9':>27}" in lines, "what C printed and omb-py did not"
    assert lines[-2:] == [f"osu_bw: not in {folder}", "8 variants have the same text, 1 differ"]
    assert not [line for line in lines if "multiple" in line], "both refuse it"


def test_what_was_measured_is_masked_by_its_width_alone() -> None:
    wide, narrow = omb.masked("8              11.25"), omb.masked("8                      11.25")
    assert wide != narrow and omb.masked("8              12.99") == wide
    assert omb.masked("nprocs: 2, min: 13 ms") == omb.masked("nprocs: 2, min: 99 ms")
    assert omb.masked("# OSU MPI Latency Test v7.5") == ["# OSU MPI Latency Test v7.5"]


def test_every_benchmark_has_variants() -> None:
    assert all(omb.variants(name)[0] == () for name in TITLES)
