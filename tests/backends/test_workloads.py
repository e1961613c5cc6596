"""Workloads on real ranks: sub-communicators, every byte checked."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from omb_py.suites.workloads.families import parse_workload
from tests.support.machines.mpi import start
from tests.support.optional import needs_torch
from tests.support.sessions.workload_session import COMPUTING, FAMILIES_ALL, GUIDELINE, INFERENCE, bindings_of, texts_of

RANKS = 4
GLOO = (pytest.mark.calm, needs_torch)


def measured_on(backend: str, ranks: int, what: str, folder: Path) -> dict[str, Any]:
    """What rank 0 found of each workload and binding."""
    out = folder / "found"
    words = [sys.executable, "-m", "tests.support.sessions.workload_session", backend, str(ranks), str(out), what]
    done = start(words, ranks)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(out.read_text())
    kinds = {f"{name} {each}" for name in texts_of(backend, what, ranks) for each in bindings_of(backend, name)}
    assert set(found) - {GUIDELINE} == kinds
    assert {name: cell["wrong"] for name, cell in found.items() if cell["wrong"] != 0} == {}
    assert all(count == ranks for cell in found.values() for count in cell["laps"].values())
    return found


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.parametrize("backend", ["mpi", pytest.param("gloo", marks=GLOO)])
def test_every_family_on_four_ranks(backend: str, tmp_path: Path) -> None:
    found = measured_on(backend, RANKS, FAMILIES_ALL, tmp_path)
    assert GUIDELINE in found
    flop = sum(call.flop for call in parse_workload(COMPUTING).calls(0, RANKS))
    for binding in bindings_of(backend, COMPUTING):
        what = found[f"{COMPUTING} {binding}"]
        # no processor core does 10^13 operations a second
        assert what["flop"] == flop and what["compute_us"] > flop / 1e7


@pytest.mark.slow
@pytest.mark.mpi
def test_every_byte_of_inference_is_right(tmp_path: Path) -> None:
    """On three ranks of MPI; Gloo, which has the same calls, shows each family above."""
    measured_on("mpi", 3, INFERENCE, tmp_path)
