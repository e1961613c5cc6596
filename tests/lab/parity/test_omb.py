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
  *python*-T*all*) cat {folder}/other ;;
  *python*) sed 's/1\\.00/3.00/' {folder}/text ;;
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


def test_every_pair_of_launches_is_a_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = (str(folder), "--mpiexec", str(folder.parent / "mpiexec"), "--benchmarks", "latency,bw")
    code, out, err = run(capsys, *words)
    lines = out.splitlines()
    assert (code, err) == (1, "")
    assert lines[0] == "same       osu_latency -m 4:64 -i 20 -x 2 -n 2: 2.00", (
        "the median of 3.00 / 1.00 and 2.00 / 2.00"
    )
    different = lines.index("DIFFERENT  osu_latency -m 4:64 -i 20 -x 2 -T all -n 2")
    assert lines[different + 1] == f"    - 4{'9':>27}", "what C printed and omb-py did not"
    refused = lines.index("refused    osu_latency -m 4:64 -i 20 -x 2 -b multiple -n 2")
    assert lines[refused + 1] == "    by both with 3"
    variants = len(omb.variants("latency"))
    assert lines[-2] == f"missing    osu_bw: not in {folder}"
    assert lines[-1] == f"1 DIFFERENT, 1 missing, 2 refused, {variants - 3} same"  # -b and --bogus


OK = (0, TEXT + ROWS)


@pytest.mark.parametrize(
    ("label", "theirs", "ours", "verdict", "line"),
    [
        ("osu_latency -n 2", (1, "usage"), (2, ""), "DIFFERENT", "exit status 1 of C, 2 of omb-py"),
        ("osu_latency -n 2", (1, "usage"), (1, ""), "refused", "by both with 1"),
        ("osu_bw_fan_in -n 2", (1, ""), (9, ""), "refused", "with 1 by C, 9 by omb-py"),
        ("osu_latency -n 2", OK, (9, ""), "DIFFERENT", "exit status 0 of C, 9 of omb-py"),
        ("osu_latency -n 2", OK, (3, ""), "DIFFERENT", "exit status 0 of C, 3 of omb-py"),
        ("osu_latency -n 2", (omb.NO_END, ""), (omb.NO_END, ""), "DIFFERENT", "neither ends in time"),
        ("osu_mbw_mr -n 3", (omb.NO_END, ""), (1, ""), "documented", "refused at once; OMB does not end"),
        ("osu_mbw_mr -n 3", (omb.NO_START, ""), (1, ""), "DIFFERENT", "C's program does not start"),
        ("osu_neighbor_allgather -n 2", (0, "Dimensions size = 2 \n"), OK, "documented", "neighbors repeat"),
    ],
)
def test_exit_codes_count_and_nothing_is_left_out(
    label: str, theirs: tuple[int, str], ours: tuple[int, str], verdict: str, line: str
) -> None:
    pair = omb.judge(label, theirs, ours)
    assert pair.verdict == verdict and pair.lines[0].startswith(line)


def test_a_text_that_is_no_table_has_no_ratio() -> None:
    pair = omb.judge("osu_x", (0, "Dimensions size = 2 \n"), (0, "Dimensions size = 2 \n"))
    assert (pair.verdict, pair.label) == ("same", "osu_x: nan")


def test_what_was_measured_is_masked_by_its_width_alone() -> None:
    wide, narrow = omb.masked("8              11.25"), omb.masked("8                      11.25")
    assert wide != narrow and omb.masked("8              12.99") == wide
    assert omb.masked("nprocs: 2, min: 13 ms") == omb.masked("nprocs: 2, min: 1506 ms")
    assert omb.masked("# OSU MPI Latency Test v7.5") == ["# OSU MPI Latency Test v7.5"]


def test_every_benchmark_has_variants() -> None:
    assert all(omb.variants(name)[:3] == ((2, ()), (3, ()), (4, ())) for name in TITLES)
