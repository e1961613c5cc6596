"""Going on without a node that stops answering, in every command that makes many launches.

A launch that fails on several nodes is followed by a look at them (:mod:`.node_check`). Those that do not answer are
named, and the command measures what is left on the others. On fewer than two nodes nothing goes on, since no network
would be measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from omb_py.backends.registry import in_process
from omb_py.errors import EnvironmentProblem, LaunchFailed, OmbError, UsageError
from omb_py.launchers.launcher import host_and_slots
from omb_py.options.request import Request
from omb_py.orchestrate.planning.plan import LaunchPlan
from omb_py.orchestrate.planning.resolution import CheckedRequest
from omb_py.orchestrate.running.collector import Run
from omb_py.orchestrate.running.node_check import answering
from omb_py.orchestrate.running.run import start
from omb_py.orchestrate.suites.node_layout import nodes_of
from omb_py.printing.printers import Kept
from omb_py.results.units import listed

FEWEST_NODES = 2
Measured = TypeVar("Measured")


class NodesLost(LaunchFailed):
    """A launch failed, and nodes do not answer any more."""

    def __init__(self, nodes: Mapping[str, str], cause: OmbError, note: Callable[[str], None]) -> None:
        """Take node -> reason, why the launch failed, and what says a sentence to the user."""
        super().__init__(f"{listed(nodes)} stopped answering: {cause}")
        self.nodes, self.cause, self.note = dict(nodes), cause, note


def start_on_nodes(run: Run, launch: LaunchPlan) -> None:
    """Run a launch that others follow, as :func:`omb_py.orchestrate.running.run.start`.

    Raises:
        NodesLost: it failed, and nodes do not answer any more.
    """
    try:
        start(run, launch)
    except LaunchFailed as error:
        if nodes := silent_nodes(run, launch):
            raise NodesLost(nodes, error, run.note) from error
        raise


def silent_nodes(run: Run, launch: LaunchPlan) -> dict[str, str]:
    """The nodes of a run that do not answer after a launch has failed -> reason; nothing of these looks is stored."""
    hosts = () if in_process([launch.backend]) else all_hosts(run.request)
    if len(hosts) < FEWEST_NODES:
        return {}
    request = run.request.changed(store=None, hosts=hosts, backends=(launch.backend,), quiet=True)
    apart = Run(run.run_id, run.seed, request, Kept(), run.tool)
    try:
        return answering(apart, request, 0)[0]
    except EnvironmentProblem:  # each answers alone: the failure is none of a node
        return {}


def all_hosts(request: Request) -> tuple[str, ...]:
    """The hosts of ``--hosts``, or the nodes of the batch job; ``()``: this machine."""
    return request.launching.hosts or nodes_of(request)


def ranks_on(asked: int, before: int, left: int) -> int:
    """The number of ranks on the nodes that are left: as many as before, or as many a node where they fill the nodes.

    >>> ranks_on(8, 4, 3), ranks_on(2, 4, 3)
    (6, 2)
    """
    return asked if asked <= left else max(1, asked * left // before)


@dataclass(slots=True)
class NodesLeft:
    """The nodes on which a command goes on."""

    hosts: tuple[str, ...]
    """All of them, as they were asked for."""
    lost: dict[str, str] = field(default_factory=dict)
    """Those that stopped answering -> reason."""

    @property
    def left(self) -> tuple[str, ...]:
        return tuple(host for host in self.hosts if host not in self.lost)

    def lose(self, error: NodesLost) -> None:
        """Leave nodes out, and say so. Raises the error where fewer than two are left."""
        self.lost |= error.nodes
        if len(self.left) < FEWEST_NODES:
            raise error
        error.note(f"{error}; going on without")

    def request(self, request: Request) -> Request:
        """A request whose ranks may be on all nodes, on those that are left, with as many ranks a node."""
        if not self.lost:
            return request
        ranks = request.ranks and ranks_on(request.ranks, len(self.hosts), len(self.left))
        return request.changed(hosts=self.left, ranks=ranks)

    def without(self, checked: CheckedRequest) -> CheckedRequest:
        """The request on the nodes that are left, with as many ranks a node.

        One that has nodes of its own keeps them, and the nearest other one takes the place of one that is lost.

        Raises:
            UsageError, EnvironmentProblem: it cannot be measured on these.
        """
        if not self.lost:
            return checked
        part = checked.request.part
        if part is None or not part.hosts:
            moved = self.request(checked.request)
            return checked.changed(hosts=moved.launching.hosts, ranks=moved.ranks)
        others, ranks = self._replace_lost(part.hosts), checked.request.ranks
        on_left = ranks and max(1, ranks * len(others) // len(part.hosts))
        return checked.changed(hosts=self.left, ranks=on_left, part=replace(part, hosts=others))

    def _replace_lost(self, own: Sequence[str]) -> tuple[str, ...]:
        names = [host_and_slots(host)[0] for host in self.hosts]
        gone = {host_and_slots(host)[0] for host in self.lost}
        chosen = [host for host in own if host not in gone]
        for place in (names.index(host) for host in own if host in gone):
            spare = [k for k, name in enumerate(names) if name not in gone and name not in chosen]
            chosen += [names[min(spare, key=lambda k: abs(k - place))]] if spare else []
        return tuple(sorted(chosen, key=names.index))


def go_on(nodes: NodesLeft, measure: Callable[[], Measured]) -> Measured:
    """Measure, and again from the beginning each time a node is lost, until it ends.

    What is judged together is measured on the same nodes: launches before a loss stay in the store, and none of them
    counts with those after it.

    Args:
        nodes: those of the command; the lost ones are added.
        measure: measures all on the nodes that are left.

    Raises:
        OmbError: what `measure` raises.
        LaunchFailed: nodes are lost, and the others are too few or cannot measure it.
    """
    lost: NodesLost | None = None
    while True:
        try:
            return measure()
        except NodesLost as error:
            nodes.lose(error)
            lost = error
        except (UsageError, EnvironmentProblem) as error:
            if lost is None or isinstance(error, LaunchFailed):
                raise
            raise LaunchFailed(f"{lost}; {', '.join(nodes.left)} cannot go on alone: {error}") from error
