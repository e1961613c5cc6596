"""IMB's text against what the binaries of Intel MPI Benchmarks 2021.11 printed (files in printed/)."""

from __future__ import annotations

import re
from datetime import datetime
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from omb_py.cli import main
from omb_py.errors import UsageError
from omb_py.options.table import make_cell
from omb_py.results.dialects.imb.names import FORMS
from omb_py.results.dialects.imb.text import CLOSING, Header, form_of, line, lines_of_groups, title, to_imb
from omb_py.results.dialects.parse import parse
from omb_py.results.dialects.reading import Context
from omb_py.suites.registry import BENCHMARKS

FOLDER = Path(__file__).parent / "printed"
PROGRAMS = ("mpi1", "nbc", "rma", "p2p")
MT = "mt"
"""IMB-MT 2021.11, whose header lists no benchmarks."""
ROW: dict[str, Any] = {
    "benchmark": "exchange",
    "launch_id": "a-0",
    "ranks": 4,
    "unit": "us",
    "dtype": "char",
    "size_bytes": 1000,
    "iterations": 50,
    "value": 5.0,
    "rank_mean_us": [4.0, 5.0, 6.0, 5.0],
}


def printed(program: str) -> str:
    return (FOLDER / f"{program}.txt").read_text()


def imported(program: str) -> list[dict[str, Any]]:
    parsed = parse(printed(program).encode(), Context())
    assert parsed.problems == []
    return [{**row, "launch_id": "a-0"} for table in parsed.tables for row in table.rows]


def tables_of(text: str) -> str:
    above = text.find("List of Benchmarks")
    return text[text.index("\n#-", above if above >= 0 else text.index("MT part") + 80) :]


@pytest.mark.parametrize("program", [*PROGRAMS, MT])
def test_tables_that_were_imported_are_exported_to_the_character(program: str) -> None:
    assert tables_of(to_imb(imported(program))) == tables_of(printed(program))


MULTI_0 = """
#-----------------------------------------------------------------------------
# Benchmarking Multi-PingPong 
# ( 2 groups of 2 processes each running simultaneous ) 
# Group  0:     0    2
# 
# Group  1:     1    3
# 
#-----------------------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec
            0            5         1.43         3.41         2.32         0.00
            4            5         5.23         6.60         5.71         0.61
"""
"""What ``IMB-MPI1 -multi 0 -map 2x2 PingPong`` printed on four ranks."""
MULTI_1 = """
#-----------------------------------------------------------------------------
# Benchmarking Multi-Allreduce 
# ( 2 groups of 2 processes each running simultaneous ) 
# Group  0:     0    2
# 
# Group  1:     1    3
# 
#-----------------------------------------------------------------------------
        Group       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]

            0            0            5         0.06         0.13         0.09
            1            0            5         0.05         0.13         0.09

            0            4            5         2.91         4.70         3.81
            1            4            5         3.32         3.78         3.55
"""
"""The same of ``-multi 1 Allreduce``."""
P2P_PINGPONG = """
#----------------------------------------------------------------
# Benchmarking PingPong
# #processes = 2
#----------------------------------------------------------------
       #bytes #repetitions      t[usec]   Mbytes/sec      Msg/sec
            8           10         2.12         3.75       469314
"""
"""What IMB-P2P printed of a benchmark that IMB-MPI1 has too."""


@pytest.mark.parametrize("table", [MULTI_0, MULTI_1, P2P_PINGPONG])
def test_groups_and_message_rates_that_were_imported_come_back(table: str) -> None:
    parsed = parse(f"# Intel(R) MPI Benchmarks 2021.10, MPI-1 part\n{table}".encode(), Context())
    rows = [{**row, "launch_id": "a-0"} for table in parsed.tables for row in table.rows]
    text = to_imb(rows)
    assert text[text.rindex("\n#-", 0, text.index("# Benchmarking")) :].startswith(table)
    if "Group  0" in table:
        assert {row["parameters"]["group_ranks"] for row in rows} == {"0,2;1,3"}
    if "Msg/sec" in table:
        assert "IMB-P2P part" in text
    if "Group   " in table:
        assert to_imb(rows, each_group=True) == text
    else:
        with pytest.raises(UsageError, match="--format imb-multi has a line for each group"):
            to_imb(rows, each_group=True)


