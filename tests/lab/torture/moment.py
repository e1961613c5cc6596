"""One moment: a workload runs, a process of it is killed, stopped or starved, and everything is counted after it.

``python -m tests.lab.torture.moment '{"workload": "run", …}'`` in a namespace of its own (:mod:`tests.lab.torture.__main__`):
each other process is part of the run, and /dev/shm and /tmp are empty before.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.lab.torture.workloads import WORKLOADS, Workload, announced, missing
from tests.orchestrate.supervision.faultlab import Run
from tests.support.machines.mpi import ONE_THREAD, YIELD, run_command

TARGETS = ("rank", "agent", "launcher", "parent")
ACTIONS = ("kill", "stop", "starve")
STARVED_S, ASLEEP_S = 4.0, 6.0
TOO_LONG_S = 240.0
"""A run that takes longer hangs."""
ENOUGH_S = 30.0
"""Seconds that a process has to appear, and orphans to end."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What is done to whom, and when."""

    number: int
    library: str
    workload: str
    target: str
    action: str
    rank: int
    after: float
    """Fraction of the time that the workload takes undisturbed."""


@dataclass(slots=True)
class Outcome:
    """What was counted."""

    moment: dict[str, Any]
    seconds: float = 0.0
    struck: str = ""
    """Command line of the process that was struck; nothing where the run had ended before."""
    code: int = 0
    announced: int = 0
    """Rows that were on paper or in a journal when the process was struck, or printed later."""
    stored: int = 0
    wrong: list[str] = field(default_factory=list)
    last: str = ""


def draw(count: int, seed: int, libraries: Iterable[str]) -> list[Moment]:
    """So many moments: every workload, target and action as often on every library, at random times."""
    rng = random.Random(seed)
    kinds = [
        (library, workload, target, action)
        for workload in WORKLOADS
        for target in TARGETS
        for action in ACTIONS
        for library in libraries
    ]
    rng.shuffle(kinds)
    chosen = [kinds[number % len(kinds)] for number in range(count)]
    return [
        Moment(number, *_possible(*kind), rng.randrange(WORKLOADS[kind[1]].ranks), round(rng.uniform(0.02, 0.95), 3))
        for number, kind in enumerate(chosen)
    ]


def _possible(library: str, workload: str, target: str, action: str) -> tuple[str, str, str, str]:
    """Open MPI's mpiexec starts the ranks of its own host itself: there is no agent, so a rank is struck instead."""
    return library, workload, "rank" if (library, target) == ("Open MPI", "agent") else target, action


def rows_of(store: Path) -> list[tuple[int, float]]:
    """Size and value of each row in journals and files, read without omb-py's reader of journals."""
    import pyarrow.parquet as pq

    rows = []
    for path in store.glob(".journal/*.jsonl"):
        for line in path.read_bytes().split(b"\n")[:-1]:
            row = json.loads(line).get("row")
            if row:
                rows.append((row["size_bytes"], row["value"]))
    for path in store.glob("date=*/*.parquet"):
        table = pq.read_table(path, columns=["size_bytes", "value"])
        rows += zip(table["size_bytes"].to_pylist(), table["value"].to_pylist(), strict=True)
    return rows


def main(words: list[str]) -> int:
    """Run the moment of the first word, with the seconds of the second as the undisturbed time; print the outcome."""
    moment, calm_s = Moment(**json.loads(words[0])), float(words[1])
    print(json.dumps(asdict(tried(moment, calm_s))))
    return 0


def tried(moment: Moment, calm_s: float) -> Outcome:
    """Make the run, strike, wait, count."""
    work, folder = WORKLOADS[moment.workload], Path("/tmp/torture")
    folder.mkdir()
    store = folder / "store"
    before = everything()
    outcome = Outcome(asdict(moment))
    started = time.monotonic()
    run = Run(store, *work.prepared(folder), env={**YIELD, **ONE_THREAD, "OMB_PY_PROGRESS": "never"})
    reader = _Reader(run)
    if moment.action in ACTIONS:
        time.sleep(moment.after * calm_s)
        strike(moment, run, outcome, lambda: len(rows_of(store)))
    reader.wait(TOO_LONG_S, outcome.wrong)
    outcome.seconds = round(time.monotonic() - started, 1)
    outcome.code = run.process.returncode
    judge(moment, work, reader, store, outcome)
    left_behind(moment, run, before, outcome)
    return outcome


class _Reader:
    """Takes what a run prints, so that no pipe is full while the run is watched."""

    def __init__(self, run: Run) -> None:
        import threading

        self._run, self.out, self.err = run, "", ""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        self.out, self.err = self._run.process.communicate()

    def wait(self, seconds: float, wrong: list[str]) -> None:
        self._thread.join(seconds)
        if self._thread.is_alive():
            wrong.append(f"the run did not end within {seconds:g} s")
            self._run.process.kill()
            for victim in self._run.processes():
                victim.kill()
            self._thread.join()


