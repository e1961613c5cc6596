"""The parent's side of a launch: it writes every finished cell to the journal first, then to the screen."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

import omb_py
from omb_py.engine.measuring.cell_result import CellResult, PairRound
from omb_py.engine.rank.link import Message
from omb_py.grammar.graphs import has_repeated_neighbors
from omb_py.grammar.json_values import JsonObject, JsonValue
from omb_py.options.request import Request
from omb_py.orchestrate.launching.launch_command import HERE, RankEnvironment
from omb_py.orchestrate.launching.machine_state import OtherWork
from omb_py.orchestrate.planning.plan import LaunchPlan
from omb_py.orchestrate.running.progress import Progress, silent
from omb_py.orchestrate.running.run_notes import LastRanks, PassDrift
from omb_py.printing.printers import Printer
from omb_py.results.store.journal import Journal, RunEnd, RunLock
from omb_py.results.store.keys import environment_key
from omb_py.results.store.redact import redact_words
from omb_py.results.store.row import Row
from omb_py.results.store.schema import spare_numpy

if TYPE_CHECKING:
    from omb_py.engine.rank.launch_facts import LaunchFacts
    from omb_py.orchestrate.running.rows import LaunchIdentity

OF_ROWS: Final = (
    "omb_py.orchestrate.running.rows",
    "omb_py.engine.measuring.statistics",
    "omb_py.results.dialects.omb.text",
    "omb_py.results.dialects.omb.transcript",
)
"""What rows load. It is loaded while the ranks start, which then wait for the parent's answer: beside the second cell
it would take a rank's core where each core has one."""


@dataclass(slots=True)
class CommandState:
    """State that all launches of one command share, also where the command gives each launch a run of its own."""

    progress: Progress = field(default_factory=silent)
    begun: bool = False
    """Whether the ranks of any launch began: what starts them works here."""
    busy: str = ""
    """A sentence where other programs used much of this machine before the first launch."""
    other_cores: list[float] = field(default_factory=list)
    """For each launch whose processes are our children: the mean number of cores that other programs used."""
    repeated: list[str] = field(default_factory=list)
    """A sentence for each launch that was made again because it had not begun."""
    noted: set[str] = field(default_factory=set)
    """Notes that hold for every launch, and were shown with the first."""
    only_writes: bool = False
    """Whether this process ends after a launch whose results it does not look at again."""


@dataclass(slots=True)
class Run:
    """State of one run that its launches share."""

    run_id: str
    seed: int
    request: Request
    printer: Printer
    tool: JsonObject
    """Facts about omb-py itself, for the store."""
    files: list[Path] = field(default_factory=list)
    cells: int = 0
    finished: dict[int, set[int]] = field(default_factory=dict)
    """Index of each launch whose ranks began -> indexes of its finished cells."""
    failed: bool = False
    """Whether a row did not validate."""
    wrong: set[int] = field(default_factory=set)
    """Sweeps that ended at a row that did not validate."""
    lacking: dict[tuple[int, int], str] = field(default_factory=dict)
    """(index of the launch, sweep) that the ranks' library cannot run -> the reason."""
    note: Callable[[str], None] = lambda text: None
    on_round: Callable[[PairRound, Sequence[str]], None] = lambda finished, hosts: None
    """Called with every finished round of pairs and the hosts of all ranks."""
    later: list[str] = field(default_factory=list)
    """Notes to show after the results."""
    last: LastRanks = field(default_factory=LastRanks)
    """How often each rank was the last to finish."""
    where: RankEnvironment = HERE
    """The Python and the environment of the ranks."""
    command: CommandState = field(default_factory=CommandState)
    lock: RunLock | None = None
    """Says to other processes that this run goes on; None without a store."""

    def ended_early(self, how: RunEnd) -> None:
        """Mark the run in its store as one without its end, if it had begun."""
        if self.lock is not None and self.command.begun:
            self.lock.ended_early(how)

    def note_once(self, text: str) -> None:
        if text not in self.command.noted:
            self.command.noted.add(text)
            self.note(text)