def test_the_type_of_messages_is_said_where_a_reduction_comes_first() -> None:
    """``IMB-MPI1 -data_type double Allreduce PingPong``."""
    rows = [{**ROW, "benchmark": "allreduce", "dtype": "float32", "op": "sum"}, {**ROW, "dtype": "float64"}]
    for text in (to_imb(rows), to_imb(rows[::-1])):
        assert "# MPI_Datatype                   :   MPI_DOUBLE \n" in text
        assert "# MPI_Datatype for reductions    :   MPI_FLOAT \n" in text


def masked(text: str) -> list[str]:
    """The lines of a header less the facts of run and machine, the comments on benchmarks, and spaces at the end."""
    head = text[: text.index("\n#-", text.index("List of Benchmarks"))]
    head = re.sub(r"^#    .* in the layout of Intel", "#    Intel", head, flags=re.M)
    head = re.sub(r"^(# [^:\n]+: +)\S.*$", lambda match: match[1], head, flags=re.M)
    head = re.sub(r"^# (IMB-|omb-py).*$", "# command", head, flags=re.M)
    return [text.rstrip() for text in head.splitlines() if not text.startswith("#     ")]


@pytest.mark.parametrize(
    ("program", "part"), list(zip(PROGRAMS, ("MPI-1", "MPI-NBC", "MPI-RMA", "IMB-P2P"), strict=True))
)
def test_the_header_has_the_lines_of_the_binary(program: str, part: str) -> None:
    text = printed(program)
    names = re.findall(r"^# Benchmarking (\w+)", text, re.M)
    form = next(form for form in FORMS.values() if form.part == part)
    row = {**ROW, "library": "MPICH", "library_version": "5.0.2"}
    header = Header(form, list(dict.fromkeys(names)), (0, 4), row, "omb-py x", datetime(2026, 11, 3, 9, 5)).text()
    assert masked(header + "\n#-") == masked(text)
    assert "in the layout of Intel(R) MPI Benchmarks 2021.11" in header  # who measured is said
    assert "# Date                  : Tue Nov  3 09:05:00 2026\n" in header


def head_of(name: str, sizes: tuple[int, ...] = (0, 1, 2, 4), **more: Any) -> str:
    row = {**ROW, "benchmark": name, "library": "MPICH", "library_version": "5.0.2", **more}
    form = form_of(row)
    return Header(form, (form.name,), sizes, row, "omb-py x", datetime(2026, 11, 3, 9, 5), "4.1").text()


def test_the_header_says_standard_and_types_as_imb_does() -> None:
    """IMB's messages are bytes and its reductions floats; what else was measured is said where it belongs."""
    assert "# MPI Version           : 4.1\n" in head_of("latency")
    types = re.compile(r"# MPI_Datatype +: +(\S+) \n# MPI_Datatype for reductions +: +(\S+) ?\n")
    for name, more, wanted in (
        ("latency", {}, ("MPI_BYTE", "MPI_FLOAT")),
        ("latency", {"dtype": "float64"}, ("MPI_DOUBLE", "MPI_FLOAT")),
        ("allreduce", {"dtype": "int32", "op": "sum"}, ("MPI_BYTE", "MPI_INT")),
        ("allreduce", {"dtype": "float32", "op": "sum"}, ("MPI_BYTE", "MPI_FLOAT")),
    ):
        assert types.findall(head_of(name, **more)) == [wanted]


