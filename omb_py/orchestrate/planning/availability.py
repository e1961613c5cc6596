"""What this machine and a backend lack: GPUs, and the calls of a benchmark or a guideline."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from omb_py.backends.capabilities import Capabilities
from omb_py.backends.registry import capabilities
from omb_py.engine.devices.registry import find_kind
from omb_py.engine.program.benchmark import Benchmark, Cell
from omb_py.launchers.registry import BATCH_LAUNCHERS, BATCH_SYSTEMS
from omb_py.options.request import Request
from omb_py.options.table import usual_cell

if TYPE_CHECKING:
    from omb_py.suites.guidelines.patterns import Guideline


def lacking(backend: str, benchmark: Benchmark) -> tuple[str, str]:
    """(reason, fix) why a backend cannot run a benchmark; both empty when it can."""
    reason, _, fix = capabilities(backend).why_not(benchmark, usual_cell(benchmark)).rpartition(": ")
    return reason, fix


def guideline_problem(guideline: Guideline, offer: Capabilities) -> str:
    """Why a backend cannot measure a guideline; empty where it can."""
    benchmark = guideline.benchmark
    return offer.without.get(guideline.needs, "") or offer.why_not(benchmark, usual_cell(benchmark))


def backend_problem(offer: Capabilities, benchmark: Benchmark, cells: Sequence[Cell]) -> str:
    """Why a backend cannot do a benchmark, or not with the options of these cells; empty where it can."""
    reasons = (offer.why_refused(benchmark, cell) for cell in cells)
    why = offer.why_not(benchmark, usual_cell(benchmark)) or next(filter(None, reasons), "")
    return f"backend {offer.name} cannot do {benchmark.name}: {why}" if why else ""


def gpu_here(device: str, exists: Callable[[Path], bool] = Path.exists) -> bool:
    """Whether the driver for GPUs of this kind is loaded on this machine."""
    return find_kind(device).has_driver(exists)


def ranks_may_be_elsewhere(request: Request) -> bool:
    """Whether ranks may start on other machines, so that only they can say which GPUs they see."""
    in_batch_job = any(system.sign in os.environ for system in BATCH_SYSTEMS)
    return bool(request.launching.hosts) or in_batch_job or request.launching.launcher in BATCH_LAUNCHERS


def device_problem(device: str, backend: str) -> tuple[str, str]:
    """(reason, fix) why a backend cannot use buffers on a GPU of this kind in this version."""
    kind = find_kind(device)
    if not gpu_here(device):
        return f"no {kind.maker} GPU found here ({kind.driver_files[0]} is missing)", "use --device cpu"
    return f"backend {backend} has no device buffers in this version of omb-py", "use --device cpu"
