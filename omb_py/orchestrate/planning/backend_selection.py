"""Several backends and devices in one command: what can run does, of the rest it is said why not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from omb_py.backends.capabilities import Capabilities
from omb_py.engine.program.benchmark import Benchmark
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.options.request import Request
from omb_py.orchestrate.planning.plan import check
from omb_py.orchestrate.planning.validation import HOST_MEMORY
from omb_py.orchestrate.suites.expand import Skip
from omb_py.suites import find


def narrowed(
    request: Request, offers: Mapping[str, Capabilities], *, asked: bool = False
) -> tuple[Request, list[Skip]]:
    """The request for the backends and devices that can run it here, and why the others cannot.

    Args:
        request: what was asked for.
        offers: what each backend admits.
        asked: ask each of several backends whether it is there, which takes a moment.

    Raises:
        UsageError: as :func:`omb_py.orchestrate.planning.plan.check`.
        EnvironmentProblem: none of the backends can.
    """
    if len(request.sides) < 2:
        check(request, offers)
        return request, []
    able, skips, wrong = list[tuple[str, str]](), [], None
    several = len(request.devices) > 1
    for backend, device in request.sides:
        try:
            check(_alone(request, backend, device, offers), offers)
            if asked:
                _check_there(offers[backend])
            able.append((backend, device))
        except EnvironmentProblem as problem:
            reason = re.sub(rf"^backend {re.escape(backend)}:? ", "", str(problem))
            skips.append(Skip(f"{backend} on {device}" if several else backend, reason))
        except UsageError as error:
            wrong = wrong or error
    if wrong:
        raise wrong
    if not able:
        what = "neither backend nor device" if several else "no backend"
        raise EnvironmentProblem(f"{what} can run this here: " + "; ".join(f"{s.what}: {s.reason}" for s in skips))
    left = replace(
        request,
        backends=tuple(b for b in request.backends if any(b == backend for backend, _ in able)),
        device=",".join(d for d in request.devices if any(d == device for _, device in able)),
        left_out=request.left_out + tuple(side for side in request.sides if side not in able),
    )
    if len(left.sides) == len(left.backends) * len(left.devices):
        left = replace(left, left_out=())
    check(left, offers)
    return left, skips


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


def _check_there(declared: Capabilities) -> None:
    inspected = declared.here()
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
