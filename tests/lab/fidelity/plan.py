"""What the fidelity benchmark measures: its series, and the cells of a launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from omb_py.engine.program.benchmark import Benchmark
from omb_py.errors import UsageError, nearest
from omb_py.suites.registry import find
from tests.lab.fidelity.reference import FAMILIES

BENCHMARKS = ("latency", "bw", "allreduce", "bcast")
SIZES = (8, 1024, 65536, 1 << 20)
FAMILY_SIZES = (8, 65536)


@dataclass(frozen=True, slots=True)
class Series:
    """One question: sides A and B, the thread level, the bar, and a third side that is only shown."""

    name: str
    sides: tuple[str, str, str | None]
    thread_level: str
    bar: float
    share: float = 1.0
    """Part of the usual number of quads."""
    rows: tuple[str, ...] = BENCHMARKS
    """``benchmark``, or ``benchmark.part`` for a part of what it measures."""
    others: tuple[str, ...] = ()
    """Rows that it measures when asked to."""
    sizes: tuple[int, ...] = SIZES
    backend: str = "mpi"
    seconds: float | None = None
    """Of a cell: quads are run until they are over, where a call's time differs much between machines."""
    batch: bool = False
    """Whether the processes run under SCHED_BATCH, where a thread that wakes does not take the core of one that runs."""


_MORE = ("bibw", "barrier", "allgather", "alltoall")
NATIVE = (Series("native", ("native", "c", None), "funneled", 0.03, others=_MORE),)
LOOP = "put_latency.loop"
"""The printed mean against OMB 7.5's, in whose loops the clock is read twice an iteration; keeping each sample costs a few ns
more here, so this is no verdict."""
OF_FAMILIES = (
    Series(
        "families",
        ("native", "c", None),
        "funneled",
        0.03,
        rows=tuple(row for row in FAMILIES if row != LOOP),
        others=(LOOP,),
        sizes=FAMILY_SIZES,
    ),
)
MPI4PY = tuple(
    Series(f"mpi4py {level}", ("mpi4py", "bare", "native"), level, 0.05, 0.5) for level in ("single", "multiple")
)
CONTROL = (Series("control", ("c", "c", None), "funneled", 0.03, others=_MORE + FAMILIES),)
LATE = (Series("late", ("late", "c", None), "funneled", 0.03, rows=("allreduce", "bcast"), others=_MORE[1:]),)
_GLOO = Series("gloo", ("torch", "bare_torch", None), "funneled", 0.05, rows=("allreduce",), backend="gloo", seconds=12)
GLOO = (replace(_GLOO, batch=True),)
GLOO_NORMAL = (replace(_GLOO, name="gloo-normal"),)
GLOO_CONTROL = tuple(
    replace(series, name=series.name.replace("gloo", "gloo-control"), sides=("bare_torch", "bare_torch", None))
    for series in GLOO + GLOO_NORMAL
)
ONECCL = (
    Series("oneccl", ("oneccl", "bare_oneccl", None), "funneled", 0.05, 0.5, rows=("allreduce",), backend="oneccl"),
)
SERIES = {
    "native": NATIVE,
    "families": OF_FAMILIES,
    "mpi4py": MPI4PY,
    "mpi4py-single": MPI4PY[:1],
    "mpi4py-multiple": MPI4PY[1:],
    "control": CONTROL,
    "late": LATE,
    "gloo": GLOO,
    "gloo-normal": GLOO_NORMAL,
    "gloo-control": GLOO_CONTROL,
    "oneccl": ONECCL,
    "all": NATIVE + OF_FAMILIES + MPI4PY,
}

_COUNTS = {
    "put_latency": ((10000, 100, 40), (1000, 10, 40)),  # a call takes 0.2 µs
    "iallreduce.exposed": ((1000, 100, 160), (100, 10, 40)),  # blocks of 8 bytes differ by 15 %
    "mbw_mr": ((100, 10, 40), (100, 10, 40)),  # OMB's does not lower them
    "comm_dup": ((200, 10, 20), (200, 10, 20)),
}
"""row or benchmark -> counts up to 8192 bytes, and above, where they are its own."""


def chosen(mode: str, wanted: Sequence[str] | None) -> list[tuple[Series, tuple[str, ...]]]:
    """The series of a mode and the rows of each; of those `wanted` the ones that a series has.

    Raises UsageError for a row that none of them has.
    """
    every = SERIES[mode]
    if wanted is None:
        return [(series, series.rows) for series in every]
    known = {row for series in every for row in series.rows + series.others}
    for row in wanted:
        if row not in known:
            raise UsageError(f"--mode {mode} has no benchmark {row!r}: {nearest(row, known)}")
    rows = [tuple(row for row in wanted if row in series.rows + series.others) for series in every]
    return [(series, mine) for series, mine in zip(every, rows, strict=True) if mine]


def declared(row: str) -> Benchmark:
    """The benchmark of a row. Raises UsageError for an unknown one."""
    return find(row.partition(".")[0])


def unit(row: str) -> str:
    """Of the printed number."""
    return declared(row).metric.unit


MOST_QUADS = 100
"""Of a cell that has seconds."""


def counts(series: Series, row: str, size: int) -> tuple[int, int, int]:
    """(iterations, warm-ups, quads): OMB's counts where a block then takes milliseconds, else fewer.

    Short blocks alternated often cancel drift better than long ones. Gloo takes 0.3 to 1 ms a call.
    """
    if series.backend == "gloo":
        return 10, 2, MOST_QUADS
    window = unit(row) == "MB/s"
    own = _COUNTS.get(row) or _COUNTS.get(declared(row).name)
    if own:
        return own[size > 8192]
    if size <= 8192:
        return (100, 10, 40) if window else (1000, 100, 40)
    if size <= 1 << 18:
        return (20, 2, 20) if window else (100, 10, 40)
    return (10, 2, 10) if window else (100, 10, 12)


def plan(series: Series, rows: Sequence[str], sizes: Sequence[int], effort: float) -> list[dict[str, Any]]:
    """The cells of a launch; one for a benchmark without a size."""
    cells = []
    for row in rows:
        for size in sizes if declared(row).sizes else (0,):
            iterations, warmup, quads = counts(series, row, size)
            quads = max(2, 2 * round(quads * effort * series.share / 2))
            cell = {"benchmark": row, "size": size, "iterations": iterations, "warmup": warmup, "quads": quads}
            cells.append(cell | ({"seconds": series.seconds * effort} if series.seconds else {}))
    return cells
