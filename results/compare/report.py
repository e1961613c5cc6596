"""The report of a comparison: its data, and the document that every form of it is written from."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from operator import attrgetter
from statistics import median as median_of
from statistics import stdev
from typing import Any

from omb_py.errors import ENVIRONMENT, INCONCLUSIVE, NEGATIVE, NO_VERDICT, OK
from omb_py.results.compare.cell_names import namer
from omb_py.results.compare.communication import communication, communication_text
from omb_py.results.compare.environment_diff import EnvironmentDifference, differences, say
from omb_py.results.compare.judge import APART, OPEN, SAME_LEVEL, Answer, CompareRules, JudgedCell, count_text, judge
from omb_py.results.compare.match import SIDES, Matched, MatchedCell, match
from omb_py.results.compare.no_verdict import NO_VERDICT_WORD, of_programs, unmeasured
from omb_py.results.compare.select_launches import SideLaunches
from omb_py.results.document import CaseResult, Document, Outcome, TextTable, numbered
from omb_py.results.statistics.launch_kinds import LaunchKinds
from omb_py.results.statistics.launch_time import OURS, printed_text
from omb_py.results.statistics.nights import FEWEST_NIGHTS
from omb_py.results.store.row import Row
from omb_py.results.units import counted, without_text

COMPARE, AA = "compare", "aa"
_MOST_SAID, _MOST_TOLD, _MOST_LAUNCHES, _MOST_HOSTS = 10.0, 3, 1000, 3
"""The ratio beyond which a bound says nothing, the cells whose kinds of launches are named, and the launches of a side
that somebody may make, and hosts that are named."""
_JSON_NAMES = {"round": "look", "rounds": "looks"}
FOUND_FROM = "found from"
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
    FOUND_FROM,
)
"""Heads of the table. ``of`` names the statistic where it is not the median."""
_CHANGES = ("SLOWER", "LIKELY SLOWER", "FASTER", "LIKELY FASTER")
_IN_WORDS = {
    "SLOWER": "slower",
    "LIKELY SLOWER": "likely slower",
    "FASTER": "faster",
    "LIKELY FASTER": "likely faster",
    "SAME": "the same",
    "UNCLEAR": "UNCLEAR",
    "NOT COMPARABLE": "not comparable",
}
_LEFT = ("cell", "of", "verdict", "tail", "tail verdict")
_SPARE = (FOUND_FROM, "tail ratio", "tail", "launches", "tail verdict")
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
    lost: dict[str, str] = field(default_factory=dict)
    """Nodes that stopped answering -> reason: all launches that are judged were made without them."""
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
    def verdicts(self) -> list[tuple[MatchedCell, JudgedCell]]:
        """Each cell that could be compared, and what was found of it."""
        return list(zip(self.matched.cells, self.judged, strict=True))

    @property
    def answers(self) -> list[Answer]:
        """The answers on all cells."""
        return [answer for judged in self.judged for answer in judged.answers.values()]

    @property
    def medians(self) -> list[Answer]:
        """The answers on the median, of the cells that have one."""
        return [answer for judged in self.judged if (answer := judged.answers.get("median"))]

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
    changed = next((word for word in ("SLOWER", "FASTER", "LIKELY SLOWER", "LIKELY FASTER") if word in verdicts), None)
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
        could not be measured, or a node was lost; 4 with `strict` if anything is UNCLEAR, LIKELY or NOT COMPARABLE;
        else 0.
    """
    counts = report.counts
    if counts["SLOWER"] or (wrong_rows(report) and not report.unmeasured):
        return NEGATIVE
    if report.unmeasured:
        return NO_VERDICT
    if report.failed or report.lost:
        return ENVIRONMENT
    return INCONCLUSIVE if strict and any(counts[word] for word in OPEN) else OK


def headline(report: CompareReport) -> str:
    """Count verdicts: ``3 slower, 1 faster, 62 same, 6 unclear``."""
    measured = f"{NO_VERDICT_WORD}, " if exit_code(report) == NO_VERDICT else ""
    return f"{measured}{count_text(report.counts)}{without_text(report.lost)}"


