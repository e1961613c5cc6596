"""Progress log of an acceptance run, with which ``--resume`` continues a run that was cut off.

The rows are in the store; ``STORE/.accept/RUN.jsonl`` holds the rest. Its first line says where the ranks run and what
they are compared with. Then a line for each sweep that was given up, loss of nodes and step that ended, written at
once, and a last line when all was judged. A step is a phase (correctness, performance, beside) in one turn.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from omb_py.errors import NotStored, UsageError
from omb_py.options.request import NEWEST, SuitePosition
from omb_py.orchestrate.running.resume import stored_run
from omb_py.results.accept.outcomes import FOLDER, AcceptOutcome
from omb_py.results.checks.guidelines import FAMILY, SIDES
from omb_py.results.compare.tags import ACCEPT_PHASE, SUITE_CELL
from omb_py.results.json_values import read_object
from omb_py.results.skip import Skip
from omb_py.results.store.row import Row

Step = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Begun:
    """Settings that a resumed run must share with its beginning, since all launches are judged together."""

    hosts: tuple[str, ...] = ()
    launcher: str = ""
    launcher_args: tuple[str, ...] = ()
    baseline: str = ""
    """The baseline as the user named it."""
    baseline_runs: tuple[str, ...] = ()
    """Ids of the runs that the name meant then: ``last`` may mean another run later."""

    def check(self, now: Begun, run_id: str) -> None:
        """Raises UsageError where a setting differs now."""
        for name in ("hosts", "launcher", "launcher_args", "baseline"):
            old, new = getattr(self, name), getattr(now, name)
            if old != new:
                before, after = (" ".join(x) if isinstance(x, tuple) else x for x in (old, new))
                raise UsageError(
                    f"run {run_id} was begun with --{name.replace('_', '-')} {before or 'not given'}, and is resumed "
                    f"with {after or 'none'}: its launches are judged together: say the same, or begin a new run "
                    "without --resume"
                )


@dataclass(slots=True)
class ProgressLog:
    """Progress log of an acceptance run, with the entries and rows of the run it resumes."""

    path: Path | None = None
    """The file; None: nothing is written."""
    started_at: str = ""
    """Start of the run that is resumed; empty for a new one."""
    next_index: int = 0
    begun: Begun | None = None
    done: str = ""
    """Time at which all was judged; empty if the run was cut off."""
    rows: dict[tuple[str, str], list[Row]] = field(default_factory=dict)
    """(phase, key of a cell) -> its rows; a soak has one for each pass."""
    given_up: dict[Step, list[Skip]] = field(default_factory=dict)
    ended: set[Step] = field(default_factory=set)
    spoiled: dict[Step, str] = field(default_factory=dict)
    """Interference steps whose background job did not run all the time -> reason."""
    files: list[Path] = field(default_factory=list)
    lost: dict[str, str] = field(default_factory=dict)
    """Nodes that were left out -> reason: a resumed run leaves them out too, also where they answer again."""
    turn: int = 0
    """The first turn without them."""

    @property
    def next_turn(self) -> int:
        """The first turn of which nothing was measured; one that was cut off is none."""
        turns = [turn for _, turn in self.ended]
        return max(turns) + 2 if turns else int(bool(self.rows))

    def stored_rows(self, step: Step, key: str) -> list[Row]:
        """Return the stored rows of a cell; none if one of the two sides of a guideline is missing."""
        rows = self.rows.get((step[0], key), [])
        if rows and rows[0]["family"] == FAMILY and {row["parameters"]["side"] for row in rows} != set(SIDES):
            return []
        return rows

    def begin(self, begun: Begun) -> None:
        self._write({"begun": asdict(begun)})

    def lose(self, nodes: Mapping[str, str], turn: int) -> None:
        """Write the nodes that are left out from this turn on."""
        self.lost |= nodes
        self.turn = turn
        self._write({"lost": dict(nodes), "turn": turn})

    def finish(self, outcome: AcceptOutcome) -> None:
        self._write(asdict(outcome))

    def give_up(self, step: Step, skips: Iterable[Skip]) -> None:
        """Write what is not tried again."""
        for skip in skips:
            self._write({"step": step, "what": skip.what, "reason": skip.reason, "failed": skip.failed})

    def end(self, step: Step, spoiled: str = "") -> None:
        self._write({"ended": step, "spoiled": spoiled})

    def _write(self, line: Mapping[str, object]) -> None:
        if self.path is None:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a+b") as out:
                # a line at which a run was cut off ends here, so that it does not swallow this one
                end = b"" if _ends_with_newline(out) else b"\n"
                out.write(end + json.dumps(line, ensure_ascii=False).encode() + b"\n")
                out.flush()
                # the log must survive a machine that goes down
                os.fsync(out.fileno())
        except OSError as error:
            raise NotStored(f"cannot write {str(self.path)!r}: {error.strerror}") from error


def _ends_with_newline(file: BinaryIO) -> bool:
    if not file.seek(0, os.SEEK_END):
        return True
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"


def log_of(store: Path, run_id: str) -> Path:
    return store / FOLDER / f"{run_id}.jsonl"


def read_log(store: Path, part: SuitePosition, which: str) -> tuple[str, ProgressLog] | None:
    """Read the run that is to be resumed: its log and its rows.

    Args:
        which: the id of a run, the beginning of one, or ``last`` for the newest.

    Returns:
        The run's id and its log. For the newest run: None if there is none, or if it was judged to the end.

    Raises:
        UsageError: there is no such run, it is of another suite or not of ``omb-py accept``, or it is still running.
    """
    from omb_py.results.store.paths import files

    stored = stored_run(store, part, which, accepting=True)
    if stored is None:
        return None
    run_id, rows = stored.run_id, stored.rows
    log = ProgressLog(log_of(store, run_id), min(str(row["started_at"]) for row in rows), stored.next_launch)
    for row in rows:
        row["tags"] = dict(row["tags"] or {})
        row["parameters"] = dict(row["parameters"] or {})
        key = row["tags"].get(ACCEPT_PHASE, ""), row["tags"].get(SUITE_CELL, "")
        kept = log.rows.setdefault(key, [])
        if kept and kept[0]["launch_id"] != row["launch_id"]:
            kept.clear()  # the cell was measured again: its last launch counts
        kept.append(row)
    log.files = [path for path in files(store) if path.name.startswith(f"{run_id}-")]
    if log.path is not None and log.path.is_file():
        _take_in(log, log.path.read_text(encoding="utf-8").splitlines())
    return None if log.done and which == NEWEST else (run_id, log)


def _take_in(log: ProgressLog, lines: Iterable[str]) -> None:
    for line in lines:
        entry = read_object(line)
        if entry is None:
            continue
        if "begun" in entry:
            begun: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in entry["begun"].items()}
            log.begun = Begun(**begun)
        elif "lost" in entry:
            log.lost |= entry["lost"]
            log.turn = int(entry["turn"])
        elif "done" in entry:
            log.done = entry["done"]
        elif "ended" in entry:
            step = entry["ended"][0], int(entry["ended"][1])
            log.ended.add(step)
            if entry["spoiled"]:
                log.spoiled[step] = entry["spoiled"]
        else:
            step = entry["step"][0], int(entry["step"][1])
            log.given_up.setdefault(step, []).append(Skip(entry["what"], entry["reason"], entry["failed"]))
