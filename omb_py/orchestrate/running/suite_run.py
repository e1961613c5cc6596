"""Running a suite, launch after launch. A part that cannot be measured here is skipped with its reason."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from omb_py.backends.registry import in_process
from omb_py.engine.program.benchmark import Cell
from omb_py.engine.rank.launcher_variables import joined_environment
from omb_py.errors import (
    ENVIRONMENT,
    NEGATIVE,
    OK,
    EnvironmentProblem,
    Interrupted,
    LaunchFailed,
    NotStored,
    OmbError,
    UsageError,
)
from omb_py.launchers.core_binding import processors
from omb_py.launchers.registry import TASKS, job_around
from omb_py.options.request import DEFAULT_RANKS, Request
from omb_py.orchestrate.launching.launch_command import HERE, RankEnvironment
from omb_py.orchestrate.planning.plan import LaunchPlan, plan_launches
from omb_py.orchestrate.planning.resolution import CheckedRequest
from omb_py.orchestrate.running.collector import Run
from omb_py.orchestrate.running.interrupts import kept_text, resumable
from omb_py.orchestrate.running.joined_run import run_joined, started_ranks
from omb_py.orchestrate.running.lost_nodes import FEWEST_NODES, NodesLeft, NodesLost, all_hosts, start_on_nodes
from omb_py.orchestrate.running.resume import StoredRun, note_new, remaining, stored_run
from omb_py.orchestrate.running.run import describe_launch, finish, joins, new_run, print_skipped, say_busy
from omb_py.orchestrate.suites.expand import Expanded, Ranks
from omb_py.printing.printers import Kept
from omb_py.results.skip import Skip
from omb_py.results.units import counted, listed


def ranks_here(given: int | None, environ: Mapping[str, str] = os.environ) -> Ranks:
    """The number of ranks of a suite, by ``-n``, the launcher around us, the batch job, or the cores of this machine.

    Raises UsageError when ``-n`` contradicts the launcher, or neither says a number.
    """
    joined = joined_environment(environ)
    if joined is not None:
        ranks = started_ranks(given, joined)
        return Ranks(ranks, ranks, given=True, only=joined.size is not None)
    if given is not None:
        return Ranks(given, given, given=True)
    most = next((int(environ[name]) for name in TASKS if environ.get(name, "").isdigit()), None)
    if (job := job_around(environ)) is not None:
        most = job.ranks
    if most is None:
        most = len(processors().cores)
    return Ranks(DEFAULT_RANKS, max(DEFAULT_RANKS, most))


def run_suite(expanded: Expanded, resume: str | None = None) -> int:
    """Measure the requests of a suite. Returns the exit code.

    Args:
        expanded: the suite (:func:`omb_py.orchestrate.suites.expand.expand`).
        resume: run to resume: its id, or ``last``.

    Raises:
        UsageError: `resume` is no run of this suite.
        EnvironmentProblem: nothing can be measured here, or results cannot be stored.
        Interrupted: SIGINT, SIGTERM or SIGHUP; finished cells are stored.
    """
    requests, skips = expanded.requests, list(expanded.skips)
    joined = joined_environment(os.environ)
    if joined is not None and any(map(joins, requests)):
        return run_joined(expanded.checked, joined, skips, resume).code
    launches = plan_launches(expanded.checked)
    stored = run_to_resume(requests, resume)
    left = launches if stored is None else remaining(launches, stored)
    if not requests:
        print_skipped(skips)
        raise EnvironmentProblem("nothing of this suite can be measured here")
    run = begin_run(requests, launches, left, stored, resume)
    say_busy(run)
    rest = Rest(run, expanded.checked, NodesLeft(all_hosts(requests[0])), stored, skips)

    def resumes() -> bool:
        """Whether the store has a cell by which ``--resume`` knows this run."""
        return stored is not None or any(run.finished.values())

    try:
        with resumable(lambda: kept_text(run, resumes(), resumes=True), run, resumes):
            make_launches(run, left, skips, rest=rest)
    finally:
        if left or requests[0].printing.format in ("csv", "json"):
            finish(run)
        if rest.nodes.lost:
            print_lost(rest.nodes)
        print_skipped(skips)
    return exit_code_of(run, skips, stored, rest.nodes.lost)


@dataclass(slots=True)
class Rest:
    """Plans the launches that are left of a suite again, on the nodes that are left."""

    run: Run
    checked: Sequence[CheckedRequest]
    """The requests as they were asked for."""
    nodes: NodesLeft
    stored: StoredRun | None
    """What the run that is resumed has."""
    skips: list[Skip]

    def __call__(self, error: NodesLost, left: Sequence[LaunchPlan]) -> list[LaunchPlan]:
        """The launches on the nodes that are left; what these cannot measure is given up.

        Cells that were measured before count: each row of a suite stands for itself.

        Raises:
            NodesLost: fewer than two nodes are left.
        """
        self.nodes.lose(error)
        self.run.request = self.run.request.changed(hosts=self.nodes.left)
        moved = list(self.checked)
        given_up: set[int] = set()
        for sweep in sorted({cell.sweep for launch in left for cell in launch.cells}):
            try:
                moved[sweep] = self.nodes.without(self.checked[sweep])
            except (UsageError, EnvironmentProblem) as problem:
                given_up.add(sweep)
                name = next(sweep_name(launch, sweep) for launch in left)
                self.skips.append(Skip(name, f"{error}; the other nodes cannot do it: {problem}", failed=True))
        requests, launches = tuple(each.request for each in moved), []
        for launch in left:
            if cells := tuple(cell for cell in launch.cells if cell.sweep not in given_up):
                first = requests[cells[0].sweep]
                hosts = first.part.hosts if first.part else ()
                ranks = first.ranks or launch.ranks
                launches.append(replace(launch, cells=cells, requests=requests, ranks=ranks, hosts=hosts))
        return launches if self.stored is None else remaining(launches, self.stored)


def run_to_resume(requests: Sequence[Request], resume: str | None) -> StoredRun | None:
    """The run to resume with its rows; None for a new one. Raises UsageError."""
    if resume is None or not requests:
        return None
    request = requests[0]
    if request.store is None or request.part is None:
        raise UsageError("--resume needs a store: leave --no-store out")
    return stored_run(request.store, request.part, resume, accepting=False)


def begin_run(
    requests: Sequence[Request],
    launches: list[LaunchPlan],
    left: list[LaunchPlan],
    stored: StoredRun | None,
    resume: str | None,
    run_id: str | None = None,
) -> Run:
    """Begin a run, or the one that is resumed. Raises EnvironmentProblem when results cannot be stored."""
    first = requests[0]
    log = next((request.validation_log for request in requests if request.validation_log), None)
    run = new_run(replace(first, validation_log=log), launches, stored.run_id if stored else run_id)
    if first.part is not None:
        note_new(run.note, resume, stored, f"run of suite {first.part.suite}", first.store)
    run.command.progress.plan([len(launch.cells) for launch in left])
    if stored is not None:
        run.failed = bool(stored.wrong)
        run.printer.recall(stored.rows)
        cells, missing = (sum(len(launch.cells) for launch in plans) for plans in (launches, left))
        done = f"{cells - missing} of {cells} cells are in the store"
        run.note(f"run {stored.run_id} goes on: {done}, {missing} are left")
    return run


def exit_code_of(run: Run, skips: Sequence[Skip], stored: StoredRun | None, lost: Collection[str] = ()) -> int:
    """Exit code of a suite that has ended, with `lost` nodes. Raises EnvironmentProblem: nothing could be measured."""
    if run.failed:
        return NEGATIVE
    if skips and not run.cells and not (stored and stored.done):
        raise EnvironmentProblem("nothing of this suite can be measured here")
    return ENVIRONMENT if lost or any(skip.failed for skip in skips) else OK


def print_lost(nodes: NodesLeft) -> None:
    """Print which nodes stopped answering and why; on stderr, before what was skipped, also with --quiet."""
    reasons = "; ".join(f"{node}: {why}" for node, why in nodes.lost.items())
    few = len(nodes.left) < FEWEST_NODES
    rest = "the rest was not measured" if few else f"the rest was measured on {', '.join(nodes.left)}"
    print(f"omb-py: lost {listed(nodes.lost)}: {rest}: {reasons}", file=sys.stderr, flush=True)


def make_launches(
    run: Run,
    launches: Sequence[LaunchPlan],
    skips: list[Skip],
    tell: Callable[[list[Skip]], None] | None = None,
    rest: Callable[[NodesLost, Sequence[LaunchPlan]], list[LaunchPlan]] | None = None,
) -> int:
    """Run the launches. One that fails is run again without the sweep in which it failed.

    Args:
        run: the run.
        launches: its launches.
        skips: sweeps that are given up are added here.
        tell: called at once with the sweeps that are given up.
        rest: called with the launches that are left when nodes are lost; returns those on the nodes that are left.

    Returns:
        The largest index of a launch that was run or tried.

    Raises:
        Interrupted: SIGINT, SIGTERM or SIGHUP.
        NodesLost: nodes do not answer any more, and there is no `rest`.
        NotStored: results cannot be stored.
    """
    queue = deque(launches)
    number = max((launch.index for launch in launches), default=0)
    while queue:
        launch = queue.popleft()
        launch = replace(launch, cells=tuple(cell for cell in launch.cells if cell.sweep not in run.wrong))
        if not launch.cells:
            continue
        run.note(f"launch {launch.index + 1}: {describe_launch(launch)}, {counted(len(launch.cells), 'cell')}")
        try:
            start_on_nodes(run, launch)
        except (Interrupted, NotStored):
            raise
        except NodesLost as error:
            if rest is None:
                raise
            of_launch = _list_left(launch, run)
            unmade = [replace(launch, cells=tuple(of_launch))] if of_launch else []
            queue = deque(replace(plan, index=number + k) for k, plan in enumerate(rest(error, [*unmade, *queue]), 1))
            number += len(queue)
        except OmbError as error:
            parts, lost = remaining_launches(error, launch, run)
            skips += lost
            if tell is not None:
                tell(lost)
            for part in parts:
                number += 1
                queue.append(replace(part, index=number))
        finally:
            skips += lacking(run, launch)
    return number


def check_no_launcher(backends: Iterable[str], reason: str) -> None:
    """Raise UsageError where a launcher has started this process and the ranks of `backends` are no simulated ones.

    `reason` says why that cannot be, and what to do.
    """
    joined = joined_environment(os.environ)
    if joined is not None and not in_process(backends):
        raise UsageError(f"{joined.launcher} has started this process, but {reason}")


def run_apart(main: Run, request: Request, where: RankEnvironment = HERE) -> tuple[Run, Kept]:
    """Return a run under the id of another for launches that are judged and not printed, and the keeper of its rows.

    Args:
        main: the run.
        request: with the tags of the rows.
        where: the Python and the environment of the ranks.
    """
    kept = Kept()
    run = Run(main.run_id, main.seed, request, kept, main.tool, note=main.note, where=where, command=main.command)
    return run, kept


def remaining_launches(error: OmbError, launch: LaunchPlan, run: Run) -> tuple[list[LaunchPlan], list[Skip]]:
    """The launches that are left when a launch has failed, and the sweeps that are given up."""
    done = run.finished.get(launch.index)
    left = _list_left(launch, run)
    first, *others = dict.fromkeys(cell.sweep for cell in left) or (None,)
    if first is None:
        return [], [Skip(f"launch {launch.index + 1}", str(error), failed=True)]
    if done is None and isinstance(error, UsageError) and others:
        # refused before it began, for want of memory for instance: sweeps run alone show which one it was
        return [_select_sweeps(launch, left, {sweep}) for sweep in (first, *others)], []
    if done is None:
        return [], [Skip(sweep_name(launch, sweep), str(error)) for sweep in (first, *others)]
    rest = [_select_sweeps(launch, left, set(others))] if others else []
    return rest, [Skip(sweep_name(launch, first), str(error), isinstance(error, LaunchFailed))]


def lacking(run: Run, launch: LaunchPlan) -> list[Skip]:
    """The sweeps of a launch that the ranks' library could not do."""
    return [
        Skip(sweep_name(launch, sweep), why) for (index, sweep), why in run.lacking.items() if index == launch.index
    ]


