"""The report of a tuning: its data, and the document from which every form of it is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial

from omb_py.errors import ENVIRONMENT, INCONCLUSIVE, NEGATIVE, OK
from omb_py.results.checks.guidelines import JudgedGuideline
from omb_py.results.compare.judge import Answer
from omb_py.results.document import CaseResult, Document, Outcome, TextTable
from omb_py.results.repro_command import storing
from omb_py.results.tune.rules import DEFAULT, Rule, RuleTable, TunePoint
from omb_py.results.units import counted, share_text, size_text, without_text

_WORDS = {"HOLDS": "mended", "VIOLATED": "still violated"}


@dataclass(frozen=True, slots=True)
class Mended:
    """A guideline at one size that was VIOLATED by default, and its verdict with the files."""

    ranks: int
    before: JudgedGuideline
    after: JudgedGuideline | None
    """None: it could not be measured again."""

    @property
    def word(self) -> str:
        """``mended``, ``still violated`` or ``unclear``."""
        return _WORDS.get(self.after.verdict, "unclear") if self.after else "unclear"

    def __str__(self) -> str:
        pair = self.before.pair
        where = f"{pair.text} at {size_text(pair.size_bytes)} on {self.ranks} ranks ({pair.name})"
        before = f"by default {self.before.verdict}, {self.before.ratio:.2f} of the mock-up's time"
        after = f"with the files {self.after.verdict}, {self.after.ratio:.2f}" if self.after else "not measured again"
        return f"{self.word}: {where}: {before}; {after}"


def pair_verdicts(ranks: int, before: Sequence[JudgedGuideline], after: Sequence[JudgedGuideline]) -> list[Mended]:
    """The violated ones of the first list, each with its verdict in the second."""
    later = {(each.pair.name, each.pair.size_bytes): each for each in after}
    return [
        Mended(ranks, each, later.get((each.pair.name, each.pair.size_bytes)))
        for each in before
        if each.verdict == "VIOLATED"
    ]


def mended_as_data(mended: Mended) -> dict[str, object]:
    """One as JSON can hold it."""
    pair, after = mended.before.pair, mended.after
    return {
        "guideline": pair.name,
        "text": pair.text,
        "ranks": mended.ranks,
        "size_bytes": pair.size_bytes,
        "word": mended.word,
        "before": {"verdict": mended.before.verdict, "ratio": mended.before.ratio},
        "after": {"verdict": after.verdict, "ratio": after.ratio} if after else None,
    }


_RULE_HEADS = ("collective", "ranks", "sizes", "setting", "time", "interval", "variables")
_CELL_HEADS = (
    *("collective", "of", "ranks", "size", "setting"),
    *("default µs", "tuned µs", "ratio", "interval", "verdict", "launches"),
)
_LEFT = ("collective", "of", "sizes", "setting", "variables", "verdict")


@dataclass(frozen=True, slots=True)
class Proved:
    """The verdict of fresh launches on one size."""

    point: TunePoint
    size: int
    setting: str
    answer: Answer


@dataclass(frozen=True, slots=True)
class Undecided:
    """A size that the budget left open, and what is the fastest there so far."""

    point: TunePoint
    size: int
    setting: str
    """The fastest so far, which nothing has proved."""
    ratio: float
    """Mean time with it over the default's, from the search."""
    launches: int
    """Pairs of launches behind that; 0: none but the default was measured."""

    def __str__(self) -> str:
        """In words.

        >>> str(Undecided(TunePoint("allreduce", 4, "int32", "sum", False), 1024, "ring", 0.712, 3))
        '1 KiB on 4 ranks: ring leads, 0.71 of the default in 3 launches'
        """
        where = f"{size_text(self.size)} on {self.point.ranks} ranks"
        if not self.launches or self.setting == DEFAULT.name:
            return f"{where}: nothing is ahead of the default"
        return f"{where}: {self.setting} leads, {self.ratio:.2f} of the default in {counted(self.launches, 'launch')}"


