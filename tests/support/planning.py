"""Planning of one request, for tests."""

from __future__ import annotations

from collections.abc import Mapping

from omb_py.backends.capabilities import Capabilities
from omb_py.options.request import Request
from omb_py.orchestrate.planning.parsing import parse
from omb_py.orchestrate.planning.plan import LaunchPlan, plan_launches
from omb_py.orchestrate.planning.resolution import CheckedRequest, resolve


def check(request: Request, offers: Mapping[str, Capabilities] | None = None) -> CheckedRequest:
    """A request that keeps all rules, on every backend and device. Raises UsageError, EnvironmentProblem."""
    return resolve(parse(request), offers)


def narrow(request: Request, offers: Mapping[str, Capabilities] | None = None) -> CheckedRequest:
    """The same without the backends and devices that cannot run it. Raises UsageError, EnvironmentProblem."""
    return resolve(parse(request), offers, leave_out=True)


def plan(request: Request, ranks: int, offers: Mapping[str, Capabilities] | None = None) -> list[LaunchPlan]:
    """The launches of a request on a number of ranks. Raises UsageError, EnvironmentProblem."""
    return plan_launches([check(request.changed(ranks=ranks), offers)])
