"""A comparison of programs: launches of both sides in turn, each read, checked, stored and judged."""

from __future__ import annotations

import os
import secrets
import socket
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from omb_py.engine.rank.launch_facts import SideSettings
from omb_py.errors import EnvironmentProblem, Interrupted, LaunchFailed, NoVerdict, OmbError, UsageError
from omb_py.orchestrate.compare.interleaving import CompareDesign, conduct, sides_of
from omb_py.orchestrate.compare.measurer import ResumableMeasurer
from omb_py.orchestrate.compare.pilot import BudgetTooShort
from omb_py.orchestrate.compare.session import DEFAULT_LAUNCHES, check_launches
from omb_py.orchestrate.compare.stored_pairs import declared_design, keep_plan, planned_before, stored_pairs
from omb_py.orchestrate.launching.machine_state import OtherWork, machine_facts, observe, say_what_disturbs
from omb_py.orchestrate.programs.clock_limits import clock_limits, why_other_limits
from omb_py.orchestrate.programs.command import OUT, SideProgram
from omb_py.orchestrate.programs.exchanged import ExpectedLibrary, why_not_exchanged
from omb_py.orchestrate.programs.execution import Execution, run_program
from omb_py.orchestrate.programs.mapped_files import MappedFile
from omb_py.orchestrate.programs.measured import Repetitions, check_rows, why_elsewhere
from omb_py.orchestrate.programs.reading import OutputReading, rows_of
from omb_py.orchestrate.running.interrupts import resumable
from omb_py.orchestrate.running.progress import progress_for
from omb_py.orchestrate.running.resume import declare_design, find_unfinished, forget_design, note_new
from omb_py.orchestrate.running.run import drawn_seed
from omb_py.results.compare.interleaved import can_show
from omb_py.results.compare.judge import CompareRules, Launched
from omb_py.results.compare.match import PILOT_ROUND, SIDES, Side, differing, from_row
from omb_py.results.compare.report import CompareReport, fields_text, report_of
from omb_py.results.compare.select_launches import SideLaunches
from omb_py.results.repro_command import storing
from omb_py.results.store.journal import RunLock
from omb_py.results.store.keys import environment_key
from omb_py.results.store.paths import REPORTS
from omb_py.results.store.provenance import Provenance
from omb_py.results.store.redact import allowed_environment, redact_text
from omb_py.results.store.row import Row
from omb_py.results.store.write import check_writable, write_atomically, write_launch
from omb_py.results.units import counted

DEFAULT_TIMEOUT_S = 600.0
_KEPT_BYTES = 64 << 10
"""So much of an output is kept: its beginning and its end."""


@dataclass(frozen=True, slots=True)
class ProgramsDesign:
    """A comparison of programs, declared before the first launch."""

    programs: Mapping[Side, SideProgram]
    reading: OutputReading
    rules: CompareRules
    launches: int
    store: Path
    timeout_s: float = DEFAULT_TIMEOUT_S
    seed: int | None = None
    expected: Sequence[ExpectedLibrary] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    quiet: bool = False
    budget_s: float | None = None
    """Seconds that all launches together may take; they choose the launches. None: any."""
    may_be_equal: bool = False
    """An equal program on both sides is an answer, and no fault."""
    only: Collection[str] = ()
    """Comparability keys of the cells that are judged; empty: all."""

    @property
    def plan(self) -> CompareDesign:
        """The design of the launches."""
        return CompareDesign(self.rules, self.launches, self.seed or 0, self.budget_s)

    def declared(self) -> dict[str, object]:
        """What a resumed comparison must share with its beginning, as plain data."""
        return {
            "kind": "programs",
            **declared_design(self.plan),
            "sides": {side: f"{p.command} {p.setting}".strip() for side, p in self.programs.items()},
        }

    def note(self, text: str) -> None:
        """Say something on stderr, unless nothing is to be said."""
        if not self.quiet:
            print(f"omb-py: {text}", file=sys.stderr, flush=True)


