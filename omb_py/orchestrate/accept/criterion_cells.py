"""Match criteria with the planned cells before anything is measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from omb_py.engine.program.benchmark import Cell
from omb_py.engine.program.dtypes import reduction_dtype
from omb_py.errors import UsageError
from omb_py.orchestrate.planning.plan import LaunchPlan
from omb_py.orchestrate.planning.skip import Skip
from omb_py.orchestrate.running.resume import cell_key
from omb_py.orchestrate.running.suite_run import differences
from omb_py.results.accept.criteria import OPTIONS, Case, Criterion
from omb_py.results.analysis.cost_model import LARGE, SMALL
from omb_py.results.units import size_text
from omb_py.suites import find

_TELLING = ("ranks", "backend", "binding", "dtype", "op", OPTIONS)
_OWN_FACTS = ("ranks", "backend", "binding", "type", "op", "message-size")
"""Options that have a fact of their own, so that the text of options leaves them out."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A cell of the plan and the columns of its rows."""

    plan: LaunchPlan
    cell: Cell
    key: str
    """Name of the cell, the same in every turn."""
    facts: Mapping[str, object]


def planned(plans: Iterable[LaunchPlan]) -> list[Planned]:
    """Return the cells of some launches."""
    return [Planned(plan, cell, key_of(plan, cell), _facts(plan, cell)) for plan in plans for cell in plan.cells]


def key_of(plan: LaunchPlan, cell: Cell) -> str:
    """Return the name of a cell in verdicts, which is the same in every turn."""
    return cell_key(replace(plan, turn=0), cell)


def _facts(plan: LaunchPlan, cell: Cell) -> dict[str, object]:
    """Return the columns that :func:`omb_py.orchestrate.running.rows.make_row` will write."""
    benchmark = find(cell.benchmark)
    options = differences(plan.requests[cell.sweep], whole=True)
    reduces = "op" in benchmark.options or benchmark.one_element
    return {
        "benchmark": cell.benchmark,
        "size_bytes": cell.size,
        "ranks": plan.ranks,
        "backend": cell.backend,
        "binding": cell.binding,
        "dtype": reduction_dtype(cell.dtype) if reduces else cell.dtype,
        "op": cell.op if "op" in benchmark.options else None,
        OPTIONS: ", ".join(f"{key} {value}" for key, value in options.items() if key not in _OWN_FACTS),
    }


def cases_of(criteria: Sequence[Criterion], cells: Sequence[Planned], skips: Sequence[Skip]) -> list[Case]:
    """Make a case for each criterion at each cell that it covers.

    A criterion whose benchmark cannot be measured here has one case without a cell, which becomes an ERROR.

    Raises:
        UsageError: no entry of the suite measures what a criterion needs.
    """
    cases: list[Case] = []
    for criterion in criteria:
        covered = [planned for planned in cells if criterion.covers(planned.facts)]
        if not covered and any(skip.what.split(" ")[0] in (criterion.benchmark, criterion.measured) for skip in skips):
            cases.append(Case(criterion, {"benchmark": criterion.benchmark}, missing_cell(criterion)))
            continue
        _check(criterion, covered, cells, {skip.what.split(" ")[0] for skip in skips})
        for cell in covered:
            alike = [other for other in covered if other.facts["size_bytes"] == cell.facts["size_bytes"]]
            apart = tuple(name for name in _TELLING if len({other.facts[name] for other in alike}) > 1)
            cases.append(Case(criterion, cell.facts, cell.key, apart))
    return cases


def missing_cell(criterion: Criterion) -> str:
    """Return what stands in for a cell's name if its benchmark cannot be measured here."""
    return f"none of {criterion.id}"


def needed(cases: Iterable[Case]) -> set[str]:
    """Return the names of the cells that some cases need."""
    return {case.cell for case in cases}


def _check(criterion: Criterion, covered: Sequence[Planned], cells: Sequence[Planned], skipped: set[str]) -> None:
    name = criterion.measured
    of_benchmark = [planned for planned in cells if planned.cell.benchmark == name]
    where = f"{criterion.at}: [criterion {criterion.id}]"
    if not of_benchmark:
        known = ", ".join(dict.fromkeys(planned.cell.benchmark for planned in cells))
        raise UsageError(
            f"{where} no entry of the suite measures {criterion.benchmark}: it has {known}: add it to an [[entry]]"
        )
    wanted = set(criterion.sizes) - {planned.cell.size for planned in covered}
    if not covered and not wanted:
        raise UsageError(f"{where} no entry measures {name}{_with(criterion)}: leave it out, or add it to an [[entry]]")
    if wanted:
        sizes = sorted({planned.cell.size for planned in of_benchmark})
        shown = ", ".join(map(size_text, sizes[:12])) + (" …" if len(sizes) > 12 else "")
        raise UsageError(
            f"{where} key 'message-size': no entry measures {name} of {', '.join(map(size_text, sorted(wanted)))}"
            f"{_with(criterion)}: its sizes are {shown}"
        )
    if criterion.source == "lower bound" and "latency" not in skipped:
        latency = {planned.cell.size for planned in cells if planned.cell.benchmark == "latency"}
        if not any(size <= SMALL for size in latency) or not any(size >= LARGE for size in latency):
            raise UsageError(
                f"{where} key 'efficiency': a lower bound needs latency at up to {SMALL} B and from {size_text(LARGE)} "
                'on: add an [[entry]] with benchmarks = ["latency"]'
            )


def _with(criterion: Criterion) -> str:
    options = ", ".join(f"{key} {value}" for key, value in criterion.where.items())
    return f" with {options}" if options else ""
