"""What was counted beside a row, in words."""

from __future__ import annotations

import pytest

from omb_py.printing.counted_text import of_library, of_network

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
    assert of_network({"metrics": metrics, "bytes_total": bytes_total}) == text


def test_of_the_library_are_the_sums() -> None:
    assert of_library({"metrics": {"pvar.sent": 12.0, "pvar.sent.min": 1.0, "pvar.sent.max": 9.0}}) == "sent=12"
