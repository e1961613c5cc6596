"""Verdicts on the criteria of an acceptance from its rows. Pure; :mod:`omb_py.results.accept.decision` decides."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from omb_py.results.accept.criteria import METRICS, Case
from omb_py.results.accept.decision import LaunchBound, MeanBound, NightBound, NoBound, Question
from omb_py.results.analysis.cost_model import OFFLOAD, bound_us, message_of
from omb_py.results.analysis.drift import drift
from omb_py.results.analysis.peaks import share_of
from omb_py.results.analysis.series import timed
from omb_py.results.checks.guidelines import SIDES
from omb_py.results.compare.match import differing
from omb_py.results.compare.report import fields_text
from omb_py.results.statistics.dependence import pooled_correlation
from omb_py.results.statistics.nights import nights_of
from omb_py.results.statistics.order_statistics import median
from omb_py.results.statistics.sequential import AcceptRule, Decision, Word, settled, worst
from omb_py.results.statistics.t_test import ratio_of
from omb_py.results.store.row import Row
from omb_py.results.units import counted, share_text

Times = Mapping[int, Sequence[Row]]
"""Turn of a launch -> rows of one cell in that launch; a soak has several."""


@dataclass(slots=True)
class Evidence:
    """Everything that was measured; nothing is left out."""

    alone: dict[str, dict[int, list[Row]]] = field(default_factory=dict)
    """Name of the cell -> turn -> rows."""
    beside: dict[str, dict[int, list[Row]]] = field(default_factory=dict)
    """The same, measured while another job was running."""
    missing: dict[str, str] = field(default_factory=dict)
    """Name of the cell -> why it was not measured."""
    baseline: Sequence[Row] = ()
    baseline_word: str = ""

    def add(self, cell: str, turn: int, row: Row, beside: bool = False) -> None:
        """Keep a row of a cell; `beside` says that another job was running."""
        (self.beside if beside else self.alone).setdefault(cell, {}).setdefault(turn, []).append(row)


@dataclass(frozen=True, slots=True)
class RoundVerdict:
    """The verdict on a case after the launches of one round."""

    launches: int
    word: Word
    low: float | None
    """Lower limit of the measured number, in its unit; None where it is unknown."""
    high: float | None
    """Upper limit of it; None where it is unknown."""


@dataclass(frozen=True, slots=True)
class CaseVerdict:
    """The verdict on a case."""

    case: Case
    word: Word
    measured: float | None = None
    """Median over the launches, of a drift the mean: in the metric's unit, or a ratio where `is_ratio`."""
    low: float | None = None
    """Lower one-sided limit of the measured number."""
    high: float | None = None
    """Upper one-sided limit of it. The two limits decide."""
    is_ratio: bool = False
    limit: float | None = None
    """Bound that decides, in the terms of `measured`."""
    values: tuple[tuple[str, float], ...] = ()
    """Launch id and number of every launch, retests too."""
    rounds: tuple[RoundVerdict, ...] = ()
    note: str = ""
    """Reason of an ERROR, or what else should be known."""
    by_rule: bool = False
    """True if it was MARGINAL after the last launch and the contract's rule chose the word."""
    evidence: str = ""
    """What the word rests on: how many launches are beyond the bound, or how much nights differ."""
    missing: str = ""
    """What it would take to decide, where it was MARGINAL."""
    beyond: int | None = None
    """Number of launches beyond the bound; None where launches are not counted."""
    share_at_most: float | None = None
    """Upper limit of the share of launches beyond the bound, at the rule's confidence."""

    @property
    def launches(self) -> int:
        return len(self.values)


class CannotJudge(Exception):
    """A case cannot be judged; the message says why."""


def correlation_of(cases: Iterable[Case], evidence: Evidence) -> float:
    """Estimate how much launches may resemble the one before, from all cases whose launches are counted."""
    costs = []
    for case in cases:
        with contextlib.suppress(CannotJudge):
            questions, _, _ = _ASK[case.criterion.source](case, evidence)
            costs += [question.costs for question in questions[:1] if isinstance(question, LaunchBound)]
    return pooled_correlation(costs)


