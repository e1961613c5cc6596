"""Ranks on two nodes with eight GPUs each: the line that starts them, and the GPU that each says it will open."""

from __future__ import annotations

import os
from collections.abc import Callable
from unittest.mock import patch

from tests.golden.running import Place
from tests.support.machines.gpu_launches import EACH, LAUNCHES, GpuLaunch


def files() -> dict[str, Callable[[Place], str]]:
    """Name of a file -> what makes it."""
    return {"launches.txt": lambda place: "\n".join(_ranks(place, launch) for launch in LAUNCHES)}


def _ranks(place: Place, launch: GpuLaunch) -> str:
    lines = [f"# {launch.name}", f"$ {launch.line}"]
    for environ in launch.environments():
        with patch.dict(os.environ, environ):
            lines.append(place.said(f"explain allreduce --backend nccl --device cuda --gpus {EACH}").rstrip())
    return "\n".join([*lines, ""])
