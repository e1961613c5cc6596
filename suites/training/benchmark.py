"""The benchmark ``train``. It has no program of steps: PyTorch makes the calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omb_py.backends.registry import capabilities, capabilities_of
from omb_py.engine.program.benchmark import Benchmark, Cell, Counts, Metric
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.suites.shared import no_bytes
from omb_py.suites.startup import ONE_OR_MORE, no_steps

if TYPE_CHECKING:
    from omb_py.engine.measuring.cell_result import CellResult
    from omb_py.engine.measuring.measure import Phase
    from omb_py.engine.session import Session

ITERATIONS, WARMUP = 10, 10
"""Defaults of Horovod's synthetic benchmark: iterations of ten steps each, and steps before them."""


def run(session: Session, cell: Cell, phase: Phase) -> CellResult:
    """Run :func:`omb_py.suites.training.loop.train`, which loads PyTorch."""
    from omb_py.suites.training.loop import train

    return train(session, cell, phase)


def refuses(cell: Cell) -> str:
    """Why the cell cannot run; empty if it can. The backend is that of the launch, not of the gradients."""
    if capabilities(cell.backend).process_group:
        return ""
    able = [backend for backend in capabilities_of([cell.backend]).values() if backend.process_group]
    titles, names = (" or ".join(words) for words in zip(*((each.title, each.name) for each in able), strict=True))
    return f"train starts its ranks over {titles}, not {cell.backend}: use backend {names}"


def fits(cell: Cell, ranks: int) -> None:
    """Check the text of a training.

    Raises:
        UsageError: it is empty or wrong.
        EnvironmentProblem: its framework is not installed.
    """
    from omb_py.suites.training.frameworks import find_framework
    from omb_py.suites.training.settings import parse_training

    if not cell.options.workload:
        raise UsageError("which model? write omb-py train MODEL")
    why = find_framework(parse_training(cell.options.workload)["framework"]).missing()
    if why:
        raise EnvironmentProblem(why)


TRAIN = Benchmark(
    "train",
    "training",
    "real training on synthetic data with PyTorch",
    no_steps,  # no call is known before PyTorch makes it
    Metric("us", "mean over ranks of a training step; alone: the same without communication", lap="step"),
    None,
    Counts(ITERATIONS, WARMUP, ITERATIONS, WARMUP),
    ONE_OR_MORE,
    "all",
    "float32",
    frozenset({"workload"}),
    no_bytes,
    refuses=refuses,
    fits=fits,
    runs=run,
)
BENCHMARKS = {TRAIN.name: TRAIN}
"""Benchmarks that are found by name, but not listed: ``train`` has a command of its own."""
