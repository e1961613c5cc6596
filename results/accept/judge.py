"""Verdicts on the criteria of an acceptance from its rows. Pure; ``results.statistics.sequential`` decides."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from omb_py.results.accept.criteria import METRICS, Case, Row
from omb_py.results.analysis.cost_model import OFFLOAD, bound_us, message_of
from omb_py.results.analysis.drift import drift
from omb_py.results.analysis.series import timed
from omb_py.results.checks.guidelines import SIDES
from omb_py.results.compare.match import differing
from omb_py.results.compare.report import fields_text
from omb_py.results.formats.units import counted
from omb_py.results.statistics.sequential import Rule, Word, decide, settled, worst
from omb_py.results.statistics.t_test import Estimate, paired, ratio_of, welch

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
    """Rows of the stored baseline."""
    baseline_word: str = ""

    def add(self, cell: str, turn: int, row: Row, beside: bool = False) -> None:
        """Keep a row of a cell; `beside` says that another job was running."""
        (self.beside if beside else self.alone).setdefault(cell, {}).setdefault(turn, []).append(row)


@dataclass(frozen=True, slots=True)
class Round:
    """The verdict on a case after the launches of one round."""

    launches: int
    word: Word
    low: float
    """Lower limit of the measured number, in its unit."""
    high: float
    """Upper limit of it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a case."""

    case: Case
    word: Word
    measured: float | None = None
    """Geometric mean over the launches: in the metric's unit, or a ratio where `is_ratio`."""
    low: float | None = None
    """Lower one-sided limit of the measured number."""
    high: float | None = None
    """Upper one-sided limit of it. The two limits decide."""
    is_ratio: bool = False
    limit: float | None = None
    """Bound that decides, in the terms of `measured`."""
    values: tuple[tuple[str, float], ...] = ()
    """Launch id and number of every launch, retests too."""
    rounds: tuple[Round, ...] = ()
    note: str = ""
    """Reason of an ERROR, or what else should be known."""
    by_rule: bool = False
    """True if it was MARGINAL after the last launch and the contract's rule chose the word."""

    @property
    def launches(self) -> int:
        """Number of launches that decided."""
        return len(self.values)


@dataclass(frozen=True, slots=True)
class _Question:
    """One limit of one log cost."""

    estimate: Estimate
    limit: float
    show: Callable[[float], float]
    """Turns a log cost into the number that is shown."""


class CannotJudge(Exception):
    """A case cannot be judged; the message says why."""


def judge(case: Case, evidence: Evidence, rule: Rule, questions: int, before: Verdict | None = None) -> Verdict:
    """Judge one case by all launches so far; ERROR, with the reason, where something is missing.

    Args:
        case: a criterion at a cell.
        evidence: everything that was measured.
        rule: the declared rule.
        questions: number of cases in the report.
        before: the verdict after the previous round; its rounds are kept.
    """
    rounds = before.rounds if before else ()
    try:
        if case.cell in evidence.missing and not evidence.alone.get(case.cell):
            raise CannotJudge(evidence.missing[case.cell])
        questions_asked, values, note = _ASK[case.criterion.source](case, evidence)
    except CannotJudge as why:
        return Verdict(case, "ERROR", rounds=rounds, note=str(why))
    answers = [(question, decide(question.estimate, question.limit, rule, questions)) for question in questions_asked]
    word = worst(answer.word for _, answer in answers)
    question, decision = next(pair for pair in answers if pair[1].word == word)
    low, high = sorted(question.show(x) for x in (decision.optimistic, decision.pessimistic))
    latest = Round(len(values), word, low, high)
    lost = evidence.missing.get(case.cell)
    if lost:
        note = "; ".join(filter(None, [note, f"not every launch measured it: {lost}"]))
    return Verdict(
        case,
        word,
        question.show(question.estimate.difference),
        low,
        high,
        case.criterion.source != "contract",
        question.show(question.limit),
        values,
        (*rounds, latest),
        note,
    )


def close(verdict: Verdict, rule: Rule) -> Verdict:
    """Settle a verdict after the last launch (:func:`omb_py.results.statistics.sequential.settled`)."""
    word = settled(verdict.word, rule)
    return verdict if word == verdict.word else replace(verdict, word=word, by_rule=True)


def has_baseline(case: Case, evidence: Evidence) -> bool:
    """Say whether the baseline has launches of the cell that a case has measured."""
    measured = _measured(case, evidence)
    return measured is not None and bool(_baseline_rows(measured, evidence))


def _measured(case: Case, evidence: Evidence) -> Row | None:
    return next((row for rows in evidence.alone.get(case.cell, {}).values() for row in rows), None)


def incomparable(case: Case, evidence: Evidence) -> tuple[Row, Row, tuple[str, ...]] | None:
    """Find the nearest baseline row when the baseline has the cell only with another comparability key.

    Returns:
        The baseline's row, the measured row, and the columns that differ; None where the case has no such problem.
    """
    measured = _measured(case, evidence)
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


