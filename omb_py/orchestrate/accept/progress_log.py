"""Going on with an acceptance that was cut off: its rows are in the store, and its log says what is not in them.

``STORE/.accept/RUN.jsonl`` begins with where the ranks were to run and what they are compared with. It has a line for
each thing that was given up, as soon as it was, one for each step that came to its end, and a last one when all was
judged. A step is a phase (correctness, performance, beside) in one turn.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.options.request import Part
from omb_py.orchestrate.planning.skip import Skip
from omb_py.orchestrate.running.resume import ACCEPTED, CELL_TAG, NEWEST, stored_run
from omb_py.results.checks.guidelines import FAMILY, SIDES
from omb_py.results.store import schema

FOLDER = ".accept"
PHASE_TAG = ACCEPTED
CORRECTNESS, PERFORMANCE, BESIDE = "correctness", "performance", "beside"
"""Values of it: every byte is checked; what is timed; the same beside another job."""
Step = tuple[str, int]
"""Phase and turn."""
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Begun:
    """What an acceptance was begun with and must be gone on with: its launches are judged together."""

    hosts: tuple[str, ...] = ()
    launcher: str = ""
    launcher_args: tuple[str, ...] = ()
    baseline: str = ""
    """As the user named it."""
    baseline_runs: tuple[str, ...] = ()
    """Ids of the runs that it meant then: ``last`` may mean another later."""

    def check(self, now: Begun, run_id: str) -> None:
        """Raises UsageError where what is said now is something else."""
        for name in ("hosts", "launcher", "launcher_args", "baseline"):
            old, new = getattr(self, name), getattr(now, name)
            if old != new:
                was, said = (" ".join(x) if isinstance(x, tuple) else x for x in (old, new))
                raise UsageError(
                    f"run {run_id} was begun with --{name.replace('_', '-')} {was or 'not given'}, and goes on with "
                    f"{said or 'none'}: its launches are judged together: say the same, or begin a new run without "
                    "--resume"
                )


@dataclass(slots=True)
class Log:
    """What an acceptance writes down as it goes, and what one that it goes on with has written and stored."""

    path: Path | None = None
    """None: nothing is kept."""
    started_at: str = ""
    """Of the run that goes on; empty for a new one."""
    next_index: int = 0
    """Number of the next launch."""
    begun: Begun | None = None
    done: str = ""
    """When all was judged; empty where it was cut off."""
    rows: dict[tuple[str, str], list[Row]] = field(default_factory=dict)
    """Phase and cell's key -> its rows, of a soak those of all passes."""
    given_up: dict[Step, list[Skip]] = field(default_factory=dict)
    ended: set[Step] = field(default_factory=set)
    """Steps that came to their end."""
    spoiled: dict[Step, str] = field(default_factory=dict)
    """Steps beside another job that was not there all the time, and why."""
    files: list[Path] = field(default_factory=list)

    def known(self, step: Step, key: str) -> list[Row]:
        """The stored rows of a cell; none where one of the two sides of a guideline is not there."""
        rows = self.rows.get((step[0], key), [])
        if rows and rows[0]["family"] == FAMILY and {row["parameters"]["side"] for row in rows} != set(SIDES):
            return []
        return rows

    def begin(self, begun: Begun) -> None:
        """Write down what it is begun with."""
        self._write({"begun": asdict(begun)})

    def finish(self, when: str) -> None:
        """Write down that all was judged."""
        self._write({"done": when})

    def give_up(self, step: Step, skips: Iterable[Skip]) -> None:
        """Write down what is not tried again."""
        for skip in skips:
            self._write({"step": step, "what": skip.what, "reason": skip.reason, "failed": skip.failed})

    def end(self, step: Step, spoiled: str = "") -> None:
        """Write down that a step came to its end."""
        self._write({"ended": step, "spoiled": spoiled})

    def _write(self, line: Mapping[str, Any]) -> None:
        if self.path is None:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as out:
                out.write(json.dumps(line, ensure_ascii=False) + "\n")
                out.flush()
                os.fsync(out.fileno())
        except OSError as error:
            raise EnvironmentProblem(f"cannot write {str(self.path)!r}: {error.strerror}") from error


def log_of(store: Path, run_id: str) -> Path:
    """Where the log of a run lies."""
    return store / FOLDER / f"{run_id}.jsonl"


def read_log(store: Path, part: Part, which: str) -> tuple[str, Log] | None:
    """The run `which` of a suite (an id, its beginning, or the newest) and all that it left.

    Returns:
        None for the newest where the suite has not been accepted here, or was judged to the end.

    Raises:
        UsageError: there is no such run, it is of another suite or none of ``omb-py accept``, or it is still running.
    """
    from omb_py.results.store.paths import files

    columns = [name for name in schema.NAMES if name not in ("samples_us", "samples_avg_us")]
    stored = stored_run(store, part, which, accepting=True, columns=columns)
    if stored is None:
        return None
    run_id, rows = stored.run_id, stored.rows
    log = Log(log_of(store, run_id), min(str(row["started_at"]) for row in rows), stored.next_launch)
    for row in rows:
        row["tags"] = dict(row["tags"] or {})
        row["parameters"] = dict(row["parameters"] or {})
        key = row["tags"].get(PHASE_TAG, ""), row["tags"].get(CELL_TAG, "")
        kept = log.rows.setdefault(key, [])
        if kept and kept[0]["launch_id"] != row["launch_id"]:
            kept.clear()  # it was measured again: what counts is the last
        kept.append(row)
    log.files = [path for path in files(store) if path.name.startswith(f"{run_id}-")]
    if log.path is not None and log.path.is_file():
        _take_in(log, log.path.read_text(encoding="utf-8").splitlines())
    return None if log.done and which == NEWEST else (run_id, log)


def _take_in(log: Log, lines: Iterable[str]) -> None:
    for line in lines:
        try:
            told = json.loads(line)
        except ValueError:
            continue  # the line at which it was cut off
        if "begun" in told:
            begun: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in told["begun"].items()}
            log.begun = Begun(**begun)
        elif "done" in told:
            log.done = told["done"]
        elif "ended" in told:
            step = told["ended"][0], int(told["ended"][1])
            log.ended.add(step)
            if told["spoiled"]:
                log.spoiled[step] = told["spoiled"]
        else:
            step = told["step"][0], int(told["step"][1])
            log.given_up.setdefault(step, []).append(Skip(told["what"], told["reason"], told["failed"]))
