"""Real runs of the command, and the processes that belong to them, for tests that kill and stop processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from tests.support.machines.mpi import AS_ROOT
from tests.support.patience import PATIENCE_S

MARK = "OMB_PY_FAULT_MARK"


class Victim:
    """A process of a run."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        self.environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")

    @property
    def rank(self) -> int | None:
        """The rank, for a rank process."""
        if "running/rank_start" not in self.command or "mpiexec" in self.command or "torch.d" in self.command:
            return None
        for name in (b"PMI_RANK=", b"OMPI_COMM_WORLD_RANK=", b"PMIX_RANK=", b"RANK="):
            for entry in self.environ:
                if entry.startswith(name):
                    return int(entry[len(name) :])
        return None

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal."""
        os.kill(self.pid, number)


class Run:
    """One run of the command in a process group of its own, with everything it printed."""

    def __init__(self, store: Path, *words: str, env: dict[str, str] | None = None, program: str = "omb_py") -> None:
        self.mark = uuid.uuid4().hex
        self.store = store
        self.process = subprocess.Popen(
            [sys.executable, "-m", program, *words, "--store", str(store)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **AS_ROOT, MARK: self.mark, **(env or {})},
        )

    def processes(self) -> Iterator[Victim]:
        """All live processes of the run."""
        wanted = f"{MARK}={self.mark}".encode()
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                state = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[0]
                victim = Victim(int(entry))
            except OSError:  # it ended while we looked
                continue
            if state != "Z" and wanted in victim.environ:
                yield victim

    def rank(self, number: int) -> Victim | None:
        """The process of a rank."""
        return next((v for v in self.processes() if v.rank == number), None)

    def launcher(self) -> Victim | None:
        """mpiexec itself: the child of the command that has the ranks' program (Open MPI's calls itself prterun)."""
        for victim in self.processes():
            try:
                parent = int(Path(f"/proc/{victim.pid}/stat").read_text().rpartition(")")[2].split()[1])
            except OSError:  # it ended while we looked
                continue
            if parent == self.process.pid and "running/rank_start" in victim.command:
                return victim
        return None

    def agent(self) -> Victim | None:
        """The agent of this node."""
        return next((v for v in self.processes() if "supervision.node_agent" in v.command), None)

    def wait_for(self, what: str, seconds: float = PATIENCE_S) -> Victim:
        """Wait until a rank (``rank 1``), the ``launcher`` or the ``agent`` is there, or cannot come any more."""
        look = {"launcher": self.launcher, "agent": self.agent}
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            found = look[what]() if what in look else self.rank(int(what.split()[1]))
            if found is not None:
                return found
            if self.process.poll() is not None:
                break
            time.sleep(0.01)
        raise AssertionError(f"{what} did not start")

    def wait_for_cells(self, count: int, seconds: float = PATIENCE_S) -> None:
        """Wait until that many cells are in the journal."""
        until = time.monotonic() + seconds
        while sum(path.read_bytes().count(b"\n") - 1 for path in self.store.glob(".journal/*.jsonl")) < count:
            assert time.monotonic() < until, f"fewer than {count} cells after {seconds:g} s"
            time.sleep(0.02)

    def finish(self, seconds: float = PATIENCE_S) -> tuple[int, str, str]:
        """(exit code, stdout, stderr)."""
        out, err = self.process.communicate(timeout=seconds)
        return self.process.returncode, out, err

    def assert_no_orphans(self, seconds: float = PATIENCE_S) -> None:
        """Every process of the run is gone."""
        until = time.monotonic() + seconds
        while left := [v.command for v in self.processes() if v.pid != self.process.pid]:
            assert time.monotonic() < until, f"still alive: {left}"
            time.sleep(0.05)


def announced(stdout: str) -> list[int]:
    """Sizes of the rows that were printed whole."""
    return [int(m[1]) for m in re.finditer(r"^(\d+) +\d+\.\d\d.*\n", stdout, re.M)]


def stored(store: Path) -> list[int]:
    """Sizes in the store, after recovery."""
    from omb_py.results.store.read import load
    from omb_py.results.store.recovery import recover

    recover(store)
    return sorted(int(size) for size in load(store)["size_bytes"]) if any(store.glob("date=*/*.parquet")) else []
