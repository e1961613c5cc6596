"""Guidelines on real ranks: a planted wait is found, and the steps that only guidelines have move the right bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omb_py.cli import main
from tests.support.machines.cluster import YIELD

pytestmark = [pytest.mark.mpi, pytest.mark.slow]


def test_a_planted_wait_is_always_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """60 ms in calls of 8 bytes, through the library's own; the other side is not slowed. Fresh launches say it too.

    A wait for a core that others use is shorter. So few launches show no load that comes and goes, and a tenth may be
    false, so that they are enough.
    """
    line = (
        "guidelines gl5 -n 2 -m 8:8 -i 3 -x 0 --launches 5 --rounds 2 --alpha 10% --inject busy:0:60000000 "
        f"--format json --quiet --store {tmp_path}"
    )
    assert main(line.split()) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["verdicts"] == {"VIOLATED": 1} and told["launches"] == 10
    for cell in told["cells"]:
        assert cell["left_us"] > 60000 > cell["right_us"] and cell["lost_us"] > 30000 and cell["look"] == 2
        assert cell["advice"].startswith("try ")


def test_mock_ups_by_nodes_and_by_lanes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups of real ranks, and a scan that another binding calls: every byte is right on both sides."""
    for name, value in YIELD.items():
        if not name.startswith("UCX"):
            monkeypatch.setenv(name, value)
    words = "gl21 gl24node_allreduce gl24node_allgather gl24lane_allreduce gl24lane_bcast gl24node_scatter"
    line = f"guidelines {words} -n 4 -m 40:40 -i 3 -x 1 --launches 2 --rounds 1 -c --binding mpi4py --format json"
    main([*line.split(), "--quiet", "--no-store"])
    told = json.loads(capsys.readouterr().out)
    assert len(told["cells"]) == 6 and "WRONG" not in told["verdicts"]
