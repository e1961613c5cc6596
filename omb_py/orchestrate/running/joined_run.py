"""Inside a foreign launcher: every process of ``mpirun -n 4 omb-py allreduce`` becomes a rank.

Rank 0 starts one more process, the collector, which supervises, prints and stores exactly as the parent does when
omb-py starts the ranks itself; so losing rank 0 loses nothing, and no rank loads an analysis package.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial

from omb_py.backends.registry import find
from omb_py.engine.program.benchmark import Needs
from omb_py.engine.rank.launcher_variables import Joined
from omb_py.engine.rank.lifetime import die_with_parent, let_rank_0_speak
from omb_py.engine.rank.link import LOST, Link
from omb_py.engine.rank.reporting import LinkRefused
from omb_py.engine.rank.watcher import Watcher, collector_name
from omb_py.errors import INTERRUPTED, OK, LaunchFailed, OmbError, UsageError
from omb_py.orchestrate.planning.plan import LaunchPlan, plan_launches
from omb_py.orchestrate.planning.resolution import CheckedRequest
from omb_py.orchestrate.running.rank_process import ignore_interrupts, measure_on
from omb_py.orchestrate.running.run import RunOutcome, connection_of, new_run, say_busy, unjoined
from omb_py.orchestrate.supervision.agent_start import agent_of_this_node
from omb_py.orchestrate.supervision.leftovers import LeftoverRecord, segments
from omb_py.orchestrate.supervision.processes import CAUGHT
from omb_py.results.skip import Skip

_AFTER_COLLECTOR_S, _AFTER_RANK_0_S = 5.0, 10.0
"""Seconds beyond --timeout within which rank 0 and the other ranks must have joined."""
_TO_BE_REAPED_S = 1.0
_NOTING = 2
"""Ranks of a node that note what would be left."""
ADDRESS_FD = "OMB_PY_ADDRESS_FD"
"""Environment variable with the descriptor to which the collector writes its address and token."""


def run_joined(
    checked: Sequence[CheckedRequest], joined: Joined, skips: Sequence[Skip] = (), resume: str | None = None
) -> RunOutcome:
    """Run as one rank of a foreign launcher's job. Rank 0 raises OmbError; the others exit quietly with its code.

    Args:
        checked: one request, or those of a suite.
        joined: rank and size that the launcher gave to this process.
        skips: parts that cannot be measured here.
        resume: run of a suite to resume: its id, or ``last``.
    """
    try:
        launches = plan_launches([each.on_ranks(started_ranks(each.request.ranks, joined)) for each in checked])
        chosen, left_out = _choose_fitting(launches)
        return _join(joined, Job(chosen, joined.launcher, [*skips, *left_out], resume))
    except OmbError as error:
        if joined.rank == 0:
            raise
        let_rank_0_speak()
        return RunOutcome(error.exit_code, "", root=False)


def started_ranks(given: int | None, joined: Joined) -> int:
    """The number of ranks that a launcher started, by ``-n`` or by the launcher.

    Raises UsageError where they contradict each other, or neither says it.
    """
    if given is not None and joined.size not in (None, given):
        raise UsageError(f"-n {given}, but {joined.launcher} started {joined.size} ranks: leave -n out")
    ranks = given or joined.size
    if ranks is None:
        raise UsageError(f"{joined.launcher} does not say how many ranks it started: add -n N")
    return ranks


def _choose_fitting(launches: list[LaunchPlan]) -> tuple[LaunchPlan, list[Skip]]:
    """Choose the largest launch, and give a skip for each other one: the job starts its processes only once."""
    chosen = max(launches, key=lambda launch: len(launch.cells))  # max takes the first of equal ones
    skips = []
    for launch in launches:
        kind = _kind(launch)
        if kind != _kind(chosen):
            alike = launch.backend == chosen.backend
            suite = [cell.benchmark for cell in launch.cells if launch.requests[cell.sweep].part]
            names = dict.fromkeys(suite or [f"binding {cell.binding}" for cell in launch.cells if alike])
            reason = f"this job was started once, for {_kind(chosen)}; let omb-py start the ranks to have both"
            skips.append(Skip(f"{', '.join(names)} ({kind})" if names else kind, reason))
        elif launch is not chosen:
            reason = "a job is one launch; start it again for the next sample"
            skips.append(Skip(f"launch {launch.index + 1}", reason))
    return chosen, skips


def _kind(launch: LaunchPlan) -> str:
    """The properties that are fixed when the processes of a launch start, in words."""
    usual = asdict(Needs())
    needs = {name: value for name, value in asdict(launch.needs).items() if name != "thread_level"}
    more = [f", {name} {value}" for name, value in needs.items() if value != usual[name]]
    return f"{launch.backend} at thread level {launch.needs.thread_level}" + "".join(more)


@dataclass(frozen=True, slots=True)
class Job:
    """The task of the collector process, which reads it pickled from stdin."""

    launch: LaunchPlan
    launcher: str
    skips: list[Skip] = field(default_factory=list)
    resume: str | None = None
    run_id: str = ""
    busy: str = ""
    """As :attr:`omb_py.orchestrate.running.collector.CommandState.busy`."""


class CollectorProcess:
    """The collector, which rank 0 starts before it initialises MPI."""

    def __init__(self, job: Job) -> None:
        # check the store here, where rank 0 can still raise the error
        run = new_run(job.launch.requests[0], [job.launch])
        self.run_id = run.run_id
        run.lock = None  # the collector takes it
        say_busy(run)
        requests = tuple(request.changed(seed=run.seed) for request in job.launch.requests)
        self._job = replace(
            job, launch=replace(job.launch, requests=requests), run_id=run.run_id, busy=run.command.busy
        )
        self.address = self.token = ""
        self._reader, writer = os.pipe()
        self._child = subprocess.Popen(
            [sys.executable, "-m", "omb_py.orchestrate.running.joined_collector"],
            stdin=subprocess.PIPE,
            env={**os.environ, ADDRESS_FD: str(writer)},
            pass_fds=(writer,),
            start_new_session=True,  # the launcher's kill must not take the results along
        )
        os.close(writer)
        self.pid = self._child.pid

    def begin(self) -> None:
        """Give it its task, and wait for its address, which is empty where it ends before.

        Raises LaunchFailed where it was killed.
        """
        assert self._child.stdin is not None
        with contextlib.suppress(BrokenPipeError), self._child.stdin as task:
            pickle.dump(self._job, task)
        with os.fdopen(self._reader) as pipe:
            self.address, self.token = [*pipe.readline().split(), "", ""][:2]
        if not self.address:
            self.check_alive()

    def check_alive(self) -> None:
        """Raise LaunchFailed, with its name, where a signal has ended it; what ended by itself has said why."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._check(self._child.wait(_TO_BE_REAPED_S))

    def say_that_it_was_killed(self) -> None:
        """The same as a line on stderr, for a process that ends at once."""
        try:
            self.check_alive()
        except LaunchFailed as error:
            sys.stderr.write(f"omb-py: error: {error}\n")
            sys.stderr.flush()

    def stop(self) -> None:
        self._child.kill()
        self._child.wait()

    def wait(self) -> int:
        """Wait for its end; its exit code. Raises LaunchFailed where a signal has ended it."""
        return self._check(self._child.wait())

    def _check(self, code: int) -> int:
        if code < 0:
            raise LaunchFailed(f"{collector_name(self.pid)} was ended by signal {-code}. What to do: start again")
        return code


