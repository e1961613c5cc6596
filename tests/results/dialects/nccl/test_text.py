"""nccl-tests' table: head, widths, rounding, footer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py import __version__
from omb_py.errors import UsageError
from omb_py.printing.export import export
from omb_py.results.dialects.dialect import USUAL_OPTIONS
from omb_py.results.dialects.nccl.text import NcclTranscript, check, devices, footer, header, line, to_nccl
from tests.results.dialects.nccl_texts import FOURTH

PRINTED = (
    "     1048576        262144     float     sum      -1    27.76   37.78   66.11       0"
    "    27.49   38.15   66.76     N/A\n"
)


def halves(text: str) -> tuple[list[str], list[str]]:
    """Time, algbw, busbw and wrong elements of both placements, as printed."""
    words = text.split()
    return words[5:9], words[9:13]


def below_the_first(text: str) -> str:
    """The text below the line that says what measured."""
    return text.partition("\n")[2]


numbers = st.floats(0, 1e6, allow_nan=False).map(lambda x: round(x, 2))


def test_the_head_is_three_lines_that_name_13_columns() -> None:
    assert header().count("\n") == 4
    names = ["size", "count", "type", "redop", "root", *("time", "algbw", "busbw", "#wrong") * 2]
    assert header().splitlines()[2].removeprefix("#").split() == names


def test_the_footer_has_the_mean_of_all_rows(make_row) -> None:
    rows = [make_row(busbw_gbps=10.0, wrong_bytes=0), make_row(busbw_gbps=20.0, wrong_bytes=3, dtype="int32")]
    assert footer(rows) == "# Out of bounds values : 1 FAILED\n# Avg bus bandwidth    : 15 \n#\n"


def test_the_first_line_says_what_measured(make_row) -> None:
    known = {"backend": "mpi", "library": "Open MPI", "library_version": "5.0.7", "device": "cpu", "ranks": 2}
    row = make_row(**known, timing="local_max", dtype="float32", value=1.0)
    said = "[ backend: mpi ] [ library: Open MPI ] [ library_version: 5.0.7 ] [ device: cpu ] [ timing: local_max ]"
    assert to_nccl([row]).startswith(f"# omb-py {__version__} in the layout of nccl-tests {said} [ ranks: 2 ]\n")
    assert to_nccl([{**row, "source": "nccl-tests"}]).startswith("# each call")


class TestRows:
    def test_both_placements_stand_on_one_line(self, make_row) -> None:
        common = {"dtype": "float32", "op": "sum", "ranks": 2, "bytes_total": 1048576, "size_bytes": 1048576}
        out = make_row(**common, in_place=False, value=27.76, algbw_gbps=37.78, busbw_gbps=66.11, wrong_bytes=0)
        inside = make_row(**common, in_place=True, value=27.49, algbw_gbps=38.15, busbw_gbps=66.76)
        text = to_nccl([out, inside])
        assert below_the_first(text).startswith("# Collective test starting: all_reduce_perf\n" + header() + PRINTED)
        assert text.endswith(
            "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 66.435 \n#\n"
            "# Collective test concluded: all_reduce_perf\n"
        )

    @pytest.mark.parametrize("differs", [{"ranks": (2, 4)}, {"parameters": ({"a": "1"}, {"a": "2"})}])
    def test_rows_that_differ_elsewhere_have_tables_of_their_own(self, make_row, differs: dict[str, Any]) -> None:
        (name, values), same = *differs.items(), {"op": "sum", "dtype": "float32"}
        rows = [make_row(**same, size_bytes=size, value=3.0, **{name: value}) for size in (4, 8) for value in values]
        tables = to_nccl(rows).split("# Collective test starting: ")[1:]
        assert [[line.split()[0] for line in table.splitlines() if line.startswith("  ")] for table in tables] == [
            ["4", "8"],
            ["4", "8"],
        ]

    def test_the_count_of_blocks_is_one_ranks(self, make_row) -> None:
        for name, size, count in (("allgather", 256, 64), ("reduce_scatter", 1024, 64), ("bcast", 1024, 256)):
            row = make_row(benchmark=name, dtype="int32", ranks=4, size_bytes=size, bytes_total=1024, value=1.0)
            assert to_nccl([row]).splitlines()[6].split()[:2] == ["1024", str(count)]

    def test_wrong_bytes_are_elements(self, make_row) -> None:
        row = make_row(dtype="int32", ranks=1, size_bytes=8, value=1.0, validated=False, wrong_bytes=5)
        words = to_nccl([row]).splitlines()[6].split()
        assert words[5:] == ["1.00", "N/A", "0.00", "2", "N/A", "N/A", "N/A", "N/A"]

    @pytest.mark.parametrize(
        ("benchmark", "formula", "bus"),
        [("reduce", "reduce", "0.01"), ("allreduce", "all_reduce", "0.00"), ("gather", "gather", "0.00")],
    )
    def test_one_rank_has_the_bus_bandwidth_that_the_formula_gives(
        self, make_row, benchmark: str, formula: str, bus: str
    ) -> None:
        # as nccl-tests 2.19.6 printed on one GPU: reduce_perf counts all bytes, whatever the number of ranks
        known = {"bw_formula": f"nccl-tests:{formula}", "algbw_gbps": 0.008, "busbw_gbps": None}
        row = make_row(benchmark=benchmark, ranks=1, dtype="float32", size_bytes=8, value=1.0, in_place=False, **known)
        text = to_nccl([row])
        assert halves(line(row, None))[0][:3] == ["1.00", "0.01", bus]
        assert f"# Avg bus bandwidth    : {'0.008' if bus == '0.01' else '0'} \n" in text

    def test_a_broadcast_of_our_own_has_one_buffer(self, make_row) -> None:
        row = make_row(benchmark="bcast", dtype="char", size_bytes=8, value=1.0, root=0)
        assert halves(line(row, None))[0] == ["N/A"] * 4
        assert halves(line({**row, "source": "nccl-tests"}, None))[1] == ["N/A"] * 4

    @pytest.mark.parametrize(
        ("changed", "says"),
        [
            ({"bw_formula": None}, "nccl-tests have no such operation"),
            ({"timing": "device_event"}, "was timed device_event, nccl-tests time pipelined"),
            ({"dtype": "complex64"}, "nccl-tests have no type complex64"),
        ],
    )
    def test_what_was_measured_otherwise_is_found(self, make_row, changed: dict, says: str) -> None:
        row = make_row(size_bytes=8, dtype="float32", bw_formula="nccl-tests:all_reduce", timing="pipelined")
        check(row)
        with pytest.raises(UsageError, match=says):
            check({**row, **changed})

    def test_calls_that_were_timed_alone_say_so(self, make_row) -> None:
        row = make_row(size_bytes=8, dtype="float32", bw_formula="nccl-tests:all_reduce", timing="local_max", value=1.0)
        alone = NcclTranscript().row(row, USUAL_OPTIONS)
        assert below_the_first(alone).startswith("# each call was timed alone")
        assert "# each call" not in NcclTranscript().row({**row, "timing": "pipelined"}, USUAL_OPTIONS)

    @pytest.mark.parametrize(
        ("timing", "mode", "above"),
        [("local_max", "isolated", "# Blocking Enabled"), ("graph", "graph", "# the calls of a sample")],
    )
    def test_timings_that_nccl_tests_have_as_options_stand_above_their_rows(
        self, make_row, timing: str, mode: str, above: str
    ) -> None:
        row = make_row(size_bytes=8, dtype="float32", bw_formula="nccl-tests:all_reduce", timing=timing, value=1.0)
        row["parameters"] = {"timing_mode": mode}
        assert below_the_first(NcclTranscript().row(row, USUAL_OPTIONS)).startswith(above)

    def test_a_benchmark_that_nccl_tests_lacks_is_refused_by_the_export(self, make_row) -> None:
        with pytest.raises(UsageError, match="none of these rows is a collective of nccl-tests"):
            export([make_row(benchmark="latency")], "nccl-tests")


def c_number(value: float, width: int) -> str:
    """getFloatStr of nccl-tests 2.19 (src/util.cu), with C's own conversions."""
    power, bound = 0, 1
    while value >= bound:
        power, bound = power + 1, bound * 10
    if power < width - 2:
        return f"{value:{width}.2f}"
    if power < width - 1:
        return f"{value:{width}.1f}"
    if power < width + 1:
        return f"{value:{width}.0f}"
    return f"{value:{width}.1e}" if width >= 7 else f"{value:{width}.0e}"