def judge(
    case: Case,
    evidence: Evidence,
    rule: AcceptRule,
    questions: int,
    before: CaseVerdict | None = None,
    correlation: float = 0.0,
) -> CaseVerdict:
    """Judge one case by all launches so far; ERROR, with the reason, where something is missing.

    Args:
        before: the verdict after the previous round; its rounds are kept.
        correlation: of launches with the one before (:func:`correlation_of`).
    """
    rounds = before.rounds if before else ()
    try:
        if case.cell in evidence.missing and not evidence.alone.get(case.cell):
            raise CannotJudge(evidence.missing[case.cell])
        questions_asked, values, note = _ASK[case.criterion.source](case, evidence)
    except CannotJudge as why:
        return CaseVerdict(case, "ERROR", rounds=rounds, note=str(why))
    looks = (*(judged.launches for judged in rounds), len(values))
    asked = [
        replace(question, correlation=correlation) if isinstance(question, LaunchBound) else question
        for question in questions_asked
    ]
    answers = [(question, question.answer(rule, questions, looks)) for question in asked]
    word = worst(answer.decision.word for _, answer in answers)
    question, answer = next(pair for pair in answers if pair[1].decision.word == word)
    low, high = _ends(question, answer.decision)
    latest = RoundVerdict(len(values), word, low, high)
    lost = evidence.missing.get(case.cell)
    if lost:
        note = "; ".join(filter(None, [note, f"not every launch measured it: {lost}"]))
    return CaseVerdict(
        case,
        word,
        question.show(answer.middle),
        low,
        high,
        case.criterion.source not in ("contract", "promise"),
        None if isinstance(question, NoBound) else question.show(question.limit),
        values,
        (*rounds, latest),
        note,
        evidence=answer.evidence,
        missing=question.missing(rule, questions) if word == "MARGINAL" else "",
        beyond=answer.beyond,
        share_at_most=answer.share_at_most,
    )


def _ends(question: Question, decision: Decision) -> tuple[float | None, float | None]:
    """The smaller and the larger limit as they are shown; None where one is unknown."""
    ends = [question.show(x) if math.isfinite(x) else None for x in (decision.optimistic, decision.pessimistic)]
    low, high = ends if question.show(1.0) > question.show(0.0) else reversed(ends)
    return low, high


def gains_by_launches(verdict: CaseVerdict) -> bool:
    """Say whether more launches may settle a verdict: it is MARGINAL, and other nights are not what it lacks."""
    return verdict.word == "MARGINAL" and verdict.case.criterion.source != "baseline"


def close(verdict: CaseVerdict, rule: AcceptRule) -> CaseVerdict:
    """Settle a verdict after the last launch (:func:`omb_py.results.statistics.sequential.settled`)."""
    word = settled(verdict.word, rule)
    return verdict if word == verdict.word else replace(verdict, word=word, by_rule=True)


def has_baseline(case: Case, evidence: Evidence) -> bool:
    """Say whether the baseline has launches of the cell that a case has measured."""
    measured = _find_measured(case, evidence)
    return measured is not None and bool(_baseline_rows(measured, evidence))


def _find_measured(case: Case, evidence: Evidence) -> Row | None:
    return next((row for rows in evidence.alone.get(case.cell, {}).values() for row in rows), None)


def incomparable(case: Case, evidence: Evidence) -> tuple[Row, Row, tuple[str, ...]] | None:
    """Find the nearest baseline row when the baseline has the cell only with another comparability key.

    Returns:
        The baseline's row, the measured row, and the columns that differ; None where the case has no such problem.
    """
    measured = _find_measured(case, evidence)
    if case.criterion.source != "baseline" or measured is None or _baseline_rows(measured, evidence):
        return None
    place = ("benchmark", "size_bytes")
    near = [row for row in evidence.baseline if all(row.get(name) == measured.get(name) for name in place)]
    near.sort(key=lambda row: len(differing(row, measured)))
    return (near[0], measured, differing(near[0], measured) or ("backend", "binding")) if near else None


def _rows(case: Case, taken: Mapping[str, dict[int, list[Row]]], circumstance: str = "") -> Times:
    times = taken.get(case.cell)
    if not times:
        raise CannotJudge(f"not measured{circumstance}")
    return times


def _row_cost(case: Case, row: Row) -> float:
    """Log cost of a row by the case's metric. Raises CannotJudge where the row has no such number."""
    metric = METRICS[case.criterion.metric]
    value = metric.read(row)
    if value is None or (value <= 0 and metric.dimension != "share"):
        why = "too few samples, or nothing was timed"
        raise CannotJudge(f"launch {row['launch_id']} has no {metric.name}: {why}")
    return _log_cost(value, case)


