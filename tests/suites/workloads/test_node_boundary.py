"""Where should the node boundary lie? The simulation's answer is that of two real hosts with a slow link."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.support.machines.cluster import YIELD
from tests.support.machines.mpi import ROOT, run_command
from tests.support.machines.nodes import hosts, why_not

RATE, NS_A_BYTE = "100mbit", 80
FEW = ("-i", "1", "-x", "0", "--format", "json", "--no-store", "--quiet")
ORDERS = ("tp-dp-pp", "dp-tp-pp")


def _text(seq: int, order: str) -> str:
    settings = f"tp=2,dp=2,layers=1,seq={seq},dtype=float32,order={order},scale=1/128,compute=1ms"
    return f"step --workload three_d:model=gpt2-124m,{settings}"


def _step_us(command: list[str]) -> float:
    done = run_command(command, cwd=ROOT, **YIELD)
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = json.loads(done.stdout)
    return float(row["value"])


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.alone
def test_simulation_and_emulated_hosts_agree(tmp_path: Path) -> None:
    """The bytes over the link decide, each order by a factor of four or more, so the load of the machine does not."""
    if why_not():
        pytest.skip(why_not())
    omb_py = [sys.executable, "-m", "omb_py"]
    machine = f"nodes=2,nics=1,alpha=20us,beta=0.5ns,between=200us:{NS_A_BYTE}ns,data=off"
    best: dict[int, list[str]] = {}
    with hosts(2) as cluster:
        cluster.limit(0, 1, RATE)
        for seq in (8, 32768):
            real, simulated = {}, {}
            for order in ORDERS:
                words = [*omb_py, *_text(seq, order).split(), *FEW]
                real[order] = _step_us([*cluster.launcher(tmp_path, 2), *words])
                simulated[order] = _step_us([*words, "-n", "4", "--backend", "mock", "--mock", machine])
            print(f"seq {seq}: us on hosts {real}, simulated {simulated}")
            best[seq] = [min(times, key=lambda order: times[order]) for times in (real, simulated)]
    assert best == {8: ["dp-tp-pp"] * 2, 32768: ["tp-dp-pp"] * 2}
