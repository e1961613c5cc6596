"""What no tool prints is left out and named."""

from __future__ import annotations

import random

import pytest

from omb_py.cli import main
from omb_py.results.dialects.parse import parse
from omb_py.results.dialects.plausible import RowLine, odd_line
from omb_py.results.dialects.reading import Context
from tests.lab.hostile.junk_lines import try_log

HEAD = "# OSU MPI Latency Test v7.5\n# Size       Avg Latency(us)\n"


def row(size: int, value: str) -> str:
    return f"{size:<10}{value:>18}\n"


ODD = "row left out: '16 77.77' is set out unlike the other rows"


@pytest.mark.parametrize(
    ("rows", "problem", "sizes"),
    [
        ([row(8, "1.00"), "8 nan\n"], "row left out: no number where the result stands", [8]),
        ([row(8, "nan")], "row left out: no number where the result stands", []),
        ([row(8, "inf")], "row left out: no number where the result stands", []),
        ([row(8, "1.00"), row(8, "2.00")], "8 B is listed twice", []),
        ([row(8, "1.00"), row(16, "1.00"), row(4, "2.00")], "4 B stands after 16 B", []),
        ([row(4, "1.00"), "16 77.77\n", row(32, "2.00")], ODD, [4, 32]),
        ([row(4, "1.00"), "16 77.77\n"], ODD, [4]),
        (["8 1.00\n", "1024 12.00\n"], "", [8, 1024]),
        ([row(8, "1.00"), f"{10**12}  123456789012345678901.00\n"], "", [8, 10**12]),
    ],
)
def test_a_row_that_cannot_be(rows: list[str], problem: str, sizes: list[int]) -> None:
    parsed = parse((HEAD + "".join(rows)).encode(), Context("a.log", None))
    assert [problem in str(each) for each in parsed.problems] == [True] * bool(problem)
    assert [cells["size_bytes"] for table in parsed.tables for cells in table.rows] == sizes


def test_the_exit_code_is_that_of_bad_input(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.log"
    file.write_text(HEAD + row(8, "1.00") + "8 nan\n")
    assert main(["results", "import", str(file), "--store", str(tmp_path / "s")]) == 2
    assert "line 4: row left out" in capsys.readouterr().err and (tmp_path / "s").exists()


def test_a_longer_row_is_one_whose_number_needs_more_room() -> None:
    lines = [RowLine(number, f"8{'1.00':>{width}}") for number, width in enumerate((27, 28, 30))]
    assert odd_line(lines, 28) is None and odd_line(lines, 0) is None


@pytest.mark.slow
def test_junk_between_rows_gains_none() -> None:
    """The lab does more: python -m tests.lab.hostile.junk_lines."""
    rng = random.Random(20261126)
    outcomes = {try_log(rng) for _ in range(300)}
    assert not [text for outcome, text in outcomes if outcome.isupper()]
    assert {outcome for outcome, _ in outcomes} == {"the same", "left out"}