def _need_equal_counts(case: Case, *many: Iterable[Row]) -> None:
    """Raise CannotJudge where rows of unequal counts would be compared by a number that depends on the count."""
    counts = {row.get("iterations") for rows in many for row in rows}
    if METRICS[case.criterion.metric].counted and len(counts) > 1:
        shown = " and ".join(str(count) for count in sorted(counts, key=lambda count: count or 0))
        raise CannotJudge(f"{case.criterion.metric} needs equal counts, not {shown} samples: give iterations = N")


def _log_cost(value: float, case: Case) -> float:
    metric = METRICS[case.criterion.metric]
    log = math.log1p(value / 100) if metric.dimension == "share" else math.log(value)
    return log if metric.better == "less" else -log


def _value_of(cost: float, case: Case) -> float:
    """The number whose log cost is given: the inverse of :func:`_log_cost`."""
    metric = METRICS[case.criterion.metric]
    log = cost if metric.better == "less" else -cost
    ratio = ratio_of(log)
    return 100 * (ratio - 1) if metric.dimension == "share" else ratio


def _cost_of_launch(case: Case, rows: Sequence[Row]) -> float:
    """Log cost of a launch: the mean over its passes, of which only a soak has several."""
    return math.fsum(_row_cost(case, row) for row in rows) / len(rows)


def _list_shown(case: Case, times: Times) -> tuple[tuple[str, float], ...]:
    return tuple(
        (str(rows[0]["launch_id"]), _value_of(_cost_of_launch(case, rows), case)) for _, rows in sorted(times.items())
    )


def _logs(case: Case, times: Times) -> list[float]:
    return [_cost_of_launch(case, rows) for _, rows in sorted(times.items())]


_Asked = tuple[list[Question], tuple[tuple[str, float], ...], str]


def _contract(case: Case, evidence: Evidence) -> _Asked:
    times = _rows(case, evidence.alone)
    costs = _logs(case, times)
    bound = case.criterion.range_of(case.size)
    less = METRICS[case.criterion.metric].better == "less"
    questions: list[Question] = []
    # a range has two ends: the one on the bad side limits the log cost, the other one limits minus the log cost
    for end, bad in ((bound.high, less), (bound.low, not less)):
        if end is not None and bad:
            questions.append(LaunchBound(tuple(costs), _log_cost(end, case), lambda x: _value_of(x, case)))
        elif end is not None:
            turned = tuple(-cost for cost in costs)
            questions.append(LaunchBound(turned, -_log_cost(end, case), lambda x: _value_of(-x, case)))
    return questions, _list_shown(case, times), ""


def _ask_for_promise(case: Case, evidence: Evidence) -> _Asked:
    """Ask for what is promised at this size, or else for a part of the link's peak, where rows have one."""
    if case.size in case.criterion.ranges:
        return _contract(case, evidence)
    times = _rows(case, evidence.alone)
    costs = tuple(_logs(case, times))
    known = share_of(next(iter(times.values()))[0]) if case.criterion.share else None
    if known is None:
        return [NoBound(costs, max(costs), lambda x: _value_of(x, case))], _list_shown(case, times), ""
    share, link = known
    limit = costs[0] + math.log(share / case.criterion.share)
    note = f"{share_text(round(share, 2))} of {link} in the first launch"
    return [LaunchBound(costs, limit, lambda x: _value_of(x, case))], _list_shown(case, times), note


def _baseline_rows(measured: Row, evidence: Evidence) -> list[Row]:
    same = ("comparability_key", "backend", "binding")
    return [row for row in evidence.baseline if all(row.get(name) == measured.get(name) for name in same)]


def _baseline(case: Case, evidence: Evidence) -> _Asked:
    times = _rows(case, evidence.alone)
    measured = next(iter(times.values()))[0]
    known = _baseline_rows(measured, evidence)
    if not known:
        other = incomparable(case, evidence)
        if other is None:
            raise CannotJudge(f"the baseline {evidence.baseline_word} has no such cell")
        base, new, fields = other
        raise CannotJudge(f"the baseline {evidence.baseline_word} is not comparable: {fields_text(base, new, fields)}")
    if len({row["launch_id"] for row in known}) == 1:
        raise CannotJudge(f"the baseline {evidence.baseline_word} is only one launch; at least two are needed")
    _need_equal_counts(case, known, *times.values())
    logs = _logs(case, times)
    earlier = _cost_by_night(case, known, len(logs))
    question = NightBound(tuple(earlier), median(logs), math.log1p(case.criterion.share), ratio_of)
    launches = counted(len({row["launch_id"] for row in known}), "launch")
    nights = counted(len(earlier), "night")
    return [question], _list_shown(case, times), f"baseline {evidence.baseline_word}: {launches} in {nights}"


