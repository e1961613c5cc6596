"""nccl-tests' table: head, widths, rounding, footer."""

from __future__ import annotations

import pytest

from omb_py.errors import UsageError
from omb_py.results.export import export
from omb_py.results.nccl_text import HEAD, Half, footer, line, real, to_nccl

PRINTED = (
    "     1048576        262144     float     sum      -1    27.76   37.78   66.11       0"
    "    27.49   38.15   66.76     N/A\n"
)


def test_a_line_has_13_words_in_nccl_tests_widths() -> None:
    text = line(1048576, 262144, "float32", "sum", None, Half(27.76, 37.78, 66.11, 0), Half(27.49, 38.15, 66.76, None))
    assert text == PRINTED
    assert len(text.split()) == 13 == len(line(0, 0, "bfloat16", None, 0, Half(), Half()).split())
    assert len({len(part) for part in (text[52:85], text[85:118])}) == 1


def test_the_head_is_three_lines_that_name_13_columns() -> None:
    assert HEAD.count("\n") == 4
    assert len(HEAD.splitlines()[2].removeprefix("#").split()) == 13


@pytest.mark.parametrize(
    ("value", "width", "text"),
    [
        (0.0, 7, "   0.00"), (1097.14, 7, "1097.14"), (12345.67, 7, "12345.7"), (123456.7, 7, " 123457"),
        (1234567.8, 7, "1234568"), (12345678.9, 7, "1.2e+07"), (300.514, 6, "300.51"), (1234.56, 6, "1234.6"),
        (123456.0, 6, "123456"), (1e9, 6, " 1e+09"), (float("nan"), 6, "   nan"),
    ],
)  # fmt: skip
def test_as_many_decimals_as_fit(value: float, width: int, text: str) -> None:
    assert real(value, width) == text


def test_the_footer_has_the_mean_of_both_placements() -> None:
    lines = [(Half(1, 1, 10, 0), Half(1, 1, 20, 0)), (Half(1, 1, 30, 2), Half())]
    assert footer(lines) == "# Out of bounds values : 1 FAILED\n# Avg bus bandwidth    : 20 \n#\n"


class TestRows:
    def test_both_placements_stand_on_one_line(self, make_row) -> None:
        common = {"dtype": "float32", "op": "sum", "ranks": 2, "bytes_total": 1048576, "backend": "nccl"}
        out = make_row(**common, in_place=False, value=27.76, algbw_gbps=37.78, busbw_gbps=66.11, validated=True)
        inside = make_row(**common, in_place=True, value=27.49, algbw_gbps=38.15, busbw_gbps=66.76)
        text = to_nccl([out, inside])
        assert text.startswith("# Collective test starting: all_reduce_perf\n" + HEAD + PRINTED)
        assert text.endswith(
            "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 66.435 \n#\n"
            "# Collective test concluded: all_reduce_perf\n"
        )

    def test_the_count_of_blocks_is_one_ranks(self, make_row) -> None:
        for name, ranks in (("allgather", 4), ("reduce_scatter", 4), ("bcast", 1)):
            row = make_row(benchmark=name, dtype="int32", ranks=4, bytes_total=1024, value=1.0)
            assert to_nccl([row]).splitlines()[5].split()[:2] == ["1024", str(256 // ranks)]

    def test_wrong_bytes_are_elements(self, make_row) -> None:
        row = make_row(dtype="int32", ranks=1, bytes_total=8, value=1.0, validated=False, wrong_bytes=5)
        words = to_nccl([row]).splitlines()[5].split()
        assert words[5:] == ["1.00", "N/A", "0.00", "2", "N/A", "N/A", "N/A", "N/A"]

    def test_a_benchmark_that_nccl_tests_lacks_is_refused_by_the_export(self, make_row) -> None:
        with pytest.raises(UsageError, match="none of these rows is of a collective that nccl-tests has"):
            export([make_row(benchmark="latency")], "nccl-tests")