def _join(joined: Joined, job: Job) -> RunOutcome:
    collector: CollectorProcess | None = None
    problem: OmbError | None = None
    if joined.rank == 0:
        try:
            collector = CollectorProcess(job)
        except OmbError as error:  # the other ranks wait in the library, and get the code below
            problem = error
    # who speaks first knows most: the collector, rank 0, the other ranks
    limit_s = job.launch.requests[0].launching.timeout + (_AFTER_COLLECTOR_S if joined.rank == 0 else _AFTER_RANK_0_S)
    launcher = os.getppid()
    # two ranks of a node: srun ends no other where one is killed before it has noted anything
    notes = (joined.rank if joined.local_rank is None else joined.local_rank) < _NOTING
    record = LeftoverRecord.of_foreign_job() if notes else None
    watcher = Watcher(joined.rank, limit_s, collector.pid if collector else None)
    try:
        return _measure(joined, job, collector, problem, watcher, record, launcher)
    finally:
        watcher.end()
        _end_with(launcher)


def _end_with(launcher: int) -> None:
    """End with the launcher from now on: without it the library would wait for ever in MPI_Finalize."""
    if not die_with_parent(launcher):
        os._exit(LOST)


def _report_interrupts(link: Link) -> None:
    """Let the signals end the run as a whole, also in a call of the library: a rank that they end is one that died."""
    numbers = [number for number in CAUGHT if signal.getsignal(number) is signal.SIG_DFL]
    if not numbers:  # ignored, or another program's
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    def report() -> None:
        os.read(reader, 1)
        link.when_lost = partial(os._exit, INTERRUPTED)
        link.send("interrupted")

    threading.Thread(target=report, name="omb-interrupts", daemon=True).start()
    for number in numbers:
        signal.signal(number, lambda number, frame: None)
    signal.set_wakeup_fd(writer)


def _leave(launcher: int, watcher: Watcher) -> None:
    """Prepare for the end of the library, when all is told."""
    ignore_interrupts()
    watcher.leaving()
    _end_with(launcher)


def _measure(
    joined: Joined,
    job: Job,
    collector: CollectorProcess | None,
    problem: OmbError | None,
    watcher: Watcher,
    record: LeftoverRecord | None,
    launcher: int,
) -> RunOutcome:
    """Join the ranks and measure. `problem` is why rank 0 has no collector."""
    launch = job.launch
    if collector is not None:
        try:
            collector.begin()
        except LaunchFailed as error:
            problem = error
    try:
        session = find(launch.backend).connect(connection_of(launch.requests[0], launch))
        if joined.size not in (None, session.size):
            raise unjoined(joined, session.size, f"{session.library} {session.library_version}")
    except OmbError:
        if collector is not None:
            collector.stop()
        raise
    message = ("", "", problem.exit_code if problem else OK)
    if collector is not None:
        message = (collector.address, collector.token, message[2] if collector.address or problem else collector.wait())
    address, token, code = session.share(message)
    if not address:
        session.close()
        if problem is not None:
            raise problem
        if joined.rank > 0 and code != OK:
            let_rank_0_speak()
        return RunOutcome(code, "", root=joined.rank == 0)
    try:
        link = Link.connect(address, token, agent=agent_of_this_node)
    except LinkRefused:
        if collector is not None:
            collector.check_alive()
        raise
    link.when_lost = collector.say_that_it_was_killed if collector else let_rank_0_speak
    watcher.joined()
    _report_interrupts(link)
    if record is not None:
        record.add(segments(os.getpid()))
    code = measure_on(link, session, partial(_leave, launcher, watcher))
    if collector is None:
        return RunOutcome(code, "", root=False)
    code = collector.wait()
    return RunOutcome(code if code else OK, collector.run_id)
