"""The two tables of mbw_mr -V, to the character (reference section 3.2)."""

from __future__ import annotations

from typing import Any

from omb_py.results.dialects.omb.transcript import WINDOWS, WindowTables, to_osu
from omb_py.results.dialects.parse import parse
from omb_py.results.dialects.reading import Context

BANDWIDTHS = (0.11, 0.26, 0.50, 0.77, 1.46, 2.00, 2.88, 3.09)
RATES = "110000.00   260000.00   500000.00   770000.00  1460000.00  2000000.00  2880000.00  3090000.00"
FIRST = """\
# OSU MPI Multiple Bandwidth / Message Rate Test v7.5
# [ pairs: 2 ] [ window size: varied ]

# Uni-directional Bandwidth (MB/sec)
# Datatype: MPI_CHAR.
#                 1           2           4           8          16          32          64         128
1              0.11        0.26        0.50        0.77        1.46        2.00        2.88        3.09
"""
SECOND = f"""
# Message Rate Profile
#                 1           2           4           8          16          32          64         128
1         {RATES}
"""


def rows(size: int = 1, validated: bool | None = None, rate: str = "1", dtype: str = "char") -> list[dict[str, Any]]:
    return [
        {
            "benchmark": "mbw_mr",
            "launch_id": "a",
            "dtype": dtype,
            "ranks": 4,
            "window": window,
            "size_bytes": size,
            "value": value,
            "validated": validated,
            "parameters": {"vary_window": "True", "print_rate": rate},
        }
        for window, value in zip(WINDOWS, BANDWIDTHS, strict=True)
    ]


def test_is_omb_s_to_the_character() -> None:
    windows = WindowTables(validation=False)
    assert "".join(map(windows.row, rows())) == FIRST
    assert windows.end() == SECOND
    assert windows.end() == ""


def test_a_line_is_printed_with_its_last_window() -> None:
    windows = WindowTables(validation=False)
    first, *others, last = rows()
    assert windows.row(first).endswith("128\n")
    assert [windows.row(row) for row in others] == [""] * 6
    assert windows.row(last) == FIRST.splitlines(keepends=True)[-1]


def test_each_type_has_both_tables() -> None:
    windows = WindowTables(validation=False)
    text = "".join(map(windows.row, rows() + rows(dtype="int32"))) + windows.end()
    kinds = [line for line in text.splitlines() if line.startswith(("# Datatype", "# Message", "# OSU"))]
    assert [line.split()[1] for line in kinds] == ["OSU", "Datatype:", "Message", "Datatype:", "Message"]


def test_a_line_ends_with_its_verdict_and_at_the_window_that_failed() -> None:
    windows = WindowTables(validation=True)
    passed = "".join(map(windows.row, rows(validated=True)))
    assert passed.splitlines()[-2].endswith("128  Validation") and passed.splitlines()[-1].endswith("3.09        Pass")
    bad = rows(2, validated=True)[:2]
    bad[1]["validated"] = False
    text = "".join(map(windows.row, bad))
    assert text == (
        "2              0.11        0.26        Fail\n"
        "DATA VALIDATION ERROR: omb-py mbw_mr exited with status 1 on message size 2.\n"
    )


def test_what_an_interruption_cut_off_is_printed() -> None:
    windows = WindowTables(validation=False)
    for row in rows()[:2]:
        windows.row(row)
    assert windows.end().startswith("1              0.11        0.26\n\n# Message Rate Profile\n")


def test_stored_rows_print_as_live_ones_did() -> None:
    assert to_osu([{**row, "backend": "mpi", "binding": "native"} for row in rows()]) == FIRST + SECOND


def test_tables_of_several_numbers_of_ranks_say_their_own() -> None:
    common = {"benchmark": "allreduce", "launch_id": "a", "family": "collective", "unit": "us", "dtype": "int32"}
    rows = [{**common, "ranks": n, "size_bytes": size, "value": 1.0 * n} for size in (4, 8) for n in (2, 4)]
    assert to_osu(rows).count("# Size") == 2
    titled = "\n# OSU MPI Allreduce Latency Test v7.5\n# [ ranks: {} ]\n# Datatype: MPI_INT.\n# Size"
    assert all(titled.format(n) in to_osu(rows) for n in (2, 4))
    tables = parse(to_osu(rows).encode(), Context()).tables
    assert [(row["ranks"], row["size_bytes"]) for table in tables for row in table.rows] == [
        (2, 4),
        (2, 8),
        (4, 4),
        (4, 8),
    ]
    assert "ranks:" not in to_osu([row for row in rows if row["ranks"] == 2])


def test_the_sides_of_a_guideline_are_said() -> None:
    common = {"benchmark": "gl5_allreduce", "launch_id": "a", "family": "guideline", "unit": "us", "dtype": "int32"}
    sides = [{"side": side, "guideline": "allreduce ≤ reduce + bcast"} for side in ("left", "right")]
    text = to_osu([{**common, "size_bytes": 8, "value": 1.0, "parameters": side} for side in sides])
    assert [line for line in text.splitlines() if "side" in line] == [
        "# [ side: left of allreduce ≤ reduce + bcast ]",
        "# [ side: right of allreduce ≤ reduce + bcast ]",
    ]
