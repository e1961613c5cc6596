"""NCCL on one GPU, and MPI on its memory, every byte checked: ``make gpu-check``, or ``pytest -m gpu``.

Needs a machine with a GPU, its driver, CuPy, an NCCL library (of CuPy's or torch's wheels, or in OMB_PY_NCCL), mpi4py
and an MPI library. Prints one table and writes Parquet. With another device (``python -m tests.gpu.check sim``, and the
stand-in library in OMB_PY_NCCL) it tries itself.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console

import omb_py
from omb_py.dashboards.terminal import results_table
from tests.support.mpi import ROOT, environment

RANKS = 2
"""On one GPU: NCCL admits about two."""
COLLECTIVES = (
    "allreduce", "reduce", "bcast", "allgather", "reduce_scatter_block", "alltoall", "gather", "scatter", "sendrecv",
)  # fmt: skip
POINT_TO_POINT = ("latency", "bw", "bibw")
MODES = ("isolated", "pipelined", "graph", "event", "spin-gated")
SIZES = "8:1M:8"


def commands(device: str, store: Path) -> list[list[str]]:
    """What is run, as the command line of omb-py."""
    common = ["-d", device, "-n", str(RANKS), "-m", SIZES, "-c", "-i", "50", "--format", "table", "--store", str(store)]
    nccl = ["--backend", "nccl", "--share-device", *common]
    return [
        *([name, *nccl] for name in (*COLLECTIVES, *POINT_TO_POINT)),
        *(["allreduce", *nccl, "--timing", mode] for mode in MODES[1:]),
        ["allreduce", *nccl, "-T", "float16,bfloat16,float64"],
        *([name, "--share-device", *common] for name in ("allreduce", "latency", "bw")),
    ]


def one_rank(device: str) -> bool:
    """NCCL with a single rank, which the command line does not start."""
    import json

    cells = json.dumps([{"benchmark": name, "size": 65536} for name in COLLECTIVES])
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.nccl_cells", cells], cwd=ROOT, capture_output=True, text=True,
        env=environment(OMB_PY_TEST_DEVICE=device), stdin=subprocess.DEVNULL, timeout=300,
    )  # fmt: skip
    print(f"one rank: exit status {done.returncode}\n{done.stdout}{done.stderr[-2000:]}")
    return done.returncode == 0 and all(cell.get("wrong") == 0 for cell in json.loads(done.stdout))


def check(device: str, store: Path) -> list[str]:
    """Run everything; returns what failed."""
    failed = [] if one_rank(device) else ["one rank"]
    for words in commands(device, store):
        done = subprocess.run(
            [sys.executable, "-m", "omb_py", *words], cwd=ROOT, capture_output=True, text=True, timeout=300,
            env=environment(), stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if done.returncode:
            failed.append(f"omb-py {' '.join(words)}: {done.returncode}: {done.stderr[-1000:]}")
    rows = omb_py.load(store).to_dict("records") if any(store.rglob("*.parquet")) else []
    Console(width=200).print(results_table(rows))
    return failed


def main() -> int:
    """Exit status 1 when anything failed."""
    device = sys.argv[1] if len(sys.argv) > 1 else "cuda"
    store = Path(tempfile.mkdtemp(prefix="omb-gpu-check-"))
    failed = check(device, store)
    print(f"rows are in {store}")
    for text in failed:
        print(f"FAILED {text}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