@pytest.mark.parametrize(
    ("sizes", "lines"),
    [
        ((0, 1, 2, 4), ("Minimum message length in bytes:   0", "Maximum message length in bytes:   4")),
        ((4, 8), ("Minimum message length in bytes:   4", "Maximum message length in bytes:   8")),
        ((0,), ("Minimum message length in bytes:   0", "Maximum message length in bytes:   4194304")),
        ((0, 4, 16), ("Message lengths were user defined",)),
        ((64, 8), ("Message lengths were user defined",)),
    ],
)
def test_lengths_that_do_not_double_are_user_defined(sizes: tuple[int, ...], lines: tuple[str, ...]) -> None:
    head = head_of("latency", sizes)
    assert re.findall(r"^# (M.*message length.*|Message lengths.*)$", head, re.M) == list(lines)
    assert re.search(r"^#\n# MPI_Datatype", head, re.M)


def test_the_list_of_benchmarks_names_them_without_multi_and_explains_one() -> None:
    """As IMB-MPI1 -multi and IMB-RMA 2021.11 print it."""
    assert "# List of Benchmarks to run:\n\n# PingPong\n" in head_of("latency", parameters={"groups": "2x2"})
    assert head_of("passive_put").endswith(
        "# Truly_passive_put\n"
        "#     The benchmark measures execution time of MPI_Put for 2 cases:\n"
        "#     1) The target is waiting in MPI_Barrier call (t_pure value)\n"
        "#     2) The target performs computation and then enters MPI_Barrier routine (t_ovrl value)\n"
    )


@pytest.mark.parametrize(
    ("words", "sizes"),
    [("latency -m 0:4", "0 1 2 4"), ("allreduce -m :8", "4 8"), ("allreduce -m 0:8", "0 4 8"), ("bcast -m 0,5", "0 5")],
)
def test_messages_of_no_bytes_are_measured(words: str, sizes: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words.split(), *"--backend mock -n 2 -i 3 -x 0 -c --no-store --quiet --format imb".split()]) == 0
    out = capsys.readouterr().out
    assert re.findall(r"^ +(\d+) +3 ", out, re.M) == sizes.split()


def test_without_sizes_the_first_message_has_no_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("pingping --backend mock -n 2 -i 1 -x 0 --no-store --quiet --format imb".split()) == 0
    sizes = re.findall(r"^ +(\d+) +1 ", capsys.readouterr().out, re.M)
    assert sizes == ["0", *(str(1 << power) for power in range(23))]


@pytest.mark.parametrize("name", ["reduce_scatter", "reduce_scatter_block", "ireduce_scatter"])
def test_the_bytes_of_a_reduce_scatter_are_those_of_a_block(name: str) -> None:
    """Each count of IMB's call is #bytes / 4: with 4 ranks a vector of 4096 B is a line of 1024."""
    row = {**ROW, "benchmark": name, "size_bytes": 4096, "metrics": {"overall": 3.0, "pure": 2.0, "compute": 2.0}}
    assert line(row).split()[0] == "1024"
    assert line({**row, "parameters": {"groups": "2x2"}}).split()[0] == "2048"


def reduce_scatter(version: str) -> str:
    columns = "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"
    return (
        f"#    Intel(R) MPI Benchmarks {version}, MPI-1 part\n# List of Benchmarks to run:\n\n# Reduce_scatter\n\n"
        f"#{'-' * 64}\n# Benchmarking Reduce_scatter \n# #processes = 4 \n#{'-' * 64}\n{columns}"
        "         4096           50         5.43         6.69         6.06\n\n"
    )


@pytest.mark.parametrize(("version", "size"), [("2021.11", 16384), ("2019 Update 6", 16384), ("2018 Update 1", 4096)])
def test_an_imported_reduce_scatter_has_the_bytes_of_the_vector(version: str, size: int) -> None:
    parsed = parse(reduce_scatter(version).encode(), Context())
    (row,) = parsed.tables[0].rows
    assert row["size_bytes"] == size
    assert line({**row, "launch_id": "a-0"}).split()[0] == "4096"