def compare_programs(design: ProgramsDesign, resume: str | None = None) -> CompareReport:
    """Start the programs of both sides in turn and judge what they print; every launch is stored, under one run.

    Args:
        design: what is compared, and how.
        resume: id of the interrupted comparison to resume, or ``last``; None: a new one.

    Raises:
        UsageError: a command cannot be started, its output is not known, or the design is no comparison.
        NoVerdict: a launch measured something else than was asked, or nothing.
        LaunchFailed: a program died or was killed because it took too long. What was measured is kept.
        Interrupted: the same.
    """
    check_launches(design.launches)
    for program in design.programs.values():
        program.check()
    check_writable(design.store)
    earlier = find_unfinished(design.store, resume, design.declared()) if resume else None
    note_new(design.note, resume, earlier, "interrupted comparison", design.store)
    if earlier is not None:
        run_id, seed = earlier[0], int(earlier[1]["seed"])
        plan = replace(planned_before(design.plan, earlier[1]), seed=seed)
    else:
        run_id = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"
        seed = design.seed if design.seed is not None else drawn_seed()
        plan = replace(design.plan, seed=seed)
    held = RunLock(design.store, run_id)
    measurer = ProgramMeasurer(design, run_id, plan)
    if earlier is None:
        declare_design(design.store, run_id, {**design.declared(), "seed": seed})
    else:
        measurer.resume(stored_pairs(design.store, run_id))
    try:
        with resumable(lambda: _say_kept(measurer)):
            report = _measure(measurer, plan)
    except BudgetTooShort:
        forget_design(design.store, run_id)
        raise
    except Interrupted as error:
        if any(measurer.rows.values()):
            held.ended_early("interrupted")
            error.of_run(run_id)
        raise
    except OmbError as error:
        kept = _say_kept(measurer)
        if not kept:
            raise
        held.ended_early("failed")
        raise type(error)(f"{error}. {kept[:1].upper()}{kept[1:]}").of_run(run_id) from None
    finally:
        del held
    forget_design(design.store, run_id)
    design.note(f"stored as run {run_id}: {storing(f'omb-py compare {run_id}', design.store)} shows it again")
    return report


def _measure(measurer: ProgramMeasurer, plan: CompareDesign) -> CompareReport:
    design = measurer.design
    machine = say_what_disturbs(design.note, observe)
    cells = measurer.try_out()
    rules = plan.rules
    if plan.budget_s is None and not can_show(plan.launches, rules.alpha, rules.rounds):
        design.note(f"{plan.launches} launches of each side cannot show a change: --launches {DEFAULT_LAUNCHES}")
    conduct([range(cells)], plan, measurer, measurer)
    report = report_of(measurer.launches("BASE"), measurer.launches("NEW"), measurer.rules)
    report.run_id, report.seed = measurer.run_id, measurer.seed
    report.machine = machine_facts(machine, measurer.other_cores, measurer.most_ranks)
    return report


def _say_kept(measurer: ProgramMeasurer) -> str:
    """What is kept of the comparison, and how it goes on; empty for one that has not begun, which is forgotten."""
    counts = [len({row["launch_id"] for row in measurer.rows[side]}) for side in SIDES]
    if not any(counts):
        forget_design(measurer.design.store, measurer.run_id)
        return ""
    done = " and ".join(f"{counted(count, 'launch')} of {side}" for side, count in zip(SIDES, counts, strict=True))
    run_id = measurer.run_id
    return (
        f"what was measured is kept in {measurer.design.store}, run {run_id}: {done}; --resume={run_id} "
        "measures the rest"
    )


