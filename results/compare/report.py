"""The report of a comparison: its data, and the document that every form of it is written from."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from omb_py.errors import ENVIRONMENT, INCONCLUSIVE, NEGATIVE, NO_VERDICT, OK
from omb_py.results.compare.cell_names import namer
from omb_py.results.compare.communication import communication, communication_text
from omb_py.results.compare.environment_diff import EnvironmentDifference, differences, say
from omb_py.results.compare.judge import SAME_LEVEL, WORDS, Answer, CompareRules, JudgedCell, judge
from omb_py.results.compare.match import SIDES, Matched, MatchedCell, match
from omb_py.results.compare.no_verdict import NO_VERDICT_WORD, of_programs, unmeasured
from omb_py.results.compare.select_launches import SideLaunches
from omb_py.results.document import CaseResult, Document, Outcome, TextTable, numbered
from omb_py.results.statistics.launch_time import OURS, printed_text
from omb_py.results.statistics.nights import FEWEST_NIGHTS
from omb_py.results.store.provenance import is_simulated
from omb_py.results.store.row import Row
from omb_py.results.units import counted, share_text

COMPARE, AA = "compare", "aa"
_MOST_SAID, _MOST_TOLD, _MOST_LAUNCHES = 10.0, 3, 1000
"""The ratio beyond which a bound says nothing, the cells whose kinds of launches are named, and the launches of a side
that somebody may make."""
_JSON_NAMES = {"round": "look", "rounds": "looks"}
HEADS = (
    "cell",
    "of",
    "BASE µs",
    "NEW µs",
    "ratio",
    "interval",
    "verdict",
    "tail",
    "tail ratio",
    "tail verdict",
    "launches",
    "missed under",
)
"""Heads of the table. ``of`` names the statistic where it is not the median."""
_LEFT = ("cell", "of", "verdict", "tail", "tail verdict")
_SPARE = ("missed under", "tail ratio", "tail", "launches", "tail verdict")
"""What a narrow terminal does without; never the cell, its times, the ratio or the verdict."""


@dataclass(slots=True)
class CompareReport:
    """The data of a comparison's report."""

    kind: str
    """:data:`COMPARE`, or :data:`AA` when a library is compared with itself."""
    base: SideLaunches
    new: SideLaunches
    matched: Matched
    judged: list[JudgedCell]
    """One entry for each of ``matched.cells``."""
    rules: CompareRules
    differences: list[EnvironmentDifference] = field(default_factory=list)
    run_id: str | None = None
    """Run of a comparison that measured; None when it read stored launches."""
    seed: int | None = None
    site: str = ""
    failed: list[str] = field(default_factory=list)
    """Parts of a suite that could not be measured on both sides, with the reasons."""
    repeated: list[str] = field(default_factory=list)
    """A sentence for each launch that was made again because it had not begun."""
    machine: dict[str, Any] = field(default_factory=dict)
    """State of the machine while it measured; ``warnings`` are sentences. Empty for stored and simulated launches."""
    unmeasured: list[str] = field(default_factory=list)
    """What programs did not measure on both sides; where there is any, nothing is as good as SAME."""

    @property
    def named(self) -> Callable[[Row], str]:
        """The function that names each cell."""
        matched = self.matched
        rows = [*(cell.base for cell in matched.cells), *(pair.base for pair in matched.incomparable)]
        return namer([*rows, *matched.only["BASE"], *matched.only["NEW"]])

    @property
    def counts(self) -> Counter[str]:
        """Verdict -> number of cells. A cell whose tail alone has changed counts by its tail."""
        counts: Counter[str] = Counter({"NOT COMPARABLE": len(self.matched.incomparable)})
        counts.update(overall(judged) for judged in self.judged)
        return counts

    @property
    def questions(self) -> int:
        """Number of questions: the size of the family."""
        return sum(len(judged.answers) for judged in self.judged)


