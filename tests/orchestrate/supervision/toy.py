"""Launches of toy ranks: small processes that speak the protocol and misbehave on demand, without MPI."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from omb_py.engine.rank.start_times import start_ticks
from omb_py.orchestrate.supervision import processes
from omb_py.orchestrate.supervision.supervisor import Handlers, Outcome, Supervisor
from tests.support.patience import PATIENCE_S

TOY = """
import json, os, signal, socket, sys, threading, time
from omb_py.engine.rank.link import Link
from omb_py.orchestrate.supervision import processes
from omb_py.orchestrate.supervision.agent_start import agent_of_this_node

def agent():
    "The process number of this node's agent."
    for pid, _ in processes.holders(os.environ["OMB_PY_TOKEN"]):
        if b"node_agent" in open(f"/proc/{pid}/cmdline", "rb").read():
            return pid

def rank_main(mode, rank, size, folder):
    os.setsid()  # as MPICH does: the launcher's process group does not hold its ranks
    os.environ.update(OMPI_COMM_WORLD_RANK=str(rank), OMPI_COMM_WORLD_SIZE=str(size))
    with open(os.path.join(folder, "pids"), "a") as pids:
        pids.write(f"{os.getpid()}\\n")
    victim = rank == 1
    if mode == "meets late" and victim: time.sleep(0.5)
    if mode == "dies unheard" and victim: os.kill(os.getpid(), signal.SIGKILL)
    if "OMB_PY_TEST_NODES" in os.environ:
        nodes = int(os.environ["OMB_PY_TEST_NODES"])
        socket.gethostname = lambda: f"node{rank % nodes}"
    link = Link.from_environment(20, agent_of_this_node)
    spec = link.spec()
    if mode == "dies after hello" and victim: os.kill(os.getpid(), signal.SIGKILL)
    if mode == "never joins" and victim: time.sleep(600)
    if mode.startswith("meets"):
        link.send("note", text=f"{rank} {dict(link.meet({'port': 4321} if rank == 0 else None))}")
    link.joined(0 if mode == "apart" else rank, 1 if mode == "apart" else size)
    where = {"phase": "loop", "cell": 0, "label": "allreduce 8 B", "iteration": 0, "step": 2}
    where["doing"] = "recv 8 B from 0"
    link.watch(lambda: where)
    if rank == 0:
        link.send("launch", facts={"library": "toy"})
        link.send("note", text="a note")
        link.send("cell", index=0, value=1.5)
        if mode == "rank 0 dies": os.kill(os.getpid(), signal.SIGKILL)
    if mode.startswith("loses its agent") and rank == 0:
        for k in range(20): link.send("cell", index=0, value=k, text="x" * 10_000)
        killing = threading.Timer(0.2 * mode.endswith("stopped"), os.kill, (agent(), signal.SIGKILL))
        if mode.endswith("stopped"): os.kill(agent(), signal.SIGSTOP)
        killing.start()  # for a rank that waits until the agent takes more
        for k in range(20, 40): link.send("cell", index=0, value=k, text="x" * 10_000)
        link.settle()
        killing.join()
        for k in range(40, 60): link.send("cell", index=0, value=k)
    if mode == "usage" and victim: link.send("error", code=2, text="-i must be at least 1")
    if mode == "interrupted" and victim: link.send("interrupted")
    if mode == "environment" and victim: link.send("error", code=3, text="no memory")
    if mode == "prints":
        print("first words", flush=True)
        for _ in range(80): os.write(2, b"z" * 65535 + b"\\n")
    long = mode in ("dies in the loop", "stops", "hangs", "runs on", "blocked", "launcher dies", "exits 5")
    for k in range(10**9 if long else 3):
        if victim and k == 5:
            if mode == "dies in the loop": os.kill(os.getpid(), signal.SIGKILL)
            if mode == "exits 5": os._exit(5)
            if mode == "stops": os.kill(os.getpid(), signal.SIGSTOP)
            if mode == "launcher dies": os.kill(os.getppid(), signal.SIGKILL)
        if mode in ("hangs", "stops") and k == (5 if victim else 6):
            time.sleep(600)
        where["iteration"] = k
        time.sleep(0.01)
    code = link.done()
    if mode == "stays" and victim: time.sleep(600)
    if mode == "ends in turn":
        open(os.path.join(folder, f"ready-{rank}"), "w").close()
        while not os.path.exists(os.path.join(folder, f"go-{rank}")): time.sleep(0.001)
    os._exit(code)

mode, size, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
with open(os.path.join(folder, "pids"), "a") as pids:
    pids.write(f"{os.getpid()}\\n")
if mode == "fails at once":
    print("toy: no such host")
    sys.exit(7)
for rank in range(size + (mode == "too many")):
    if os.fork() == 0:
        try:
            rank_main(mode, rank, size, folder)
        finally:
            os._exit(1)
worst = 0
for _ in range(size + (mode == "too many")):
    status = os.waitstatus_to_exitcode(os.wait()[1])
    worst = worst or (128 - status if status < 0 else status)
sys.exit(worst)
"""


class Toy:
    """A launch of toy ranks, and what came of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.script = folder / "toy.py"
        self.script.write_text(TOY)
        self.messages: list[tuple[str, dict[str, Any]]] = []
        self.supervisor: Supervisor | None = None

    def command(self, mode: str, ranks: int) -> list[str]:
        return [sys.executable, str(self.script), mode, str(ranks), str(self.folder)]

    def handlers(self) -> Handlers:
        def keep(kind: str) -> Callable[[dict[str, Any]], None]:
            return lambda message: self.messages.append((kind, message))

        return Handlers(launch=keep("launch"), cell=keep("cell"), note=keep("note"))

    def run(
        self, mode: str, ranks: int = 2, timeout: float = PATIENCE_S, spec: dict[str, Any] | None = None
    ) -> Outcome:
        spec = {"beat_s": 0.05, **(spec or {})}
        command = self.command(mode, ranks)
        self.supervisor = Supervisor(spec, ranks, timeout, command=command, handlers=self.handlers(), launcher="toy")
        try:
            return self.supervisor.run()
        finally:
            self.check_no_orphan(self.supervisor.token)

    def wait_until(self, mode: str) -> None:
        """Wait until the launch does what its mode says: a rank is stopped, a rank alone stays, a cell was measured."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            if mode == "stops" and "T" in self.states():
                return
            if mode == "stays" and self.supervisor is not None and self.supervisor._lost:
                return
            if mode not in ("stops", "stays") and "cell" in [kind for kind, _ in self.messages]:
                return
            time.sleep(0.005)

    def states(self) -> list[str]:
        """The states of the processes, as in /proc/PID/stat."""
        found = []
        for pid in self.pids():
            with contextlib.suppress(OSError):
                found.append(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0])
        return found

    def pids(self) -> list[int]:
        """Numbers of the processes that have begun."""
        file = self.folder / "pids"
        return [int(pid) for pid in file.read_text().split()] if file.exists() else []

    def check_no_orphan(self, token: str) -> None:
        pids = self.pids()
        assert pids
        until = time.monotonic() + PATIENCE_S  # a killed process may wait for a busy core before it is gone
        while [pid for pid in pids if start_ticks(pid) is not None] and time.monotonic() < until:
            time.sleep(0.02)
        assert [pid for pid in pids if start_ticks(pid) is not None] == []
        assert processes.holders(token) == []