def _cost_by_night(case: Case, rows: Sequence[Row], most: int) -> list[float]:
    """Log cost of each night of a baseline, the median of its launches.

    Of each night at most `most` launches count, the first ones: the median of more would differ less from night to
    night than the one that it is compared with.
    """
    nights = nights_of((str(row["run_id"]), start_of(row)) for row in rows)
    launches: dict[int, dict[tuple[datetime, str], list[Row]]] = {}
    for row in rows:
        of_night = launches.setdefault(nights[str(row["run_id"])], {})
        of_night.setdefault((start_of(row), str(row["launch_id"])), []).append(row)
    return [
        median([_cost_of_launch(case, own[key]) for key in sorted(own)[:most]]) for _, own in sorted(launches.items())
    ]


def start_of(row: Row) -> datetime:
    """When the run of a row began."""
    return datetime.fromisoformat(str(row["started_at"])).replace(tzinfo=None)


def _lower_bound(case: Case, evidence: Evidence) -> _Asked:
    times = _rows(case, evidence.alone)
    measured = next(iter(timed([next(iter(times.values()))[0]])), None)
    if measured is None:
        raise CannotJudge("nothing was timed")
    everything = [row for turns in evidence.alone.values() for rows in turns.values() for row in rows]
    message = message_of(measured, timed(row for row in everything if row["benchmark"] == "latency"))
    if message is None:
        raise CannotJudge("no lower bound: latency was not measured at up to 64 B and from 64 KiB on")
    bound = bound_us(measured, message)
    if bound is None:
        raise CannotJudge(f"no lower bound is known for {measured['benchmark']} on {measured['ranks']} ranks")
    costs = tuple(cost - math.log(bound) for cost in _logs(case, times))
    efficiency = math.exp(-median(costs))
    note = f"lower bound {bound:.3g} µs (message = {message.alpha_us:.3g} µs + {1000 * message.beta_us:.3g} ns/B)"
    if efficiency >= OFFLOAD:
        note += "; faster than messages between ranks can be: offload"
    question = LaunchBound(costs, -math.log(case.criterion.share), lambda x: ratio_of(-x))
    return [question], _list_shown(case, times), note


def _guideline(case: Case, evidence: Evidence) -> _Asked:
    # both sides come from the guideline's own program, in turn in every launch
    sides: dict[str, dict[int, list[Row]]] = {side: {} for side in SIDES}
    for turn, rows in _rows(case, evidence.alone).items():
        for row in rows:
            sides[dict(row.get("parameters") or {})["side"]].setdefault(turn, []).append(row)
    left, right = (sides[side] for side in SIDES)
    lacking = f"no launch has measured both {case.criterion.benchmark} and {case.criterion.mock_up}"
    return _pair(case, left, right, lacking)


def _interference(case: Case, evidence: Evidence) -> _Asked:
    alone, beside = _rows(case, evidence.alone), _rows(case, evidence.beside, " beside another job")
    return _pair(case, beside, alone, "no launch was made both alone and beside another job")


def _pair(case: Case, costly: Times, usual: Times, lacking: str) -> _Asked:
    shared = sorted(set(costly) & set(usual))
    if not shared:
        raise CannotJudge(lacking)
    _need_equal_counts(case, *usual.values(), *costly.values())
    costs = tuple(_cost_of_launch(case, costly[turn]) - _cost_of_launch(case, usual[turn]) for turn in shared)
    question = LaunchBound(costs, math.log1p(case.criterion.share), ratio_of)
    return [question], _list_shown(case, {turn: costly[turn] for turn in shared}), ""


def _drift(case: Case, evidence: Evidence) -> _Asked:
    times = _rows(case, evidence.alone)
    _need_equal_counts(case, *times.values())
    series = [[_row_cost(case, row) for row in rows] for _, rows in sorted(times.items())]
    longest = max(series, key=len)
    if len(longest) < 3:
        raise CannotJudge(f"too few for a drift: {counted(len(longest), 'pass')}; 3 or more, with a longer repeat-for")
    estimate, note = drift(series)
    question = MeanBound(estimate, math.log1p(case.criterion.share), ratio_of)
    return [question], _list_shown(case, times), f"{counted(sum(map(len, series)), 'pass')}{note}"


_ASK: Mapping[str, Callable[[Case, Evidence], _Asked]] = {
    "contract": _contract,
    "baseline": _baseline,
    "lower bound": _lower_bound,
    "guideline": _guideline,
    "interference": _interference,
    "drift": _drift,
    "promise": _ask_for_promise,
}