def test_rates_count_the_messages_of_all_pairs() -> None:
    """Two pairs, 10 messages each in 20 µs: 10^6 messages a second; both ways twice as many."""
    row = {**ROW, "unit": "MB/s", "window": 10, "rank_mean_us": [10.0, 20.0]}
    assert line({**row, "benchmark": "uniband"}).split()[2:] == ["1000.00", "1000000"]
    assert line({**row, "benchmark": "biband"}).split()[2:] == ["2000.00", "2000000"]
    imported = {**row, "source": "OMB", "benchmark": "bibw", "rank_mean_us": None, "value": 2000.0, "metrics": {}}
    assert line(imported).split()[2:] == ["2000.00", "2000000"]
    assert line({**imported, "benchmark": "put_bw"}).split()[2:] == ["0.50", "2000.00"]


def imb_counts(name: str, ranks: int) -> float:
    """Bytes that IMB's Mbytes/sec count for a message of 1000 B: of a line whose time is 1000 µs."""
    row = {**ROW, "benchmark": name, "ranks": ranks, "unit": BENCHMARKS[name].metric.unit, "window": 8}
    row |= {"rank_mean_us": [1000.0] * ranks}
    heads = title(row).splitlines()[-1].split()
    return float(line(row).split()[heads.index("Mbytes/sec")]) * 1000


NAMES = [name for name in FORMS if FORMS[name].layout in ("time", "range_rate", "messages")]


@pytest.mark.parametrize(("name", "ranks"), list(zip(NAMES, cycle((8, 2)), strict=False)))
def test_the_bytes_of_a_row_are_what_imb_s_mbytes_count(name: str, ranks: int) -> None:
    benchmark = BENCHMARKS[name]
    if benchmark.metric.unit == "us":
        assert benchmark.bytes_total(1000, ranks) == imb_counts(name, ranks)
    else:
        cell = make_cell(benchmark, "mock", "native", 1000, window=8)
        assert benchmark.metric.bytes_of and benchmark.metric.bytes_of(cell, ranks) == imb_counts(name, ranks)


def test_threads_are_in_the_head_and_have_as_many_repetitions_each() -> None:
    """Two threads of 50 iterations in all, 1000 B each; a window of 10 in 20 and 40 µs on average, one pair."""
    row = {**ROW, "ranks": 2, "threads": 2, "rank_mean_us": [4.0, 6.0]}
    assert "# Benchmarking ExchangeMT\n# #processes = 2 (threads: 2)\n#---" in title(
        {**row, "benchmark": "exchange_mt"}
    )
    assert line({**row, "benchmark": "exchange_mt"}).split() == ["2000", "25", "4.00", "6.00", "5.00", "1333.33"]
    window = {**row, "benchmark": "uniband_mt", "unit": "MB/s", "window": 10, "rank_mean_us": [20.0, 40.0]}
    assert title(window).splitlines()[4] == "# window_size = 10"
    assert line(window).split()[2:] == ["3.00", "500.00", "666667"]
    assert "defects" not in title({**row, "benchmark": "bcast_mt", "validated": True})


def test_each_number_of_threads_has_a_table() -> None:
    row = {**ROW, "benchmark": "exchange_mt", "size_bytes": 8}
    text = to_imb([{**row, "threads": 1}, {**row, "threads": 2}])
    assert re.findall(r"\(threads: (\d)\)", text) == ["1", "2"]


def test_the_header_of_threads_is_a_title_alone() -> None:
    row = {**ROW, "benchmark": "bcast_mt", "ranks": 2, "threads": 2}
    ours, theirs = (text.splitlines() for text in (to_imb([row]), printed(MT)))
    assert ours[0] == ours[2] == theirs[0] and ours[3:6] == theirs[3:6] and ours[1].endswith(theirs[1][5:])
    assert to_imb([row]).endswith("\n\n") and printed(MT).endswith("\n\n")


def test_random_pairs_and_stencils_count_messages_of_all_ranks() -> None:
    row = {**ROW, "benchmark": "stencil2d"}
    assert line(row).split()[2:] == ["5.00", "666.67", "666667"]
    assert "# Benchmarking Stencil2D (2 x 2)\n# #processes = 4\n" in title(row)


