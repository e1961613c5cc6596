"""A comparison on real ranks: variables reach one side only, and a planted slowdown is measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omb_py.cli import main
from omb_py.orchestrate.compare.interleaving import sides_of
from omb_py.results.compare.tags import COMPARE_SIDE
from omb_py.results.store.paths import files
from omb_py.results.store.provenance import read_provenance
from omb_py.results.store.read import load

pytestmark = [pytest.mark.mpi, pytest.mark.slow]


def test_a_variable_and_a_planted_wait(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = (
        "compare --set NEW:UCX_TLS=self,sm --option NEW:inject=busy:0:3000000 allreduce -n 2 -m 8:8 -i 30 -x 2 "
        f"--launches 2 --rounds 1 --format json --quiet --store {tmp_path}"
    )
    code = main(line.split())
    told = json.loads(capsys.readouterr().out)
    (cell,) = told["cells"]
    # two launches a side prove little, but 3 ms are 3 ms
    assert cell["median"]["ratio"] > 5 and cell["median"]["new_us"] > 3000
    assert code == (1 if cell["verdict"] == "SLOWER" else 0)
    assert [d["what"] for d in told["differences"]][:1] == ["variable UCX_TLS"]
    environments = {}
    for path in files(tmp_path):
        found = read_provenance(path)
        environments[found["launch"]["index"]] = found["environment"].get("UCX_TLS")
    for first, second in ((0, 1), (2, 3)):  # which side goes first in a pair is drawn
        assert {environments[first], environments[second]} == {None, "self,sm"}
    frame = load(tmp_path)
    assert frame["comparability_key"].nunique() == 1, "a planted wait passes for the same program"
    assert sorted(tags[COMPARE_SIDE] for tags in frame["tags"]) == ["BASE"] * 2 + ["NEW"] * 2


def test_a_side_whose_launcher_fails_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seed = next(seed for seed in range(100) if sides_of(seed, 0)[0] == "BASE")
    line = f"compare --option NEW:launcher-args=--no-such-option allreduce -n 2 -m 8:8 -i 10 --launches 2 --seed {seed}"
    assert main([*line.split(), "--store", str(tmp_path)]) == 3
    error, hint = capsys.readouterr().err.splitlines()[-2:]
    assert "side NEW (--launcher-args=--no-such-option) is broken" in error
    assert "1 launch of BASE and 0 launches of NEW" in error
    assert hint.startswith("omb-py: to go on: omb-py compare --resume=")
    assert len(load(tmp_path)) == 1
