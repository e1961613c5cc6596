"""Counters of the network, read from made-up folders of ``/sys`` and ``/proc``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from omb_py.backends.capabilities import Capabilities
from omb_py.backends.registry import find
from omb_py.engine.observers.network import NetworkCounters, network_text, read
from omb_py.engine.session import Session
from omb_py.errors import UsageError
from omb_py.options.request import Request
from tests.support.planning import check

STATISTICS = {"tx_bytes": 1000, "rx_bytes": 500, "tx_packets": 7, "rx_errors": 1, "tx_errors": 2, "rx_dropped": 4}


def interface(root: Path, name: str, hardware: bool = False, over: str = "", **values: int) -> None:
    folder = root / "sys/class/net" / name
    for file, value in {**STATISTICS, **values}.items():
        (folder / "statistics").mkdir(parents=True, exist_ok=True)
        (folder / "statistics" / file).write_text(f"{value}\n")
    if hardware:
        (folder / "device").mkdir()
    if over:
        (folder / f"lower_{over}").mkdir()


def tcp(root: Path, retransmitted: int) -> None:
    (root / "proc/net").mkdir(parents=True, exist_ok=True)
    (root / "proc/net/snmp").write_text(
        "Ip: Forwarding DefaultTTL\nIp: 1 64\n"
        f"Tcp: RtoMin MaxConn OutSegs RetransSegs\nTcp: 200 -1 90 {retransmitted}\n"
    )
    (root / "proc/net/netstat").write_text("TcpExt: TCPTimeouts TCPPureAcks\nTcpExt: 3 8\nIpExt: InPkts\nIpExt: 5\n")


def port(root: Path, **values: int) -> None:
    for name, value in values.items():
        path = root / "sys/class/infiniband/mlx5_0/ports/1" / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")


def counted(root: Path) -> Mapping[str, float]:
    return read(root / "sys", root / "proc")


def test_interfaces_of_hardware_count(tmp_path: Path) -> None:
    interface(tmp_path, "eth0", hardware=True)
    interface(tmp_path, "eth1", hardware=True, tx_bytes=1)
    interface(tmp_path, "docker0")
    interface(tmp_path, "lo", tx_bytes=9)
    found = counted(tmp_path)
    assert found == {
        "tx_bytes": 1001,
        "rx_bytes": 1000,
        "tx_packets": 14,
        "errors": 6,
        "dropped": 8,
        "loopback_bytes": 9,
    }


def test_in_a_container_what_stands_over_others_does_not_count(tmp_path: Path) -> None:
    interface(tmp_path, "eth0", tx_bytes=5)
    interface(tmp_path, "bond0", over="eth0", tx_bytes=5)
    assert counted(tmp_path)["tx_bytes"] == 5


def test_tcp_is_read_by_the_names_above_the_numbers(tmp_path: Path) -> None:
    tcp(tmp_path, 12)
    assert counted(tmp_path) == {"tcp_segments": 90, "tcp_retransmits": 12, "tcp_timeouts": 3}


def test_ports_of_infiniband_count_words_of_four_bytes(tmp_path: Path) -> None:
    port(
        tmp_path,
        counters__port_xmit_data=250,
        counters__port_rcv_data=100,
        counters__symbol_error=1,
        counters__port_xmit_discards=2,
        hw_counters__packet_seq_err=7,
    )
    assert counted(tmp_path) == {"ib_tx_bytes": 1000, "ib_rx_bytes": 400, "ib_errors": 3, "ib_retransmits": 7}


@pytest.mark.parametrize("text", ["", "Tcp: A\n", "Tcp: RetransSegs\nTcp: many\n"])
def test_a_file_that_cannot_be_read_counts_nothing(tmp_path: Path, text: str) -> None:
    tcp(tmp_path, 1)
    (tmp_path / "proc/net/snmp").write_text(text)
    assert counted(tmp_path) == {"tcp_timeouts": 3}


class Two(Session):
    """Rank 0 or 1 of two ranks on a node; the process of rank 0 gathers what the other one says, which is nothing."""

    backend, size = "mpi", 2

    def __init__(self, rank: int, hosts: tuple[str, str]) -> None:
        self.local, self.hosts = (rank,), hosts

    def gather(self, value: Any) -> list[Any]:
        return [value, {}] if self.local == (0,) else []


def test_the_first_rank_of_a_node_reads_for_it(tmp_path: Path) -> None:
    interface(tmp_path, "eth0")
    tcp(tmp_path, 10)
    folders = tmp_path / "sys", tmp_path / "proc"
    difference = NetworkCounters(Two(0, ("a", "a")), "", *folders)  # type: ignore[arg-type]
    other = NetworkCounters(Two(1, ("a", "a")), "", *folders)  # type: ignore[arg-type]
    difference.start()
    other.start()
    interface(tmp_path, "eth0", tx_bytes=1400)
    tcp(tmp_path, 15)
    assert other.stop(7) == {"net.calls": 7}
    metrics = difference.stop(7)
    assert (metrics["net.tx_bytes"], metrics["net.tcp_retransmits"], metrics["net.errors"]) == (400, 5, 0)
    assert metrics["net.tcp_retransmits.max"] == 5


def test_a_simulated_network_counts_nothing() -> None:
    offers: dict[str, Capabilities] = {"mock": find("mock").capabilities}
    with pytest.raises(UsageError, match="--counters is measured, and backend mock computes its times: leave it out"):
        check(Request("allreduce", backends=("mock",), counters=True), offers)


SENT = {"net.calls": 10.0, "net.tx_bytes": 10_400.0}


@pytest.mark.parametrize(
    ("metrics", "bytes_total", "text"),
    [
        ({}, 1000, ""),
        (SENT, 1000, "1.04x on the wire"),
        ({**SENT, "bytes_moved": 2000.0}, 1000, "0.52x on the wire"),
        ({**SENT, "net.ib_tx_bytes": 20_000.0}, 1000, "2x on the wire"),
        (SENT, 0, "1040 B on the wire"),
        (
            {**SENT, "net.tcp_retransmits": 12.0, "net.errors": 0.0, "net.dropped": 1.0},
            1000,
            "1.04x on the wire, tcp_retransmits=12, dropped=1",
        ),
    ],
)
def test_the_wire_is_held_against_what_was_asked_for(metrics: dict[str, float], bytes_total: int, text: str) -> None:
    assert network_text({"metrics": metrics, "bytes_total": bytes_total}) == text