def test_overlap_is_imb_s() -> None:
    """(pure + compute - overall) / the longer of pure and compute."""
    metrics = {"overall": 12.0, "pure": 10.0, "compute": 8.0, "overlap_pct": 60.0}
    assert line({**ROW, "benchmark": "ibcast", "metrics": metrics}).split()[2:] == ["12.00", "10.00", "8.00", "60.00"]
    assert line({**ROW, "benchmark": "ibcast", "metrics": {**metrics, "overall": 30.0}}).split()[-1] == "0.00"


def test_checked_rows_have_a_column_of_defects() -> None:
    row = {**ROW, "validated": False, "wrong_bytes": 3}
    assert title(row).splitlines()[-1].endswith("Mbytes/sec      defects")
    assert line(row).endswith("         3.00\n")
    assert line({**ROW, "validated": False}).endswith("         1.00\n"), "another tool counts nothing"


def test_the_preamble_of_our_own_text_comes_back() -> None:
    row = {**ROW, "benchmark": "allreduce", "dtype": "int32", "op": "max"}
    [table] = parse(to_imb([row]).encode(), Context()).tables
    assert {key: table.rows[0][key] for key in ("source", "dtype", "op")} == {
        "source": "omb-py text",
        "dtype": "int32",
        "op": "max",
    }
    said = {"imported": {"MPI Version": "4.1", "Machine": "riscv64"}}
    text = to_imb([{**stored, "launch_id": "a-0"} for stored in table.rows], provenance=lambda launch: said)
    for wanted in ("MPI_Datatype for reductions    :   MPI_INT", "MPI_Op                         :   MPI_MAX"):
        assert f"# {wanted} " in text
    assert "# MPI Version           : 4.1\n" in text and "# Machine               : riscv64\n" in text


@pytest.mark.parametrize("name", ["allreduce", "stencil2d", "allreduce_mt"])
def test_what_measured_is_said_and_read_where_it_was_not_mpi(name: str) -> None:
    who = {"backend": "gloo", "library": "torch gloo", "library_version": "2.9", "binding": "torch", "device": "cpu"}
    comment = (
        "# [ backend: gloo ] [ library: torch gloo ] [ library_version: 2.9 ] [ binding: torch ] [ device: cpu ]\n"
    )
    text = to_imb([{**ROW, **who, "benchmark": name}])
    assert comment in text[: text.index("# Benchmarking")]
    [table] = parse(text.encode(), Context()).tables
    assert {name: table.rows[0][name] for name in who} == who
    assert comment in to_imb([{**table.rows[0], "launch_id": "a-0"}])
    mpi = to_imb([{**ROW, **who, "benchmark": name, "backend": "mpi"}])
    assert "backend" not in mpi
    [table] = parse(mpi.encode(), Context()).tables
    assert (table.rows[0]["backend"], table.rows[0]["binding"]) == ("mpi", None)


def test_the_machine_is_that_of_the_first_node_of_the_launch() -> None:
    node = {"host": "n1", "machine": "aarch64", "kernel": "Linux 5.14.0-1.el9"}
    for facts, lines in (
        ({"node_facts": [node, {"machine": "x86_64"}]}, ("aarch64", "Linux", "5.14.0-1.el9", "")),
        ({}, ("", "", "", "")),
        ({"node_facts": [{"cores_online": 4}]}, ("", "", "", "")),
    ):
        text = to_imb([ROW], provenance=lambda launch, facts=facts: facts)
        assert tuple(re.findall(r"^# (?:Machine|System|Release|Version) +: (.*)$", text, re.M)) == lines


def test_a_type_that_nobody_said_is_not_printed() -> None:
    unknown = {**ROW, "source": "IMB", "dtype": None}
    text = to_imb([{**unknown, "benchmark": "allreduce"}])
    assert "MPI_FLOAT" not in text and "MPI_SUM" not in text
    assert "MPI_BYTE" not in to_imb([unknown])
    reducing = {**ROW, "benchmark": "allreduce", "dtype": "int32", "op": "sum"}
    assert "# MPI_Datatype for reductions    :   MPI_INT " in to_imb([ROW, reducing])


