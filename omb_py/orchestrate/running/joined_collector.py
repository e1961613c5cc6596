"""The collector process of a run inside a foreign launcher (see :mod:`omb_py.orchestrate.running.joined_run`)."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from dataclasses import replace

from omb_py.engine.rank.launcher_variables import on_one_host
from omb_py.errors import ENVIRONMENT, Interrupted, LaunchFailed, OmbError
from omb_py.orchestrate.running.collector import Collector
from omb_py.orchestrate.running.joined_run import ADDRESS_FD, Job
from omb_py.orchestrate.running.resume import remaining
from omb_py.orchestrate.running.run import finish, print_skipped, spec_of, supervise
from omb_py.orchestrate.running.suite_run import (
    begin_run,
    exit_code_of,
    lacking,
    run_to_resume,
    unmeasured,
)


def main() -> int:
    """Supervise ranks that a foreign launcher started. Returns the run's exit code."""
    try:
        job: Job = pickle.load(sys.stdin.buffer)
    except (EOFError, pickle.UnpicklingError):
        print("omb-py: error: rank 0 ended before it had given the collector its task", file=sys.stderr, flush=True)
        return ENVIRONMENT
    descriptor = int(os.environ.pop(ADDRESS_FD))
    said: list[OmbError] = []

    def say(error: OmbError) -> None:
        said.append(error)
        print(f"omb-py: error: {error}", file=sys.stderr, flush=True)

    try:
        return _collect(job, descriptor, say)
    except OmbError as error:
        if error not in said:
            say(error)
        return error.exit_code


def _collect(job: Job, descriptor: int, say: Callable[[OmbError], None]) -> int:
    launch, skips = job.launch, list(job.skips)
    stored = run_to_resume(launch.requests, job.resume)
    left = [launch] if stored is None else remaining([launch], stored)
    run = begin_run(launch.requests, [launch], left, stored, job.resume, job.run_id)
    run.command.busy = job.busy
    launch = left[0] if left else replace(launch, cells=())

    def announce(address: str, token: str) -> None:
        try:
            with os.fdopen(descriptor, "w") as pipe:
                pipe.write(f"{address} {token}\n")
        except BrokenPipeError:
            raise LaunchFailed("rank 0 ended before it had the address of its collector") from None

    collector = Collector(run, launch, {"launcher": job.launcher, "command": []})
    spec = spec_of(run, launch)
    try:
        local = on_one_host(os.environ)
        supervise(collector, spec, words=None, local=local, launcher=job.launcher, announce=announce, failed=say)
    except BaseException as error:  # also of a launcher that is gone, so that nobody reads what is printed
        run.ended_early("interrupted" if isinstance(error, Interrupted) else "failed")
        if run.request.part is not None and isinstance(error, OmbError):
            skips += unmeasured(launch, run, "the job ended before it was measured")
        raise
    finally:
        skips += lacking(run, launch)
        finish(run)
        print_skipped(skips)
    return exit_code_of(run, skips, stored)


if __name__ == "__main__":
    sys.exit(main())