def overall(judged: JudgedCell) -> str:
    """Reduce both questions to one word: any change, else the verdict on the median, whatever the tail's."""
    verdicts = {answer.verdict for answer in judged.answers.values()}
    changed = next((word for word in ("SLOWER", "FASTER") if word in verdicts), None)
    return changed or (judged.answers["median"].verdict if judged.answers else "UNCLEAR")


def report_of(base: SideLaunches, new: SideLaunches, rules: CompareRules, kind: str = COMPARE) -> CompareReport:
    """Compare two sets of launches and collect the data of the report."""
    matched = match(base.rows, new.rows)
    judged = judge([cell.rounds for cell in matched.cells], rules)
    rows = (base.rows[0], new.rows[0]) if base.rows and new.rows else None
    report = CompareReport(
        kind, base, new, matched, judged, rules, differences(base.provenances, new.provenances, rows)
    )
    report.unmeasured = unmeasured(base.rows, new.rows, matched, rules, report.named)
    return report


def exit_code(report: CompareReport, strict: bool = False) -> int:
    """Choose the exit code of a comparison.

    Returns:
        1 if anything is SLOWER or did not validate; 5 if programs did not measure all of it; 3 if a part of a suite
        could not be measured; 4 with `strict` if anything is UNCLEAR or NOT COMPARABLE; else 0.
    """
    counts = report.counts
    if counts["SLOWER"] or (wrong_rows(report) and not report.unmeasured):
        return NEGATIVE
    if report.unmeasured:
        return NO_VERDICT
    if report.failed:
        return ENVIRONMENT
    return INCONCLUSIVE if strict and (counts["UNCLEAR"] or counts["NOT COMPARABLE"]) else OK


def headline(report: CompareReport) -> str:
    """Count verdicts: ``3 slower, 1 faster, 62 same, 6 unclear``. Counts of 0 are left out, except for slower."""
    counts = report.counts
    parts = [f"{counts[word]} {word.lower()}" for word in WORDS if counts[word] or word == "SLOWER"]
    return ", ".join([*([NO_VERDICT_WORD] if exit_code(report) == NO_VERDICT else []), *parts])


def by_benchmark(report: CompareReport) -> list[str]:
    """Write a line for each of several benchmarks: ``bcast: 2 slower, 6 same``; no line for a single one."""
    by_name: dict[str, Counter[str]] = {}
    for cell, judged in zip(report.matched.cells, report.judged, strict=True):
        by_name.setdefault(str(cell.base["benchmark"]), Counter())[overall(judged)] += 1
    for pair in report.matched.incomparable:
        by_name.setdefault(str(pair.base["benchmark"]), Counter())["NOT COMPARABLE"] += 1
    if len(by_name) < 2:
        return []
    return [
        f"{benchmark}: " + ", ".join(f"{counts[word]} {word.lower()}" for word in WORDS if counts[word])
        for benchmark, counts in by_name.items()
    ]


def side_text(side: SideLaunches) -> str:
    """Describe a side: ``Open MPI 5.0.11, native, 10 launches (20261121T…)``."""
    rows = side.rows
    libraries = dict.fromkeys(
        f"{row.get('library') or row['source']} {row.get('library_version') or ''}" for row in rows
    )
    bindings = dict.fromkeys(str(row["binding"]) for row in rows if row.get("binding"))
    launches = "1 launch" if side.count == 1 else f"{side.count} launches"
    return ", ".join([*(name.strip() for name in libraries), *bindings, launches]) + f" ({side.word})"


def _facts(report: CompareReport) -> list[str]:
    """The sides and their differences."""
    lines = [f"{name:<5}{side_text(side)}" for name, side in zip(SIDES, (report.base, report.new), strict=True)]
    first, *others = say(report.differences)
    lines += [f"differs: {first}", *others]
    lines += communication_text(communication(report.base.rows, report.new.rows))
    if not of_programs(report.base.rows) and any(
        row.get("source") != OURS for side in (report.base, report.new) for row in side.rows
    ):
        lines.append("imported launches say little of their environment: what else differs is not known")
    return lines


