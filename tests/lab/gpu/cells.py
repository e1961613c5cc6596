"""NCCL with one rank, by groups of cells, each in a process of its own: ``python -m tests.lab.gpu.cells [GROUP…]``.

One rank needs no second process on the GPU, so its times mean something, and structures, numbers and calling sequences
of the real library are all used. A line for each cell; exit status 1 where one is wrong, refused or missing.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tests.lab.gpu.parts import COLLECTIVES, COMMUNICATORS, MODES, STAND_INS, absent
from tests.lab.gpu.processes import run_within
from tests.support.machines.mpi import environment

Cell = Mapping[str, Any]
K: Final = 64 << 10
BIG: Final = 32 << 20
LIMIT_S: Final = 60.0
ALONE: Final = tuple(name for name in COLLECTIVES if name != "sendrecv")
TYPES: Final = tuple(
    ("int8 uint8 int32 uint32 int64 uint64 float16 bfloat16 float32 float64 float8e4m3 float8e5m2").split()
)
SETTINGS: Final = tuple(
    (
        "max_ctas=1 min_ctas=2 cta_policy=efficiency cta_policy=zero protocol=simple algorithm=ring communicators=2 "
        "aggregate=4 method=nccl-tests"
    ).split()
)
ON_GPUS: Final = {"benchmark": "allreduce", "size": K, "binding": "torch", "settings": "max_ctas=2"}
"""A setting of PyTorch's NCCL, in whose place Gloo is on the simulated device."""
UNCHECKED: Final = ("barrier", *COMMUNICATORS)


def cell(name: str, size: int = K, **options: Any) -> Cell:
    """A cell as :mod:`tests.support.sessions.nccl_cells` takes it."""
    return {"benchmark": name, "size": size, **options}


def allreduce(size: int = K, **options: Any) -> Cell:
    return cell("allreduce", size, **options)


def by_binding(binding: str, *names: str) -> list[Cell]:
    return [cell(name, binding=binding) for name in names]


GROUPS: Final[Mapping[str, Sequence[Cell]]] = {
    "collectives": [*map(cell, ALONE), cell("barrier", 0)],
    "timing": [
        allreduce(size, timing=mode, batch=20, iterations=20, warmup=2)
        for size in (8, BIG)
        for mode in ("isolated", *MODES)
    ],
    "types": [allreduce(dtype=dtype) for dtype in TYPES],
    "reductions": [
        allreduce(op=op, dtype=dtype)
        for op in ("prod", "min", "max", "avg", "mulsum")
        for dtype in ("float32", "bfloat16", "int32")
    ],
    "in place": [cell(name, in_place=True) for name in ("allreduce", "allgather", "reduce_scatter_block")],
    "computing": [cell("iallreduce", filler=filler, timing="") for filler in ("cpu", "gpu", "both")],
    "settings": [allreduce(settings=text) for text in SETTINGS],
    "registered": [cell(name, settings="registration=register") for name in ("allreduce", "alltoall")],
    "windows": [cell(name, settings="registration=window") for name in ("allreduce", "allgather")],
    "log": [allreduce(settings=f"log=tuning{more}") for more in ("", ",registration=window")],
    "communicators": [cell(name, 0, iterations=5, validate=False, timing="") for name in COMMUNICATORS],
    "cupy": by_binding("cupy", "allreduce", "allgather", "alltoall", "reduce_scatter_block"),
    "nccl4py": [
        *by_binding("nccl4py", "allreduce", "allgather", "alltoall", "gather"),
        allreduce(binding="nccl4py", settings="cta_policy=efficiency"),
    ],
    "torch": [*by_binding("torch", "allreduce", "allgather", "alltoall", "gather", "reduce_scatter_block"), ON_GPUS],
}
"""In the order in which a failure explains the later ones."""


def missing(group: str, device: str) -> str:
    """Why a group is left out; empty where it is not."""
    return absent(device).get(group, "")


def run_group(group: str, device: str, limit_s: float = LIMIT_S) -> tuple[list[str], str]:
    """Measure the cells of a group with one rank.

    Returns:
        a line for each cell, and what failed, or nothing.
    """
    cells = list(GROUPS[group])
    if device == "sim":  # its memory is the host's: large messages say no more
        cells = [{**one, "size": min(one["size"], K)} for one in cells if one is not ON_GPUS]
    words = [sys.executable, "-X", "faulthandler", "-m", "tests.support.sessions.nccl_cells", json.dumps(cells)]
    more = STAND_INS if device == "sim" else {}
    code, out, err = run_within(limit_s, words, environment(OMB_PY_TEST_DEVICE=device, **more))
    # the library may print, too
    printed = [line for line in out.splitlines() if line.startswith("[{")]
    done: list[dict[str, Any]] = json.loads(printed[-1]) if printed else []
    lines = [line_of(one, got) for one, got in zip(cells, done, strict=False)]
    if code is None:  # the other groups are worth running
        return lines, f"not done within {limit_s:.0f} s"
    if code or len(done) < len(cells):
        return lines, f"exit status {code}: {err[-2000:]}"
    return lines, "; ".join(line for line in lines if line.startswith("BAD"))


def line_of(one: Cell, got: Mapping[str, Any]) -> str:
    """A cell, and what it gave."""
    unchecked = one["benchmark"] in UNCHECKED
    bad = "refused" in got or bool(got["wrong"]) or (got["wrong"] is None and not unchecked)
    words = [f"{name}={value}" for name, value in one.items() if name not in ("benchmark", "size")]
    if "refused" in got:
        told = [str(got["refused"])]
    else:
        told = [f"{lap} {mean:.2f} us" for lap, mean in got["means"].items()]
        told += [f"{name}={value}" for name, value in got["marks"].items()]
    return f"{'BAD' if bad else 'ok '} {one['benchmark']} {one['size']} B {' '.join(words)}: {', '.join(told)}"


def main(names: Sequence[str]) -> int:
    """Exit status 1 when anything failed."""
    device, failed = os.environ.get("OMB_PY_TEST_DEVICE", "cuda"), False
    for name in names or GROUPS:
        if why := missing(name, device):
            print(f"left out {name}: {why}", flush=True)
            continue
        lines, problem = run_group(name, device, LIMIT_S if device != "sim" else 6 * LIMIT_S)
        print(f"{'FAILED' if problem else 'ok'} {name}", *lines, problem, sep="\n  ", flush=True)
        failed = failed or bool(problem)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
