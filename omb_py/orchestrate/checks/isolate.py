"""``omb-py links --isolate``: collectives on groups of nodes name what is slow, pairs in fresh launches confirm it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from omb_py.backends.registry import capabilities_of
from omb_py.engine.program.benchmark import Benchmark
from omb_py.engine.program.groups import OPTION as GROUPS
from omb_py.errors import LaunchFailed, UsageError
from omb_py.grammar.rank_groups import uneven
from omb_py.options.request import SILENT, Request
from omb_py.options.table import make_cell, usual_cell
from omb_py.orchestrate.checks.links import SweepDesign, check_request, measured_pairs, needs_of
from omb_py.orchestrate.checks.topology_file import SwitchNodes, read_topology, switches_of
from omb_py.orchestrate.planning.cells import bindings_of
from omb_py.orchestrate.planning.parsing import parse
from omb_py.orchestrate.planning.plan import LaunchPlan
from omb_py.orchestrate.planning.resolution import resolve
from omb_py.orchestrate.running.collector import Run
from omb_py.orchestrate.running.interrupts import kept_text, resumable
from omb_py.orchestrate.running.run import finish, new_run, say_busy, start
from omb_py.orchestrate.running.suite_run import run_apart
from omb_py.results.checks import links
from omb_py.results.checks.isolation import Culprit, Isolation, Split
from omb_py.results.checks.isolation_report import IsolationResult
from omb_py.results.checks.pair_sweeps import PARTS, names_of
from omb_py.results.compare.tags import LINKS_PART

PART = "groups"
"""The tag of launches of groups."""
_BESIDE = 8
"""Other nodes in a confirmation."""
_OF_SWITCH = 8
"""Nodes of a switch in a confirmation."""
_PIECES = 5
"""Parts of the iterations of a launch, of which the median counts: a mean over all would follow a single hiccup."""
_METRICS = ("latency", "bandwidth")


@dataclass(slots=True)
class GroupSearch:
    """The launches of one search.

    Args:
        benchmark: a collective.
        design: bytes (`large`), iterations, and the launches of pairs.
        topology: file of the switches; None: not known.
    """

    request: Request
    benchmark: Benchmark
    design: SweepDesign
    topology: Path | None = None

    def run(self) -> IsolationResult:
        """Search, then confirm.

        Raises:
            UsageError, EnvironmentProblem: an option or a line of the topology file is wrong, or there are too few
                nodes.
            LaunchFailed: a rank was lost. What was measured is stored.
        """
        leaves = read_topology(self.topology) if self.topology else ()
        self._check()
        request = self.request.changed(benchmark=self.benchmark.name, format=SILENT)
        run = new_run(request, [])
        say_busy(run)
        try:
            with resumable(lambda: kept_text(run, bool(run.cells)), run):
                return self._search(run, leaves)
        finally:
            finish(run)

    def _check(self) -> None:
        check_request(self.request)
        ranks = self.request.ranks or 0
        if self.benchmark.family != "collective" or GROUPS not in self.benchmark.options or self.benchmark.rooted:
            raise UsageError(
                f"--isolate {self.benchmark.name}: groups need a collective in which all ranks wait for all, "
                "as allreduce, allgather or alltoall"
            )
        resolve(parse(self.request.changed(benchmark=self.benchmark.name, groups=f"1x{ranks}")))
        try:
            Isolation(ranks)
        except ValueError as error:
            raise UsageError(f"--isolate: {error}: sweep all pairs without it") from None

    def _search(self, run: Run, leaves: Sequence[SwitchNodes]) -> IsolationResult:
        ranks = self.request.ranks or 0
        # the first launch says where the ranks are
        everywhere = Split((tuple(range(ranks)),))
        _, hosts = self.measured_groups(run, everywhere, 0)
        switches = switches_of(leaves, hosts, self.topology) if self.topology else []
        search = Isolation(ranks, [own for _, own in switches], run.seed)
        while (split := search.next_split()) is not None:
            times, _ = self.measured_groups(run, split, 1 + search.launches)
            search.add(split, times[: len(split.groups)])
        few = (
            f"fewer than {search.fewest_items} {'switches' if switches else 'nodes'}: links between them are not judged"
        )
        named = search.named
        outcomes = self._confirm(run, search, named) if named else {}
        return IsolationResult(
            run.run_id,
            names_of(hosts),
            tuple(hosts),
            tuple(name for name, _ in switches),
            self.benchmark.name,
            1 + search.launches,
            len(self.design.turns) if named else 0,
            outcomes,
            tuple(search.possible),
            search.counted_from,
            "" if search.judges_links else few,
        )

    def measured_groups(self, run: Run, split: Split, number: int) -> tuple[list[float], list[str]]:
        """Make a launch. Returns the time in µs of each group, of those that rest last, and the host of each rank."""
        groups = (*split.groups, *([split.rest] if split.rest else []))
        request = run.request.changed(tags={**run.request.tags, LINKS_PART: PART})
        apart, kept = run_apart(run, request)
        backend = request.backends[0]
        offer = capabilities_of(request.backends)[backend]
        (binding, *_) = bindings_of(request, offer)
        iterations = max(1, self.design.iterations // _PIECES)
        cell = make_cell(
            self.benchmark,
            backend,
            binding,
            self.benchmark.sizes_for(self.benchmark.dtype, (self.design.large,))[0],
            iterations=iterations,
            warmup=max(1, iterations // 5),
            auto=False,
            device=request.device,
            buffer=request.buffer,
            groups=uneven(groups, request.ranks or 0),
        )
        fitted = offer.fitted(self.benchmark, cell, usual_cell(self.benchmark))
        cells = tuple(replace(fitted, sweep=piece) for piece in range(_PIECES))
        # after the launches of pairs, whose numbers are their parts'
        index = len(PARTS) * len(self.design.turns) + number
        plan = LaunchPlan(backend, needs_of(self.benchmark, request), request.ranks or 0, index, cells)
        run.command.progress.plan([len(cells)])
        try:
            start(apart, plan)
        finally:
            run.files += apart.files
            run.cells += apart.cells
            run.finished |= apart.finished
        if len(kept.rows) < _PIECES:
            raise LaunchFailed("a launch of groups ended without a result: run it again, and report this")
        order = sorted(range(len(groups)), key=lambda k: min(groups[k]))
        column = {k: f"group_{number}_us" for number, k in enumerate(order)}
        times = [median(row["metrics"][column[k]] for row in kept.rows) for k in range(len(groups))]
        return times, list(kept.rows[0]["hosts"])

    def _confirm(
        self, run: Run, search: Isolation, named: Sequence[Culprit]
    ) -> Mapping[Culprit, Sequence[links.Suspect]]:
        """The metrics in which pairs of fresh launches confirm each culprit."""
        ends = {culprit: self._ends_of(search, culprit) for culprit in named}
        members = _members(search, named, sorted({node for own in ends.values() for node in own}))
        suspects = {
            links.Suspect("group" if culprit.kind == "uplink" else culprit.kind, own, metric, 1.0, 1.0): culprit
            for culprit, own in ends.items()
            for metric in _METRICS
        }
        run.note(f"{len(named)} named by groups: measured in pairs, among {len(members)} of {search.nodes} nodes")
        request = self.request.changed(benchmark="latency", format=SILENT)
        table = measured_pairs(run, request, self.design, members, PARTS[1])
        judged = links.confirm(list(suspects), table.units, members, fresh=table.fresh)
        return {
            culprit: [slow for suspect, slow in judged.items() if slow is not None and suspects[suspect] == culprit]
            for culprit in named
        }

    def _ends_of(self, search: Isolation, culprit: Culprit) -> tuple[int, ...]:
        """The nodes whose pairs show whether it is slow."""
        nodes = set(search.slow_nodes)
        of_ends = [[n for n in own if n not in nodes] for own in _group_ends(search, culprit)]
        if culprit.kind == "uplink":
            return tuple(of_ends[0][:_OF_SWITCH])
        return culprit.ends if culprit.kind == "node" else tuple(own[0] for own in of_ends)


def _group_ends(search: Isolation, culprit: Culprit) -> list[tuple[int, ...]]:
    if culprit.kind == "node" or not search.switches:
        return [(end,) for end in culprit.ends]
    return [search.switches[end] for end in culprit.ends]


def _members(search: Isolation, named: Sequence[Culprit], ends: Sequence[int]) -> tuple[int, ...]:
    """The nodes of a confirmation: the ends, and at least as many others of all switches, which nothing was said of."""
    touched = {node for culprit in named for node in _nodes_of(search, culprit)}
    calm = [node for node in range(search.nodes) if node not in touched]
    count = max(_BESIDE, len(ends))
    return tuple(sorted([*ends, *calm[:: max(1, len(calm) // count)][:count]]))


def _nodes_of(search: Isolation, culprit: Culprit) -> set[int]:
    return {node for own in _group_ends(search, culprit) for node in own}