@dataclass(slots=True)
class TuneReport:
    """The data of a tuning's report."""

    collective: str
    table: RuleTable
    proved: Sequence[Proved] = ()
    excluded: Mapping[str, str] = field(default_factory=dict)
    """Candidate -> why it was left out."""
    undecided: Sequence[Undecided] = ()
    needed: str = ""
    """What the open sizes would take."""
    candidates: int = 0
    margin: float = 0.03
    launches: int = 0
    """Launches of the search, with those of earlier parts of a resumed one."""
    share: float = 0.0
    """Cells that the search measured, of those of all candidates at all sizes as often as the proof measures them."""
    run_id: str = ""
    proofs: Sequence[str] = ()
    """Runs of the comparisons that prove it."""
    store: str = ""
    """Where they are."""
    files: Sequence[str] = ()
    left_out: Sequence[str] = ()
    """Rules that the library's own file cannot express, each with the reason."""
    disputed: Sequence[tuple[TunePoint, int]] = ()
    """A point and a size at which operations or kinds of buffers want different settings, so that nothing is set."""
    workload: str = ""
    """The workload whose collectives were tuned; empty: none."""
    mended: Sequence[Mended] = ()
    """Guidelines that the library violates as it is, with their verdicts under the files."""
    step: Answer | None = None
    """The verdict on its step, default against files."""
    lost: Mapping[str, str] = field(default_factory=dict)
    """Nodes that stopped answering -> reason: all that counts was measured without them."""

    @property
    def counts(self) -> Counter[str]:
        """Verdict of the proof -> number of sizes."""
        return Counter(answer.verdict for answer in (*(cell.answer for cell in self.proved), self.step) if answer)

    @property
    def holds_up(self) -> bool:
        return not self.counts["SLOWER"]

    @property
    def marginal(self) -> bool:
        return bool(self.needed)


def exit_code(report: TuneReport, strict: bool = False) -> int:
    """1 if the proof says SLOWER; 3 if a node was lost; 4 with `strict` if the budget was too small; else 0."""
    if not report.holds_up:
        return NEGATIVE
    if report.lost:
        return ENVIRONMENT
    return INCONCLUSIVE if strict and report.marginal else OK


def headline(report: TuneReport) -> str:
    """The conclusion in one line."""
    text = f"{_conclusion(report)}{without_text(report.lost)}"
    if report.step is None:
        return text
    return f"{text}; the step: {report.step.verdict}, {report.step.ratio:.2f} of its time"


def _conclusion(report: TuneReport) -> str:
    counts = ", ".join(
        f"{report.counts[w]} {w.lower()}" for w in ("SLOWER", "FASTER", "SAME", "UNCLEAR") if report.counts[w]
    )
    if not report.holds_up:
        return f"SLOWER: {report.collective}: {counts} in fresh launches: nothing is written"
    marginal = "MARGINAL: " if report.marginal else ""
    if report.table.rules:
        best = min(rule.ratio for rule in report.table.rules)
        rules = counted(len(report.table.rules), "rule")
        return f"{marginal or 'FASTER: '}{report.collective}: {rules}, down to {best:.2f} of the time; proof: {counts}"
    if counts:
        return f"{marginal}{report.collective}: the default stays: what seemed faster was not proved ({counts})"
    if report.marginal:
        return f"MARGINAL: {report.collective}: nothing is decided"
    return f"SAME: {report.collective}: nothing is faster than the default by {share_text(report.margin)}"


def document_of(report: TuneReport, strict: bool = False) -> Document:
    rules = [_rule_row(rule) for rule in report.table.rules]
    cells = [_cell_row(cell) for cell in report.proved]
    left_out = _constant_columns(report)
    tables = [_table(_RULE_HEADS, rules, left_out), _table(_CELL_HEADS, cells, left_out, ("launches", "interval"))]
    return Document(
        "omb-py tune",
        headline(report),
        exit_code(report, strict),
        partial(_as_dict, report),
        [f"{_describe_measured(report)}{without_text(report.lost)}", *_step_line(report)],
        tuple(table for table in tables if table.rows),
        problems=[
            *(f"lost: {node}: {why}; launches made before do not count" for node, why in report.lost.items()),
            *(f"{name} is excluded: {why}" for name, why in report.excluded.items()),
        ],
        notes=_notes(report),
        cases=_cases(report),
        properties={"run": report.run_id, "margin": str(report.margin)},
    )


def _constant_columns(report: TuneReport) -> set[str]:
    points = [cell.point for cell in report.proved]
    collectives = {point.benchmark for point in points} | {rule.collective for rule in report.table.rules}
    alike = {"of"} if len({point.variant for point in points}) < 2 else set()
    return alike | ({"collective"} if len(collectives) < 2 else set())


def _table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], left_out: set[str], spare: Sequence[str] = ()
) -> TextTable:
    kept = [place for place, head in enumerate(heads) if head not in left_out]
    named = tuple(heads[place] for place in kept)
    return TextTable(
        named,
        [tuple(row[place] for place in kept) for row in rows],
        tuple(head for head in _LEFT if head in named),
        spare=tuple(spare),
    )


def _step_line(report: TuneReport) -> list[str]:
    if not report.workload or report.step is None:
        return [f"the step of {report.workload} was not compared: there is no file for it"] if report.workload else []
    a = report.step
    return [
        f"the step of {report.workload}: {a.verdict}: {a.base_us:.2f} µs by default, {a.new_us:.2f} µs with the files, "
        f"ratio {a.ratio:.3f} ({a.low:.3f} … {a.high:.3f}), {counted(a.launches[1], 'launch')} each"
    ]


