"""How long a start takes: ``pytest tests/lab/speed/bench_startup.py -m bench``. Not collected by default.

Bars of the design: ``--help`` in under 0.25 s; a rank ready to measure in under 0.7 s.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.machines.mpi import ROOT, environment, start

pytestmark = pytest.mark.bench

HELP_S, READY_S = 0.25, 0.7

READY = """
import json, sys, time
began = float(sys.argv[1])
stamps = {"python": time.time() - began}
from omb_py.options.table import make_cell
from omb_py.backends.registry import find
from omb_py.engine.program.benchmark import Cell
from omb_py.engine.measuring.measure import measure
from omb_py.suites.registry import find as benchmark
stamps["omb-py"] = time.time() - began
session = find("mpi").connect({})
stamps["MPI"] = time.time() - began
kind = benchmark("allreduce")
cell = make_cell("allreduce", "mpi", "native", 8, dtype="int32", iterations=1, auto=False, warmup=0)
measure(session, kind, cell)
stamps["first sample"] = time.time() - began
every = session.gather(stamps)
if session.rank == 0:
    open(sys.argv[2], "w").write(json.dumps(every))
session.close()
"""
"""A rank from its launcher's start to its first sample; times since the command was given."""


@pytest.mark.parametrize("words", [("--version",), ("--help",), ("allreduce", "--help"), ("list",)])
def test_a_command(benchmark: Any, words: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "omb_py", *words]
    benchmark.pedantic(
        subprocess.run,
        (command,),
        {"check": True, "capture_output": True, "env": environment(), "cwd": ROOT},
        rounds=11,
        warmup_rounds=1,
    )
    if "--help" in words:
        assert benchmark.stats.stats.median < HELP_S


def test_a_rank_is_ready(benchmark: Any, tmp_path: Path) -> None:
    """Two ranks by mpiexec: from the command to the last rank's first sample, the launcher's own time included."""
    import time

    script, report = tmp_path / "ready.py", tmp_path / "report.json"
    script.write_text(READY)
    seen: list[dict[str, float]] = []

    def launch() -> None:
        done = start([sys.executable, str(script), str(time.time()), str(report)], 2)
        assert done.returncode == 0, done.stderr
        ranks = json.loads(report.read_text())
        seen.append({stage: max(rank[stage] for rank in ranks) for stage in ranks[0]})

    benchmark.pedantic(launch, rounds=11, warmup_rounds=1)
    for stage in seen[0]:
        values = sorted(one[stage] for one in seen)
        benchmark.extra_info[stage] = round(values[len(values) // 2], 3)
        print(f"\n{stage}: {values[len(values) // 2]:.3f} s", end="")
    assert benchmark.extra_info["first sample"] - benchmark.extra_info["python"] < READY_S
