"""Launches of many real ranks on few, loaded cores: ``python -m tests.lab.launching.many_ranks --ranks 16,32,64``.

Starts `omb-py barrier` with each number of ranks beside processes that only compute, and prints when the first and the
last rank had reported, when the last had joined the others, when the cell was done and when all processes had ended,
in seconds since the command. Exit code 1 when a launch failed, or ranks had to be killed at the end.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from omb_py.engine.rank.link import AGENTS_VARIABLE
from omb_py.orchestrate.launching.launch_command import command_for
from omb_py.orchestrate.supervision.supervisor import Handlers, Supervisor
from tests.lab.computing import beside
from tests.support.machines.mpi import YIELD, environment

TIMEOUT_S = 900.0
"""Seconds without progress after which a launch has failed: MPI_Init of 256 ranks on 2 cores says nothing for long."""


@dataclass(slots=True)
class Marks:
    """Seconds since the launch began."""

    began: float = field(default_factory=time.monotonic)
    first_hello: float = 0.0
    last_hello: float = 0.0
    joined: float = 0.0
    cell: float = 0.0
    ended: float = 0.0

    def now(self) -> float:
        """Seconds since the launch began."""
        return time.monotonic() - self.began


class Watched(Supervisor):
    """A supervisor that notes when its ranks came."""

    marks: Marks

    def _message(self, connection, message):  # type: ignore[no-untyped-def]
        super()._message(connection, message)
        now = self.marks.now()
        if message["type"] == "hello":
            self.marks.first_hello = self.marks.first_hello or now
            self.marks.last_hello = now
        elif message["type"] == "joined":
            self.marks.joined = now


def launch(
    ranks: int, iterations: int, timeout: float = TIMEOUT_S, agent: bool = False
) -> tuple[Marks, tuple[str, ...]]:
    """Start ranks that measure a barrier. Returns when things happened, and oddities. Raises OmbError.

    Args:
        ranks: number of ranks, all on this machine.
        iterations: of the barrier.
        timeout: seconds without progress after which the launch has failed.
        agent: whether the ranks speak over an agent, as on another node than the parent's.
    """
    from omb_py.backends.registry import capabilities_of
    from omb_py.options.request import Request
    from omb_py.orchestrate.planning.backend_selection import narrowed
    from omb_py.orchestrate.planning.plan import plan_all
    from omb_py.orchestrate.running.run import new_run, spec_of

    with tempfile.TemporaryDirectory() as store:
        few = {"iterations": str(iterations), "warmup": 1}
        request = Request("barrier", ("mpi",), ranks=ranks, store=Path(store), quiet=True, **few)
        plans = plan_all([narrowed(request, capabilities_of(request.backends))])
        run = new_run(request, plans)
        command = command_for(
            "auto", [sys.executable, "-m", "omb_py.orchestrate.running.rank_process"], ranks, bind=False
        )
        marks = Marks()

        def cell(message: object) -> None:
            marks.cell = marks.now()

        supervisor = Watched(
            spec_of(run, plans[0]),
            ranks,
            timeout,
            command=command.words,
            environ={**environment(), **YIELD, **command.environ, AGENTS_VARIABLE: str(int(agent))},
            handlers=Handlers(cell=cell),
            launcher=command.name,
        )
        supervisor.marks = marks
        outcome = supervisor.run()
        marks.ended = marks.now()
        return marks, outcome.notes


def main() -> int:
    """Launch, print, judge."""
    from omb_py.errors import OmbError

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--ranks", default="16,32,64", help="numbers of ranks, separated by commas (default: %(default)s)"
    )
    parser.add_argument("--load", type=int, default=2, help="processes that compute meanwhile (default: %(default)s)")
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S, help="seconds without progress (default: 900)")
    parser.add_argument("--agent", action="store_true", help="the ranks speak over an agent")
    chosen = parser.parse_args()
    failed = 0
    print(f"{'ranks':>6} {'first':>8} {'last':>8} {'joined':>8} {'cell':>8} {'ended':>8}  s since the command")
    with beside(chosen.load):
        for ranks in map(int, chosen.ranks.split(",")):
            try:
                marks, notes = launch(ranks, chosen.iterations, chosen.timeout, chosen.agent)
            except OmbError as problem:
                failed += 1
                print(f"{ranks:>6} FAILED: {problem}", *getattr(problem, "__notes__", ()), sep="\n", flush=True)
                continue
            times = (marks.first_hello, marks.last_hello, marks.joined, marks.cell, marks.ended)
            print(f"{ranks:>6} " + " ".join(f"{seconds:8.1f}" for seconds in times), *notes, flush=True)
            failed += bool(notes)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
