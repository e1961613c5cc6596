"""``omb-py links``: measure every pair of nodes in one launch, and the suspects again in another."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np

from omb_py.backends.registry import capabilities, capabilities_of, in_process
from omb_py.engine.measuring.cell_result import PairRound
from omb_py.engine.program.benchmark import Benchmark, Cell, Needs
from omb_py.engine.program.pair_schedule import DIRECTIONS, Schedule, parse_schedule
from omb_py.errors import EnvironmentProblem, LaunchFailed, UsageError
from omb_py.launchers.launcher import host_and_slots
from omb_py.options.request import SILENT, Request
from omb_py.options.table import make_cell, usual_cell
from omb_py.orchestrate.checks.topology_file import read_topology, switches_of
from omb_py.orchestrate.planning.cells import bindings_of
from omb_py.orchestrate.planning.parsing import parse
from omb_py.orchestrate.planning.plan import LaunchPlan
from omb_py.orchestrate.planning.resolution import resolve
from omb_py.orchestrate.running.collector import Run
from omb_py.orchestrate.running.interrupts import kept_text, resumable
from omb_py.orchestrate.running.run import finish, new_run, say_busy, start
from omb_py.orchestrate.running.suite_run import check_no_launcher
from omb_py.results.checks import links
from omb_py.results.checks.pair_logs import LARGE, SMALL, USUAL_NAMES, PairNames, read_pairs
from omb_py.results.checks.pair_sweeps import PARTS, PairSweep, PairTable, names_of
from omb_py.results.compare.tags import LINKS_PART
from omb_py.suites.registry import find

ANSWER_S = 15.0
"""Seconds within which a host must start a process that does nothing."""


@dataclass(frozen=True, slots=True)
class SweepDesign:
    """Measurements between two ranks, and their numbers."""

    small: int = SMALL
    """Bytes of the message whose latency is measured."""
    large: int = LARGE
    """Bytes of each message of a window, for bandwidth."""
    iterations: int = 100
    """Iterations of latency in a pass; the slowest tenth is the tail."""
    windows: int = 10
    """Windows of bandwidth in a pass and direction."""
    window: int = 8
    passes: int = 5
    launches: int = 5
    """Launches among which the passes are divided; no more than there are passes."""
    rounds: str = "parallel"

    @property
    def turns(self) -> list[range]:
        """Numbers of the passes of each launch; the first launches have one more where they do not divide evenly."""
        launches = min(self.launches, self.passes)
        fewest, more = divmod(self.passes, launches)
        ends = accumulate((fewest + (launch < more) for launch in range(launches)), initial=0)
        return [range(start, end) for start, end in pairwise(ends)]


def sweep(request: Request, design: SweepDesign) -> PairSweep:
    """Measure every pair of `request.ranks` ranks, judge, and measure suspects again.

    Args:
        request: options of the launches; its benchmark and sizes are ignored.

    Raises:
        UsageError: there are fewer than :data:`~omb_py.results.checks.links.LEAST` ranks, or an option is wrong.
        LaunchFailed: hosts did not answer, or a rank was lost; the message says which. What was measured is stored.
    """
    check_request(request)
    ranks = request.ranks or 0
    request = request.changed(benchmark="latency", format=SILENT)
    run = new_run(request, [])
    say_busy(run)
    members = tuple(range(ranks))
    try:
        with resumable(lambda: kept_text(run, bool(run.cells)), run):
            first = measured_pairs(run, request, design, members, PARTS[0])
            suspects = tuple(links.suspects(first.units, ranks, fresh=first.fresh, hosts=first.hosts))
            repeat, outcomes = None, {}
            if suspects:
                effects = [links.take_apart(links.usual_value(v, first.fresh)[0], ranks) for v in first.units.values()]
                members = links.choose_again(suspects, effects)
                nodes = f"{len(members)} of {ranks} nodes" if len(members) < ranks else f"all {ranks} nodes"
                run.note(f"{_count_suspects(suspects)} measured again, in launches of their own, among {nodes}")
                repeat = measured_pairs(run, request, design, members, PARTS[1])
                outcomes = links.confirm(suspects, repeat.units, members, fresh=repeat.fresh)
    finally:
        finish(run)
    return PairSweep(run.run_id, names_of(list(first.hosts)), first, suspects, repeat, outcomes)


def from_logs(
    logs: Sequence[str],
    names: PairNames = USUAL_NAMES,
    design: SweepDesign = SweepDesign(),
    topology: Path | None = None,
) -> PairSweep:
    """Judge logs of pairs as :func:`~omb_py.results.checks.pair_logs.read_pairs`, and name the switch of a slow group.

    Raises:
        UsageError: the logs are none of pairs, or the topology file is wrong or lacks a node.
    """
    result = read_pairs(logs, names, design.small, design.large)
    if topology is None:
        return result
    switches = switches_of(read_topology(topology), result.names, topology)
    groups = {suspect.ends for suspect in result.suspects if suspect.kind == "group"}
    notes = tuple(f"{name} has just these: its uplink may be slow" for name, ranks in switches if ranks in groups)
    return replace(result, logs=(*result.logs, *notes))


def _count_suspects(suspects: Sequence[links.Suspect]) -> str:
    count = len({(suspect.kind, suspect.ends) for suspect in suspects})
    return "1 suspect is" if count == 1 else f"{count} suspects are"


def check_request(request: Request) -> None:
    """Raises UsageError or EnvironmentProblem for a request that cannot be swept."""
    check_no_launcher(
        request.backends,
        "links starts its launches itself: run it outside, with --hosts A,B,C,D, or inside a batch job without a "
        "launcher",
    )
    simulated = in_process(request.backends)  # their hosts are names that the simulator gives to its nodes
    resolve(parse(request.changed(benchmark="latency", ranks=None, **({"hosts": ()} if simulated else {}))))
    if len(request.backends) > 1 or len(request.bindings) > 1:
        raise UsageError("links takes one backend and one binding: run it once for each")
    twice = [
        host
        for host, count in Counter(host_and_slots(host)[0] for host in request.launching.hosts).items()
        if count > 1
    ]
    if twice:
        raise UsageError(f"host {twice[0]} is named twice: --per-node says how many ranks each has")
    if request.ranks is None:
        raise UsageError("which nodes? name them with --hosts A,B,C,D, or say with -n how many ranks")
    if request.ranks < links.LEAST:
        raise UsageError(
            f"links needs {links.LEAST} ranks or more, not {request.ranks}: with fewer a slow node looks like slow "
            "links"
        )


def placed(request: Request, per_node: int, environ: Mapping[str, str]) -> Request:
    """Complete a request with its number of ranks and words for the launcher, so that each node has `per_node` ranks.

    Simulated ranks get a matching number of nodes. Raises UsageError as :func:`ranks_and_words`.
    """
    ranks, words = ranks_and_words(request, per_node, environ)
    settings = dict(request.settings)
    for name in request.backends if ranks else ():
        if option := capabilities(name).option:
            settings[name] = option.on_nodes(settings.get(name, ""), max(1, (ranks or 0) // per_node))
    return request.changed(ranks=ranks, launcher_args=(*words, *request.launching.launcher_args), settings=settings)


def ranks_and_words(request: Request, per_node: int, environ: Mapping[str, str]) -> tuple[int | None, tuple[str, ...]]:
    """Return the number of ranks and words for the launcher.

    The number is the given one, or else `per_node` on each host, or on each node of a Slurm job.

    Raises:
        UsageError: the number of ranks contradicts the hosts or `per_node`.
    """
    hosts, ranks = len(request.launching.hosts), request.ranks
    if hosts:
        if ranks not in (None, hosts * per_node):
            raise UsageError(
                f"-n {ranks}, but {hosts} hosts with {per_node} each make {hosts * per_node}: leave -n out"
            )
        return hosts * per_node, ()
    if ranks is not None and ranks % per_node:
        raise UsageError(f"-n {ranks} with --per-node {per_node}: the ranks do not fill their nodes: give a multiple")
    nodes = environ.get("SLURM_JOB_NUM_NODES", "")
    if ranks is None and nodes.isdigit() and request.launching.launcher in ("auto", "srun"):
        return int(nodes) * per_node, (f"--ntasks-per-node={per_node}",)
    return ranks, ()


def cells_of(
    request: Request, design: SweepDesign, members: tuple[int, ...], seed: int, turns: range | None = None
) -> tuple[Cell, ...]:
    """Return the cells of a launch: every pass has latency, and bandwidth in both directions, of all pairs.

    Args:
        seed: decides the order of the pairs.
        turns: numbers of the passes; None means all.
    """
    backend = request.backends[0]
    offer = capabilities_of(request.backends)[backend]
    (binding, *_) = bindings_of(request, offer)
    whole = () if len(members) == request.ranks else members
    common = {"device": request.device, "buffer": request.buffer, "auto": False}
    cells = []
    for turn in turns or range(design.passes):
        plan = [("latency", "forward"), *(("bw", direction) for direction in DIRECTIONS)]
        for name, direction in plan:
            large = name == "bw"
            benchmark = find(name)
            # each pass pairs the ranks in another order, so that a pair does not keep the same neighbours
            pairs = Schedule(seed * 1009 + turn, design.rounds, direction, whole).text()
            count = design.windows if large else design.iterations
            cell = make_cell(
                benchmark,
                backend,
                binding,
                design.large if large else design.small,
                iterations=count,
                warmup=max(1, count // 10),
                window=design.window,
                pairs=pairs,
                sweep=turn,
                **common,
            )
            cells.append(offer.fitted(benchmark, cell, usual_cell(benchmark)))
    return tuple(cells)


def measured_pairs(run: Run, request: Request, design: SweepDesign, members: tuple[int, ...], part: str) -> PairTable:
    """Make the launches of a sweep, or of its repeat. Raises LaunchFailed, with the hosts that do not answer."""
    of_launches = design.turns
    table = PairTable(members, [len(turns) for turns in of_launches])
    run.request = run.request.changed(tags={**request.tags, LINKS_PART: part})
    run.on_round = partial(_take, table)
    for launch, turns in enumerate(of_launches):
        number = PARTS.index(part) * len(of_launches) + launch
        _launch(run, request, cells_of(request, design, members, run.seed + number, turns), number)
    if not table.complete:
        raise EnvironmentProblem("some pairs were not measured: run it again, and report this")
    return table


def needs_of(benchmark: Benchmark, request: Request) -> Needs:
    """Return what the processes of a launch need."""
    needs = replace(benchmark.needs, device=request.device, share_device=request.launching.share_device)
    if request.launching.thread_level:
        needs = replace(needs, thread_level=request.launching.thread_level)  # type: ignore[arg-type]
    return needs


def _launch(run: Run, request: Request, cells: tuple[Cell, ...], number: int) -> None:
    needs = needs_of(find("latency"), request)
    plan = LaunchPlan(request.backends[0], needs, request.ranks or 0, number, cells)
    run.command.progress.plan([len(cells)])
    try:
        start(run, plan)
    except LaunchFailed as error:
        if number in run.finished:
            raise
        silent = silent_hosts(request)
        if not silent:
            raise
        hosts = ", ".join(silent)
        raise LaunchFailed(f"no answer from {hosts}: look at {hosts}, or leave it out of --hosts. {error}") from error


def _take(table: PairTable, finished: PairRound, hosts: Sequence[str]) -> None:
    table.hosts, cell, pairs, samples = hosts, finished.cell, finished.pairs, finished.samples.astype(np.float64)
    if cell.benchmark == "latency":
        table.latency(cell.sweep, pairs, samples)
    else:
        table.bandwidth(cell.sweep, parse_schedule(cell.pairs).direction, pairs, samples, finished.bytes_moved or 0)


def silent_hosts(request: Request) -> list[str]:
    """Return the hosts on which nothing can be started; each is tried by itself."""
    from omb_py.orchestrate.launching.launch_command import command_for

    def answers(host: str) -> bool:
        try:
            command = command_for(
                request.launching.launcher,
                ["true"],
                1,
                hosts=[host_and_slots(host)[0]],
                extra=request.launching.launcher_args,
            )
            done = subprocess.run(
                command.words,
                env=dict(command.environ),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=ANSWER_S,
                check=False,
            )
        except (subprocess.TimeoutExpired, EnvironmentProblem):
            return False
        return done.returncode == 0

    with ThreadPoolExecutor(16) as several:
        return [
            host
            for host, fine in zip(request.launching.hosts, several.map(answers, request.launching.hosts), strict=True)
            if not fine
        ]