def test_defects_come_back_from_the_store() -> None:
    rows = [{**ROW, "size_bytes": 8 + wrong, "validated": wrong == 0, "wrong_bytes": wrong} for wrong in (0, 3)]
    [table] = parse(to_imb(rows).encode(), Context()).tables
    again = to_imb([{**row, "launch_id": "a-0"} for row in table.rows])
    assert [text.split()[-1] for text in again.splitlines() if text.split()[:1] in (["8"], ["11"])] == ["0.00", "3.00"]


@pytest.mark.parametrize(
    ("kind", "parameters", "window", "name", "mode"),
    [
        ("put_latency", {"sync": "flush"}, None, "Unidir_put", "NON-AGGREGATE"),
        ("put_latency", {"sync": "flush_local"}, None, "Put_local", "NON-AGGREGATE"),
        ("get_bw", {"sync": "flush"}, 64, "Unidir_get", "AGGREGATE"),
        ("bidir_put", {}, 1, "Bidir_put", "NON-AGGREGATE"),
    ],
)
def test_synchronisation_and_window_choose_name_and_mode(
    kind: str, parameters: dict[str, str], window: int | None, name: str, mode: str
) -> None:
    form = form_of({**ROW, "benchmark": kind, "parameters": parameters, "window": window})
    assert (form.name, form.mode) == (name, mode)


def test_what_imb_lacks_is_refused() -> None:
    unknown = {**ROW, "benchmark": "neighbor_allgather"}
    with pytest.raises(UsageError, match="neighbor_allgather: IMB has no such benchmark: --format csv"):
        to_imb([unknown])
    assert to_imb([unknown, ROW]) == to_imb([ROW])
    for lacks in ("ranks", "value"):
        with pytest.raises(UsageError, match=f"exchange: IMB's text says its {lacks}, which this row lacks"):
            to_imb([{**ROW, lacks: None}])
    with pytest.raises(UsageError, match="put_latency -s fence: IMB has passive targets only: use -s flush"):
        form_of({**ROW, "benchmark": "put_latency", "parameters": {"sync": "fence"}})


def test_each_launch_has_a_header_and_a_last_line() -> None:
    text = to_imb([ROW, {**ROW, "size_bytes": 2000}, {**ROW, "launch_id": "a-1"}])
    assert text.count("# Calling sequence was:") == text.count(CLOSING) == 2
    assert text.count("# Benchmarking Exchange \n") == 2


def test_groups_are_printed_as_multi_does() -> None:
    """The head of ``IMB-MPI1 -multi 0 PingPong`` on four ranks, and all groups in one line."""
    row = {**ROW, "benchmark": "latency", "parameters": {"groups": "2x2"}, "rank_mean_us": [4.0, 6.0]}
    assert title(row) == (
        "\n#-----------------------------------------------------------------------------\n"
        "# Benchmarking Multi-PingPong \n"
        "# ( 2 groups of 2 processes each running simultaneous ) \n"
        "# Group  0:     0    1\n# \n# Group  1:     2    3\n# \n"
        "#-----------------------------------------------------------------------------\n"
        "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec\n"
    )
    assert line(row).split() == ["1000", "50", "4.00", "6.00", "5.00", "166.67"]
    rates = {**row, "benchmark": "uniband", "unit": "MB/s", "window": 10, "rank_mean_us": [10.0, 20.0]}
    assert line(rates).split()[2:] == ["500.00", "500000"]


def grouped(**more: Any) -> dict[str, Any]:
    return {**ROW, "parameters": {"groups": "2x2"}, "ranks": 4, "iterations": 4, **more}


