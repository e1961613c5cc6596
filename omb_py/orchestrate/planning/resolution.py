"""The second step of planning: backends, devices and cells are chosen, and the rules are applied, each once.

Of several backends and devices in one command those that can run do, and each other one is skipped with its reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from omb_py.backends.capabilities import Capabilities
from omb_py.backends.registry import capabilities, capabilities_of
from omb_py.engine.program.benchmark import Benchmark, Cell
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.options.request import DEFAULT_RANKS, Request
from omb_py.options.table import usual_cell
from omb_py.orchestrate.planning.cells import cells_on, common_cells, fitted_cells
from omb_py.orchestrate.planning.parsing import ParsedRequest, parse
from omb_py.orchestrate.planning.rule import RuleContext, Subject
from omb_py.orchestrate.planning.rules import RULES
from omb_py.results.skip import Skip

_Side = tuple[str, str]
"""(backend, device)."""
_OF_THE_RUN = frozenset({"part", "format", "launches", "graph", "json", "quiet", "seed", "tags", "store"})
"""Request fields on which no rule and no cell depends; a format where its dialect asks for nothing."""


@dataclass(frozen=True, slots=True)
class CheckedRequest:
    """A request that keeps all rules and can be measured here, with its cells. No later step checks it again."""

    parsed: ParsedRequest
    """The request as it is measured: without the backends and devices that cannot run it here."""
    asked: Request
    """The request as the user made it."""
    cells: Mapping[tuple[str, str, str], tuple[Cell, ...]]
    """(backend, device, binding) -> the cells, with the changes that the backend needs."""
    problems: Mapping[_Side, str] = field(default_factory=dict)
    """(backend, device) -> why it is left out."""

    @property
    def request(self) -> Request:
        """The request as it is measured."""
        return self.parsed.request

    @property
    def benchmark(self) -> Benchmark:
        """The benchmark."""
        return self.parsed.benchmark

    @property
    def skips(self) -> tuple[Skip, ...]:
        """The backends and devices that are left out, in the order in which they were asked for."""
        several = len(self.asked.devices) > 1
        sides = [side for side in self.asked.sides if side in self.problems]
        return tuple(Skip(" on ".join(side) if several else side[0], self.problems[side]) for side in sides)

    def on_ranks(self, ranks: int | None) -> CheckedRequest:
        """The request on a number of ranks, None for the usual one; the rules on ranks are applied if it is new.

        Raises:
            UsageError: the benchmark or the options do not go with this number.
        """
        ranks = ranks or DEFAULT_RANKS
        if ranks == self.request.ranks:
            return self
        checked = replace(self, parsed=replace(self.parsed, request=self.request.changed(ranks=ranks)))
        context = RuleContext(checked.parsed, {}, ranks=ranks, cells=next(iter(self.cells.values())))
        _apply("ranks", context)
        _apply("cells on ranks", context)
        return checked

    def changed(self, **fields: object) -> CheckedRequest:
        """Replace fields of the request: a new request, to which the rules are applied where they may depend on them.

        Raises:
            UsageError, EnvironmentProblem: as :func:`resolve`.
        """
        request = self.request.changed(**fields)
        parsed = parse(request)
        asks = self.parsed.dialect != parsed.dialect and (self.parsed.dialect.asks or parsed.dialect.asks)
        if fields.keys() <= _OF_THE_RUN and not asks:
            return replace(self, parsed=parsed)
        return resolve(parsed)


def resolve_alone(request: Request) -> CheckedRequest:
    """Parse and resolve a request that no other is measured beside; what cannot run here of several sides is left out.

    Raises:
        UsageError: also for settings of a backend that the request does not have; one of several may have them.
        EnvironmentProblem: as :func:`resolve`.
    """
    return resolve(parse(request), leave_out=True, alone=True)


def resolve(
    parsed: ParsedRequest,
    offers: Mapping[str, Capabilities] | None = None,
    leave_out: bool = False,
    alone: bool = False,
) -> CheckedRequest:
    """Choose what is measured, and apply every rule; those on ranks where the request has a number of them.

    Args:
        parsed: the request.
        offers: capabilities by backend; None: those of the registry.
        leave_out: leave out the backends and devices that cannot run it here, as long as one can.
        alone: whether no other request is measured beside, which an option of one backend could be for.

    Raises:
        UsageError: options contradict each other, or something that is known.
        EnvironmentProblem: a backend or device cannot be used here; with `leave_out` none can.
    """
    asked, benchmark = parsed.request, parsed.benchmark
    context = RuleContext(parsed, offers or capabilities_of(asked.backends), alone=alone, ranks=asked.ranks or 0)
    sides = _Sides(context, leave_out and len(asked.sides) > 1)
    _apply("words", context)
    sides.keep(lambda side: _apply("side", replace(context, backend=side[0], device=side[1])))
    context = sides.context()
    _apply("options", context)
    if context.ranks:
        _apply("ranks", context)
    common = tuple(common_cells(context.parsed))
    _apply("cells", replace(context, cells=common))
    cells: dict[tuple[str, str, str], tuple[Cell, ...]] = {}

    def add_cells(side: _Side) -> None:
        offer = context.offers[side[0]]
        by_binding = cells_on(context.parsed, common, *side, offer)
        every = tuple(cell for of_binding in by_binding.values() for cell in of_binding)
        _apply("cells of a side", replace(context, backend=side[0], device=side[1], cells=every))
        cells.update({(*side, name): fitted_cells(benchmark, own, offer) for name, own in by_binding.items()})

    sides.keep(add_cells)
    context = replace(sides.context(), cells=next(iter(cells.values())))
    _apply("sides left", context)
    if context.ranks:
        _apply("cells on ranks", context)
    return CheckedRequest(context.parsed, asked, cells, sides.problems)


def reachable(checked: CheckedRequest) -> CheckedRequest:
    """Leave out backends that report, when asked, that they are not available. One backend alone is not asked.

    Raises:
        EnvironmentProblem: no backend is available.
    """
    if len(checked.asked.sides) < 2:
        return checked
    offers = capabilities_of(checked.asked.backends)
    sides = _Sides(RuleContext(replace(checked.parsed, request=checked.asked), offers), True)
    sides.able, sides.problems = list(checked.request.sides), dict(checked.problems)
    sides.keep(lambda side: _ask(side[0]))
    if sides.problems == checked.problems:
        return checked
    context = sides.context()
    _apply("sides left", context)
    cells = {key: cells for key, cells in checked.cells.items() if key[:2] in sides.able}
    return replace(checked, parsed=context.parsed, cells=cells, problems=sides.problems)


def _apply(looks_at: Subject, context: RuleContext) -> None:
    """Apply all rules that look at a subject. Raises UsageError, EnvironmentProblem."""
    for rule in RULES:
        if rule.looks_at == looks_at:
            rule.check(context)


def _ask(backend: str) -> None:
    inspected = capabilities(backend).here()
    if not inspected.available:
        raise EnvironmentProblem(": ".join(filter(None, (inspected.inspection.reason, inspected.inspection.fix))))


class _Sides:
    """The backends and devices of a request that can run it, and the reasons of the others."""

    def __init__(self, asked: RuleContext, leave_out: bool) -> None:
        self.asked, self.leave_out = asked, leave_out
        self.able = list(asked.request.sides)
        self.problems: dict[_Side, str] = {}

    def keep(self, check: Callable[[_Side], None]) -> None:
        """Keep the sides that pass a check.

        Raises:
            UsageError: the first one that the check raised.
            EnvironmentProblem: no side passes, or one does not and none may be left out.
        """
        able, wrong = list[_Side](), None
        for side in self.able:
            try:
                check(side)
            except EnvironmentProblem as problem:
                if not self.leave_out:
                    raise
                self.problems[side] = re.sub(rf"^backend {re.escape(side[0])}:? ", "", str(problem))
            except UsageError as error:
                wrong = wrong or error
            else:
                able.append(side)
        if wrong:
            raise wrong
        self.able = able
        if not able:
            raise EnvironmentProblem(self._none())

    def _none(self) -> str:
        several = len(self.asked.request.devices) > 1
        sides = [side for side in self.asked.request.sides if side in self.problems]
        reasons = [f"{' on '.join(side) if several else side[0]}: {self.problems[side]}" for side in sides]
        what = "neither backend nor device" if several else "no backend"
        return f"{what} can run this here: " + "; ".join(reasons)

    def context(self) -> RuleContext:
        """The request for the sides that are left."""
        request, able = self.asked.request, self.able
        if len(able) == len(request.sides):
            return self.asked
        left = replace(
            request,
            backends=tuple(name for name in request.backends if any(name == backend for backend, _ in able)),
            device=",".join(name for name in request.devices if any(name == device for _, device in able)),
            left_out=request.left_out + tuple(side for side in request.sides if side not in able),
        )
        # where every pair of the remaining backends and devices is measured, no exception is left to name
        if len(left.sides) == len(left.backends) * len(left.devices):
            left = replace(left, left_out=())
        return replace(self.asked, parsed=replace(self.asked.parsed, request=left))


def in_place_alone(checked: CheckedRequest) -> list[str]:
    """Warn when only some of the backends run a benchmark in place. Returns notes for the user."""
    request, benchmark = checked.request, checked.benchmark
    usual, offers = usual_cell(benchmark), capabilities_of(request.backends)
    cell = usual.with_options(in_place=bool(request.options.in_place))
    made = {name: offers[name].fitted(benchmark, cell, usual) for name in request.backends}
    forced = [name for name, fitted in made.items() if fitted.options.in_place != cell.options.in_place]
    if not forced or len(forced) == len(request.backends):
        return []
    return [f"{', '.join(forced)} does {benchmark.name} in place, the others do not: -l makes all of them do so"]