def by_benchmark(report: CompareReport) -> list[str]:
    """Write a line for each of several benchmarks: ``bcast: 2 slower, 6 same``; no line for a single one."""
    by_name: dict[str, Counter[str]] = {}
    for cell, judged in report.verdicts:
        by_name.setdefault(str(cell.base["benchmark"]), Counter())[overall(judged)] += 1
    for pair in report.matched.incomparable:
        by_name.setdefault(str(pair.base["benchmark"]), Counter())["NOT COMPARABLE"] += 1
    if len(by_name) < 2:
        return []
    return [
        f"{benchmark}: " + ", ".join(f"{counts[word]} {word.lower()}" for word in _IN_WORDS if counts[word])
        for benchmark, counts in by_name.items()
    ]


def side_text(side: SideLaunches) -> str:
    """Describe a side: ``Open MPI 5.0.11, native, 10 launches (20261121T…)``."""
    rows = side.rows
    libraries = dict.fromkeys(
        f"{row.get('library') or row['source']} {row.get('library_version') or ''}" for row in rows
    )
    bindings = dict.fromkeys(
        "C" if row["binding"] == "c" else str(row["binding"]) for row in rows if row.get("binding")
    )
    names = [name.strip() for name in libraries]
    parts = [
        *names,
        *(["simulated"] if side.is_simulated else []),
        *bindings,
        *_ranks_text(rows),
        counted(side.count, "launch"),
    ]
    return f"{', '.join(parts)} ({side.word})"


def _ranks_text(rows: Sequence[Row]) -> list[str]:
    """``2 ranks on n1, n2``, as far as all rows agree and say it."""
    ranks = {row.get("ranks") for row in rows}
    hosts = {host for row in rows for host in row.get("hosts") or ()}
    if len(ranks) != 1 or not (count := ranks.pop()):
        return []
    where = ", ".join(sorted(hosts)) if len(hosts) <= _MOST_HOSTS else counted(len(hosts), "node")
    return [counted(count, "rank") + (f" on {where}" if where else "")]


def _facts(report: CompareReport) -> list[str]:
    """Under which conditions the answer was got, how sure it is, what to do next, and what the sides are."""
    following = _next(report)
    lines = [
        *(f"conditions: {condition}" for condition in _conditions(report)),
        f"sure: {'; '.join(_how_sure(report))}",
        *([f"next: {following}"] if following else []),
        *(f"{name:<5}{side_text(side)}" for name, side in zip(SIDES, (report.base, report.new), strict=True)),
    ]
    first, *others = say(report.differences)
    lines += [f"differs: {first}", *others]
    lines += communication_text(communication(report.base.rows, report.new.rows))
    if not of_programs(report.base.rows) and any(
        row.get("source") != OURS for side in (report.base, report.new) for row in side.rows
    ):
        lines.append("imported launches say little of their environment: what else differs is not known")
    return lines


def _conditions(report: CompareReport) -> list[str]:
    told = [*report.machine.get("warnings", ())]
    if (by := launch_spread(report.matched.cells)) is not None:
        told.append(f"launches of a side differ by {percent(1 + by)}")
    return told


def launch_spread(cells: Sequence[MatchedCell]) -> float | None:
    """By how much launches of one side differ: the standard deviation of a cell's logs, the middle one of all cells.

    None where no side has two launches.
    """
    spreads = []
    for cell in cells:
        for side in (attrgetter("base"), attrgetter("new")):
            times = [launch.median_us or launch.mean_us for each in cell.rounds for launch in side(each)]
            if len(times) > 1 and min(times) > 0:
                spreads.append(stdev(map(math.log, times)))
    return median_of(spreads) if spreads else None