class ProgramMeasurer(ResumableMeasurer):
    """Makes the launches of :func:`omb_py.orchestrate.compare.interleaving.conduct` with the programs of both sides."""

    def __init__(self, design: ProgramsDesign, run_id: str, plan: CompareDesign) -> None:
        super().__init__(run_id, plan.rules, design.note, partial(keep_plan, design.store, run_id, design.declared()))
        self.design, self.seed = design, plan.seed
        self._keys: list[str] = []
        """Comparability key of each cell."""
        self._usual: dict[Side, Mapping[str, Row]] = {side: {} for side in SIDES}
        self._repetitions = Repetitions()
        self.other_cores: list[float] = []
        """Cores that other programs used, for each launch."""
        self._limits: dict[str, str] = {}
        """Clock limits of the first launch."""
        self._progress = progress_for(design.quiet)

    def try_out(self) -> int:
        """Make a launch of each side that is not judged: it shows what there is to compare, and whether it differs.

        Returns:
            The number of cells.
        """
        files: dict[Side, frozenset[MappedFile]] = {}
        for side in sides_of(self.seed, -1):
            rows, ended = self._launch(side, {})
            self._usual[side], files[side] = rows, ended.files
            if not self.provenances[side]:
                self.provenances[side].append(self._provenance(side, ended))
        if not self.design.may_be_equal and (why := why_not_exchanged(self.design.programs, files)):
            raise NoVerdict(why)
        only = self.design.only
        keys = dict.fromkeys((*self._usual["BASE"], *self._usual["NEW"]))
        self._keys = [key for key in keys if not only or key in only]
        if not set(self._usual["BASE"]) & set(self._usual["NEW"]):
            base, new = (next(iter(self._usual[side].values())) for side in SIDES)
            raise NoVerdict(f"BASE and NEW have no cell in common: {fields_text(base, new, differing(base, new))}")
        if why := why_elsewhere(self._usual["BASE"], self._usual["NEW"]):
            raise NoVerdict(f"the sides were measured elsewhere: {why}")
        if not set(self._keys) & set(self._usual["BASE"]) & set(self._usual["NEW"]):
            raise NoVerdict("one of both sides lacks the cell that is judged")
        return len(self._keys)

    def begins(self, design: CompareDesign, number: int, cells: Sequence[int]) -> None:
        """Say what a round measures, and tell the progress its launches."""
        super().begins(design, number, cells)
        self._progress.plan([1] * 2 * design.launches)

    def __call__(self, side: Side, cells: Sequence[int], number: int, pair: int) -> dict[int, Launched]:
        """Make one launch of one side, or take it from the store."""
        if self.stored.has_next(side, number, pair):
            rows = {str(row["comparability_key"]): row for row in self.stored.waiting.popleft()}
        else:
            printed, ended = self._launch(side, {**self.design.tags, **self.tags(side, number, pair)})
            wanted = {self._keys[cell] for cell in cells}
            rows = {key: row for key, row in printed.items() if key in wanted}
            if rows:
                self._store(side, list(rows.values()), ended)
        if number != PILOT_ROUND:
            self.rows[side] += rows.values()
        launched = {cell: from_row(rows[self._keys[cell]]) for cell in cells if self._keys[cell] in rows}
        return {cell: result for cell, result in launched.items() if result is not None}

    def _launch(self, side: Side, tags: Mapping[str, str]) -> tuple[dict[str, Row], Execution]:
        """Start the program of a side once, and check that it has measured."""
        program = self.design.programs[side]
        started = datetime.now(UTC).isoformat()
        self._progress.begin(1)
        others = OtherWork()
        with tempfile.TemporaryDirectory(prefix="omb-py-") as folder:
            out = Path(folder, "out") if OUT in program.command else None
            ended = run_program(program.argv(out), program.where.environment(), self.design.timeout_s, out)
        ended = replace(ended, other_cores=others.cores())
        if ended.other_cores is not None:
            self.other_cores.append(ended.other_cores)
        try:
            rows = self._read(program, ended, tags, started)
            check_rows(program, rows, self._usual[side])
            for expected in self.design.expected:
                if expected.side == side and (why := expected.why_not(ended.files)):
                    raise NoVerdict(why)
            self._repetitions.check(side, rows)
            self._check_limits(program)
        except OmbError as error:
            where = self._keep_output(side, ended)
            raise type(error)(f"{error}; its output: {where}") from None
        self._progress.cell()
        self._progress.end()
        return rows, ended

    def _check_limits(self, program: SideProgram) -> None:
        limits = clock_limits()
        self._limits = self._limits or limits
        if why := why_other_limits(self._limits, limits):
            raise NoVerdict(f"{program} ran under other {why}")

    def _read(self, program: SideProgram, ended: Execution, tags: Mapping[str, str], started: str) -> dict[str, Row]:
        """The rows of an output. Of a program that failed, only wrong results are looked for."""

        def read() -> dict[str, Row]:
            tables = self.design.reading.tables(ended)
            return rows_of(tables, self.run_id, self.index, started, tags, program.asked_ranks)

        if ended.stopped:
            raise LaunchFailed(f"{program}: {ended.stopped}{_quote(ended)}")
        if ended.status:
            try:
                check_rows(program, read(), {})
            except NoVerdict as error:
                if ended.output.strip() and "validate" in str(error):
                    raise
            except UsageError:
                pass  # the reason is how it ended, not what it printed until then
            raise LaunchFailed(f"{program} ended with {ended.ending} after {ended.seconds:.1f} s{_quote(ended)}")
        try:
            return read()
        except (NoVerdict, UsageError) as error:
            kind = NoVerdict if self._usual[program.side] else type(error)  # it could be read before
            raise kind(f"{program} {error}") from None

    def _keep_output(self, side: Side, ended: Execution) -> Path:
        path = self.design.store / REPORTS / f"{self.run_id}-{self.index}-{side}.txt"
        try:
            write_atomically(path, f"{_bound(ended.output)}\n--- stderr ---\n{_bound(ended.errors)}\n".encode())
        except OSError as error:
            raise EnvironmentProblem(f"cannot write {path}: {error.strerror}") from error
        return path

    def _provenance(self, side: Side, ended: Execution) -> Provenance:
        program = self.design.programs[side]
        used = None if ended.other_cores is None else round(ended.other_cores, 2)
        config: SideSettings = {**program.where.facts.get("config", {}), "side": side}
        return {
            "program": redact_text(program.command),
            "environment": allowed_environment(program.where.environment()),
            "launch": {"config": config, "other_cores": used},
            "node_facts": [{"cores_online": os.cpu_count()}],
            "run": {
                "exit_code": ended.status,
                "elapsed_s": round(ended.seconds, 6),
                "peak_memory_bytes": ended.peak_bytes,
                "clock_limits": self._limits,
                "output": _bound(ended.output),
                "hostname": socket.gethostname(),
            },
            "loaded_libraries": [
                {"path": file.path, "build_id": file.build_id or None} for file in sorted(ended.files)
            ],
        }

    @property
    def most_ranks(self) -> int:
        """The most ranks of any launch, as far as its output says them; 1 where it does not."""
        return max((int(row.get("ranks") or 1) for side in SIDES for row in self.rows[side]), default=1)

    def _store(self, side: Side, rows: list[Row], ended: Execution) -> None:
        provenance = self._provenance(side, ended)
        key = environment_key(provenance)
        for row in rows:
            row["environment_key"] = key
        write_launch(self.design.store, rows, provenance)
        self.index += 1

    def launches(self, side: Side) -> SideLaunches:
        """The launches of a side, for the report."""
        return SideLaunches(self.design.programs[side].described, self.rows[side], self.provenances[side])


def _quote(ended: Execution) -> str:
    return f": {ended.last_line}" if ended.last_line else ""


def _bound(data: bytes) -> str:
    """The text of an output without secrets: all of it, or its beginning and its end."""
    if len(data) > _KEPT_BYTES:
        half = _KEPT_BYTES // 2
        data = data[:half] + f"\n… {len(data) - 2 * half} bytes …\n".encode() + data[-half:]
    return redact_text(data.decode(errors="replace"))