class Collector:
    def __init__(self, run: Run, plan: LaunchPlan, launcher: Mapping[str, object]) -> None:
        self.run, self.plan, self.launcher = run, plan, launcher
        self.launch_id = f"{run.run_id}-{plan.index}"
        self.started_at = now()
        self.journal: Journal | None = None
        self.identity: LaunchIdentity | None = None
        self.provenance: dict[str, object] = {}
        self._launch: dict[str, object] = {}
        """The part of the provenance that says how the launch was started and ended."""
        self.drift = PassDrift()
        self.others: OtherWork | None = None
        """Measures what other programs do; None where the processes of the launch are not our children."""
        self.modules_question = ""
        """The name of the set of modules that these ranks load; empty where nobody asks."""
        self._modules: list[str] = []
        self._began = time.monotonic()

    def take_modules(self, message: Message) -> None:
        """Take the names of the modules that rank 0 has loaded."""
        self._modules = [str(name) for name in message["names"]]

    def prepare(self) -> None:
        """Load what rows need, and learn about this checkout, while the ranks start."""
        for name in OF_ROWS:
            import_module(name)
        if self.run.request.store is not None:
            self.run.tool = tool_facts()

    def facts(self, facts: LaunchFacts) -> None:
        """Take the facts of the launch, which rank 0 sends before the first cell and again after the last."""
        self._launch = {
            "launch_id": self.launch_id,
            "index": self.plan.index,
            "started_at": self.started_at,
            "thread_level_asked": self.plan.needs.thread_level,
            **self.launcher,
            **({"busy_before": self.run.command.busy} if self.run.command.busy else {}),
        }
        run = {"run_id": self.run.run_id, "seed": self.run.seed, "tool": dict(self.run.tool)}
        self.provenance = {"run": run, "launch": self._launch, **facts}
        if self.identity is None:  # no row comes after the last cell
            from omb_py.orchestrate.running.rows import LaunchIdentity

            self.identity = LaunchIdentity(
                self.run.run_id,
                self.launch_id,
                self.plan.index,
                self.started_at,
                facts,
                environment_key(self.provenance),
                self.run.request.tags,
            )
        self.run.printer.launch(facts)
        self.run.finished.setdefault(self.plan.index, set())
        self.run.command.begun = True
        if self.run.request.store is None:
            return
        if self.journal is None:
            header = {"run_id": self.run.run_id, "started_at": self.started_at, "provenance": self.provenance}
            self.journal = Journal(self.run.request.store, self.launch_id, header)
        else:
            self.journal.provenance(self.provenance)

    def cell(self, message: Message) -> None:
        """Store a finished cell, then print it."""
        self.run.command.progress.clear()
        assert self.identity is not None, "rank 0 sends its facts before its cells"
        if "pairs" in message:
            self._round(PairRound.from_message(message))
            return
        if "lacking" in message:
            self.run.finished[self.plan.index].update(message["indexes"])
            sweep = self.plan.cells[message["indexes"][0]].sweep
            self.run.lacking[self.plan.index, sweep] = str(message["lacking"])
            return
        from omb_py.orchestrate.running.rows import make_row

        result = CellResult.from_message(message)
        row = make_row(self.identity, result)
        cell = self.plan.cells[result.index]
        request = self.plan.requests[cell.sweep] if self.plan.requests else self.run.request
        if request.part is not None:
            from omb_py.orchestrate.running.resume import cell_key, suite_tags  # for suites alone
            from omb_py.results.compare.tags import SUITE_CELL

            row["tags"].update(suite_tags(request.part), **{SUITE_CELL: cell_key(self.plan, cell)})
        if self.journal is not None:
            self.journal.append(row)
        self._note_finished(result.index)
        if row["validated"] is False:
            self.run.failed = True
            self.run.wrong.add(cell.sweep)
        self.run.last.add(row, result.slowest_rank_changes)
        if line := self.drift.add(row):
            self.run.note(line)
        self.run.printer.row(row, request)
        if request.printing.full and row["skew_us"] is not None:
            self._skew_of(row)
        self._overlap_of(row)
        self._neighbors_of(row)

    def _round(self, finished: PairRound) -> None:
        """Store a finished round of pairs, a row for each pair, then pass it to :attr:`Run.on_round`."""
        assert self.identity is not None
        if self.journal is not None:
            from omb_py.orchestrate.running.rows import pair_rows

            self.journal.extend(list(pair_rows(self.identity, finished)))
        self.run.on_round(finished, self.identity.facts["hosts"])
        if finished.last:
            self._note_finished(finished.index)

    def _note_finished(self, index: int) -> None:
        self.run.cells += 1
        finished = self.run.finished[self.plan.index]
        if index not in finished:  # a cell of several sides has a row of each
            self.run.command.progress.cell()
        finished.add(index)
        self.run.command.progress.clear()  # the row is printed next

    def _skew_of(self, row: Row) -> None:
        """Note the synchronisation skew, which limits what short medians mean, and rounds that it voided."""
        from omb_py.orchestrate.running.rows import SYNC_LIMIT

        kind = row["process_sync"] if row["process_sync"] != "none" else "barrier"
        text = (
            f"{kind}: the last rank leaves {row['skew_us']:.2f} us after the first (median); "
            f"shorter medians than {SYNC_LIMIT:g} times that are limited by it"
        )
        if text not in self.run.later:
            self.run.later.append(text)
        late = row["metrics"].get("late_rounds")
        if late:
            self.run.later.append(f"{row['size_bytes']} B: {late:.0f} rounds began late on some rank and were dropped")

    def _overlap_of(self, row: Row) -> None:
        """Note, once for each benchmark, why the overlap is 0: that is common and no fault of the measurement."""
        if row["metrics"].get("overlap_pct") != 0 or row["family"] == "workload":
            return
        tests = int((row["parameters"] or {}).get("tests", 0))
        more = f"more than {tests} calls of MPI_Test" if tests else "calls of MPI_Test while it computes: -t 100"
        text = (
            f"{row['benchmark']}: overlap 0 %: the communication took as long as without computing, as where a library "
            f"makes progress inside its calls only: try {more}, or the library's own progress thread"
        )
        if not any(note.startswith(f"{row['benchmark']}: overlap") for note in self.run.later):
            self.run.later.append(text)

    def _neighbors_of(self, row: Row) -> None:
        """Note that neighbors repeat in a small grid: OMB refuses it."""
        neighborhood = str((row["parameters"] or {}).get("neighborhood", ""))
        if has_repeated_neighbors(neighborhood, row["ranks"]):
            self.run.note_once(
                f"-N {neighborhood}: of {row['ranks']} ranks some are the same neighbor more than once, which OMB "
                "refuses: use more ranks, or a smaller radius"
            )

    def close(self) -> None:
        """Turn the journal into the launch's Parquet file. Raises NotStored, and then the journal stays."""
        if self.drift.number:
            self.run.note(self.drift.line())
        if self._modules:
            from omb_py.orchestrate.running.rank_modules import keep_modules

            keep_modules(self.modules_question, self._modules)
        ending: dict[str, JsonValue] = {"elapsed_s": round(time.monotonic() - self._began, 3)}
        cores = self.others.cores() if self.others else None
        if cores is not None:
            self.run.command.other_cores.append(cores)
            ending["other_cores"] = round(cores, 2)
        if self.journal is not None:
            self._launch |= ending
            self.journal.provenance(self.provenance)
            if self.run.command.only_writes:
                spare_numpy()
            path = self.journal.finish()
            if path is not None:
                self.run.files.append(path)
            self.journal = None


def now() -> str:
    """The time as ISO 8601 text in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def tool_facts() -> dict[str, JsonValue]:
    """Version and command line of omb-py; of a checkout also its commit."""
    facts: dict[str, JsonValue] = {
        "version": omb_py.__version__,
        "command_line": redact_words(sys.argv),
        "executable": sys.executable,
    }
    root = Path(omb_py.__file__).resolve().parent.parent
    return {**facts, "revision": _revision(root)} if (root / ".git").exists() else facts


@cache
def _revision(root: Path) -> str | None:
    """Commit of a checkout, and whether it was changed; None if git cannot tell. It is that of the first run."""
    words = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        process = subprocess.run(words, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return process.stdout.strip() or None
