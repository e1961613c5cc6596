"""The benchmark ``train``. It has no program of steps: PyTorch says what is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omb_py.backends.registry import capabilities, capabilities_of
from omb_py.engine.program.benchmark import Benchmark, Cell, Counts, Metric, World
from omb_py.engine.program.language import Program
from omb_py.errors import UsageError
from omb_py.suites.startup import ONE_OR_MORE

if TYPE_CHECKING:
    from omb_py.engine.measuring.measure import Measured, Phase
    from omb_py.engine.session import Session

ITERATIONS, WARMUP = 10, 10
"""Of Horovod's synthetic benchmark: iterations of ten steps each, and steps before them."""


def nothing(world: World, cell: Cell) -> Program:
    """No call is known before PyTorch makes it."""
    return Program((), ())


def run(session: Session, cell: Cell, phase: Phase) -> Measured:
    """As :func:`omb_py.suites.training.loop.train`, which loads PyTorch."""
    from omb_py.suites.training.loop import train

    return train(session, cell, phase)


def refuses(cell: Cell) -> str:
    """Why it cannot run; empty where it can. The backend is that of the launch, not of the gradients."""
    if capabilities(cell.backend).process_group:
        return ""
    able = [known for known in capabilities_of([cell.backend]).values() if known.process_group]
    titles, names = (" or ".join(words) for words in zip(*((known.title, known.name) for known in able), strict=True))
    return f"train starts its ranks over {titles}, not {cell.backend}: use backend {names}"


def fits(cell: Cell, ranks: int) -> None:
    """Raises UsageError where the text of a training is wrong."""
    from omb_py.suites.training.settings import parse_training

    if not cell.workload:
        raise UsageError("which model? write omb-py train MODEL")
    parse_training(cell.workload)


TRAIN = Benchmark(
    "train",
    "training",
    "real training on synthetic data with PyTorch",
    nothing,
    Metric("us", "mean over ranks of a training step; alone: the same without communication", lap="step"),
    None,
    Counts(ITERATIONS, WARMUP, ITERATIONS, WARMUP),
    ONE_OR_MORE,
    "all",
    "float32",
    frozenset({"workload"}),
    lambda size, ranks: 0,
    refuses=refuses,
    fits=fits,
    runs=run,
)
BENCHMARKS = {TRAIN.name: TRAIN}
"""Found by name, and not in lists of benchmarks: it has a command of its own."""
