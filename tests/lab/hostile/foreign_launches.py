"""Who dies when, inside a foreign launcher: does the job end, does a line say it, does nothing stay?

``python -m tests.lab.hostile.foreign_launches [TIMES]`` tries every cell with the mpirun beside this Python and prints a
table. A cell fails where the job outlives its limit, a process or a file stays, a traceback is printed, or nobody says
what happened.
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
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from omb_py.engine.rank import scratch
from omb_py.orchestrate.supervision import leftovers
from tests.support.machines.mpi import AS_ROOT, ONE_THREAD, ROOT, YIELD

TIMEOUT_S = 6
LIMIT_S = 60
"""A job that has not ended so long after the blow hangs; the machine may be loaded."""
SIZES = "8:32K"
MARK = "OMB_PY_LAB_JOB"
OVERSUBSCRIBE = {
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
}


@dataclass
class ForeignJob:
    """A job under mpirun, whose processes carry a mark in their environment."""

    folder: Path
    words: tuple[str, ...] = ()
    out: Path = field(init=False)
    launcher: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.mark = f"{os.getpid()}-{time.monotonic_ns()}"
        self.out, self.err = self.folder / "out", self.folder / "err"
        mpirun = str(Path(sys.executable).parent / "mpirun")
        line = f"allreduce -m {SIZES} -i 3000 --timeout {TIMEOUT_S} --store {self.folder / 'store'}"
        command = [mpirun, "-n", "2", sys.executable, "-m", "omb_py", *line.split()]
        environ = {
            **os.environ,
            **AS_ROOT,
            **OVERSUBSCRIBE,
            **ONE_THREAD,
            **YIELD,
            MARK: self.mark,
            "PYTHONPATH": str(ROOT),
        }
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.launcher = subprocess.Popen(
                [*command, *self.words], stdout=out, stderr=err, env=environ, start_new_session=True
            )

    def processes(self) -> dict[int, str]:
        """Process id -> command line of all that live."""
        living = {}
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and f"{MARK}={self.mark}".encode() in (entry / "environ").read_bytes():
                    living[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        return living

    def find(self, who: str) -> int | None:
        """The process id of ``rank 0``, ``rank 1``, ``collector`` or ``launcher``."""
        if who == "launcher":
            return self.launcher.pid
        for pid, line in self.processes().items():
            if who == "collector" and "joined_collector" in line:
                return pid
            if who.startswith("rank") and re.search(r"-m omb_py allreduce", line) and "mpirun" not in line:
                with contextlib.suppress(OSError):
                    # a watcher is a child of its rank, with the same line
                    parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
                    if re.search(
                        r"-m omb_py allreduce", self.processes().get(int(parent), "")
                    ) and "mpirun" not in self.processes().get(int(parent), "mpirun"):
                        continue
                    variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                    if any(f"{name}={who[-1]}".encode() in variables for name in ("PMI_RANK", "OMPI_COMM_WORLD_RANK")):
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


def _maps(job: ForeignJob, who: str) -> str:
    pid = job.find(who if who.startswith("rank") else "rank 0")
    with contextlib.suppress(OSError, TypeError):
        return Path(f"/proc/{pid}/maps").read_text()
    return ""


WHEN: dict[str, Callable[[ForeignJob, str], bool]] = {
    "before init": lambda job, who: job.find(who) is not None,
    "in init": lambda job, who: "libmpi" in _maps(job, who),
    "joining": lambda job, who: "# OSU" in job.out.read_text(errors="replace"),
    "first cell": lambda job, who: job.rows() >= 1,
    "last cell": lambda job, who: job.rows() >= 12,
    "finalize": lambda job, who: job.rows() >= 13,
}
WHO = {
    "rank 0": "KILL",
    "rank 1": "KILL",
    "collector": "KILL",
    "launcher": "KILL",
    "collector stopped": "STOP",
    "rank 1 interrupted": "INT",
}


def try_cell(who: str, when: str, folder: Path) -> str:
    """Let one die; what was wrong, empty for nothing."""
    before = _files()
    job = ForeignJob(folder)
    victim = who.removesuffix(" stopped").removesuffix(" interrupted")
    try:
        begun = time.monotonic()
        while not WHEN[when](job, victim) or job.find(victim) is None:
            if job.launcher.poll() is not None:
                return "" if job.launcher.returncode == 0 else f"ended before: {_last(job)}"
            if time.monotonic() - begun > LIMIT_S:
                return "the moment did not come"
            time.sleep(0.02)
        pid = job.find(victim)
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, getattr(signal, f"SIG{WHO[who]}"))
        struck = time.monotonic()
        while job.launcher.poll() is None or job.processes():
            if time.monotonic() - struck > LIMIT_S:
                return f"HANG: {sorted(job.processes().values())}"
            time.sleep(0.1)
        err = job.err.read_text(errors="replace") + job.out.read_text(errors="replace")
        if "Traceback" in err:
            return f"TRACEBACK: {err.strip().splitlines()[-1]}"
        if (
            job.launcher.returncode != 0
            and who != "launcher"
            and not re.search("omb-py: error: |KILLED BY|EXIT|signal", err)
        ):
            return "nobody said it"
        if victim == "collector" and job.launcher.returncode != 0 and "collector" not in err:
            return f"not named: {_last(job)}"
        leftovers.clean()
        left = _files() - before
        return f"LEFT: {sorted(left)}" if left else ""
    finally:
        job.end()


def _files() -> set[str]:
    """What launches of anybody left: segments that no process uses, folders whose process has ended."""
    sessions = (
        path for path in Path(tempfile.gettempdir()).glob("ompi.*") if path.name.removeprefix("ompi.").isdigit()
    )
    return {
        *leftovers.orphaned(frozenset()),
        *(str(path) for path in sessions if not Path(f"/proc/{path.suffix[1:]}").exists()),
        *map(str, scratch.abandoned()),
    }


def _last(job: ForeignJob) -> str:
    return " | ".join(job.err.read_text(errors="replace").strip().splitlines()[-3:])[:300]


def main(times: int = 3, only: str = "") -> int:
    """Print the table; 1 where a cell failed."""
    failed = 0
    for who in WHO:
        for when in WHEN:
            if only and only not in f"{who} {when}":
                continue
            wrong, took = [], []
            for _ in range(times):
                with tempfile.TemporaryDirectory() as folder:
                    begun = time.monotonic()
                    wrong += filter(None, [try_cell(who, when, Path(folder))])
                    took.append(time.monotonic() - begun)
            failed += len(wrong)
            print(
                f"{who:<20} {when:<12} {times - len(wrong)}/{times} max {max(took):5.1f} s {'; '.join(wrong)}",
                flush=True,
            )
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(*(int(word) if word.isdigit() else word for word in sys.argv[1:])))