def _how_sure(report: CompareReport) -> list[str]:
    answers = report.answers
    turns = "; BASE and NEW took turns" if answers and all(answer.paired for answer in answers) else ""
    sure = [f"a false SLOWER or FASTER is told in at most {_share(report.rules.alpha)} of reports{turns}"]
    if any(answer.verdict.startswith("LIKELY") for answer in answers):
        sure.append("LIKELY: if nothing but the side differs between the days of BASE and NEW")
    if any(answer.verdict == "SAME" for answer in answers):
        sure.append(
            f"a change of {_share(report.rules.delta)} is called SAME in at most {_share((1 - SAME_LEVEL) / 2)}"
        )
    seen = [answer.detectable for answer in report.medians if _may_hide(answer)]
    if seen:
        low, high = percent(min(seen)), percent(max(seen))
        smallest = low if low == high else f"{low} to {high}, by cell,"
        sure.append(f"a change of {smallest} is found 4 times in 5")
    return sure


def _may_hide(answer: Answer) -> bool:
    """Whether a change may have been missed, and its size is known."""
    return answer.verdict in ("SAME", "UNCLEAR") and math.isfinite(answer.detectable)


def _answer_text(report: CompareReport) -> str:
    """What the report says, in one sentence."""
    counts, total = report.counts, sum(report.counts.values())
    cells = counted(total, "cell")
    if report.kind == AA:
        alarms = counts["SLOWER"] + counts["FASTER"]
        alone = without_text(report.lost)
        return f"{alarms} false SLOWER or FASTER among {cells} of a library against itself{alone}{_wrong_text(report)}"
    told: list[str] = []
    for word, text in _IN_WORDS.items():
        if count := counts[word]:
            of = "" if told else f" of {cells}"
            told.append(f"{text} in {count}{of}{_tails(report, word, count)}{_describe_changes(report, word)}")
    measured = f"{NO_VERDICT_WORD}, since not all was measured; " if exit_code(report) == NO_VERDICT else ""
    return f"{measured}NEW is {', '.join(told) or 'not judged'}{without_text(report.lost)}{_wrong_text(report)}"


def _tails(report: CompareReport, word: str, count: int) -> str:
    """In how many of the cells with a word the median has another one: their tail alone has changed."""
    if word not in _CHANGES:
        return ""
    alone = sum(overall(judged) == word != judged.verdict for judged in report.judged if judged.answers)
    if not alone:
        return ""
    return ", in the tail alone" if alone == count else f", in {alone} of them in the tail alone"


def _describe_changes(report: CompareReport, word: str) -> str:
    if word in _CHANGES:
        return _worst(report, word)
    return _bound(report) if word == "UNCLEAR" else ""


def _worst(report: CompareReport, word: str) -> str:
    named = report.named
    changes = [
        (max(answer.ratio, 1 / answer.ratio), named(cell.base), question, answer)
        for cell, judged in report.verdicts
        for question, answer in judged.answers.items()
        if answer.verdict == word
    ]
    ratio, name, question, answer = max(changes, key=lambda change: change[:3])
    of = "" if question == "median" else " in its tail"
    beyond = f", {answer.beyond} of {answer.launches[1]} launches beyond all of BASE" if answer.beyond else ""
    return f" (most: {name}{of}, {percent(ratio)}{beyond}{_explain_slow_launches(answer)})"


def _explain_slow_launches(answer: Answer) -> str:
    """Why a ratio changed where not the kinds of launches did, but how many are of the slow one; else empty."""
    kinds = answer.kinds
    if kinds is None or not kinds.shares_differ or abs(kinds.within) > abs(math.log(answer.ratio)) / 2:
        return ""
    slow, factor = _slow_launches(kinds), f"{kinds.factor:.1f}"
    return f": {slow} take {factor} × as long, the others as before"


def _bound(report: CompareReport) -> str:
    """Between which changes the medians of UNCLEAR cells lie."""
    answers = [a for a in report.medians if a.verdict == "UNCLEAR" and a.paired and a.high < _MOST_SAID]
    if not answers:
        return ""
    low, high = min(answer.low for answer in answers), max(answer.high for answer in answers)
    if low * _MOST_SAID < 1:
        return f" (at most {percent(max(1.0, high))} slower)"
    return f" (between {_direction(low)} and {_direction(high)})"


