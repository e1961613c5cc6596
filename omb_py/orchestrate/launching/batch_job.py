"""Any omb-py command line as a batch job: write its script, submit it, wait for it, and collect its output."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from omb_py.distribution import checkout
from omb_py.errors import ENVIRONMENT, INCONCLUSIVE, INTERRUPTED, NEGATIVE, OK, USAGE, EnvironmentProblem, Interrupted
from omb_py.launchers.launcher import BatchRequest, BatchSystem
from omb_py.launchers.registry import BATCH_SYSTEMS
from omb_py.process_end import TYPED

SCHEDULERS = {system.submit_name: system for system in BATCH_SYSTEMS if system.submit_name}
"""The batch systems to which jobs can be submitted, by the values of ``--submit``."""
_WORST = (INTERRUPTED, ENVIRONMENT, USAGE, NEGATIVE, INCONCLUSIVE, OK)
"""Exit codes from worst to best: several jobs end with the worst. Any other code counts as ENVIRONMENT."""
_FILES = ("--output", "-o")
"""Options that name a file, of which each of several jobs needs one of its own."""
_SHARED_S = 5.0
"""Seconds to wait until a shared file system shows the files of a job."""


@dataclass(frozen=True, slots=True)
class Done:
    """A job, or an array of jobs, that has ended."""

    job: str
    where: str
    """The node list that was asked for; may be empty."""
    code: int
    """The worst exit code of its tasks."""
    files: tuple[Path, ...]
    """The output of its tasks."""
    silent: tuple[str, ...] = ()
    """Tasks that left no exit code."""


def script_of(request: BatchRequest, environ: Mapping[str, str] = os.environ) -> str:
    """The text of the script. The nodes of a subset are not in it: they stand on the command line that submits it."""
    system = SCHEDULERS[request.scheduler]
    lines = ["#!/bin/bash", *system.directives(request)]
    lines += ["", "set -u", f"cd {shlex.quote(str(Path.cwd()))} || exit 3"]
    if request.several:
        lines.append(f'part="{system.job_shell}"')
    if source := checkout():  # it need not be installed
        path = os.pathsep.join(filter(None, [source, environ.get("PYTHONPATH")]))
        lines.append(f"export PYTHONPATH={shlex.quote(path)}")
    if request.typed:  # of several, each goes on with its own run, on its own nodes
        own = f'" --subset ${system.nodes[0]}"' if request.array > 1 or request.subsets else ""
        lines.append(f"export {TYPED}={shlex.quote(shlex.join(request.typed))}{own}")
    code = f"{shlex.quote(str(request.folder))}/{system.task_shell}.code"
    # no shell stands between the scheduler's signals and omb-py
    return "\n".join(
        [*lines, f"exec {shlex.quote(sys.executable)} -m omb_py.cli.batch_main {code} {_line(request)}", ""]
    )


def _line(request: BatchRequest) -> str:
    """The command line for a shell. Each of several jobs writes a file of its own: ``report-$part.xml``."""
    quoted, file = [], False
    for word in request.words:
        flag, equals, value = word.partition("=")
        if request.several and (file or (flag in _FILES and equals)):
            path = Path(word if file else value)
            stem, ending = (shlex.quote(text) for text in (str(path.with_suffix("")), path.suffix))
            quoted.append(("" if file else f"{flag}=") + f'{stem}-"$part"{ending}')
        else:
            quoted.append(shlex.quote(word))
        file = word in _FILES
    return " ".join(quoted)


@dataclass(slots=True)
class Jobs:
    """Jobs that were submitted and not collected yet."""

    environ: Mapping[str, str]
    system: BatchSystem
    running: list[tuple[str, str, subprocess.Popen[str]]] = field(default_factory=list)
    """(job number, nodes, the process that waits for its end)."""

    def cancel(self) -> None:
        """End all jobs, and the processes that wait for them."""
        if self.running:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(
                    self.system.cancel_command([job for job, _, _ in self.running]),
                    env=dict(self.environ),
                    timeout=20,
                    check=False,
                    capture_output=True,
                    stdin=subprocess.DEVNULL,
                )
        for _, _, waiting in self.running:
            waiting.kill()
            waiting.wait()
            for pipe in (waiting.stdout, waiting.stderr):
                if pipe is not None:  # not read to its end: a child of it may hold it
                    pipe.close()


def submit(request: BatchRequest, note: Callable[[str], None], environ: Mapping[str, str] = os.environ) -> list[Done]:
    """Write the script, submit it once for each subset, and wait until all jobs have ended.

    Args:
        note: called with a line for each job that is submitted or has ended.

    Raises:
        EnvironmentProblem: the scheduler is missing or refuses; jobs that were submitted before are cancelled.
        Interrupted: Ctrl-C; all jobs are cancelled.
    """
    try:
        request.folder.mkdir(parents=True, exist_ok=True)
        # another command may submit from this folder at the same time
        with tempfile.NamedTemporaryFile("w", prefix="job-", suffix=".sh", dir=request.folder, delete=False) as file:
            file.write(script_of(request, environ))
        script = Path(file.name)
    except OSError as error:
        raise EnvironmentProblem(f"cannot write a script into {request.folder}: {error.strerror}") from error
    jobs, done = Jobs(environ, SCHEDULERS[request.scheduler]), []
    try:
        for where in request.subsets or ("",):
            jobs.running.append(_submit_one(request, script, where, environ))
            note(f"submitted job {jobs.running[-1][0]}{f' on {where}' if where else ''}: {script}")
        while jobs.running:
            for entry in [entry for entry in jobs.running if entry[2].poll() is not None]:
                jobs.running.remove(entry)
                done.append(_collect(request, *entry))
                killed = "".join(
                    f"; {name} left no exit code: it was killed, by a signal, a limit or a node's failure"
                    for name in done[-1].silent
                )
                note(f"job {entry[0]} has ended with {done[-1].code}{killed}")
            time.sleep(0.2)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted: {len(jobs.running)} jobs cancelled, {len(done)} had ended") from None
    finally:
        jobs.cancel()
    return done


def _submit_one(
    request: BatchRequest, script: Path, where: str, environ: Mapping[str, str]
) -> tuple[str, str, subprocess.Popen[str]]:
    system = SCHEDULERS[request.scheduler]
    words = system.submit_command(request, script, where)
    try:
        waiting = subprocess.Popen(
            words,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    except OSError as error:
        raise EnvironmentProblem(f"{words[0]}: {error.strerror}: {system.submit_fix}") from None
    assert waiting.stdout is not None
    job = waiting.stdout.readline().strip().split(";")[0]
    if not job:
        _, errors = waiting.communicate()
        last = (errors.strip().splitlines() or [f"exit status {waiting.returncode}"])[-1]
        raise EnvironmentProblem(f"{last}: see {script}")
    return job, where, waiting


def _collect(request: BatchRequest, job: str, where: str, waiting: subprocess.Popen[str]) -> Done:
    waiting.communicate()
    names = [f"{job}_{number}" for number in range(request.array)] if request.array > 1 else [job]
    codes = {path.stem: _code(path) for path in _wait_for(request.folder, [f"{name}.code" for name in names])}
    files = tuple(_wait_for(request.folder, [f"{name}.out" for name in names]))
    silent = tuple(name for name in names if name not in codes)
    worst = min((codes.get(name, ENVIRONMENT) for name in names), key=_WORST.index)
    return Done(job, where, worst, files, silent)


def _code(path: Path) -> int:
    text = path.read_text().strip()
    return int(text) if text.isdigit() and int(text) in _WORST else ENVIRONMENT


def _wait_for(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    """The files of these names, waited for: a shared file system may show them a moment late."""
    deadline = time.monotonic() + _SHARED_S
    for name in names:
        while not (path := folder / name).exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        if path.exists():
            yield path


def code_of(done: Sequence[Done]) -> int:
    """The exit code of several jobs, which is the worst of theirs."""
    return min((job.code for job in done), key=_WORST.index, default=ENVIRONMENT)
