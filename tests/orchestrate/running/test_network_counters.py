"""``--counters`` between two hosts: what a cable loses is sent again, and the row says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.machines.cluster import YIELD, command
from tests.support.machines.mpi import ROOT, run_command
from tests.support.machines.nodes import hosts, why_not

pytestmark = [pytest.mark.mpi, pytest.mark.slow]
SIZE, ITERATIONS, WINDOW = 65536, 40, 4


@pytest.fixture(autouse=True)
def _possible() -> None:
    if why_not():
        pytest.skip(why_not())


def counted(loss: float, folder: Path) -> dict[str, Any]:
    """The metrics of a bandwidth between two hosts that lose this share of the packets."""
    with hosts(2) as cluster:
        if loss:
            cluster.lose(0, 1, loss)
        words = command(cluster, folder, "bw", "-n", "2", "-m", f"{SIZE}:{SIZE}", "-W", str(WINDOW))
        words += ["-i", str(ITERATIONS), "-x", "0", "--counters", "--no-store", "--format", "json"]
        done = run_command(words, cwd=ROOT, **YIELD)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    return dict(row["metrics"])


def test_bytes_on_the_wire_are_those_asked_for_and_their_heads(tmp_path: Path) -> None:
    metrics = counted(0.0, tmp_path)
    asked = SIZE * WINDOW * ITERATIONS
    assert metrics["net.calls"] == ITERATIONS
    assert asked < metrics["net.tx_bytes"] < 1.5 * asked  # and acknowledgements, barriers, TCP's heads


def test_what_is_lost_is_counted_as_sent_again(tmp_path: Path) -> None:
    metrics = counted(0.05, tmp_path)
    assert metrics["net.tcp_retransmits"] > 0
    assert metrics["net.tcp_retransmits.max"] <= metrics["net.tcp_retransmits"] <= metrics["net.tcp_segments"]