def _direction(ratio: float) -> str:
    return f"{percent(ratio)} slower" if ratio >= 1 else f"{percent(1 / ratio)} faster"


def _next(report: CompareReport) -> str:
    if report.unmeasured or report.failed:
        return "mend what was not measured, below"
    if report.counts["SLOWER"]:
        return "find the reason in what differs, below" if report.kind == COMPARE else ""
    answers = report.answers
    undecided = [answer for answer in answers if answer.verdict == "UNCLEAR" and not answer.reason]
    if report.kind == AA or not any(answer.verdict in OPEN for answer in answers):
        return ""
    if not undecided:
        return "measure both sides in turn, as said below"
    wanted = [_count_wanted(answer) for answer in undecided]
    enough = [count for count in wanted if count is not None]
    if not enough:
        return "this cannot be decided here, since launches differ too much: use a quieter machine"
    more = f"the same line with --launches {max(enough)}" if report.run_id else f"{max(enough)} launches a side"
    if len(enough) == len(undecided):
        return f"{more} would probably decide what is UNCLEAR"
    return (
        f"use a quieter machine; here {more} would probably decide {len(enough)} of "
        f"{len(undecided)} questions that are UNCLEAR"
    )


def _notes(report: CompareReport, strict: bool) -> list[str]:
    rules, matched = report.rules, report.matched
    answers = report.answers
    lines = [
        *by_benchmark(report),
        f"ratio: NEW's time over BASE's, medians of launches; interval: {_share(SAME_LEVEL)}, of each cell by itself",
        f"SLOWER, FASTER: beyond chance, and by {_share(rules.delta)} or more; SAME: the interval is within "
        f"±{_share(rules.delta)}; a launch far from the others counts less",
    ]
    if any(len(judged.answers) > 1 for judged in report.judged):
        lines.append(
            f"tail: the 99th percentile (p99) of each launch, or its mean; a change is one of "
            f"{_share(rules.tail_delta)} or more"
        )
    if any(_count_wanted(answer) for answer in answers):
        lines.append("UNCLEAR (about N): a new comparison of about N launches a side would decide")
    if any(answer.verdict == "UNCLEAR" and not answer.low <= 1 <= answer.high for answer in answers):
        lines.append(
            f"UNCLEAR beside an interval without 1: the verdict allows for chance in all {report.questions} questions"
        )
    if any(map(_may_hide, report.medians)):
        lines.append(f"{FOUND_FROM}: a change of this size is found 4 times in 5")
    lines += _kinds_of_launches(report)
    if any(answer.reason == APART for answer in answers):
        lines.append(
            f"not interleaved: the launches of BASE and NEW did not take turns and are of fewer than {FEWEST_NIGHTS} "
            "nights of each side, so a difference between the days cannot be told from one between the sides; "
            "--trust-sides says that there is none; omb-py compare --env BASE=… --env NEW=… measures both, interleaved"
        )
    elif rules.trust_sides:
        lines.append("--trust-sides: launches are judged as if BASE and NEW had taken turns")
    elif not all(answer.paired for answer in answers):
        lines.append(
            "not interleaved: nights are compared, and a steady drift over them is allowed for in ratio and interval"
        )
    if any(cell.limited for cell in matched.cells):
        lines.append("* mostly the skew of the synchronisation was measured: try --process-sync roundtime")
    if any(cell.statistic == "mean" for cell in matched.cells):
        whose = "the program printed" if of_programs(report.base.rows) else "imported cells have"
        lines.append(f"mean: {whose} only means, so slow single calls (p99) cannot be seen")
    named = report.named
    lines += [
        f"not comparable: {named(pair.base)}: {fields_text(pair.base, pair.new, pair.fields)}"
        for pair in matched.incomparable
    ]
    for side, rows in matched.only.items():
        if rows:
            shown = ", ".join(map(named, rows[:4])) + (f" and {len(rows) - 4} more" if len(rows) > 4 else "")
            lines.append(f"only in {side}: {shown}")
    lines += [f"not measured: {reason}" for reason in (*report.failed, *report.unmeasured)]
    lines += [f"lost: {node}: {why}; launches made before do not count" for node, why in report.lost.items()]
    lines += report.repeated
    lines += ["" if strict else _open_text(report), report.site]
    return [line for line in lines if line]


