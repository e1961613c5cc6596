"""Run a gate: one comparison of programs after the other, within a time, and one answer for a build server."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from omb_py.errors import INCONCLUSIVE, NEGATIVE, NO_VERDICT, OK, Interrupted, OmbError, UsageError
from omb_py.orchestrate.compare.pip_environments import Note
from omb_py.orchestrate.gate.gate_file import Gate, GateCommand
from omb_py.orchestrate.programs.session import ProgramsDesign, compare_programs
from omb_py.orchestrate.running.interrupts import resumable
from omb_py.results.compare.false_alarm_rate import keep
from omb_py.results.compare.judge import OPEN
from omb_py.results.compare.no_verdict import NO_VERDICT_WORD
from omb_py.results.compare.report import CompareReport, as_dict, document_of, exit_code, headline
from omb_py.results.document import CaseResult, Document, TextTable
from omb_py.results.repro_command import storing
from omb_py.results.units import counted

_TAG = "gate"
"""Tag of every row of a gate: its name."""


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    """What became of a command: a report, or why there is none."""

    command: GateCommand
    report: CompareReport | None = None
    problem: str = ""

    def code(self, strict: bool) -> int:
        """Its exit code; a command without a report has no verdict, whatever the reason."""
        return NO_VERDICT if self.report is None else exit_code(self.report, strict)


@dataclass(slots=True)
class GateReport:
    """The outcomes of a gate's commands."""

    gate: Gate
    store: Path
    outcomes: list[CommandOutcome] = field(default_factory=list)

    @property
    def code(self) -> int:
        """The worst of all: something is slower, something was not measured, with `strict` something is not decided."""
        codes = {outcome.code(self.gate.strict) for outcome in self.outcomes}
        return next((code for code in (NEGATIVE, NO_VERDICT, INCONCLUSIVE) if code in codes), max(codes, default=OK))


def run_gate(gate: Gate, store: Path, seed: int | None, quiet: bool, note: Note) -> GateReport:
    """Compare the programs of every command.

    A command that fails does not keep the others from being measured. What is left of the time is shared equally.

    Args:
        gate: its file, which is trusted.
        store: folder of the launches.
        seed: of the order of sides; None: drawn.
        quiet: no progress and no notes.
        note: called with a sentence on what is being done.

    Raises:
        UsageError: a text of the file is wrong; nothing was started.
        Interrupted: the user pressed Ctrl-C.
    """
    tags = {_TAG: gate.name}
    designs = [_design(command, gate, store, note) for command in gate.commands]
    report = GateReport(gate, store)
    began = time.monotonic()
    with resumable(lambda: _say_kept(report)):
        for number, (command, design) in enumerate(zip(gate.commands, designs, strict=True)):
            note(f"command {number + 1} of {len(designs)}: {command.name}")
            budget_s = None
            if gate.budget_s is not None:
                budget_s = max(0.0, gate.budget_s - (time.monotonic() - began)) / (len(designs) - number)
            try:
                compared = compare_programs(replace(design, seed=seed, quiet=quiet, budget_s=budget_s, tags=tags))
                keep(compared, store)
                report.outcomes.append(CommandOutcome(command, compared))
            except Interrupted:
                raise
            except OmbError as error:
                note(f"{command.name}: {error}")
                report.outcomes.append(CommandOutcome(command, problem=str(error)))
    return report


def _say_kept(report: GateReport) -> str:
    done = counted(len(report.outcomes), "command")
    return f"{done} of {len(report.gate.commands)} judged; launches are kept in {report.store}, and a gate begins anew"


def gate_document(report: GateReport, advisory: bool = False) -> Document:
    """The document of a gate.

    Args:
        report: what was found.
        advisory: the exit code is 0 whatever was found.
    """
    gate, code = report.gate, report.code
    counts = [f"{outcome.command.name}: {_line(outcome)}" for outcome in report.outcomes]
    repeat = f"repeat it: {storing(shlex.join(['omb-py', 'gate', gate.file]), report.store)}"
    shown = [storing(f"omb-py compare {o.report.run_id}", report.store) for o in report.outcomes if o.report]
    notes = [repeat, *([f"one command in full: {shown[0]}"] if shown else [])]
    if advisory and code:
        notes.append(f"advisory: the exit code is 0; without --advisory it is {code}")
    problems = [
        f"not judged: {outcome.command.name}: {reason}"
        for outcome in report.outcomes
        for reason in ([outcome.problem] if outcome.report is None else outcome.report.unmeasured)
    ]
    return Document(
        f"omb-py gate {gate.name}",
        f"{gate.name}: {_word(report)}",
        OK if advisory else code,
        lambda: _data(report),
        counts,
        (_changes(report),),
        problems=problems,
        notes=notes,
        cases=[case for outcome in report.outcomes for case in _cases(outcome, gate.strict)],
        marker=f"omb-py gate: {gate.name}",
    )


def _line(outcome: CommandOutcome) -> str:
    if outcome.report is None:
        return NO_VERDICT_WORD
    launches = outcome.report.base.count
    return f"{headline(outcome.report)}; {launches} launches a side"


def _word(report: GateReport) -> str:
    words = {NEGATIVE: "SLOWER", NO_VERDICT: NO_VERDICT_WORD, INCONCLUSIVE: "UNCLEAR", OK: "nothing is slower"}
    counts = [outcome.report.counts for outcome in report.outcomes if outcome.report]
    open_cells = sum(of_command[word] for of_command in counts for word in OPEN)
    if report.code == OK and open_cells:
        return f"nothing is shown to be slower, and {counted(open_cells, 'cell')} undecided"
    return words.get(report.code, "FAILED")


def _changes(report: GateReport) -> TextTable:
    """The cells that are not the same, with how sure that is."""
    heads: tuple[str, ...] = ("command",)
    left: list[str] = ["command"]
    rows: list[tuple[str, ...]] = []
    for outcome in report.outcomes:
        if outcome.report is None:
            continue
        (table,) = document_of(outcome.report).tables
        at = list(table.heads).index("verdict")
        heads, left = ("command", *table.heads), ["command", *table.left]
        rows += [(outcome.command.name, *row) for row in table.rows if not row[at].startswith("SAME")]
    return TextTable(heads, rows, left)


def _cases(outcome: CommandOutcome, strict: bool) -> list[CaseResult]:
    name = outcome.command.name
    if outcome.report is None:
        return [CaseResult(name, "measured", "error", f"{NO_VERDICT_WORD}: {outcome.problem}")]
    return [replace(case, group=f"{name}.{case.group}") for case in document_of(outcome.report, strict).cases]


def _data(report: GateReport) -> dict[str, object]:
    return {
        "kind": "gate",
        "name": report.gate.name,
        "exit_code": report.code,
        "commands": [
            {
                "name": outcome.command.name,
                "exit_code": outcome.code(report.gate.strict),
                "problem": outcome.problem or None,
                "report": as_dict(outcome.report) if outcome.report else None,
            }
            for outcome in report.outcomes
        ],
    }


def _design(command: GateCommand, gate: Gate, store: Path, note: Note) -> ProgramsDesign:
    try:
        design = command.texts.design(gate.rules, gate.launches, store, note)
        for program in design.programs.values():
            program.check()
    except UsageError as error:
        raise command.table.error(str(error)) from None
    return design