def _answer_lines(report: CompareReport) -> list[str]:
    """The answer, how sure it is and under which conditions, and what to do next."""
    sure = [f"the chance of any false SLOWER or FASTER is {share_text(report.rules.alpha)}"]
    seen = [
        a.detectable for judged in report.judged if (a := judged.answers.get("median")) and math.isfinite(a.detectable)
    ]
    if seen:
        low, high = percent(min(seen)), percent(max(seen))
        smallest = low if low == high else f"{low} to {high} (it depends on the cell)"
        sure.append(f"changes under {smallest} would probably be missed")
    following = _next(report)
    return [
        f"answer: {_answer_text(report)}",
        *report.machine.get("warnings", ()),
        f"sure: {'; '.join(sure)}",
        *([f"next: {following}"] if following else []),
    ]


def _answer_text(report: CompareReport) -> str:
    """What the report says, in one sentence."""
    counts, total = report.counts, sum(report.counts.values())
    if report.kind == AA:
        alarms = counts["SLOWER"] + counts["FASTER"]
        return f"{alarms} false SLOWER or FASTER among {counted(total, 'cell')} of a library against itself"
    told = [f"{word.lower()} in {counts[word]}{_worst(report, word)}" for word in ("SLOWER", "FASTER") if counts[word]]
    if counts["SAME"]:
        told.append(f"the same in {counts['SAME']}")
    if counts["UNCLEAR"]:
        told.append(f"undecided in {counts['UNCLEAR']}{_bound(report)}")
    if counts["NOT COMPARABLE"]:
        told.append(f"not comparable in {counts['NOT COMPARABLE']}")
    measured = f"{NO_VERDICT_WORD}, since not all was measured; " if exit_code(report) == NO_VERDICT else ""
    return f"{measured}of {counted(total, 'cell')} NEW is {', '.join(told)}"


def _worst(report: CompareReport, word: str) -> str:
    """The largest change of this kind, and its cell."""
    changes = [
        (max(answer.ratio, 1 / answer.ratio), report.named(cell.base), question)
        for cell, judged in zip(report.matched.cells, report.judged, strict=True)
        for question, answer in judged.answers.items()
        if answer.verdict == word
    ]
    ratio, name, question = max(changes)
    of = "" if question == "median" else " in its tail"
    return f" (most: {name}{of}, {percent(ratio)})"


def _bound(report: CompareReport) -> str:
    """What UNCLEAR may hide at most."""
    highs = [
        answer.high
        for judged in report.judged
        for answer in judged.answers.values()
        if answer.verdict == "UNCLEAR" and answer.paired and answer.high < _MOST_SAID
    ]
    return f" (at most {percent(max(1.0, *highs))} slower, as the upper ends of the intervals say)" if highs else ""


def _next(report: CompareReport) -> str:
    """What to do next; empty where there is nothing to do."""
    if report.unmeasured or report.failed:
        return "mend what was not measured, below"
    if report.counts["SLOWER"]:
        return "find the reason in what differs, below" if report.kind == COMPARE else ""
    answers = [answer for judged in report.judged for answer in judged.answers.values()]
    undecided = [answer for answer in answers if answer.verdict == "UNCLEAR" and not answer.reason]
    if report.kind == AA or not any(answer.verdict == "UNCLEAR" for answer in answers):
        return ""
    if not undecided:
        return "measure both sides in turn, as said below"
    wanted = [_wanted(answer) for answer in undecided]
    enough = [count for count in wanted if count is not None]
    if not enough:
        return "this cannot be decided here, since launches differ too much: use a quieter machine"
    rest = "" if len(enough) == len(undecided) else ", but for what cannot be decided here"
    return f"--launches {max(enough)} would probably decide what is UNCLEAR{rest}"


