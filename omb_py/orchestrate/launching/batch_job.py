"""Any omb-py command line as a batch job: write its script, submit it, wait for it, and collect its output."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import omb_py
from omb_py.errors import ENVIRONMENT, INCONCLUSIVE, INTERRUPTED, NEGATIVE, OK, USAGE, EnvironmentProblem, Interrupted

SCHEDULERS = ("slurm",)
_WORST = (INTERRUPTED, ENVIRONMENT, USAGE, NEGATIVE, INCONCLUSIVE, OK)
"""Exit codes from worst to best: several jobs end with the worst. Any other code counts as ENVIRONMENT."""
_FILES = ("--output", "-o")
"""Options that name a file, of which each of several jobs needs one of its own."""
_TASK = '"${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}"'
"""Shell text for the name of a job or of a task of an array: ``41``, ``41_0``."""
_SHARED_S = 5.0
"""Seconds to wait until a shared file system shows the files of a job."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A request to the scheduler."""

    words: tuple[str, ...]
    """The command line, without ``omb-py``."""
    folder: Path
    """Folder for the script and the jobs' output; the jobs themselves run in the current folder."""
    nodes: int | None = None
    """Nodes of each job."""
    ranks: int | None = None
    """Tasks of each job."""
    array: int = 1
    """Number of equal jobs, which share no node while they run."""
    subsets: tuple[str, ...] = ()
    """Node lists; each gets a job."""
    extra: tuple[str, ...] = ()
    """The user's own arguments for sbatch."""

    @property
    def several(self) -> bool:
        """Whether there is more than one job."""
        return self.array > 1 or len(self.subsets) > 1


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


def script_of(batch: Batch, environ: Mapping[str, str] = os.environ) -> str:
    """The text of the script. The nodes of a subset are not in it: they stand on sbatch's command line."""
    options = {
        "job-name": f"omb-py-{batch.words[0]}",
        "nodes": batch.nodes,
        "ntasks": batch.ranks,
        "array": f"0-{batch.array - 1}" if batch.array > 1 else None,
        "output": _pattern(batch.folder, "%A_%a.out" if batch.array > 1 else "%j.out"),
    }
    lines = ["#!/bin/bash", *(f"#SBATCH --{name}={value}" for name, value in options.items() if value is not None)]
    if batch.array > 1 or batch.subsets:
        lines.append("#SBATCH --exclusive")
    lines += ["", "set -u", f"cd {shlex.quote(str(Path.cwd()))} || exit 3"]
    if batch.several:
        lines.append('part="$SLURM_JOB_ID"')
    if len(omb_py.__path__) > 1:  # a checkout, which need not be installed
        path = os.pathsep.join(
            filter(None, [str(Path(omb_py.__file__).resolve().parent.parent), environ.get("PYTHONPATH")])
        )
        lines.append(f"export PYTHONPATH={shlex.quote(path)}")
    code = f"{shlex.quote(str(batch.folder))}/{_TASK}.code"
    # no shell stands between the scheduler's signals and omb-py
    return "\n".join([*lines, f"exec {shlex.quote(sys.executable)} -m omb_py.cli.batch_main {code} {_line(batch)}", ""])


def _pattern(folder: Path, name: str) -> str:
    """The file of a directive. Slurm expands ``%j`` in it, and reads quotes as a shell does."""
    return shlex.quote(f"{str(folder).replace('%', '%%')}/{name}")


def _line(batch: Batch) -> str:
    """The command line for a shell. Each of several jobs writes a file of its own: ``report-$part.xml``."""
    quoted, file = [], False
    for word in batch.words:
        flag, equals, value = word.partition("=")
        if batch.several and (file or (flag in _FILES and equals)):
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
    running: list[tuple[str, str, subprocess.Popen[str]]] = field(default_factory=list)
    """(job number, nodes, the sbatch process that waits for its end)."""

    def cancel(self) -> None:
        """End all jobs, and the sbatch processes that wait for them."""
        if self.running:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(
                    ["scancel", *(job for job, _, _ in self.running)],
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
                if pipe is not None:  # not read to its end: a child of sbatch may hold it
                    pipe.close()


def submit(batch: Batch, note: Callable[[str], None], environ: Mapping[str, str] = os.environ) -> list[Done]:
    """Write the script, submit it once for each subset, and wait until all jobs have ended.

    Args:
        batch: the request to the scheduler.
        note: called with a line for each job that is submitted or has ended.
        environ: environment of sbatch.

    Raises:
        EnvironmentProblem: sbatch is missing or refuses; jobs that were submitted before are cancelled.
        Interrupted: Ctrl-C; all jobs are cancelled.
    """
    script = batch.folder / "job.sh"
    try:
        batch.folder.mkdir(parents=True, exist_ok=True)
        script.write_text(script_of(batch, environ))
    except OSError as error:
        raise EnvironmentProblem(f"cannot write {script}: {error.strerror}") from error
    jobs, done = Jobs(environ), []
    try:
        for where in batch.subsets or ("",):
            jobs.running.append(_submitted(batch, script, where, environ))
            note(f"submitted job {jobs.running[-1][0]}{f' on {where}' if where else ''}: {script}")
        while jobs.running:
            for entry in [entry for entry in jobs.running if entry[2].poll() is not None]:
                jobs.running.remove(entry)
                done.append(_ended(batch, *entry))
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


def _submitted(
    batch: Batch, script: Path, where: str, environ: Mapping[str, str]
) -> tuple[str, str, subprocess.Popen[str]]:
    words = ["sbatch", "--wait", "--parsable", *([f"--nodelist={where}"] if where else []), *batch.extra, str(script)]
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
        raise EnvironmentProblem(f"sbatch: {error.strerror}: submit where Slurm is, or --print-script") from None
    assert waiting.stdout is not None
    job = waiting.stdout.readline().strip().split(";")[0]
    if not job:
        _, errors = waiting.communicate()
        last = (errors.strip().splitlines() or [f"exit status {waiting.returncode}"])[-1]
        raise EnvironmentProblem(f"{last}: see {script}")
    return job, where, waiting


def _ended(batch: Batch, job: str, where: str, waiting: subprocess.Popen[str]) -> Done:
    waiting.communicate()
    names = [f"{job}_{number}" for number in range(batch.array)] if batch.array > 1 else [job]
    codes = {path.stem: _code(path) for path in _there(batch.folder, [f"{name}.code" for name in names])}
    files = tuple(_there(batch.folder, [f"{name}.out" for name in names]))
    silent = tuple(name for name in names if name not in codes)
    worst = min((codes.get(name, ENVIRONMENT) for name in names), key=_WORST.index)
    return Done(job, where, worst, files, silent)


def _code(path: Path) -> int:
    text = path.read_text().strip()
    return int(text) if text.isdigit() and int(text) in _WORST else ENVIRONMENT


def _there(folder: Path, names: Sequence[str]) -> Iterator[Path]:
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
