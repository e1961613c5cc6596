"""What the network of a node counts during the timed loop (``--counters``): read before and after it.

Linux keeps the counters: of interfaces in ``/sys/class/net/*/statistics`` (Documentation/ABI/testing/sysfs-class-net-
statistics), of TCP in ``/proc/net/snmp`` and ``/proc/net/netstat`` (Documentation/networking/snmp_counter.rst), of
InfiniBand and RoCE in ``/sys/class/infiniband/*/ports/*/counters`` and ``hw_counters`` (Documentation/ABI/stable/
sysfs-class-infiniband). They are those of the whole node, or of its network namespace.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from omb_py.engine.observers.counters import DifferenceObserver
from omb_py.engine.observers.observer import StoredRow, leads_its_host, metrics_of, number_of

if TYPE_CHECKING:
    from omb_py.engine.session import Session

PREFIX: Final = "net."
"""Begins the names of these metrics in a row."""
CALLS: Final = f"{PREFIX}calls"
"""Operations between the two readings, warm-ups among them."""
LOOPBACK: Final = "lo"
_INTERFACE: Final[Mapping[str, tuple[str, ...]]] = {
    "tx_bytes": ("tx_bytes",),
    "rx_bytes": ("rx_bytes",),
    "tx_packets": ("tx_packets",),
    "errors": ("rx_errors", "tx_errors"),
    "dropped": ("rx_dropped", "tx_dropped"),
}
"""Our name -> the files that are added up."""
_PORT: Final[Mapping[str, tuple[str, ...]]] = {
    "ib_tx_bytes": ("counters/port_xmit_data",),
    "ib_rx_bytes": ("counters/port_rcv_data",),
    "ib_errors": ("counters/symbol_error", "counters/port_rcv_errors", "counters/port_xmit_discards"),
    "ib_waits": ("counters/port_xmit_wait",),
    "ib_retransmits": ("hw_counters/local_ack_timeout_err", "hw_counters/packet_seq_err"),
    "ib_no_buffer": ("hw_counters/out_of_buffer", "hw_counters/rnr_nak_retry_err"),
    "ib_congestion": ("hw_counters/np_cnp_sent", "hw_counters/rp_cnp_handled"),
}
_WORD_BYTES: Final = 4
"""Data counters of InfiniBand ports count words of so many bytes."""
_TCP: Final[Mapping[str, tuple[str, str, str]]] = {
    "tcp_segments": ("snmp", "Tcp", "OutSegs"),
    "tcp_retransmits": ("snmp", "Tcp", "RetransSegs"),
    "tcp_timeouts": ("netstat", "TcpExt", "TCPTimeouts"),
}
"""Our name -> (file, first word of its lines, counter)."""


_SENT: Final = ("ib_tx_bytes", "tx_bytes")
"""What counts as bytes on the wire, the first that is there: RoCE bypasses the counters of its interface."""
_TROUBLE: Final = (
    "tcp_retransmits",
    "tcp_timeouts",
    "errors",
    "dropped",
    "ib_retransmits",
    "ib_errors",
    "ib_no_buffer",
)
"""Counters that stay at zero in a healthy network."""


def network_text(row: StoredRow) -> str:
    """What the nodes' networks counted: bytes on the wire over the bytes of the calls, then what went wrong.

    ``1.04x on the wire, tcp_retransmits=12``; empty for a row without counters.
    """
    metrics = metrics_of(row)
    calls = metrics.get(CALLS)
    if not calls:
        return ""
    wire = next((metrics[f"{PREFIX}{name}"] for name in _SENT if metrics.get(f"{PREFIX}{name}")), 0.0)
    asked = metrics.get("bytes_moved") or number_of(row.get("bytes_total"))
    shown = [f"{wire / calls / asked:.3g}x on the wire" if asked > 0 else f"{wire / calls:.0f} B on the wire"]
    shown += [f"{name}={value:g}" for name in _TROUBLE if (value := metrics.get(f"{PREFIX}{name}", 0.0)) > 0]
    return ", ".join(shown)


class NetworkCounters(DifferenceObserver):
    """Both readings of each node, by the first rank on it; metrics are sums, smallest and largest over the nodes."""

    name, option, prefix = "counters", "--counters", PREFIX
    columns = (("network", network_text),)

    def __init__(
        self, session: Session, text: str = "", system: Path = Path("/sys"), processes: Path = Path("/proc")
    ) -> None:
        super().__init__(session, text)
        self._folders = system, processes

    def read(self) -> Mapping[str, float]:
        return read(*self._folders) if leads_its_host(self.session) else {}

    def stop(self, operations: int) -> dict[str, float]:
        return {**super().stop(operations), CALLS: operations}


def read(system: Path, processes: Path) -> dict[str, float]:
    """The counters of this node by our names; those that it does not keep are missing.

    Interfaces of hardware count, or where there are none, as in a container, all but loopback and those that stand
    over others (bridges, bonds); loopback's bytes stand under ``loopback_bytes``.
    """
    counted: dict[str, float] = {}
    for interface in _interfaces(system / "class/net"):
        _add(counted, _INTERFACE, interface / "statistics")
    if (loopback := _number(system / "class/net" / LOOPBACK / "statistics/tx_bytes")) is not None:
        counted["loopback_bytes"] = loopback
    for port in (system / "class/infiniband").glob("*/ports/*"):
        _add(counted, _PORT, port)
    for name, (file, kind, counter) in _TCP.items():
        if (value := _read_protocol(processes / "net" / file, kind, counter)) is not None:
            counted[name] = value
    return counted


def _interfaces(folder: Path) -> list[Path]:
    known = [path for path in folder.glob("*") if path.name != LOOPBACK and not any(path.glob("lower_*"))]
    hardware = [path for path in known if (path / "device").exists()]
    return hardware or known


def _add(counted: dict[str, float], names: Mapping[str, tuple[str, ...]], folder: Path) -> None:
    for name, files in names.items():
        values = [value for file in files if (value := _number(folder / file)) is not None]
        if values:
            words = _WORD_BYTES if name.startswith("ib_") and name.endswith("_bytes") else 1
            counted[name] = counted.get(name, 0.0) + words * sum(values)


def _number(path: Path) -> float | None:
    with suppress(OSError, ValueError):
        return float(path.read_text())
    return None


def _read_protocol(file: Path, kind: str, counter: str) -> float | None:
    """A counter of a file in which a line of names stands above each line of numbers."""
    with suppress(OSError, ValueError):
        lines = [line.split() for line in file.read_text().splitlines() if line.startswith(f"{kind}:")]
        for names, values in zip(lines[::2], lines[1::2], strict=True):
            if counter in names:
                return float(values[names.index(counter)])
    return None
