"""What a rank does before it measures."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.support.machines.mpi import ROOT, environment

BENCHMARKS = ("allreduce", "bcast", "alltoallv", "barrier", "latency")
ORDER = """
import json, sys
from types import SimpleNamespace
from omb_py.engine.program.benchmark import World
from omb_py.orchestrate.running.rank_process import reserve
from omb_py.suites.registry import find

cells = [find(name).cell("nccl", "native", 64) for name in sys.argv[1:]]
asked = []
session = SimpleNamespace(
    local=(0,), hosts=("a", "a"), total=lambda values: values,
    memory_left=lambda: None, reserve=lambda kind, sizes: asked.extend((kind, name) for name in sizes),
)
reserve(session, cells, {0: World(0, 2, session.hosts)})
print(json.dumps(asked))
"""


def _reserved(seed: int) -> list[list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", ORDER, *BENCHMARKS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env=environment(PYTHONHASHSEED=str(seed)),
        stdin=subprocess.DEVNULL,
    )
    return list(json.loads(done.stdout))


def test_all_ranks_reserve_their_buffers_in_one_order_whatever_their_hash_seeds() -> None:
    first, *others = map(_reserved, range(5))
    assert len(first) > 2 and all(other == first for other in others)