def _notes(report: CompareReport) -> list[str]:
    rules, matched = report.rules, report.matched
    answers = [answer for judged in report.judged for answer in judged.answers.values()]
    lines = [
        *(f"  {line}" for line in by_benchmark(report)),
        f"ratio is NEW over BASE in time; a change is one of {share_text(rules.delta)} or more; its interval is of the "
        f"cell alone, at {share_text(SAME_LEVEL)}; a launch far from the others counts up to a bound",
    ]
    if any(len(judged.answers) > 1 for judged in report.judged):
        lines.append(
            f"tail: the 99th percentile (p99) of each launch, or its mean; a change is one of "
            f"{share_text(rules.tail_delta)} or more"
        )
    if any(_wanted(answer) for answer in answers):
        lines.append("UNCLEAR (about N): about N launches a side would decide")
    lines += _kinds_of_launches(report)
    if any(answer.reason for answer in answers):
        lines.append(
            f"UNCLEAR (not interleaved): the launches of BASE and NEW were not interleaved and are of fewer than "
            f"{FEWEST_NIGHTS} nights of each side, so what differs from night to night would look like a change: "
            "omb-py compare --env BASE=… --env NEW=… measures both, interleaved"
        )
    elif not all(answer.paired for answer in answers):
        lines.append(
            "not interleaved: nights are compared, and a steady drift over them is allowed for in ratio and interval"
        )
    if any(cell.limited for cell in matched.cells):
        lines.append("* mostly the skew of the synchronisation was measured: try --process-sync roundtime")
    if any(cell.statistic == "mean" for cell in matched.cells):
        cells = "the program printed no samples" if of_programs(report.base.rows) else "imported cells have no samples"
        lines.append(f"mean: {cells}, so the printed means are compared, and no tail is known")
    named = report.named
    lines += [
        f"not comparable: {named(pair.base)}: {fields_text(pair.base, pair.new, pair.fields)}"
        for pair in matched.incomparable
    ]
    for side, rows in matched.only.items():
        if rows:
            shown = ", ".join(map(named, rows[:4])) + (f" and {len(rows) - 4} more" if len(rows) > 4 else "")
            lines.append(f"only in {side}: {shown}")
    if wrong := wrong_rows(report):
        lines.append(f"{wrong} rows did not validate: their times are those of wrong results")
    lines += [f"not measured: {reason}" for reason in (*report.failed, *report.unmeasured)]
    lines += report.repeated
    return [*lines, report.site] if report.site else lines


def _undecided(report: CompareReport, strict: bool) -> list[str]:
    """Say what the exit code means where no cell has a verdict; a library against itself needs none."""
    decided = set(report.counts) - {"UNCLEAR", "NOT COMPARABLE"}
    if report.kind != COMPARE or any(report.counts[word] for word in decided):
        return []
    code = exit_code(report, strict)
    if code == INCONCLUSIVE:
        return [f"nothing was decided: exit code {code}, because of --strict"]
    meaning = f"exit code {code} says only that nothing is SLOWER; --strict exits with {INCONCLUSIVE}"
    return [f"nothing was decided: {meaning}"] if code == OK else []


def wrong_rows(report: CompareReport) -> int:
    return sum(row.get("validated") is False for side in (report.base, report.new) for row in side.rows)


def fields_text(base: Mapping[str, Any], new: Mapping[str, Any], fields: Sequence[str]) -> str:
    """Write differing columns: ``ranks 4 against 8, dtype char against int32``."""
    return ", ".join(f"{f} {base.get(f)} against {new.get(f)}" if f in base else f"another {f}" for f in fields)


def _kinds_of_launches(report: CompareReport) -> list[str]:
    """Count the launches of another kind, in the cells that have most of them."""
    told = []
    for cell, judged in zip(report.matched.cells, report.judged, strict=True):
        answer = judged.answers.get("median")
        if answer is None or (kinds := answer.kinds) is None:
            continue
        slow = ", ".join(
            f"{count} of {total} of {side}" for side, (count, total) in zip(SIDES, (kinds.base, kinds.new), strict=True)
        )
        fast, slow_one = (printed_text(cell.base, math.exp(log), " µs") for log in (kinds.fast, kinds.slow))
        text = f"two kinds of launches, {fast} and {slow_one}, of {report.named(cell.base)}: {slow} are slow"
        told.append((kinds.base[0] + kinds.new[0], text))
    told.sort(key=lambda each: -each[0])
    more = [f"and {len(told) - _MOST_TOLD} cells more"] if len(told) > _MOST_TOLD else []
    return [*(line for _, line in told[:_MOST_TOLD]), *more]