def unmeasured(launch: LaunchPlan, run: Run, reason: str) -> list[Skip]:
    """The sweeps of a launch that were not measured to their end."""
    sweeps = dict.fromkeys(cell.sweep for cell in _list_left(launch, run))
    return [Skip(sweep_name(launch, sweep), reason) for sweep in sweeps]


def _list_left(launch: LaunchPlan, run: Run) -> list[Cell]:
    done = run.finished.get(launch.index, ())
    cells = (cell for index, cell in enumerate(launch.cells) if index not in done)
    return [cell for cell in cells if cell.sweep not in run.wrong]


def _select_sweeps(launch: LaunchPlan, cells: Sequence[Cell], sweeps: set[int]) -> LaunchPlan:
    return replace(launch, cells=tuple(cell for cell in cells if cell.sweep in sweeps))


def sweep_name(launch: LaunchPlan, sweep: int) -> str:
    """The name of a sweep, which is unique in its suite: ``allreduce (ranks: 4)``."""
    request = launch.requests[sweep]
    options = differences(request)
    others = [differences(other) for other in launch.requests if other.benchmark == request.benchmark]
    if others.count(options) > 1:
        options = differences(request, whole=True)
    text = ", ".join(f"{key}: {value}" for key, value in options.items())
    return f"{request.benchmark} ({text})" if text else request.benchmark


def differences(request: Request, whole: bool = False) -> Mapping[str, str]:
    """The options that distinguish a request from the suite's others; `whole` adds those that tables show."""
    if request.part is None:
        return {}
    return {**request.part.varies, **(request.part.varies_too if whole else {})}
