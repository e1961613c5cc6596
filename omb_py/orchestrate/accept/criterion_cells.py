"""Which planned cells each criterion is about, before anything is measured."""

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
from omb_py.results.formats.units import size_text
from omb_py.suites import find

_TELLING = ("ranks", "backend", "binding", "dtype", "op", OPTIONS)
_TOLD = ("ranks", "backend", "binding", "type", "op", "message-size")
"""Options that the other facts say."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A cell of the plan and what its rows will say."""

    plan: LaunchPlan
    cell: Cell
    key: str
    """Its name, alike in every turn."""
    facts: Mapping[str, object]


def planned(plans: Iterable[LaunchPlan]) -> list[Planned]:
    """The cells of some launches."""
    return [Planned(plan, cell, key_of(plan, cell), _facts(plan, cell)) for plan in plans for cell in plan.cells]


def key_of(plan: LaunchPlan, cell: Cell) -> str:
    """The name of a cell in verdicts."""
    return cell_key(replace(plan, turn=0), cell)


def _facts(plan: LaunchPlan, cell: Cell) -> dict[str, object]:
    """As :func:`omb_py.orchestrate.running.rows.make_row` will write them."""
    benchmark = find(cell.benchmark)
    told = differences(plan.requests[cell.sweep], whole=True)
    reduces = "op" in benchmark.options or benchmark.one_element
    return {
        "benchmark": cell.benchmark,
        "size_bytes": cell.size,
        "ranks": plan.ranks,
        "backend": cell.backend,
        "binding": cell.binding,
        "dtype": reduction_dtype(cell.dtype) if reduces else cell.dtype,
        "op": cell.op if "op" in benchmark.options else None,
        OPTIONS: ", ".join(f"{key} {value}" for key, value in told.items() if key not in _TOLD),
    }


def cases_of(criteria: Sequence[Criterion], cells: Sequence[Planned], skips: Sequence[Skip]) -> list[Case]:
    """A case for each criterion at each cell that it is about.

    A criterion whose benchmark cannot be measured here has one case without a cell, which will be an ERROR.

    Raises:
        UsageError: nothing in the suite measures what a criterion asks about.
    """
    found: list[Case] = []
    for criterion in criteria:
        mine = [one for one in cells if criterion.covers(one.facts)]
        if not mine and any(skip.what.split(" ")[0] in (criterion.benchmark, criterion.measured) for skip in skips):
            found.append(Case(criterion, {"benchmark": criterion.benchmark}, missing_cell(criterion)))
            continue
        _check(criterion, mine, cells, {skip.what.split(" ")[0] for skip in skips})
        for one in mine:
            alike = [other for other in mine if other.facts["size_bytes"] == one.facts["size_bytes"]]
            apart = tuple(name for name in _TELLING if len({other.facts[name] for other in alike}) > 1)
            found.append(Case(criterion, one.facts, one.key, apart))
    return found


def missing_cell(criterion: Criterion) -> str:
    """Instead of a cell's name, where the suite's benchmark cannot be measured here at all."""
    return f"none of {criterion.id}"


def needed(cases: Iterable[Case]) -> set[str]:
    """The cells that have to be measured for some cases."""
    return {case.cell for case in cases}


def _check(criterion: Criterion, mine: Sequence[Planned], cells: Sequence[Planned], skipped: set[str]) -> None:
    name = criterion.measured
    of_benchmark = [one for one in cells if one.cell.benchmark == name]
    where = f"{criterion.at}: [criterion {criterion.id}]"
    if not of_benchmark:
        known = ", ".join(dict.fromkeys(one.cell.benchmark for one in cells))
        raise UsageError(
            f"{where} no entry of the suite measures {criterion.benchmark}: it has {known}: add it to an [[entry]]"
        )
    wanted = set(criterion.sizes) - {one.cell.size for one in mine}
    if not mine and not wanted:
        told = ", ".join(f"{key} {value}" for key, value in criterion.where.items())
        raise UsageError(f"{where} no entry measures {name} with {told}: leave it out, or add it to an [[entry]]")
    if wanted:
        sizes = sorted({one.cell.size for one in of_benchmark})
        shown = ", ".join(map(size_text, sizes[:12])) + (" …" if len(sizes) > 12 else "")
        raise UsageError(
            f"{where} key 'message-size': no entry measures {name} of {', '.join(map(size_text, sorted(wanted)))}"
            f"{_with(criterion)}: its sizes are {shown}"
        )
    if criterion.source == "lower bound" and "latency" not in skipped:
        latency = {one.cell.size for one in cells if one.cell.benchmark == "latency"}
        if not any(size <= SMALL for size in latency) or not any(size >= LARGE for size in latency):
            raise UsageError(
                f"{where} key 'efficiency': a lower bound needs latency at up to {SMALL} B and from {size_text(LARGE)} "
                'on: add an [[entry]] with benchmarks = ["latency"]'
            )


def _with(criterion: Criterion) -> str:
    told = ", ".join(f"{key} {value}" for key, value in criterion.where.items())
    return f" with {told}" if told else ""
