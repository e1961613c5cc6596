"""Who dies when, inside a foreign launcher: does the job end, does a line say it, does nothing stay?

``python -m tests.lab.hostile.foreign_launches [TIMES] [LAUNCHER] [PART OF A CELL'S NAME]`` tries every cell and prints
a table: with the mpirun beside this Python, with ``srun`` of a Slurm that it starts, or with ``torchrun`` over Gloo.
A cell fails where the job outlives its limit, a process or a file stays, a traceback is printed, or nobody says what
happened.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from omb_py.engine.rank import scratch
from omb_py.launchers.mpi_library import mpi_library
from omb_py.launchers.srun import srun_type
from omb_py.orchestrate.supervision import leftovers
from tests.support.machines.mpi import AS_ROOT, ONE_THREAD, ROOT, YIELD, torchrun
from tests.support.machines.slurm import cluster

TIMEOUT_S = {"mpirun": 6, "srun": 6, "torchrun": 30}
"""Importing PyTorch takes longer than MPI needs; the machine may be loaded."""
LIMIT_S = 60
"""A job that has not ended so long after the blow, and its own limit, hangs."""
NEXT_LAUNCH_S = 40
"""Slurm's step, which may still hold what is left, outlives its processes; on a loaded machine for long."""
SIZES, CELLS = "8:256", 6
MARK = "OMB_PY_LAB_JOB"
RANK = f"{sys.executable} -m omb_py allreduce"
OVERSUBSCRIBE = {
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
}


LAUNCHERS = {
    "mpirun": (str(Path(sys.executable).parent / "mpirun"), "-n", "2"),
    "srun": ("srun", "-n", "2", "--input=none"),
    "torchrun": torchrun(2),
}
RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "RANK", "SLURM_PROCID")
"""Variables in which launchers tell a rank its number."""
IN_INIT = {"mpirun": "libmpi", "srun": "libmpi", "torchrun": "libtorch"}
"""The library that is in memory once a rank is about to initialise it."""


