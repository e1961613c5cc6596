"""Text of ucx_perftest, as UCX 1.13 printed it over TCP, and of ucc_perftest."""

from __future__ import annotations

import pytest

from omb_py.results.dialects.parse import parse
from omb_py.results.dialects.reading import Context, Parsed

RULE = "+--------------+--------------+----------+---------+---------+----------+----------+-----------+-----------+"
BOX = """\
+----------------------------------------------------------------------------------------------------------+
| API:          protocol layer                                                                             |
| Test:         tag match latency                                                                          |
| Data layout:  (automatic)                                                                                |
| Send memory:  host                                                                                       |
| Recv memory:  cuda                                                                                       |
| Message size: 8                                                                                          |
+----------------------------------------------------------------------------------------------------------+
"""


def head(kind: str, first: str = "Stage") -> str:
    """The head of a table."""
    return f"""\
+--------------+--------------+------------------------------+---------------------+-----------------------+
|              |              |       {kind} (usec)        |   bandwidth (MB/s)  |  message rate (msg/s) |
{RULE}
|    {first:>5}     | # iterations | 50.0%ile | average | overall |  average |  overall |  average  |  overall  |
{RULE}
"""


LATENCY = f"""\
{BOX}{head(" latency")}\
[thread 0]               429    483.660  1149.643  1149.643        0.01       0.01         870         870
[thread 0]              1414      4.088   525.636   714.956        0.01       0.01        1902        1399
Final:                  2000      4.073   838.747   751.227        0.01       0.01        1192        1331
"""
BANDWIDTH = f"""\
+ mpirun -n 2 ucx_perftest -t tag_bw -s 4096 -n 2000 -f
{head("overhead", "Test")}\
                        2000      4.033    12.513    12.513      312.17     312.17       79917       79917
"""
BATCH = f"""\
{head("overhead")}\
{RULE.replace("+-----", "+lat8-", 1)}
[thread 0]               363   1171.531  1647.237  1647.237        0.00       0.00         607         607
Final:                   500    945.992  1234.657  1534.190        0.01       0.00         810         652
{RULE.replace("+------", "+lat64-", 1)}
Final:                   500    650.913   752.340   752.340        0.08       0.08        1329        1329
"""
CSV = """\
b.txt,iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr
lat8, 500,519.074,579.256,579.256,0.01,0.01,1726,1726
lat64, 500,866.554,983.541,983.541,0.06,0.06,1017,1017
"""
UCC = """\
Collective:             Allreduce
Memory type:            host
Datatype:               float32
Reduction:              sum
Inplace:                0
Warmup:
  small                 100
  large                 20
Iterations:
  small                 1000
  large                 200

       Count        Size                Time, us                       Bus Bandwidth, GB/s
                                 avg         min         max         avg         max         min
         128         512        4.28        4.02        4.51        0.12        0.13        0.11
         256        1024        5.00        4.90        5.10        0.20        0.21        0.20
Total time: 0.01 ms
"""


def read(text: str) -> Parsed:
    return parse(text.encode(), Context())


def test_the_last_line_is_the_result_and_the_box_says_of_what() -> None:
    (table,) = read(LATENCY).tables
    (row,) = table.rows
    assert (row["benchmark"], row["size_bytes"], row["iterations"]) == ("tag_lat", 8, 2000)
    assert (row["value"], row["unit"], row["metric"]) == (751.227, "us", "latency")
    assert row["metrics"] == {"typical_us": 4.073, "overall_us": 751.227, "message_rate": 1331.0}
    assert row["parameters"] == {"send_memory": "host", "recv_memory": "cuda"}


@pytest.mark.parametrize("head", ["overhead", " latency"])
def test_without_the_box_the_command_says_it_and_a_bandwidth_is_in_mib(head: str) -> None:
    (row,) = read(BANDWIDTH.replace("overhead", head)).tables[0].rows
    assert (row["benchmark"], row["size_bytes"], row["metric"]) == ("tag_bw", 4096, "bandwidth")
    assert row["value"] == pytest.approx(312.17 * 1.048576)


def test_a_command_without_a_size_sends_eight_bytes() -> None:
    (row,) = read(BANDWIDTH.replace(" -s 4096", "")).tables[0].rows
    assert row["size_bytes"] == 8


@pytest.mark.parametrize(("text", "overall"), [(BATCH, [1534.19, 752.34]), (CSV, [579.256, 983.541])])
def test_a_batch_has_a_row_for_each_of_its_tests(text: str, overall: list[float]) -> None:
    (table,) = read(text).tables
    assert [row["benchmark"] for row in table.rows] == ["lat8", "lat64"]
    assert [row["value"] for row in table.rows] == overall


def test_two_runs_are_two_launches() -> None:
    assert [table.launch for table in read(LATENCY + LATENCY).tables] == [0, 1]


def test_a_run_that_ended_early_is_named() -> None:
    (problem,) = read(LATENCY[: LATENCY.index("Final:")]).problems
    assert problem.text == "result of ucx_perftest left out: it ended before its result"


def test_a_result_that_is_cut_is_left_out() -> None:
    found = read(LATENCY[:-40])
    assert not found.tables and "not the eight numbers" in found.problems[0].text


def test_the_servers_text_has_no_result() -> None:
    (note,) = read(BOX).notes
    assert "give the client's text" in note.text


def test_the_rows_of_ucc() -> None:
    (table,) = read(UCC).tables
    first, second = table.rows
    assert (first["benchmark"], first["dtype"], first["op"], first["in_place"]) == (
        "allreduce",
        "float32",
        "sum",
        False,
    )
    assert (second["size_bytes"], second["value"], second["busbw_gbps"]) == (1024, 5.0, 0.2)
    assert second["metrics"] == {"rank_min_us": 4.9, "rank_max_us": 5.1}


def test_a_barrier_of_ucc_has_no_size() -> None:
    text = UCC.replace("Allreduce", "Barrier").replace("         128         512", "         N/A         N/A")
    (table,) = read("\n".join(line for line in text.splitlines() if "1024" not in line)).tables
    assert table.rows[0]["size_bytes"] is None


def test_a_row_of_ucc_that_lacks_a_column_is_left_out() -> None:
    found = read(UCC.replace("        0.21        0.20\n", "\n"))
    assert len(found.tables[0].rows) == 1 and "6 of 8 columns" in found.problems[0].text
