"""``omb-py links`` between ranks of one machine over Gloo, whose messages are another library's."""

from __future__ import annotations

import json

import pytest

from omb_py.cli import main
from tests.support.optional import needs_torch

pytestmark = [pytest.mark.slow, pytest.mark.mpi, pytest.mark.calm, needs_torch]


def test_every_pair_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    """One look, of a machine that may be busy: whether anything is slow is not asked here."""
    words = "links --backend gloo -n 4 --passes 1 -i 10 --windows 1 -W 2 --large 4K --no-store --quiet --format json"
    assert main(words.split()) in (0, 1)
    told = json.loads(capsys.readouterr().out)
    assert len(told["nodes"]) == 4 and len(told["pairs"]) == 6
    assert all(pair[metric] > 0 for pair in told["pairs"] for metric in ("latency", "tail", "bandwidth"))