def _of_turn(case: Case, rows: Sequence[Row]) -> float:
    """Log cost of a launch: the mean over its passes, of which only a soak has several."""
    return math.fsum(_row_cost(case, row) for row in rows) / len(rows)


def _shown(case: Case, times: Times) -> tuple[tuple[str, float], ...]:
    return tuple(
        (str(rows[0]["launch_id"]), _value_of(_of_turn(case, rows), case)) for _, rows in sorted(times.items())
    )


def _logs(case: Case, times: Times) -> list[float]:
    return [_of_turn(case, rows) for _, rows in sorted(times.items())]


_Asked = tuple[list[_Question], tuple[tuple[str, float], ...], str]


def _contract(case: Case, evidence: Evidence) -> _Asked:
    times = _rows(case, evidence.alone)
    logs = _logs(case, times)
    estimate = paired([0.0] * len(logs), logs)
    bound = case.criterion.range_of(case.size)
    less = METRICS[case.criterion.metric].better == "less"
    questions = []
    # a range has two ends: the one on the bad side limits the log cost, the other one limits minus the log cost
    for end, bad in ((bound.high, less), (bound.low, not less)):
        if end is not None and bad:
            questions.append(_Question(estimate, _log_cost(end, case), lambda x: _value_of(x, case)))
        elif end is not None:
            turned = replace(estimate, difference=-estimate.difference)
            questions.append(_Question(turned, -_log_cost(end, case), lambda x: _value_of(-x, case)))
    return questions, _shown(case, times), ""


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
    launches: dict[str, list[Row]] = {}
    for row in known:
        launches.setdefault(str(row["launch_id"]), []).append(row)
    if len(launches) == 1:
        raise CannotJudge(f"the baseline {evidence.baseline_word} is one launch, which says nothing about the next")
    logs = [_of_turn(case, rows) for rows in launches.values()]
    question = _Question(welch(logs, _logs(case, times)), math.log1p(case.criterion.share), ratio_of)
    return [question], _shown(case, times), f"baseline {evidence.baseline_word}: {counted(len(launches), 'launch')}"


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
    logs = _logs(case, times)
    estimate = paired([math.log(bound)] * len(logs), logs)
    efficiency = math.exp(-estimate.difference)
    note = f"lower bound {bound:.3g} us of messages of {message.alpha_us:.3g} us + {message.beta_us:.3g} us a byte"
    if efficiency >= OFFLOAD:
        note += "; faster than messages between ranks can be: offload"
    question = _Question(estimate, -math.log(case.criterion.share), lambda x: ratio_of(-x))
    return [question], _shown(case, times), note


def _guideline(case: Case, evidence: Evidence) -> _Asked:
    # both sides come from the guideline's own program, in turn in every launch
    sides: dict[str, dict[int, list[Row]]] = {side: {} for side in SIDES}
    for turn, rows in _rows(case, evidence.alone).items():
        for row in rows:
            sides[dict(row.get("parameters") or {})["side"]].setdefault(turn, []).append(row)
    left, right = (sides[side] for side in SIDES)
    shared = sorted(set(left) & set(right))
    if not shared:
        raise CannotJudge(f"no launch has measured both {case.criterion.benchmark} and {case.criterion.mock_up}")
    pairs = [[_of_turn(case, side[turn]) for turn in shared] for side in (right, left)]
    question = _Question(paired(*pairs), math.log1p(case.criterion.share), ratio_of)
    return [question], _shown(case, {turn: left[turn] for turn in shared}), ""


def _interference(case: Case, evidence: Evidence) -> _Asked:
    alone, beside = _rows(case, evidence.alone), _rows(case, evidence.beside, " beside another job")
    shared = sorted(set(alone) & set(beside))
    if not shared:
        raise CannotJudge("no launch was made both alone and beside another job")
    pairs = [[_of_turn(case, side[turn]) for turn in shared] for side in (alone, beside)]
    question = _Question(paired(*pairs), math.log1p(case.criterion.share), ratio_of)
    return [question], _shown(case, {turn: beside[turn] for turn in shared}), ""


def _drift(case: Case, evidence: Evidence) -> _Asked:
    times = _rows(case, evidence.alone)
    series = [[_row_cost(case, row) for row in rows] for _, rows in sorted(times.items())]
    longest = max(series, key=len)
    if len(longest) < 3:
        raise CannotJudge(f"too few for a drift: {counted(len(longest), 'pass')}; 3 or more, with a longer repeat-for")
    estimate, note = drift(series)
    question = _Question(estimate, math.log1p(case.criterion.share), ratio_of)
    return [question], _shown(case, times), f"{counted(sum(map(len, series)), 'pass')}{note}"


_ASK: Mapping[str, Callable[[Case, Evidence], _Asked]] = {
    "contract": _contract,
    "baseline": _baseline,
    "lower bound": _lower_bound,
    "guideline": _guideline,
    "interference": _interference,
    "drift": _drift,
}
