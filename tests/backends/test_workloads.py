"""Workloads on real ranks: sub-communicators, every byte checked."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from omb_py.suites.workloads.families import parse_workload
from tests.support.machines.mpi import start, torchrun
from tests.support.optional import needs_torch
from tests.support.sessions.workload_session import COMPUTING, GUIDELINE, bindings_of, texts_of

RANKS = 4


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.parametrize("backend", ["mpi", pytest.param("gloo", marks=(pytest.mark.calm, needs_torch))])
def test_every_family_on_four_ranks(backend: str, tmp_path: Path) -> None:
    out = tmp_path / "found"
    words = [sys.executable, "-m", "tests.support.sessions.workload_session", backend, str(RANKS), str(out)]
    done = start(words, RANKS, torchrun(RANKS) if backend == "gloo" else ())
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())
    kinds = {f"{name} {binding}" for name in texts_of(backend) for binding in bindings_of(backend, name)}
    assert set(found) == {*kinds, GUIDELINE}
    assert {name: what["wrong"] for name, what in found.items() if what["wrong"]} == {}
    assert all(count == RANKS for what in found.values() for count in what["laps"].values())
    flop = sum(call.flop for call in parse_workload(COMPUTING).calls(0, RANKS))
    for binding in bindings_of(backend, COMPUTING):
        what = found[f"{COMPUTING} {binding}"]
        # no processor core does 10^13 operations a second
        assert what["flop"] == flop and what["compute_us"] > flop / 1e7