def percent(ratio: float) -> str:
    """Write a ratio over 1 as a change: ``3.4 %``, from 2 on ``× 2.5``, beyond 10 ``over × 10``."""
    if ratio > 10:
        return "over × 10" if math.isfinite(ratio) else "-"
    return f"{100 * (ratio - 1):.1f} %" if ratio < 2 else f"× {ratio:.1f}"


def document_of(report: CompareReport, strict: bool = False) -> Document:
    """Make the document of a comparison. With `strict`, UNCLEAR and NOT COMPARABLE are not good enough."""
    facts = [*_answer_lines(report), *_facts(report)]
    return Document(
        "omb-py compare",
        headline(report),
        exit_code(report, strict),
        partial(as_dict, report),
        facts,
        (_table(report),),
        notes=[*_notes(report), *_undecided(report, strict)],
        cases=_cases(report, strict),
        properties=numbered(facts),
        simulated=any(is_simulated(known) for side in (report.base, report.new) for known in side.provenances),
    )


def _table(report: CompareReport) -> TextTable:
    """Make the table, one row a cell; the rows of a benchmark stand together."""
    named = report.named
    rows = []
    for cell, judged in zip(report.matched.cells, report.judged, strict=True):
        mark = "*" if cell.limited else ""
        of = "" if cell.statistic == "median" else cell.statistic
        rows.append((str(cell.base["benchmark"]), (named(cell.base) + mark, of, *_answers(cell.base, judged))))
    before = HEADS.index("verdict") - 1
    after = len(HEADS) - before - 2
    rows += [
        (str(pair.base["benchmark"]), (named(pair.base), *("",) * before, "NOT COMPARABLE", *("",) * after))
        for pair in report.matched.incomparable
    ]
    rows.sort(key=lambda row: row[0])
    return TextTable(HEADS, [row for _, row in rows], _LEFT, [benchmark for benchmark, _ in rows], spare=_SPARE)


def _answers(row: Row, judged: JudgedCell) -> tuple[str, ...]:
    median, tail = judged.answers.get("median"), judged.answers.get("tail")
    if median is None:
        return ("",) * 4 + ("UNCLEAR",) + ("",) * 3 + ("0", "")
    return (
        printed_text(row, median.base_us),
        printed_text(row, median.new_us),
        f"{median.ratio:.3f}",
        _interval(median),
        _verdict(median),
        *(("",) * 3 if tail is None else (tail.statistic, f"{tail.ratio:.3f}", _verdict(tail))),
        _launches(median),
        percent(median.detectable),
    )


def _interval(answer: Answer) -> str:
    return f"{answer.low:.3f} … {answer.high:.3f}" if answer.low > 0 and answer.high < 1e6 else "unknown"


def _verdict(answer: Answer) -> str:
    """The verdict as the table has it; UNCLEAR comes with the number of launches that would decide, or the reason."""
    if answer.reason:
        return f"{answer.verdict} ({answer.reason})"
    wanted = _wanted(answer)
    return f"{answer.verdict} (about {wanted})" if wanted else answer.verdict


def _wanted(answer: Answer) -> int | None:
    """Launches a side that would probably decide an UNCLEAR question; None where nobody would make so many."""
    needed = answer.needed if answer.verdict == "UNCLEAR" else None
    return None if needed is None or needed > _MOST_LAUNCHES else needed


def _launches(answer: Answer) -> str:
    base, new = answer.launches
    count = str(base) if base == new else f"{base}, {new}"
    return f"{count} ({answer.round} rounds)" if answer.round > 1 else count


