"""What was counted beside a row, for a cell of a table: by the library (``--pvar``), the network (``--counters``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omb_py.engine.measuring import counters, network_counters
from omb_py.results.units import number_of

Row = Mapping[str, Any]
_SENT = ("ib_tx_bytes", "tx_bytes")
"""What counts as bytes on the wire, the first that is there: RoCE bypasses the counters of its interface."""
_TROUBLE = ("tcp_retransmits", "tcp_timeouts", "errors", "dropped", "ib_retransmits", "ib_errors", "ib_no_buffer")
"""Counters that stay at zero in a healthy network."""


def of_library(row: Row) -> str:
    """What the library counted on all ranks together: ``sent=12, late=4``."""
    prefix, metrics = counters.PREFIX, dict(row.get("metrics") or {})
    names = [name for name in metrics if name.startswith(prefix) and f"{name}.max" in metrics]
    return ", ".join(f"{name.removeprefix(prefix)}={metrics[name]:g}" for name in names)


def of_network(row: Row) -> str:
    """What the nodes' networks counted: bytes on the wire over the bytes of the calls, then what went wrong.

    ``1.04x on the wire, tcp_retransmits=12``; empty for a row without counters.
    """
    prefix, metrics = network_counters.PREFIX, dict(row.get("metrics") or {})
    calls = metrics.get(network_counters.CALLS)
    if not calls:
        return ""
    wire = next((metrics[f"{prefix}{name}"] for name in _SENT if metrics.get(f"{prefix}{name}")), 0.0)
    asked = metrics.get("bytes_moved") or number_of(row.get("bytes_total"))
    shown = [f"{wire / calls / asked:.3g}x on the wire" if asked > 0 else f"{wire / calls:.0f} B on the wire"]
    shown += [f"{name}={value:g}" for name in _TROUBLE if (value := metrics.get(f"{prefix}{name}", 0.0)) > 0]
    return ", ".join(shown)
