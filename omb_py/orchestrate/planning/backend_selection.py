"""Several backends and devices in one command: those that can run do, and each other one is skipped with its reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from omb_py.backends.capabilities import Capabilities
from omb_py.backends.registry import capabilities, capabilities_of
from omb_py.engine.program.benchmark import Benchmark, Cell
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.options.request import Request
from omb_py.options.table import usual_cell
from omb_py.orchestrate.planning.plan import CheckedRequest, cells_on, check, check_options, check_sizes, common_cells
from omb_py.orchestrate.planning.validation import HOST_MEMORY, check_choices, check_launching
from omb_py.suites import find

_Side = tuple[str, str]
"""(backend, device)."""


def narrowed(request: Request, offers: Mapping[str, Capabilities]) -> CheckedRequest:
    """Check a request and restrict it to the backends and devices that can run it here.

    Raises:
        UsageError: as :func:`omb_py.orchestrate.planning.plan.check`.
        EnvironmentProblem: none of the backends can run it.
    """
    if len(request.sides) < 2:
        checked = check(request, offers)
        check_launching(request, offers)
        return checked
    benchmark = find(request.benchmark)
    problems: dict[_Side, str] = {}
    cells: dict[tuple[str, str, str], tuple[Cell, ...]] = {}

    def check_side(side: _Side) -> None:
        check_choices(_alone(request, *side, offers), offers)

    def plan_cells(side: _Side) -> None:
        cells.update(cells_on(left, benchmark, common, *side, offers[side[0]]))

    able = _without_problems(request, request.sides, problems, check_side)
    left = _restricted(request, able)
    check_options(left, benchmark, offers)
    common = common_cells(left, benchmark)
    able = _without_problems(request, able, problems, plan_cells)
    check_sizes(left, benchmark, common)
    left = _restricted(request, able)
    check_choices(left, offers)
    check_launching(request, offers)
    return CheckedRequest(left, request, benchmark, cells, problems)


def reachable(checked: CheckedRequest) -> CheckedRequest:
    """Leave out backends that report, when asked, that they are not available. One backend alone is not asked.

    Raises:
        EnvironmentProblem: no backend is available.
    """
    if len(checked.asked.sides) < 2:
        return checked
    problems = dict(checked.problems)
    able = _without_problems(checked.asked, checked.request.sides, problems, lambda side: _check_there(side[0]))
    left = _restricted(checked.asked, able)
    check_choices(left, capabilities_of(left.backends))
    cells = {key: cells for key, cells in checked.cells.items() if key[:2] in able}
    return replace(checked, request=left, cells=cells, problems=problems)


def _without_problems(
    asked: Request, sides: Iterable[_Side], problems: dict[_Side, str], check: Callable[[_Side], None]
) -> list[_Side]:
    """The sides that pass a check. The reason of each other one is added to `problems`.

    Raises:
        UsageError: the first one that the check raised.
        EnvironmentProblem: no side passes.
    """
    able, wrong = list[_Side](), None
    for side in sides:
        try:
            check(side)
        except EnvironmentProblem as problem:
            problems[side] = re.sub(rf"^backend {re.escape(side[0])}:? ", "", str(problem))
        except UsageError as error:
            wrong = wrong or error
        else:
            able.append(side)
    if wrong:
        raise wrong
    if not able:
        several = len(asked.devices) > 1
        what = "neither backend nor device" if several else "no backend"
        reasons = [f"{' on '.join(s) if several else s[0]}: {problems[s]}" for s in asked.sides if s in problems]
        raise EnvironmentProblem(f"{what} can run this here: " + "; ".join(reasons))
    return able


def _restricted(request: Request, able: Sequence[_Side]) -> Request:
    left = replace(
        request,
        backends=tuple(name for name in request.backends if any(name == backend for backend, _ in able)),
        device=",".join(name for name in request.devices if any(name == device for _, device in able)),
        left_out=request.left_out + tuple(side for side in request.sides if side not in able),
    )
    # where every pair of the remaining backends and devices is measured, no exception is left to name
    full = len(left.sides) == len(left.backends) * len(left.devices)
    return replace(left, left_out=()) if full else left


def _alone(request: Request, backend: str, device: str, offers: Mapping[str, Capabilities]) -> Request:
    """The request for one backend on one device, without the options that mean nothing there."""
    offer = offers.get(backend)
    bindings = tuple(name for name in request.bindings if offer is None or name in offer.bindings)
    alone = request.changed(backends=(backend,), bindings=bindings, device=device, left_out=())
    if device == HOST_MEMORY and len(request.devices) > 1:
        return alone.changed(share_device=False, placement="", filler="cpu")
    return alone


def _check_there(backend: str) -> None:
    inspected = capabilities(backend).here()
    if not inspected.available:
        raise EnvironmentProblem(": ".join(filter(None, (inspected.inspection.reason, inspected.inspection.fix))))


def in_place_alone(request: Request, offers: Mapping[str, Capabilities]) -> list[str]:
    """Warn when only some of the backends run a benchmark in place. Returns notes for the user."""
    benchmark: Benchmark = find(request.benchmark)
    usual = usual_cell(benchmark)
    cell = usual.with_options(in_place=bool(request.options.in_place))
    forced = [name for name in request.backends if offers[name].fitted(benchmark, cell, usual) != cell]
    if not forced or len(forced) == len(request.backends):
        return []
    return [f"{', '.join(forced)} does {benchmark.name} in place, the others do not: -l makes all of them do so"]