def _cases(report: CompareReport, strict: bool) -> list[CaseResult]:
    """Make one test case a cell.

    SLOWER is a failure, UNCLEAR is skipped (a failure with `strict`), NOT COMPARABLE is an error.
    """
    outcomes: dict[str, Outcome] = {"SLOWER": "failure", "UNCLEAR": "failure" if strict else "skipped"}
    named = report.named
    cases = []
    for cell, judged in zip(report.matched.cells, report.judged, strict=True):
        word = overall(judged)
        message = f"{word}: {'; '.join(_sentence(cell.base, answer) for answer in judged.answers.values())}"
        cases.append(CaseResult(_group(cell.base), named(cell.base), outcomes.get(word), message))
    for pair in report.matched.incomparable:
        message = f"NOT COMPARABLE: {fields_text(pair.base, pair.new, pair.fields)}"
        cases.append(CaseResult(_group(pair.base), named(pair.base), "error", message))
    for number, reason in enumerate(report.unmeasured, 1):
        cases.append(CaseResult("not measured", f"{number}", "error", f"{NO_VERDICT_WORD}: {reason}"))
    return cases


def _group(row: Row) -> str:
    return f"{row['backend']}.{row['benchmark']}"


def _sentence(row: Row, answer: Answer) -> str:
    wanted = _wanted(answer)
    verdict = f"UNCLEAR (about {wanted} launches a side to decide)" if wanted else _verdict(answer)
    return (
        f"{answer.statistic} {printed_text(row, answer.base_us)} -> {printed_text(row, answer.new_us, ' us')}, "
        f"ratio {answer.ratio:.3f} ({_interval(answer)}), {verdict}, "
        f"launches {_launches(answer)}, changes under {percent(answer.detectable)} would probably be missed"
    )


def as_dict(report: CompareReport) -> dict[str, object]:
    cells = [_cell(cell, judged) for cell, judged in zip(report.matched.cells, report.judged, strict=True)]
    cells += [
        {
            **_identity(pair.base),
            "verdict": "NOT COMPARABLE",
            "differing": list(pair.fields),
            "base": {name: pair.base.get(name) for name in pair.fields},
            "new": {name: pair.new.get(name) for name in pair.fields},
        }
        for pair in report.matched.incomparable
    ]
    sides = {
        side: {
            "word": launches.word,
            "launches": launches.count,
            "runs": sorted({row["run_id"] for row in launches.rows}),
            "libraries": sorted({f"{row.get('library')} {row.get('library_version')}" for row in launches.rows}),
            "hosts": sorted({host for row in launches.rows for host in row.get("hosts") or ()}),
        }
        for side, launches in zip(SIDES, (report.base, report.new), strict=True)
    }
    return {
        "kind": report.kind,
        "run_id": report.run_id,
        "seed": report.seed,
        "sides": sides,
        "rules": _fields(report.rules),
        "questions": report.questions,
        "differences": [asdict(difference) for difference in report.differences],
        "verdicts": {word: count for word, count in report.counts.items() if count},
        "cells": cells,
        "only": {side: [_identity(row) for row in rows] for side, rows in report.matched.only.items()},
        "failed": report.failed,
        **({"unmeasured": report.unmeasured} if report.unmeasured else {}),
        **({"communication": told} if (told := communication(report.base.rows, report.new.rows)) else {}),
        "repeated": report.repeated,
        "machine": report.machine or None,
        "site": report.site or None,
    }


def _identity(row: Row) -> dict[str, object]:
    names = ("benchmark", "backend", "binding", "size_bytes", "ranks", "dtype", "op", "comparability_key")
    return {name: row.get(name) for name in names}


def _cell(cell: MatchedCell, judged: JudgedCell) -> dict[str, object]:
    answers: dict[str, Any] = {str(question): _fields(answer) for question, answer in judged.answers.items()}
    return {
        **_identity(cell.base),
        "verdict": overall(judged),
        "sync_limited": cell.limited,
        "statistic": cell.statistic,
        **answers,
    }


def _fields(value: CompareRules | Answer) -> dict[str, object]:
    """Fields by their names in JSON, where a round is called a look."""
    return {_JSON_NAMES.get(name, name): field for name, field in asdict(value).items()}