def _describe_measured(report: TuneReport) -> str:
    return (
        f"{report.table.library}: {report.collective}, {counted(report.candidates, 'candidate')} and the default, "
        f"{counted(report.launches, 'launch')}, {report.share:.0%} of the cells of a full grid"
    )


def _notes(report: TuneReport) -> list[str]:
    notes = [
        f"time: with the setting over the default's, in fresh launches; a rule stands where it is FASTER by "
        f"{share_text(report.margin)} or more"
    ]
    if report.needed:
        notes += [f"undecided: {each}" for each in report.undecided]
        notes.append(report.needed)
    notes += [
        f"{point.benchmark} on {point.ranks} ranks, {size_text(size)}: nothing is set, since operations or kinds of "
        "buffers want different settings"
        for point, size in report.disputed
    ]
    notes += [f"guideline {line}" for line in report.mended]
    notes += [f"not in the library's file: {text}" for text in report.left_out]
    notes += [f"written: {path}" for path in report.files]
    notes += [f"{storing(f'omb-py compare {run}', report.store)} shows the proof again" for run in report.proofs]
    return notes


def _range(rule: Rule) -> str:
    if rule.for_all_sizes:
        return "all"
    last = "" if rule.last_bytes is None else size_text(rule.last_bytes)
    return (
        size_text(rule.first_bytes)
        if rule.first_bytes == rule.last_bytes
        else f"{size_text(rule.first_bytes)} … {last}"
    )


def _rule_row(rule: Rule) -> tuple[str, ...]:
    variables = " ".join(f"{name}={value}" for name, value in rule.setting.variables)
    interval = f"{rule.low:.3f} … {rule.high:.3f}"
    ratio = f"{rule.ratio:.3f}"
    return rule.collective, str(rule.ranks), _range(rule), rule.setting.name, ratio, interval, variables


def _cell_row(cell: Proved) -> tuple[str, ...]:
    a = cell.answer
    return (
        cell.point.benchmark,
        cell.point.variant,
        str(cell.point.ranks),
        size_text(cell.size),
        cell.setting,
        f"{a.base_us:.2f}",
        f"{a.new_us:.2f}",
        f"{a.ratio:.3f}",
        f"{a.low:.3f} … {a.high:.3f}",
        a.verdict,
        str(a.launches[1]),
    )


def _as_dict(report: TuneReport) -> dict[str, object]:
    return {
        "run_id": report.run_id,
        "collective": report.collective,
        "library": report.table.library,
        "margin": report.margin,
        "candidates": report.candidates,
        "launches": report.launches,
        "share_of_full_grid": report.share,
        "rules": [asdict(rule) for rule in report.table.rules],
        "proof": [
            {**_point_as_data(cell.point), "size_bytes": cell.size, "setting": cell.setting, **asdict(cell.answer)}
            for cell in report.proved
        ],
        "excluded": dict(report.excluded),
        "undecided": [
            {
                **_point_as_data(o.point),
                "size_bytes": o.size,
                "setting": o.setting,
                "ratio": o.ratio,
                "launches": o.launches,
            }
            for o in report.undecided
        ],
        "disputed": [{**_point_as_data(point), "size_bytes": size} for point, size in report.disputed],
        "guidelines": [mended_as_data(each) for each in report.mended],
        "workload": report.workload or None,
        "step": asdict(report.step) if report.step else None,
        "needed": report.needed or None,
        "left_out": list(report.left_out),
        "files": list(report.files),
        "proofs": list(report.proofs),
    }


def _point_as_data(point: TunePoint) -> dict[str, object]:
    data = asdict(point)
    return {"collective": data.pop("benchmark"), **data}


def _cases(report: TuneReport) -> list[CaseResult]:
    """One test case a proved size: SLOWER is a failure, UNCLEAR is skipped; an excluded candidate is an error."""
    outcomes: Mapping[str, Outcome] = {"SLOWER": "failure", "UNCLEAR": "skipped"}
    cases = [
        CaseResult(
            f"tune.{cell.point.benchmark}",
            f"{cell.point.ranks} ranks, {size_text(cell.size)}",
            outcomes.get(cell.answer.verdict),
            f"{cell.setting}: {cell.answer.verdict}, ratio {cell.answer.ratio:.3f}",
        )
        for cell in report.proved
    ]
    if report.step:
        verdict, ratio = report.step.verdict, report.step.ratio
        cases.append(CaseResult("tune.step", report.workload, outcomes.get(verdict), f"{verdict}, ratio {ratio:.3f}"))
    return cases + [CaseResult("tune.candidates", name, "error", why) for name, why in report.excluded.items()]