def strike(moment: Moment, run: Run, outcome: Outcome, count: Callable[[], int]) -> None:
    """Find the process and do it."""
    pid = _victim(moment, run)
    if pid is None:
        return
    try:
        name = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        outcome.announced = count()
        if moment.action == "starve":
            _starve(pid)
        else:
            os.kill(pid, signal.SIGKILL if moment.action == "kill" else signal.SIGSTOP)
            if moment.action == "stop" and moment.target == "parent":
                time.sleep(ASLEEP_S)  # nobody watches a parent: it must go on as if nothing had been
                os.kill(pid, signal.SIGCONT)
    except (ProcessLookupError, FileNotFoundError):
        return
    outcome.struck = name[:120]


def _starve(pid: int) -> None:
    """For some seconds the process runs a twentieth of the time."""
    until = time.monotonic() + STARVED_S
    while time.monotonic() < until:
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.19)
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.01)


def _victim(moment: Moment, run: Run) -> int | None:
    """The process, once it is there; None: the run ended without one."""
    until = time.monotonic() + ENOUGH_S
    while run.process.poll() is None and time.monotonic() < until:
        if moment.target == "parent":
            return run.process.pid
        if moment.target == "launcher":
            victim = run.launcher()
        elif moment.target == "agent":
            victim = next((v for v in run.processes() if _is_agent(v.command)), None)
        else:
            victim = run.rank(moment.rank)
        if victim is not None:
            return victim.pid
        time.sleep(0.01)
    return None


def _is_agent(command: str) -> bool:
    """MPICH's proxy, which starts the ranks of a node; or the daemon that does so for Open MPI."""
    return Path(command.split()[0]).name in ("hydra_pmi_proxy", "prted") if command.split() else False


def judge(moment: Moment, work: Workload, reader: _Reader, store: Path, outcome: Outcome) -> None:
    """Rows and exit code against what was announced and what the contract says."""
    wrong, printed = outcome.wrong, announced(reader.out) if moment.workload == "run" else []
    outcome.last = (reader.err.rstrip().splitlines() or [""])[-1][:300]
    kept = recovered(store, wrong)
    outcome.stored = len(kept)
    if len(kept) < outcome.announced:
        wrong.append(f"{outcome.announced} rows were on disk when it was struck, {len(kept)} after it")
    outcome.announced = max(outcome.announced, len(printed))
    wrong += [f"printed, and not stored: {row}" for row in missing(printed, kept)]
    if "Traceback" in reader.err + reader.out:
        wrong.append("a traceback: " + reader.err[-1500:])
    killed_parent = outcome.struck and moment.target == "parent" and moment.action == "kill"
    harmless = not outcome.struck or moment.action == "starve" or moment.target == "parent"
    allowed = {-signal.SIGKILL} if killed_parent else {*work.calm} if harmless else {*work.calm, 3}
    if outcome.code not in allowed:
        wrong.append(f"exit code {outcome.code}, not of {sorted(allowed)}: {reader.err[-1500:]}")
    if outcome.code == 3 and not any("rank" in line or "mpi" in line for line in reader.err.splitlines()[-6:]):
        wrong.append(f"the last lines name nobody: {reader.err[-600:]}")


def recovered(store: Path, wrong: list[str]) -> list[tuple[int, float]]:
    """The rows of the store after ``results recover``, which finds each row of journals and files again."""
    before = sorted(rows_of(store))
    for verb in ("recover", "verify"):
        words = [sys.executable, "-m", "omb_py", "results", verb, "--store", str(store)]
        done = run_command(words)
        if store.exists() and done.returncode:
            wrong.append(f"results {verb}: exit code {done.returncode}: {done.stderr[-600:]}")
    after = sorted(rows_of(store))
    if before != after:
        wrong.append(f"{len(before)} rows in journals and files before recovery, {len(after)} after it")
    return after


def everything() -> set[str]:
    """Files that could stay behind: shared memory and temporary ones."""
    return {str(path) for root in ("/dev/shm", "/tmp") for path in Path(root).rglob("*")}


def processes() -> dict[int, str]:
    """Living processes of the namespace beside its first one and this one."""
    living = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) not in (1, os.getpid()):
            try:
                command = Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if command:  # a zombie has none
                living[int(entry)] = command
    return living


def left_behind(moment: Moment, run: Run, before: set[str], outcome: Outcome) -> None:
    """Processes and files that should be gone. After a kill of the parent the next launch clears the files away."""
    until = time.monotonic() + ENOUGH_S
    while processes() and time.monotonic() < until:
        time.sleep(0.1)
    for pid, command in processes().items():
        outcome.wrong.append(f"still alive: {command[:160]}")
        os.kill(pid, signal.SIGKILL)
    mine = str(run.store.parent)
    if outcome.code < 0:
        words = [sys.executable, "-m", "omb_py", "latency", "-n", "2", "-m", "8:8", "-i", "10", "--no-store"]
        again = run_command(words, **YIELD)
        if again.returncode:
            outcome.wrong.append(f"the next run: exit code {again.returncode}: {again.stderr[-600:]}")
    left = sorted(path for path in everything() - before if not path.startswith(mine))
    if left:
        outcome.wrong.append(f"left behind: {' '.join(left[:8])}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