@dataclass
class ForeignJob:
    """A job whose processes carry a mark in their environment."""

    folder: Path
    by: str = "mpirun"
    environ: Mapping[str, str] = field(default_factory=dict)
    out: Path = field(init=False)
    launcher: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.segments: set[str] = set()
        self.pids: set[int] = set()
        """Shared memory and numbers that its processes have had: beside this job others leave theirs."""
        self.mark = f"{os.getpid()}-{time.monotonic_ns()}"
        self.out, self.err = self.folder / "out", self.folder / "err"
        line = f"allreduce -m {SIZES} -i 3000 --timeout {TIMEOUT_S[self.by]} --store {self.folder / 'store'}"
        words = [*line.split(), *(("--backend", "gloo") if self.by == "torchrun" else ())]
        environ = {
            **os.environ,
            **AS_ROOT,
            **OVERSUBSCRIBE,
            **ONE_THREAD,
            **YIELD,
            **self.environ,
            MARK: self.mark,
            "PYTHONPATH": str(ROOT),
        }
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            command = [*LAUNCHERS[self.by], sys.executable, "-m", "omb_py", *words]
            self.launcher = subprocess.Popen(command, stdout=out, stderr=err, env=environ, start_new_session=True)

    def processes(self) -> dict[int, str]:
        """Process id -> command line of all that live."""
        living = {}
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and f"{MARK}={self.mark}".encode() in (entry / "environ").read_bytes():
                    living[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    self.segments |= leftovers.segments(int(entry.name))
                    self.pids.add(int(entry.name))
        return living

    def find(self, who: str) -> int | None:
        """The process id of ``rank 0``, ``rank 1``, ``collector`` or ``launcher``."""
        if who == "launcher":
            return self.launcher.pid
        living = self.processes()
        for pid, line in living.items():
            if who == "collector" and "joined_collector" in line:
                return pid
            if who.startswith("rank") and line.startswith(RANK):
                with contextlib.suppress(OSError):
                    # what a rank forks beside it has the same line
                    parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
                    if living.get(int(parent), "").startswith(RANK):
                        continue
                    variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                    if any(f"{name}={who[-1]}".encode() in variables for name in RANKS):
                        return pid
        return None

    def rows(self) -> int:
        """How many rows are printed."""
        return sum(line[:1].isdigit() for line in self.out.read_text(errors="replace").splitlines())

    def end(self) -> None:
        """End everything."""
        for pid in [self.launcher.pid, *self.processes()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.launcher.wait()
        if self.by == "srun":  # whose controller would keep the cores of a killed one from the next job
            subprocess.run(("scancel", "--user=root"), env={**os.environ, **self.environ}, check=False)


def _maps(job: ForeignJob, who: str) -> str:
    pid = job.find(who if who.startswith("rank") else "rank 0")
    with contextlib.suppress(OSError, TypeError):
        return Path(f"/proc/{pid}/maps").read_text()
    return ""


WHEN: dict[str, Callable[[ForeignJob, str], bool]] = {
    "before init": lambda job, who: job.find(who) is not None,
    "in init": lambda job, who: IN_INIT[job.by] in _maps(job, who),
    "joining": lambda job, who: "# OSU" in job.out.read_text(errors="replace"),
    "first cell": lambda job, who: job.rows() >= 1,
    "last cell": lambda job, who: job.rows() >= CELLS - 1,
    "finalize": lambda job, who: job.rows() >= CELLS,
}
HAD_ENDED = "had ended"
"""Outcome of a try in which the job was over before the blow: it shows nothing."""
WHO = {
    "rank 0": "KILL",
    "rank 1": "KILL",
    "collector": "KILL",
    "launcher": "KILL",
    "collector stopped": "STOP",
    "rank 1 interrupted": "INT",
}


def try_cell(who: str, when: str, folder: Path, by: str = "mpirun", environ: Mapping[str, str] | None = None) -> str:
    """Let one die; what was wrong, empty for nothing."""
    job = ForeignJob(folder, by, environ or {})
    victim = who.removesuffix(" stopped").removesuffix(" interrupted")
    try:
        begun = time.monotonic()
        while not WHEN[when](job, victim) or job.find(victim) is None:
            if job.launcher.poll() is not None:
                return HAD_ENDED if job.launcher.returncode == 0 else f"ended before: {_last(job)}"
            if time.monotonic() - begun > LIMIT_S + TIMEOUT_S[by]:
                return f"the moment did not come: {job.rows()} rows, {sorted(job.processes().values())}"
            time.sleep(0.02)
        pid = job.find(victim)
        if pid is None or job.launcher.poll() is not None:
            return HAD_ENDED
        try:
            os.kill(pid, getattr(signal, f"SIG{WHO[who]}"))
        except ProcessLookupError:
            return HAD_ENDED
        struck = time.monotonic()
        while job.launcher.poll() is None or job.processes():
            if time.monotonic() - struck > LIMIT_S + TIMEOUT_S[by]:
                return f"HANG: {sorted(job.processes().values())}"
            time.sleep(0.1)
        err = job.err.read_text(errors="replace") + job.out.read_text(errors="replace")
        # torchrun prints one of its own, and Python itself where it is interrupted before omb-py's first line
        if re.search(r'File "[^"]*/omb_py/', err):
            return f"TRACEBACK: {[line for line in err.splitlines() if 'File ' in line][-3:]}"
        if (
            job.launcher.returncode != 0
            and who != "launcher"
            # MPICH's mpiexec fails itself, in its own words, where a rank is killed while it speaks to it
            and not re.search(r"omb-py: error: |KILLED BY|Killed|EXIT|signal|non-zero|\[mpiexec@\S+ .*error", err)
        ):
            return f"nobody said it: {job.launcher.returncode}, {_last(job)}"
        died = re.findall(r"omb-py: error: (rank \d+ on .*\(pid \d+\)) died", err)
        blamed = re.findall(r"rank (\d+) on", " ".join(died))
        if blamed and victim.startswith("rank") and victim[-1] not in blamed:
            return f"BLAMED: {[line for line in err.splitlines() if 'omb-py: error: ' in line]}"
        if victim == "collector" and job.launcher.returncode != 0 and "collector" not in err:
            return f"not named: {_last(job)}"
        # Open MPI's folder is named by its mpirun
        session = Path(tempfile.gettempdir()) / f"ompi.{job.launcher.pid}"
        ended = time.monotonic()
        while left := {*_files(job), *filter(os.path.exists, [str(session)])}:
            if time.monotonic() - ended > NEXT_LAUNCH_S:
                break
            time.sleep(0.5)
            leftovers.clean()  # what the next launch does
        return f"LEFT: {sorted(left)}" if left else ""
    finally:
        job.end()


def _files(job: ForeignJob) -> set[str]:
    """What a job left: segments that no process uses, records whose process has ended."""
    folders = (str(folder) for folder in scratch.abandoned() if int(folder.name.split("-")[3]) in job.pids)
    return {*leftovers.orphaned(frozenset()) & job.segments, *folders}


def _last(job: ForeignJob) -> str:
    return " | ".join(job.err.read_text(errors="replace").strip().splitlines()[-3:])[:300]


def main(times: int = 3, by: str = "mpirun", only: str = "") -> int:
    """Print the table; 1 where a cell failed."""
    # a shell lets what it starts beside itself ignore the signal, and ranks inherit that
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with cluster(nodes=1) if by == "srun" else contextlib.nullcontext() as slurm:
        kind = srun_type(mpi_library(sys.executable).vendor, ("pmi2", "pmix"))
        environ = slurm.environ(SLURM_MPI_TYPE=kind) if slurm else {}
        chosen = [(who, when) for who in WHO for when in WHEN if only in f"{who} {when}"]
        return int(sum([_try_often(times, who, when, by, environ) for who, when in chosen]) > 0)


def _try_often(times: int, who: str, when: str, by: str, environ: Mapping[str, str]) -> int:
    wrong, took, ended = [], [], 0
    while len(took) < times and ended < 3 * times:
        with tempfile.TemporaryDirectory() as folder:
            begun = time.monotonic()
            outcome = try_cell(who, when, Path(folder), by, environ)
        if outcome == HAD_ENDED:
            ended += 1
            continue
        wrong += filter(None, [outcome])
        took.append(time.monotonic() - begun)
    struck = f"{len(took) - len(wrong)}/{len(took)} max {max(took, default=0):5.1f} s, had ended {ended}"
    line = f"{by:<8} {who:<20} {when:<12} {struck} {'; '.join(wrong)}"
    print(line, flush=True)
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main(*(int(word) if word.isdigit() else word for word in sys.argv[1:])))
