"""What both sides of a comparison must share is looked at before anything is launched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from omb_py.engine.program.benchmark import Cell, Sampling
from omb_py.errors import UsageError
from omb_py.orchestrate.planning.plan import LaunchPlan
from omb_py.orchestrate.running.rows import expected_row
from omb_py.results.compare.cell_names import name
from omb_py.results.compare.match import SIDES, Side, differing
from omb_py.results.compare.report import fields_text
from omb_py.suites.training.settings import same_training
from omb_py.suites.workloads.families import same_work

WORK_OF: Final[Mapping[str, Callable[[str, str], str]]] = {"step": same_work, "train": same_training}
"""Benchmark -> from the workloads of both sides the work that they share; raises UsageError where it is other work."""


def shared_work(plans: Mapping[Side, Sequence[LaunchPlan]]) -> str:
    """Say what both sides do, where their workloads differ and the comparison is about that; else nothing.

    Raises:
        UsageError: no cell of the sides can ever be compared.
    """
    pairs = [
        (base, new, (plan.ranks, other.ranks))
        for plan, other in zip(plans["BASE"], plans["NEW"], strict=True)
        for base, new in zip(plan.cells, other.cells, strict=True)
    ]
    base, new, ranks = pairs[0]
    texts = [str(cell.options.get("workload")) for cell in (base, new)]
    if len(pairs) == 1 and base.benchmark in WORK_OF and texts[0] != texts[1]:
        _refuse(_why_never(base, new.with_options(workload=texts[0]), ranks))
        return WORK_OF[base.benchmark](*texts)
    why = [_why_never(*pair) for pair in pairs]
    _refuse(why[0] if all(why) else "")
    return ""


def _refuse(why: str) -> None:
    if why:
        raise UsageError(
            f"{' and '.join(SIDES)} can never be compared: {why}: --option may change how a cell is measured, not what"
        )


def _why_never(base: Cell, new: Cell, ranks: tuple[int, int]) -> str:
    """Why cells of so many ranks can never be compared; empty where they may be."""
    if _strip_how(base) == _strip_how(new) and ranks[0] == ranks[1]:
        return ""
    rows = [expected_row(cell, n) for cell, n in zip((base, new), ranks, strict=True)]
    if rows[0]["comparability_key"] == rows[1]["comparability_key"]:
        return ""
    return f"{name(rows[0])} is measured with {fields_text(rows[0], rows[1], differing(rows[0], rows[1]))}"


def _strip_how(cell: Cell) -> Cell:
    """The cell without what a comparison may be about."""
    return replace(cell, backend="", binding="", settings="", sampling=Sampling(), observers={}, sweep=0)
