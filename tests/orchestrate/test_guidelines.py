"""Guidelines on real ranks: a planted wait is found, on every backend that the test's Python has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omb_py.cli import main

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(120)]


def test_a_planted_wait_is_always_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """20 ms in an allreduce of 8 bytes, through the library's own calls; the other side is not slowed."""
    line = (
        "guidelines gl5 -n 2 -m 8:8 -i 10 -x 2 --launches 5 -c --inject busy:0:20000000 --format json "
        f"--quiet --store {tmp_path}"
    )
    assert main(line.split()) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["verdicts"] == {"VIOLATED": 1}
    for cell in told["cells"]:
        assert cell["left_us"] > 20000 > cell["right_us"] and cell["lost_us"] > 10000
        assert cell["advice"].startswith("try ")