def _open_text(report: CompareReport) -> str:
    """What --strict would make of a report in which something is open; empty where nothing is."""
    if report.kind == AA or exit_code(report) != OK or exit_code(report, strict=True) == OK:
        return ""
    decided = any(report.counts[word] for word in set(report.counts) - OPEN)
    return f"with --strict the exit code is {INCONCLUSIVE}, since {'not all' if decided else 'nothing'} was decided"


def _wrong_text(report: CompareReport) -> str:
    """The end of the answer where results were wrong."""
    wrong = wrong_rows(report)
    return f"; {counted(wrong, 'row')} did not validate: their times are those of wrong results" if wrong else ""


def wrong_rows(report: CompareReport) -> int:
    return sum(row.get("validated") is False for side in (report.base, report.new) for row in side.rows)


def fields_text(base: Mapping[str, object], new: Mapping[str, object], fields: Sequence[str]) -> str:
    """Write differing columns: ``ranks 4 against 8, dtype char against int32``."""
    return ", ".join(f"{f} {base.get(f)} against {new.get(f)}" if f in base else f"another {f}" for f in fields)


def _kinds_of_launches(report: CompareReport) -> list[str]:
    """Count the launches of another kind. Cells with the same counts share a line; the largest counts come first."""
    alike: dict[str, list[tuple[MatchedCell, LaunchKinds]]] = {}
    for cell, judged in report.verdicts:
        answer = judged.answers.get("median")
        if answer is not None and answer.kinds is not None:
            alike.setdefault(_slow_launches(answer.kinds), []).append((cell, answer.kinds))
    groups = sorted(alike.items(), key=lambda each: -(each[1][0][1].base[0] + each[1][0][1].new[0]))
    lines, named = [], report.named
    for slow, members in groups[:_MOST_TOLD]:
        cell, kinds = members[0]
        fast, slow_one = (printed_text(cell.base, math.exp(log), " µs") for log in (kinds.fast, kinds.slow))
        more = f" and {counted(len(members) - 1, 'more cell')}" if len(members) > 1 else ""
        lines.append(f"two kinds of launches, {fast} and {slow_one}, of {named(cell.base)}{more}: {slow} are slow")
    left = sum(len(members) for _, members in groups[_MOST_TOLD:])
    return [*lines, f"and in {counted(left, 'more cell')}"] if left else lines


def _slow_launches(kinds: LaunchKinds) -> str:
    (base, all_base), (new, all_new) = kinds.base, kinds.new
    return f"{new} of {all_new} launches of NEW and {base} of {all_base} of BASE"


def _share(share: float) -> str:
    return f"{100 * share:g} %"


def percent(ratio: float) -> str:
    """Write a ratio over 1 as a change: ``3.4 %``, from 2 on ``× 2.5``, beyond 10 ``over × 10``."""
    if ratio > 10:
        return "over × 10" if math.isfinite(ratio) else "-"
    return f"{100 * (ratio - 1):.1f} %" if ratio < 2 else f"× {ratio:.1f}"


def document_of(report: CompareReport, strict: bool = False) -> Document:
    """Make the document of a comparison. With `strict`, UNCLEAR and NOT COMPARABLE are not good enough."""
    answer, facts = _answer_text(report), _facts(report)
    return Document(
        "omb-py compare",
        answer,
        exit_code(report, strict),
        partial(as_dict, report),
        facts,
        (_table(report),),
        notes=_notes(report, strict),
        cases=_cases(report, strict),
        properties=numbered([answer, *facts]),
        simulated=report.base.is_simulated or report.new.is_simulated,
        opening=True,
    )


