"""Several backends and devices in one command: what can run does, of the rest it is said why not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from omb_py.backends.capabilities import Capabilities
from omb_py.backends.registry import capabilities, capabilities_of
from omb_py.engine.program.benchmark import Benchmark, Cell
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.options.request import Request
from omb_py.orchestrate.planning.plan import CheckedRequest, cells_on, check, check_options, check_sizes, common_cells
from omb_py.orchestrate.planning.validation import HOST_MEMORY, check_choices
from omb_py.suites import find

_Side = tuple[str, str]
"""A backend and a device."""


def narrowed(request: Request, offers: Mapping[str, Capabilities]) -> CheckedRequest:
    """The request, checked, for the backends and devices that can run it here.

    Raises:
        UsageError: as :func:`omb_py.orchestrate.planning.plan.check`.
        EnvironmentProblem: none of the backends can.
    """
    if len(request.sides) < 2:
        return check(request, offers)
    benchmark = find(request.benchmark)
    problems: dict[_Side, str] = {}
    cells: dict[tuple[str, str, str], tuple[Cell, ...]] = {}

    def check_side(side: _Side) -> None:
        check_choices(_alone(request, *side, offers), offers)

    def place(side: _Side) -> None:
        cells.update(cells_on(left, benchmark, common, *side, offers[side[0]]))

    able = _without_problems(request, request.sides, problems, check_side)
    left = _restricted(request, able)
    check_options(left, benchmark, offers)
    common = common_cells(left, benchmark)
    able = _without_problems(request, able, problems, place)
    check_sizes(left, benchmark, common)
    left = _restricted(request, able)
    check_choices(left, offers)
    return CheckedRequest(left, request, benchmark, cells, problems)


def reachable(checked: CheckedRequest) -> CheckedRequest:
    """A request of several backends, without those that are not there when they are asked, which takes a moment.

    Raises:
        EnvironmentProblem: none of the backends is there.
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
    """The sides that a check passes; why the others do not is added to `problems`.

    Raises:
        UsageError: the first one of the check.
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
    """The request for these backends and devices."""
    left = replace(
        request,
        backends=tuple(b for b in request.backends if any(b == backend for backend, _ in able)),
        device=",".join(d for d in request.devices if any(d == device for _, device in able)),
        left_out=request.left_out + tuple(side for side in request.sides if side not in able),
    )
    full = len(left.sides) == len(left.backends) * len(left.devices)
    return replace(left, left_out=()) if full else left


def _alone(request: Request, backend: str, device: str, offers: Mapping[str, Capabilities]) -> Request:
    """The request for one backend on one device, without what means nothing there."""
    bindings = _of(request, offers.get(backend))
    alone = replace(request, backends=(backend,), bindings=bindings, device=device, left_out=())
    if device == HOST_MEMORY and len(request.devices) > 1:
        return replace(alone, share_device=False, placement="", filler="cpu")
    return alone


def _of(request: Request, offer: Capabilities | None) -> tuple[str, ...]:
    """The bindings asked for that a backend has; where it has none of them, it takes its own."""
    return tuple(b for b in request.bindings if offer is None or b in offer.bindings)


def _check_there(backend: str) -> None:
    inspected = capabilities(backend).here()
    if not inspected.available:
        raise EnvironmentProblem(": ".join(filter(None, (inspected.reason, inspected.fix))))


def in_place_alone(request: Request, offers: Mapping[str, Capabilities]) -> list[str]:
    """Of backends that do a benchmark in place although that was not asked for, beside others that do not: a note."""
    benchmark: Benchmark = find(request.benchmark)
    cell = benchmark.cell("", "", 0, in_place=request.in_place)
    forced = [b for b in request.backends if offers[b].fitted(benchmark, cell) != cell]
    if not forced or len(forced) == len(request.backends):
        return []
    return [f"{', '.join(forced)} does {benchmark.name} in place, the others do not: -l makes all of them do so"]
