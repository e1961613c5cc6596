"""Ranks that have the same device: refused, or where they may, labelled and never compared with others."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from tests.support.machines.mpi import ROOT, run_omb_py

pytestmark = [pytest.mark.mpi, pytest.mark.calm, pytest.mark.slow]
SHARED = "--share-device"


@cache
def ran(devices: int, *words: str) -> tuple[int, str, str]:
    """(exit status, stdout, stderr) of two ranks on a machine with so many simulated devices."""
    line = ("allreduce", "--backend", "mpi", "--device", "sim", "-n", "2", "-m", "64:64", "-i", "4", "-x", "0")
    done = run_omb_py(*line, "--no-store", "--format", "json", *words, cwd=ROOT, OMB_PY_SIM_DEVICES=str(devices))
    return done.returncode, done.stdout, done.stderr


def row(devices: int, *words: str) -> dict[str, Any]:
    """The one row of such a run."""
    code, out, err = ran(devices, *words)
    assert code == 0, err
    (found,) = json.loads(out)
    return dict(found)


def test_rows_of_a_shared_device_are_labelled_and_stand_apart() -> None:
    """Those of Gloo are labelled alike: tests/backends/gloo/test_gloo.py."""
    shared, apart = row(1, SHARED), row(2, SHARED)
    assert (shared["parameters"]["ranks_per_device"], apart["parameters"]["ranks_per_device"]) == ("2", "1")
    assert (shared["devices"], apart["devices"]) == (1, 2)
    assert shared["comparability_key"] != apart["comparability_key"]


def test_a_device_is_shared_only_where_it_may_be() -> None:
    code, _, err = ran(1)
    assert code == 3 and "ranks 0, 1 would share sim:0 (simulated device) of" in err and SHARED in err
    assert row(2, SHARED)["comparability_key"] == row(2)["comparability_key"]


def test_omb_s_text_says_on_stdout_that_bytes_were_copied_and_a_device_shared() -> None:
    code, out, err = ran(1, SHARED, "--format", "osu")
    assert code == 0, err
    title, said, *_ = (line for line in out.splitlines() if line)
    assert title == "# OSU MPI-SIM Allreduce Latency Test v7.5"
    assert said == "# [ staging: copied through host memory ] [ ranks per device: 2 ]"