def _table(report: CompareReport) -> TextTable:
    """Make the table, one row a cell; the rows of a benchmark stand together."""
    named = report.named
    rows = []
    rounds = any(answer.round > 1 for answer in report.answers)
    for cell, judged in report.verdicts:
        mark = "*" if cell.limited else ""
        of = "" if cell.statistic == "median" else cell.statistic
        rows.append((str(cell.base["benchmark"]), (named(cell.base) + mark, of, *_answers(cell.base, judged, rounds))))
    before = HEADS.index("verdict") - 1
    after = len(HEADS) - before - 2
    rows += [
        (str(pair.base["benchmark"]), (named(pair.base), *("",) * before, "NOT COMPARABLE", *("",) * after))
        for pair in report.matched.incomparable
    ]
    rows.sort(key=lambda row: row[0])
    return TextTable(HEADS, [row for _, row in rows], _LEFT, [benchmark for benchmark, _ in rows], spare=_SPARE)


def _answers(row: Row, judged: JudgedCell, rounds: bool) -> tuple[str, ...]:
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
        _launches(median, rounds),
        percent(median.detectable) if _may_hide(median) else "",
    )


def _interval(answer: Answer) -> str:
    return f"{answer.low:.3f} … {answer.high:.3f}" if answer.low > 0 and answer.high < 1e6 else "unknown"


def _verdict(answer: Answer) -> str:
    """The verdict as the table has it; UNCLEAR comes with the number of launches that would decide, or the reason."""
    if answer.reason:
        return f"{answer.verdict} ({answer.reason})"
    wanted = _count_wanted(answer)
    return f"{answer.verdict} (about {wanted})" if wanted else answer.verdict


def _count_wanted(answer: Answer) -> int | None:
    """Launches a side that would probably decide an UNCLEAR question; None where nobody would make so many."""
    needed = answer.needed if answer.verdict == "UNCLEAR" else None
    return None if needed is None or needed > _MOST_LAUNCHES else needed


def _launches(answer: Answer, rounds: bool) -> str:
    base, new = answer.launches
    count = str(base) if base == new else f"{base}, {new}"
    return f"{count} ({counted(answer.round, 'round')})" if rounds else count


def _cases(report: CompareReport, strict: bool) -> list[CaseResult]:
    """Make one test case a cell.

    SLOWER is a failure, UNCLEAR and LIKELY are skipped (a failure with `strict`), NOT COMPARABLE is an error.
    """
    open_one: Outcome = "failure" if strict else "skipped"
    outcomes: dict[str, Outcome] = {"SLOWER": "failure", **dict.fromkeys(OPEN, open_one)}
    named = report.named
    cases = []
    for cell, judged in report.verdicts:
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
    wanted = _count_wanted(answer)
    verdict = f"UNCLEAR (about {wanted} launches a side to decide)" if wanted else _verdict(answer)
    return (
        f"{answer.statistic} {printed_text(row, answer.base_us)} -> {printed_text(row, answer.new_us, ' us')}, "
        f"ratio {answer.ratio:.3f} ({_interval(answer)}), {verdict}, launches {_launches(answer, answer.round > 1)}"
        + (f", a change of {percent(answer.detectable)} is found 4 times in 5" if _may_hide(answer) else "")
    )


def as_dict(report: CompareReport) -> dict[str, object]:
    cells = [_cell(cell, judged) for cell, judged in report.verdicts]
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
            "libraries": sorted(
                {
                    f"{row['library']} {row.get('library_version') or ''}".strip()
                    for row in launches.rows
                    if row.get("library")
                }
            ),
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
        **({"lost_nodes": report.lost} if report.lost else {}),
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
    answers: dict[str, object] = {str(question): _fields(answer) for question, answer in judged.answers.items()}
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