def test_a_line_for_each_group_is_that_of_multi_1_to_the_character() -> None:
    """``IMB-MPI1 -iter 4 -msglog 0:1 -npmin 2 -multi 1 PingPong`` on four ranks."""
    sizes = {0: [3.98, 1.52], 1: [3.06, 2.75], 2: [1.99, 3.90]}
    rows = [grouped(benchmark="latency", size_bytes=size, rank_mean_us=means) for size, means in sizes.items()]
    (together,) = parse(to_imb(rows).encode(), Context()).tables
    assert [(row["parameters"]["groups"], row["ranks"], row["benchmark"]) for row in together.rows] == [
        ("2", 2, "latency")
    ] * 3, "the text of -multi 0"
    text = to_imb(rows, each_group=True)
    assert text[text.index("\n#----", text.index("List of Benchmarks")) :] == printed("multi") + CLOSING
    (table,) = parse(text.encode(), Context()).tables
    assert [(row["parameters"]["group"], row["ranks"], row["size_bytes"], row["value"]) for row in table.rows] == [
        (str(group), 2, size, us) for size, means in sizes.items() for group, us in enumerate(means)
    ]


def test_each_group_has_the_ranks_that_it_has() -> None:
    """Groups by the remainder: the means of ranks 0 and 2 are those of the first."""
    row = grouped(benchmark="sendrecv_call", parameters={"groups": "mod:2"}, rank_mean_us=[1.0, 10.0, 3.0, 20.0])
    assert [words.split()[3:6] for words in lines_of_groups(row).splitlines()[1:]] == [
        ["1.00", "3.00", "2.00"],
        ["10.00", "20.00", "15.00"],
    ]
    rate = grouped(benchmark="uniband", unit="MB/s", window=10, rank_mean_us=[10.0, 20.0])
    assert [words.split()[3:] for words in lines_of_groups(rate).splitlines()[1:]] == [
        ["1000.00", "1000000"],
        ["500.00", "500000"],
    ]


def test_each_group_has_its_own_defects() -> None:
    row = grouped(benchmark="latency", rank_mean_us=[4.0, 6.0], validated=False, wrong_bytes=5)
    by_group = {**row, "metrics": {"group_0_wrong_bytes": 0.0, "group_1_wrong_bytes": 5.0}}
    assert [words.split()[-1] for words in lines_of_groups(by_group).splitlines()[1:]] == ["0.00", "5.00"]
    assert line(by_group).split()[-1] == "5.00"


def test_rows_of_all_ranks_are_left_out_of_an_export_by_group() -> None:
    mixed = [grouped(benchmark="latency", size_bytes=8, rank_mean_us=[1.0, 2.0]), {**ROW, "launch_id": "other"}]
    assert to_imb(mixed, each_group=True) == to_imb(mixed[:1], each_group=True) and "2.00" in to_imb(
        mixed, each_group=True
    )
    with pytest.raises(UsageError, match="none of these rows has a text of IMB: exchange: --format imb-multi has"):
        to_imb(mixed[1:], each_group=True)


def test_what_has_no_line_for_each_group_is_refused() -> None:
    with pytest.raises(UsageError, match="exchange: --format imb-multi has a line for each group: add --groups"):
        title(ROW, each_group=True)
    with pytest.raises(UsageError, match="ibcast: the overlap of each group is not kept: use --format imb"):
        title(grouped(benchmark="ibcast"), each_group=True)


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "defects"), [("flip:1", ["11.00", "0.00"]), ("flip:2", ["0.00", "11.00"])])
def test_a_run_says_in_which_group_bytes_were_wrong(
    fault: str, defects: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Ten iterations of a check and the timed loop, one inverted byte in each."""
    words = ("exchange", "-n", "4", "--groups", "2x2", "--backend", "mock", "-m", "8:8", "-c", "--inject", fault)
    assert main([*words, "--format", "imb-multi", "--no-store"]) == 1
    table = capsys.readouterr().out.split("defects\n\n")[1].split("\n\n")[0]
    assert [line.split()[-1] for line in table.splitlines()] == defects
