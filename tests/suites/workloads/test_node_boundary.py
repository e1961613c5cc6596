"""Where should the node boundary lie? The simulation's answer is that of two real hosts with a slow link."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from omb_py.cli import main
from tests.support.machines.cluster import YIELD
from tests.support.machines.mpi import ROOT, run_command
from tests.support.machines.nodes import hosts, why_not

RATE, NS_A_BYTE = "100mbit", 80
FEW = ("-i", "1", "-x", "0", "--format", "json", "--no-store", "--quiet")
ORDERS = ("tp-dp-pp", "dp-tp-pp")


def _text(seq: int, order: str) -> str:
    settings = f"tp=2,dp=2,layers=1,seq={seq},dtype=float32,order={order},scale=1/128,compute=1ms"
    return f"step --workload three_d:model=gpt2-124m,{settings}"


def _step_us(rows: str) -> float:
    (row,) = json.loads(rows)
    return float(row["value"])


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.alone
def test_simulation_and_emulated_hosts_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The bytes over the link decide, each order by a factor of four or more, so the load of the machine does not."""
    if why_not():
        pytest.skip(why_not())
    machine = f"nodes=2,nics=1,alpha=20us,beta=0.5ns,between=200us:{NS_A_BYTE}ns,data=off"
    times_us: dict[int, tuple[dict[str, float], dict[str, float]]] = {}
    with hosts(2) as cluster:
        cluster.limit(0, 1, RATE)
        for seq in (8, 32768):
            real, simulated = dict[str, float](), dict[str, float]()
            for order in ORDERS:
                words = [*_text(seq, order).split(), *FEW]
                launch = [*cluster.launcher(tmp_path, 2), sys.executable, "-m", "omb_py", *words]
                done = run_command(launch, cwd=ROOT, **YIELD)
                assert done.returncode == 0, done.stdout + done.stderr
                real[order] = _step_us(done.stdout)
                assert main([*words, "-n", "4", "--backend", "mock", "--mock", machine]) == 0
                simulated[order] = _step_us(capsys.readouterr().out)
            times_us[seq] = real, simulated
    best = {seq: [min(of, key=of.__getitem__) for of in sides] for seq, sides in times_us.items()}
    assert best == {8: ["dp-tp-pp"] * 2, 32768: ["tp-dp-pp"] * 2}, times_us
