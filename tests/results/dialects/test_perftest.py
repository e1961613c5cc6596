"""Text of perftest's programs, by the formats of their sources."""

from __future__ import annotations

import pytest

from omb_py.results.dialects.parse import parse
from omb_py.results.dialects.reading import Context, Parsed

RULE = "-" * 87 + "\n"
FACTS = """\
 Dual-port       : OFF\t\tDevice         : mlx5_0
 Number of qps   : 1\t\tTransport type : IB
 Connection type : RC\t\tUsing SRQ      : OFF
 TX depth        : 128
 CQ Moderation   : 100
 Mtu             : 4096[B]
 Link type       : IB
 Max inline data : 0[B]
 rdma_cm QPs\t : OFF
 Data ex. method : Ethernet
"""
ENDS = """\
 local address: LID 0x01 QPN 0x0127 PSN 0xe2a5a4 RKey 0x17ffff VAddr 0x007f0000000000
 remote address: LID 0x02 QPN 0x0127 PSN 0x1c3f2b RKey 0x17ffff VAddr 0x007f0000000000
"""
BANDWIDTH = f"""\
{RULE}                    RDMA_Write BW Test
{FACTS}{RULE}{ENDS}{RULE}\
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 2          5000             7.61               7.58   \t\t     3.974155
 65536      5000             11522.91           11500.00\t\t     0.184000
{RULE}"""
HEAD = (
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   "
    "99% percentile[usec]   99.9% percentile[usec]\n"
)
LATENCY = f"""\
{RULE}                    Send Latency Test
{FACTS}{RULE}{ENDS}{RULE}{HEAD}\
 2       1000          1.02           4.86         1.06     \t       1.07        \t0.05   \t\t1.22   \t\t4.86
{RULE}"""


def read(text: str) -> Parsed:
    return parse(text.encode(), Context())


def test_a_bandwidth_is_in_mib_whatever_older_versions_call_it() -> None:
    for text in (BANDWIDTH, BANDWIDTH.replace("MB/sec", "MiB/sec")):
        (table,) = read(text).tables
        assert [row["size_bytes"] for row in table.rows] == [2, 65536]
        row = table.rows[1]
        assert (row["benchmark"], row["family"], row["unit"]) == ("ib_write_bw", "one-sided", "MB/s")
        assert row["value"] == pytest.approx(11500 * 1.048576)
        assert row["metrics"] == {"message_rate": pytest.approx(184_000)}
        assert row["parameters"]["connection_type"] == "RC" and table.facts["Device"] == "mlx5_0"


def test_gigabits_are_a_billion_bits() -> None:
    (table,) = read(BANDWIDTH.replace("MB/sec", "Gb/sec").replace("11500.00", "96.47   ")).tables
    assert table.rows[1]["value"] == pytest.approx(96.47 * 125)


def test_a_latency_has_its_mean_and_its_tail() -> None:
    (row,) = read(LATENCY).tables[0].rows
    assert (row["benchmark"], row["value"], row["iterations"]) == ("ib_send_lat", 1.07, 1000)
    assert row["metrics"]["tail_p99"] == 1.22 and row["metrics"]["typical_us"] == 1.06


def test_a_version_without_a_mean_is_of_another_kind() -> None:
    old = LATENCY.replace("    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]", "")
    (row,) = read(old.replace("     \t       1.07        \t0.05   \t\t1.22   \t\t4.86", "")).tables[0].rows
    assert (row["value"], row["parameters"]["value"]) == (1.06, "typical")


@pytest.mark.parametrize(
    ("title", "benchmark", "parameter"),
    [
        ("RDMA_Write Bidirectional BW Test", "ib_write_bw", "both"),
        ("Atomic FETCH_AND_ADD BW Test", "ib_atomic_bw", "atomic"),
        ("RDMA_Read Post List BW Test", "ib_read_bw", "list"),
    ],
)
def test_what_a_title_says_keeps_tables_apart(title: str, benchmark: str, parameter: str) -> None:
    (table,) = read(BANDWIDTH.replace("RDMA_Write BW Test", title)).tables
    assert table.benchmark == benchmark and parameter in table.rows[0]["parameters"]


def test_a_row_that_is_cut_is_left_out_and_the_others_stay() -> None:
    found = read(BANDWIDTH.replace("11500.00\t\t     0.184000", "115"))
    assert len(found.tables[0].rows) == 1 and "4 of 5 columns" in found.problems[0].text


def test_a_run_that_never_began_is_named() -> None:
    (problem,) = read(BANDWIDTH[: BANDWIDTH.index(" #bytes")] + "Couldn't connect to node7:18515\n").problems
    assert problem.text == "table of ib_write_bw left out: no rows"


def test_another_unit_is_refused() -> None:
    assert "unknown unit" in read(BANDWIDTH.replace("MB/sec", "kB/sec")).problems[0].text
