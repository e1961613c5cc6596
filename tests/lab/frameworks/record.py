"""Records steps of frameworks: starts the ranks, traces one step of one of them, writes its calls."""

from __future__ import annotations

import json
import os
import socket
import sys
import warnings
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from pathlib import Path

import torch
import torch.distributed as dist
from torch import multiprocessing

from tests.lab.frameworks.steps import CASES, Case, Recorded
from tests.support.workload_bytes.recorded import FOLDER, plain


def trace(case: Case, rank: int, ranks: int) -> list[Recorded]:
    """The calls of the fourth step on one rank; the first ones build buckets, schedules and connections."""
    step = case.step(rank, ranks)
    for _ in range(3):
        step()
    if rank != case.rank:
        step()
        return []
    return [plain(name, elements, kind) for name, elements, kind, _ in case.profiled(step)]


def record(rank: int, ranks: int, port: int, cases: list[Case], out: str) -> None:
    """Record these cases in one process group."""
    warnings.simplefilter("ignore")
    os.environ.update(
        MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_RANK=str(rank)
    )
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    for case in cases:
        torch.manual_seed(0)
        calls = trace(case, rank, ranks)
        if rank == case.rank:
            runs = [[len(list(run)), *call] for call, run in groupby(calls)]
            told = {
                "workload": case.text,
                "ranks": ranks,
                "rank": rank,
                "framework": case.framework,
                "version": version(case.package),
                "differs": case.differs,
            }
            lines = ",\n".join(f"  {json.dumps(run)}" for run in runs)
            text = json.dumps(told, indent=1, ensure_ascii=False)[:-2]
            (Path(out) / f"{case.name}.json").write_text(f'{text},\n "calls": [\n{lines}\n ]\n}}\n')
        dist.barrier()
    dist.destroy_process_group()


def record_all(names: list[str]) -> None:
    """Record the cases of these packages, or all."""
    FOLDER.mkdir(exist_ok=True)
    chosen = [case for case in CASES if not names or case.package in names]
    for package in dict.fromkeys(case.package for case in chosen):
        try:
            version(package)
        except PackageNotFoundError:
            print(f"not recorded: what needs {package}, which is not installed", file=sys.stderr)
            chosen = [case for case in chosen if case.package != package]
    for ranks in sorted({case.ranks for case in chosen}):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        own = [case for case in chosen if case.ranks == ranks]
        multiprocessing.spawn(record, (ranks, port, own, str(FOLDER)), ranks)
