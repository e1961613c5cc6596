"""Find the nodes that do not answer: one launch on all of them, and only if that fails, one on each."""

from __future__ import annotations

from dataclasses import replace

from omb_py.errors import EnvironmentProblem, Interrupted, NotStored, OmbError
from omb_py.options.request import Request
from omb_py.orchestrate.planning.parsing import parse
from omb_py.orchestrate.planning.plan import plan_launches
from omb_py.orchestrate.planning.resolution import resolve
from omb_py.orchestrate.running.collector import Run
from omb_py.orchestrate.running.run import start

PROBE = "hello"
"""The benchmark that works as soon as the ranks begin."""


def answering(run: Run, request: Request, index: int) -> tuple[dict[str, str], int]:
    """Find the hosts of a request on which no rank can be started.

    Args:
        request: a request of the suite; its hosts, backend and launcher are used.

    Returns:
        Host -> reason, and the number of the next launch.

    Raises:
        EnvironmentProblem: every host answers alone, but all together do not.
    """
    hosts = request.launching.hosts
    everything = _failure(run, request, hosts, index)
    if everything is None:
        return {}, index + 1
    lost: dict[str, str] = {}
    for number, host in enumerate(hosts, index + 1):
        why = _failure(run, request, (host,), number)
        if why is not None:
            lost[host] = why
    if not lost:
        raise EnvironmentProblem(f"each of the {len(hosts)} nodes answers alone, and all together do not: {everything}")
    return lost, index + 1 + len(hosts)


def _failure(run: Run, request: Request, hosts: tuple[str, ...], index: int) -> str | None:
    """Start one rank on each host; return why that failed, or None."""
    probe = Request(
        PROBE,
        backends=request.backends[:1],
        ranks=len(hosts),
        hosts=hosts,
        launcher=request.launching.launcher,
        launcher_args=request.launching.launcher_args,
        timeout=request.launching.timeout,
        store=run.request.store,
        quiet=True,
    )
    (launch,) = plan_launches([resolve(parse(probe))])
    before = run.request
    run.request = before.changed(hosts=hosts)
    try:
        start(run, replace(launch, index=index))
    except (Interrupted, NotStored):
        raise
    except OmbError as error:
        return " ".join(str(error).split())
    finally:
        run.request = before
    return None
