"""OMB's text of the point-to-point benchmarks, to the character, from simulated times that are known (section 3.2)."""

from __future__ import annotations

import pytest

from omb_py.cli import main

MOCK = "--backend mock --mock series=10us -i 2 -x 1 -m 8:16 --no-store --quiet"


def text(capsys: pytest.CaptureFixture[str], line: str) -> str:
    assert main(f"{line} {MOCK}".split()) == 0
    return capsys.readouterr().out


def test_latency_mt(capsys: pytest.CaptureFixture[str]) -> None:
    assert text(capsys, "latency_mt") == (
        "# Number of Sender threads: 1 \n# Number of Receiver threads: 2\n\n"
        "# OSU MPI Multi-threaded Latency Test v7.5\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n"
        "8                      10.00\n16                     10.00\n"
    )


def test_latency_mp(capsys: pytest.CaptureFixture[str]) -> None:
    assert text(capsys, "latency_mp -t 3:1") == (
        "# Number of forked processes in sender: 3\n# Number of forked processes in receiver: 1\n\n"
        "# OSU MPI Multi-process Latency Test v7.5\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n"
        "8              10.00\n16             10.00\n"
    )


def test_partitioned_latency(capsys: pytest.CaptureFixture[str]) -> None:
    assert text(capsys, "partitioned_latency -c") == (
        "\n# OSU MPI Partitioned Latency Test v7.5\n# Partitions: 8\t\n# Datatype: MPI_CHAR.\n"
        "# Size           Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)        Validation\n"
        "8                      10.00             10.00             10.00            100.00              Pass\n"
        "16                     10.00             10.00             10.00            100.00              Pass\n"
    )


def test_multi_lat_with_percentiles_which_omb_forgets(capsys: pytest.CaptureFixture[str]) -> None:
    assert text(capsys, "multi_lat -n 4 -z50,99") == (
        "\n# OSU MPI Multi Latency Test v7.5\n# Datatype: MPI_CHAR.\n"
        "# Size       Avg Latency(us)  P50 Tail Lat(us)  P99 Tail Lat(us)\n"
        "8                      10.00             10.00             10.00\n"
        "16                     10.00             10.00             10.00\n"
    )


def test_mbw_mr(capsys: pytest.CaptureFixture[str]) -> None:
    head = (
        "# OSU MPI Multiple Bandwidth / Message Rate Test v7.5\n# [ pairs: 2 ] [ window size: 10 ]\n"
        "# Datatype: MPI_CHAR.\n"
    )
    # 2 pairs × 10 messages of 8 bytes in 10 us and the reply's 10 us
    assert text(capsys, "mbw_mr -n 4 -W 10") == head + (
        "# Size                  MB/s        Messages/s\n"
        "8                       8.00        1000000.00\n16                     16.00        1000000.00\n"
    )
    assert text(capsys, "mbw_mr -n 4 -W 10 -R 0 -z50") == head + (
        "# Size                  MB/s P50 Tail BW(MB/s)\n8                       8.00              8.00\n"
        "16                     16.00             16.00\n"
    )


def test_mbw_mr_with_varied_windows(capsys: pytest.CaptureFixture[str]) -> None:
    assert text(capsys, "mbw_mr -n 2 -V") == (
        "# OSU MPI Multiple Bandwidth / Message Rate Test v7.5\n# [ pairs: 1 ] [ window size: varied ]\n\n"
        "# Uni-directional Bandwidth (MB/sec)\n# Datatype: MPI_CHAR.\n"
        "#                 1           2           4           8          16          32          64         128\n"
        "8              0.40        0.80        1.60        3.20        6.40       12.80       25.60       51.20\n"
        "16             0.80        1.60        3.20        6.40       12.80       25.60       51.20      102.40\n"
        "\n# Message Rate Profile\n"
        "#                 1           2           4           8          16          32          64         128\n"
        "8          50000.00   100000.00   200000.00   400000.00   800000.00  1600000.00  3200000.00  6400000.00\n"
        "16         50000.00   100000.00   200000.00   400000.00   800000.00  1600000.00  3200000.00  6400000.00\n"
    )


@pytest.mark.parametrize(
    ("name", "title", "head", "values"),
    [
        ("latency_persistent", "Latency Persistent", "# Size       Avg Latency(us)", (10, 10)),
        ("bw_persistent", "Bandwidth Persistent", "# Size      Bandwidth (MB/s)", (4, 8)),
        ("bibw_persistent", "Bi-Directional Bandwidth Persistent", "# Size      Bandwidth (MB/s)", (16, 32)),
    ],
)
def test_persistent(
    name: str, title: str, head: str, values: tuple[float, float], capsys: pytest.CaptureFixture[str]
) -> None:
    window = " -W 10" if "bw" in name else ""
    assert text(capsys, name + window) == (
        f"\n# OSU MPI {title} Test v7.5\n# Datatype: MPI_CHAR.\n{head}\n"
        f"8         {values[0]:18.2f}\n16        {values[1]:18.2f}\n"
    )


def test_fans(capsys: pytest.CaptureFixture[str]) -> None:
    line = "bw_fan_in -n 4 -W 10 --backend mock --mock nodes=2,series=10us -i 2 -x 1 -m 8:8 --no-store --quiet"
    assert main(line.split()) == 0
    assert capsys.readouterr().out == (
        "\n# OSU MPI Bandwidth Test v7.5\n# Datatype: MPI_CHAR.\n# Size      Bandwidth (MB/s)\n"
        "8                       8.00\n"
    )
