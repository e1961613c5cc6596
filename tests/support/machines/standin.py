"""The stand-in libnccl: compiled when first asked for, and ranks that run on it without MPI."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.c_library import COMPILER, STRICT, shared_library
from tests.support.machines.mpi import ROOT, environment
from tests.support.patience import PATIENCE_S
from tests.support.ports import free_port

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler for the stand-in library")


def on_both(*own: pytest.MarkDecorator) -> list[Any]:
    """Parameters (ranks, own): on the stand-in, and with the marks `own` on the library itself."""
    return [
        pytest.param(2, False, marks=needs_compiler),
        pytest.param(4, False, marks=[needs_compiler, pytest.mark.slow]),
        *(pytest.param(ranks, True, marks=own) for ranks in (2, 3, 4)),
    ]


def wrong(cells: Sequence[dict[str, Any]], measured: Sequence[dict[str, Any]]) -> list[tuple[Any, Any]]:
    """Cells without a check, or with other wrong bytes than the three that a fault was to make; barriers move none."""
    return [
        (cell, done)
        for cell, done in zip(cells, measured, strict=True)
        if done.get("wrong", -1) != (None if "barrier" in cell["benchmark"] else 3 * ("inject" in cell))
    ]


ALONE_S = 1.0
"""How long the other ranks go on when one has failed."""
SOURCE = ROOT / "tests" / "standin" / "nccl.c"


@cache
def library(*defines: str, source: str = SOURCE.name) -> Path:
    """The compiled stand-in. Compiled once for each text and set of defines."""
    texts = b"".join(SOURCE.with_name(name).read_bytes() for name in (source, "numbers.h", "oneccl.h"))
    key = hashlib.sha256(texts + " ".join(defines).encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"omb-py-standin-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    made = folder / f"libstandin-{key}.so"
    if not made.exists():
        part = folder / f"{key}.{os.getpid()}.so"
        shared_library(
            SOURCE.with_name(source), part, "-std=gnu11", *STRICT, *(f"-D{define}" for define in defines), "-lrt"
        )
        part.rename(made)
    return made


def start(module: str, ranks: int, *arguments: Any, old: bool = False, **more: str) -> list[Any]:
    """Run ``python -m MODULE ARGUMENT…`` as ranks that find each other over TCP.

    Returns:
        Of each rank (exit status, what it printed on stdout as JSON or None, stderr).
    """
    with free_port() as port:
        common = environment(
            WORLD_SIZE=str(ranks),
            MASTER_ADDR="127.0.0.1",
            OMB_PY_PORT=str(port),
            OMB_PY_TOKEN="test",
            **{"OMB_PY_NCCL": str(library("OLD") if old else library()), **more},
        )
        words = [sys.executable, "-m", module, *map(json.dumps, arguments)]
        children = [
            subprocess.Popen(
                words,
                env={**common, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                stdin=subprocess.DEVNULL,
            )
            for rank in range(ranks)
        ]
        deadline = time.monotonic() + PATIENCE_S
        try:
            while None in [child.poll() for child in children] and time.monotonic() < deadline:
                if any(child.returncode for child in children):
                    deadline = min(deadline, time.monotonic() + ALONE_S)  # the others wait for it
                time.sleep(0.02)
        finally:
            for child in children:
                child.kill()
    found = []
    for child in children:
        out, err = child.communicate()
        found.append((child.returncode, json.loads(out) if out.startswith(("{", "[")) else None, err))
    return found


def report(module: str, ranks: int, *arguments: Any, **more: Any) -> Any:
    """What rank 0 printed; all ranks must have ended well."""
    found = start(module, ranks, *arguments, **more)
    assert all(code == 0 for code, _, _ in found), "\n".join(err[-3000:] for _, _, err in found)
    return found[0][1]
