"""What the functions of the Python API take and return (:mod:`omb_py.api`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from omb_py.options.request import Request

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, eq=False)
class RunResult:
    """A finished run."""

    frame: pd.DataFrame
    """One row for each cell, with the columns of docs/store.md; no rows if `root` is False."""
    run_id: str
    exit_code: int
    """0, or 1 if a validation failed."""
    root: bool = True
    """False on the ranks of a foreign launcher that hold no results."""


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison that measures: a request and its environment."""

    request: Request
    venv: str = ""
    """Folder of a virtual environment, or the path of a Python in it; empty: the current one."""
    modules: tuple[str, ...] = ()
    """Modules to load, as ``openmpi/5.0.7``."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables to set."""
    pip: tuple[str, ...] = ()
    """Packages of this side alone, as ``mpich==5.0.2`` or a wheel's path; all else is shared. Not with `venv`."""


@dataclass(frozen=True, slots=True)
class CellVerdict:
    """Verdict on one cell. Times are in µs; ratios are the time of NEW over that of BASE."""

    cell: str
    verdict: str
    """``SLOWER``, ``FASTER``, ``SAME``, ``UNCLEAR`` or ``NOT COMPARABLE``: the worse of median and tail."""
    base_us: float | None = None
    new_us: float | None = None
    ratio: float | None = None
    low: float | None = None
    """Lower end of the interval of `ratio`."""
    high: float | None = None
    """Upper end of the interval of `ratio`."""
    launches: tuple[int, int] = (0, 0)
    """Numbers of launches of BASE and NEW that decided."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Result of :func:`compare`."""

    verdicts: tuple[CellVerdict, ...]
    headline: str
    """``3 slower, 1 faster, 62 same``."""
    exit_code: int
    """Exit code of ``omb-py compare``: 1 if a cell is SLOWER."""
    run_id: str | None
    """Run of a comparison that measured, which ``compare(run_id)`` shows again; None for stored launches."""


@dataclass(frozen=True, slots=True)
class CriterionVerdict:
    """Verdict on one criterion in one cell."""

    name: str
    verdict: str
    """``PASS``, ``FAIL``, ``MARGINAL`` or ``ERROR``."""
    text: str
    """The measured number with its limits and the bound, or why there is none."""
    measured: float | None
    """The measured number in the metric's unit, or as a ratio over the baseline."""
    low: float | None
    """Lower one-sided limit of `measured`."""
    high: float | None
    """Upper one-sided limit of `measured`."""
    limit: float | None
    """The bound of the criterion."""
    launches: tuple[float, ...]
    """The measured number of every launch, including retests."""


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Result of :func:`accept`."""

    verdict: str
    """The worst of all verdicts, including correctness."""
    verdicts: tuple[CriterionVerdict, ...]
    correctness: Mapping[str, str]
    """Benchmark with its options -> ``PASS``, ``FAIL``, ``ERROR`` or ``SKIPPED``."""
    headline: str
    exit_code: int
    """Exit code of ``omb-py accept``: 1 if a criterion is missed, 3 if something could not be measured."""
    run_id: str


@dataclass(frozen=True, slots=True)
class GuidelineVerdict:
    """Verdict on one guideline at one size; `left` is the collective, `right` its mock-up. Times are in µs."""

    name: str
    size_bytes: int
    verdict: str
    """``HOLDS``, ``VIOLATED``, ``UNCLEAR``, or ``WRONG`` if bytes were wrong."""
    left_us: float
    right_us: float
    ratio: float
    """Left over right."""
    low: float
    """Lower end of the 90 % interval of `ratio`."""
    high: float
    """Upper end of the 90 % interval of `ratio`."""


@dataclass(frozen=True, slots=True)
class GuidelineCheck:
    """Result of :func:`guidelines`."""

    verdicts: tuple[GuidelineVerdict, ...]
    skipped: Mapping[str, str]
    """Guideline -> reason why it could not be checked."""
    headline: str
    exit_code: int
    """1 if a guideline is violated or bytes were wrong."""
    run_id: str


@dataclass(frozen=True, slots=True)
class LinkVerdict:
    """A node or link that is slower than the others, in one metric."""

    kind: str
    """``node`` or ``link``."""
    name: str
    """``node3``, ``node1 - node2``."""
    metric: str
    """``latency``, ``tail`` or ``bandwidth``."""
    state: str
    """``confirmed``, ``cleared``, or ``suspect`` if it was not measured again."""
    slower: float
    """Ratio of its time to the time without its own effect, in the first sweep."""


@dataclass(frozen=True, slots=True)
class LinkCheck:
    """Result of :func:`links`."""

    verdicts: tuple[LinkVerdict, ...]
    nodes: tuple[str, ...]
    exit_code: int
    """1 if the second measurement confirmed a slow node or link."""
    run_id: str
    """``of logs`` where logs were judged."""


@dataclass(frozen=True, slots=True)
class ReportPage:
    """An HTML report that was written."""

    path: Path
    summary: str
    problem: str
    """Reason why the page is empty; empty if it is not."""
    skipped: Mapping[str, str]
    """File -> reason why it could not be read."""