@given(
    st.integers(0, 10**12),
    st.sampled_from(["sum", None]),
    st.sampled_from([None, 0, 7]),
    st.floats(0.001, 1e12, allow_nan=False),
    st.floats(0, 1e9, allow_nan=False),
    st.integers(0, 10**7),
)
def test_a_line_is_that_of_nccl_tests_to_the_character(
    elements: int, op: str | None, root: int | None, us: float, gbps: float, wrong: int
) -> None:
    """writeBenchmarkLinePreamble and writeBenchmarkLineBody of src/util.cu, twice."""
    size = elements * 4
    row: dict[str, Any] = {"benchmark": "reduce", "size_bytes": size, "bytes_total": size, "dtype": "float32"}
    row |= {"op": op, "root": root, "ranks": 2, "value": us, "algbw_gbps": gbps, "busbw_gbps": gbps}
    row["wrong_bytes"] = wrong * 4
    shown = -1 if root is None else root
    head = f"{size:12d}  {elements:12d}  {'float':>8}  {op or 'none':>6}  {shown:6d}"
    half = f"  {c_number(us, 7)}  {c_number(gbps, 6)}  {c_number(gbps, 6)}  {wrong:6g}"
    assert line(row, row) == head + half + half + "\n"


class TestDevices:
    FACTS: Mapping[str, Any] = {
        "rank_facts": [{"rank": 0, "pid": 15784}, {"rank": 1, "pid": 24926}],
        "devices": [
            {"rank": rank, "host": host, "device": "cuda:0", "name": "NVIDIA GH200 120GB", "identity": f"{rank}" * 32}
            for rank, host in enumerate(("nid007106", "nid007109"))
        ],
        "node_facts": [
            {"gpus": {"gpus": [{"uuid": "GPU-00000000-0000-0000-0000-000000000000", "pci": "0009:01:00.0"}]}},
            {"gpus": {"unknown": "no driver"}},
        ],
    }

    def test_are_those_of_nccl_tests_to_the_character(self) -> None:
        head, title, first, second = devices(self.FACTS, {}).splitlines()
        assert (head, title) == ("#", "# Using devices")
        assert first in FOURTH.splitlines()
        assert second == "#  Rank  1 Group  0 Pid  24926 on  nid007109 device  0 [?] NVIDIA GH200 120GB"

    def test_stand_above_the_table_of_their_launch_when_it_is_exported(self, make_row) -> None:
        one, other = (make_row(dtype="float32", ranks=2, value=1.0, launch_id=name) for name in ("one", "other"))
        text = export([one, other], "nccl-tests", {"one": self.FACTS, "other": {}}.__getitem__)
        first, _, second = text.partition("# Collective test concluded: all_reduce_perf\n")
        started = f"# Collective test starting: all_reduce_perf\n{devices(self.FACTS, {})}#\n#"
        assert below_the_first(first).startswith(started)
        assert "Using devices" not in second and "Using devices" not in export([one], "nccl-tests")

    def test_say_the_group_of_each_rank(self, make_row) -> None:
        """NCCL_TESTS_SPLIT: the second number is that of the communicator."""
        row = make_row(dtype="float32", ranks=2, value=1.0, parameters={"groups": "2x1"})
        first, second = devices(self.FACTS, row).splitlines()[2:]
        assert first[:24] == "#  Rank  0 Group  0 Pid " and second[:24] == "#  Rank  1 Group  1 Pid "

    def test_are_not_there_without_devices(self) -> None:
        assert devices({"rank_facts": [{"rank": 0, "pid": 1}], "devices": [], "node_facts": [{}]}, {}) == ""
