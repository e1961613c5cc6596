"""Inside a foreign launcher: every process of ``mpirun -n 4 omb-py allreduce`` becomes a rank.

Rank 0 starts one more process, the collector, which supervises, prints and stores exactly as the parent does when
omb-py starts the ranks itself; so losing rank 0 loses nothing, and no rank loads an analysis package.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from dataclasses import replace

from omb_py.errors import OK, OmbError, UsageError
from omb_py.orchestrate.execute import RunOutcome, new_run, offers, unjoined
from omb_py.orchestrate.joining import Joined, let_rank_0_speak
from omb_py.orchestrate.plan import LaunchPlan, plan
from omb_py.orchestrate.request import DEFAULT_RANKS, Request

ADDRESS_FD = "OMB_PY_ADDRESS_FD"


def run_joined(request: Request, joined: Joined) -> RunOutcome:
    """Be one rank of a foreign launcher's job. Raises OmbError on rank 0; the others leave quietly with its code."""
    try:
        if request.ranks is not None and joined.size not in (None, request.ranks):
            raise UsageError(f"-n {request.ranks}, but {joined.launcher} started {joined.size} ranks: leave -n out")
        launches = plan(request, joined.size or request.ranks or DEFAULT_RANKS, offers(request))
        chosen, skipped = _fitting(launches)
        return _join(request, joined, chosen, skipped)
    except OmbError as error:
        if joined.rank == 0:
            raise
        let_rank_0_speak()
        return RunOutcome(error.exit_code, "", root=False)


def _fitting(launches: list[LaunchPlan]) -> tuple[LaunchPlan, list[str]]:
    """The launch that this job can be, and why the others cannot: what a process start fixes is fixed."""
    chosen, *rest = launches
    reasons = [
        f"skipped: {launch.backend} at thread level {launch.thread_level}: this job was started once, for "
        f"{chosen.backend} at {chosen.thread_level}; let omb-py start the ranks to have both"
        if (launch.backend, launch.thread_level) != (chosen.backend, chosen.thread_level)
        else f"skipped: launch {launch.index + 1}: a job is one launch; start it again for the next sample"
        for launch in rest
    ]
    return chosen, reasons


class CollectorProcess:
    """The process that rank 0 starts, before it initialises MPI."""

    def __init__(self, request: Request, launch: LaunchPlan, launcher: str, notes: list[str]) -> None:
        run = new_run(request, [launch])  # checks the store here, where the error can still be shown
        self.run_id = run.run_id
        request = replace(request, seed=run.seed)
        reader, writer = os.pipe()
        self._child = subprocess.Popen(
            [sys.executable, "-m", "omb_py.orchestrate.collect"],
            stdin=subprocess.PIPE,
            env={**os.environ, ADDRESS_FD: str(writer)},
            pass_fds=(writer,),
            start_new_session=True,  # the launcher's kill must not take the results along
        )
        os.close(writer)
        assert self._child.stdin is not None
        pickle.dump((request, launch, launcher, self.run_id, notes), self._child.stdin)
        self._child.stdin.close()
        with os.fdopen(reader) as pipe:
            self.address, self.token = [*pipe.readline().split(), "", ""][:2]

    def stop(self) -> None:
        """The ranks never joined: nothing will come."""
        self._child.kill()
        self._child.wait()

    def wait(self) -> int:
        """Exit code of the run."""
        return self._child.wait()


def _join(request: Request, joined: Joined, launch: LaunchPlan, notes: list[str]) -> RunOutcome:
    from omb_py.backends.registry import find
    from omb_py.engine.link import Link
    from omb_py.orchestrate.worker import measure_on

    collector = CollectorProcess(request, launch, joined.launcher, notes) if joined.rank == 0 else None
    try:
        session = find(launch.backend).connect({"thread_level": launch.thread_level, "ranks": launch.ranks})
        if joined.size not in (None, session.size):
            raise unjoined(joined, session.size)
    except OmbError:
        if collector is not None:
            collector.stop()
        raise
    address, token = session.share((collector.address, collector.token) if collector else None)
    link = Link.connect(address, token)
    code = measure_on(link, session)
    if collector is None:
        return RunOutcome(code, "", root=False)
    code = collector.wait()
    return RunOutcome(code if code else OK, collector.run_id)
