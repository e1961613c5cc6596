"""The acceptance report of a machine: its data, and the document from which every form of it is written."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Literal

from omb_py.errors import ENVIRONMENT, INCONCLUSIVE, NEGATIVE, OK
from omb_py.results.accept.criteria import METRICS, PLACED
from omb_py.results.accept.judge import CaseVerdict
from omb_py.results.accept.outcomes import AcceptOutcome
from omb_py.results.document import CaseResult, Document, Outcome, TextTable, numbered
from omb_py.results.skip import Skip
from omb_py.results.statistics.order_statistics import allowed_counts
from omb_py.results.statistics.sequential import WORDS, AcceptRule, Word, worst
from omb_py.results.units import BASE_UNITS, counted, in_unit, listed, share_text

ALIKE = 0.3
"""Correlation of launches from which a report speaks of it."""
HEADS = ("criterion", "source", "bound", "measured", "interval", "launches", "verdict", "note")
_SHOWN = 8
"""Names that a line has."""


@dataclass(frozen=True, slots=True)
class CorrectnessCheck:
    """The check that one benchmark, with its options, returns right bytes."""

    name: str
    word: Literal["PASS", "FAIL", "ERROR", "SKIPPED"]
    note: str
    """Number of cells that were checked, or the reason why none was."""


@dataclass(slots=True)
class AcceptReport:
    """The data of an acceptance report."""

    suite: str
    description: str
    suite_hash: str
    rule: AcceptRule
    run_id: str
    store: str
    started_at: str
    """ISO 8601, UTC."""
    seconds: float = 0.0
    verdicts: list[CaseVerdict] = field(default_factory=list)
    checked: list[CorrectnessCheck] = field(default_factory=list)
    incidents: list[Skip] = field(default_factory=list)
    """What did not go as planned."""
    missing_nodes: dict[str, str] = field(default_factory=dict)
    """Node -> reason why it did not take part."""
    deviations: list[str] = field(default_factory=list)
    late_ranks: list[str] = field(default_factory=list)
    """A sentence for each collective in which some rank was the last too often, by this session's launches."""
    job: str = ""
    """The batch job, for a ticket."""
    contract: str = ""
    """The file with what was promised, and what the nodes have."""
    out_of_service: str = ""
    """How the missing nodes are kept from jobs."""
    machine: dict[str, Any] = field(default_factory=dict)
    """State of the machine while it measured; ``warnings`` are sentences. Empty for simulated ranks."""
    simulated: bool = False
    hosts: list[str] = field(default_factory=list)
    libraries: list[str] = field(default_factory=list)
    launches: int = 0
    baseline: str = ""
    beside: str = ""
    """Command of the other job of an interference test."""
    files: list[tuple[str, str]] = field(default_factory=list)
    """Path and SHA-256 of each file of raw data."""
    command: str = ""
    bounds: str = ""
    """Hash of the rule and the criteria."""
    correlation: float = 0.0
    """How much a launch may resemble the one before, over all cells; 0: launches are independent."""
    earlier: list[AcceptOutcome] = field(default_factory=list)
    """Acceptances that this one repeats, in the order of time."""

    @property
    def counts(self) -> Counter[Word]:
        """Verdict -> number of cases."""
        return Counter(verdict.word for verdict in self.verdicts)

    @property
    def word(self) -> Word:
        """The worst verdict of all, correctness and incidents included."""
        words: list[Word] = [verdict.word for verdict in self.verdicts]
        words += [check.word for check in self.checked if check.word in ("FAIL", "ERROR")]
        words += ["ERROR" for incident in self.incidents if incident.failed]
        return worst(words)


def exit_code(acceptance: AcceptReport, strict: bool = False) -> int:
    """Choose the exit code: 1 on FAIL, 3 if something could not be measured, 4 where all is MARGINAL, else 0.

    With `strict` it is 4 where anything is MARGINAL.
    """
    nothing = INCONCLUSIVE if not acceptance.counts["PASS"] else OK
    codes = {"FAIL": NEGATIVE, "ERROR": ENVIRONMENT, "NO BOUND": nothing, "PASS": OK}
    codes["MARGINAL"] = INCONCLUSIVE if strict else nothing
    return codes[acceptance.word]


def headline(acceptance: AcceptReport) -> str:
    """Sum up in one line: ``FAIL: 1 fail, 3 pass of 4 verdicts; correctness: 2 of 2 right``."""
    counts = acceptance.counts
    verdicts = ", ".join(f"{counts[word]} {word.lower()}" for word in WORDS if counts[word])
    checks = [check for check in acceptance.checked if check.word != "SKIPPED"]
    right = sum(check.word == "PASS" for check in checks)
    correctness = f"; correctness: {right} of {len(checks)} right" if checks else "; correctness was not checked"
    missing = f"; missing: {listed(acceptance.missing_nodes)}" if acceptance.missing_nodes else ""
    return f"{acceptance.word}: {verdicts} of {counted(len(acceptance.verdicts), 'verdict')}{correctness}{missing}"


def failures(acceptance: AcceptReport) -> tuple[str, ...]:
    """A sentence for each criterion that failed or could not be measured, and for wrong bytes."""
    wrong = [f"correctness: {check.name}: {check.note}" for check in acceptance.checked if check.word == "FAIL"]
    bad = [verdict for verdict in acceptance.verdicts if verdict.word in ("FAIL", "ERROR")]
    return (*wrong, *(f"{verdict.word}: {verdict.case.name}: {sentence(verdict)}" for verdict in bad))


def number(verdict: CaseVerdict, value: float | None) -> str:
    """Write a number of a verdict in its unit; ``-`` where there is none."""
    if value is None or not math.isfinite(value):
        return "-"
    if verdict.is_ratio:
        return f"× {value:.3f}"
    return launch_text(verdict, value)


def launch_text(verdict: CaseVerdict, value: float) -> str:
    criterion = verdict.case.criterion
    return in_unit(value, METRICS[criterion.metric].dimension, criterion.unit)


def _retests(verdict: CaseVerdict) -> str:
    """Write the verdict after each round, and the number of every launch."""
    rounds = "; ".join(f"{judged.word} after {counted(judged.launches, 'launch')}" for judged in verdict.rounds)
    return f"{rounds}; all launches: {', '.join(launch_text(verdict, value) for _, value in verdict.values)}"


def interval(verdict: CaseVerdict) -> str:
    """Write the two limits that decide: ``1 us … 2 us``, ``up to 2 us``, or ``unknown``."""
    low, high = (
        None if end is None or not math.isfinite(end) else number(verdict, end) for end in (verdict.low, verdict.high)
    )
    if low is None or high is None:
        return f"from {low}" if low is not None else f"up to {high}" if high is not None else "unknown"
    return f"{low} … {high}"


def margin(verdict: CaseVerdict) -> float | None:
    """Distance of the measured number from the bound, relative to the bound; None where there is none."""
    if verdict.measured is None or not verdict.limit or not math.isfinite(verdict.measured):
        return None
    return verdict.measured / verdict.limit - 1


def sentence(verdict: CaseVerdict) -> str:
    """Write a verdict as one line: ``12.1 us (11.9 us … 12.4 us), at most 13 us, 3 launches in 1 round``."""
    if verdict.word == "ERROR":
        return note(verdict)
    far = margin(verdict)
    parts = [
        f"{number(verdict, verdict.measured)} ({interval(verdict)})",
        verdict.case.bound,
        f"{counted(verdict.launches, 'launch')} in {counted(len(verdict.rounds), 'round')}",
    ]
    if far is not None:
        parts.append(f"{100 * far:+.1f} % from the bound")
    return "; ".join(filter(None, [", ".join(parts), note(verdict)]))


def note(verdict: CaseVerdict) -> str:
    """Write what a verdict rests on, what it lacks, and what else should be known: ``0 of 8 launches beyond it``."""
    return "; ".join(_remarks(verdict))


def _remarks(verdict: CaseVerdict) -> list[str]:
    remarks = [str(verdict.case.facts.get(PLACED, "")), verdict.evidence, verdict.missing, verdict.note]
    if verdict.by_rule:
        after = counted(verdict.launches, "launch")
        remarks.insert(0, f"undecided after {after}, which the suite counts as {verdict.word}")
    return [remark for remark in remarks if remark]


SHARED = 3
"""A remark that so many rows of a table have stands below it, once."""


def _footnotes(verdicts: Iterable[CaseVerdict]) -> dict[str, str]:
    """Number the remarks that :data:`SHARED` verdicts or more have: ``{"0 of 8 launches beyond": "[1]"}``."""
    counts = Counter(remark for verdict in verdicts for remark in _remarks(verdict))
    often = [remark for remark, count in counts.items() if count >= SHARED]
    return {remark: f"[{number}]" for number, remark in enumerate(often, 1)}


def _facts(acceptance: AcceptReport) -> list[str]:
    lines = [
        f"suite {acceptance.suite} ({acceptance.suite_hash}): {acceptance.description}".removesuffix(": "),
        f"run {acceptance.run_id} in {acceptance.store}, {acceptance.started_at}, "
        f"{counted(acceptance.launches, 'launch')}, {acceptance.seconds:.0f} s",
        f"{_nodes(acceptance.hosts)}; {listed(acceptance.libraries, _SHOWN) or 'no library'}",
        *([acceptance.job] if acceptance.job else []),
        *([acceptance.contract] if acceptance.contract else []),
        _rule_line(acceptance),
    ]
    if acceptance.correlation >= ALIKE:
        lines.append(
            f"launches may resemble the one before (correlation up to {acceptance.correlation:.2f}), so verdicts take "
            "more of them: spread them over hours or days"
        )
    lines += _repetition(acceptance)
    lines += [f"missing node {name}: {why}" for name, why in acceptance.missing_nodes.items()]
    lines += [acceptance.out_of_service] if acceptance.out_of_service else []
    lines += [f"deviation: {text}" for text in acceptance.deviations]
    lines += acceptance.late_ranks
    lines += [f"warning: {text}" for text in acceptance.machine.get("warnings", ())]
    if acceptance.baseline:
        lines.append(f"baseline: {acceptance.baseline}")
    if acceptance.beside:
        lines.append(f"the other job of the interference test: omb-py {acceptance.beside}")
    return lines


def _nodes(hosts: Sequence[str]) -> str:
    return f"{counted(len(hosts), 'node')}: {listed(hosts, _SHOWN)}" if hosts else "no node is named"


_HOW = {
    "baseline": "a night must keep the bound, by how much those of the baseline differ",
    "drift": "a line through the passes must keep the bound",
}
"""Source of a criterion -> what decides it, where launches are not counted."""


def _rule_line(acceptance: AcceptReport) -> str:
    """Say what decides the criteria: how launches are counted, and how many may be beyond a bound after each round."""
    rule, sources = acceptance.rule, {verdict.case.criterion.source for verdict in acceptance.verdicts}
    kinds = [how for source, how in _HOW.items() if source in sources]
    launches = counted(rule.launches, "launch")
    if not kinds or sources - _HOW.keys():
        kinds.insert(0, "the median of launches must keep the bound")
        looks = tuple(min(rule.most, number * rule.launches) for number in range(1, rule.rounds + 1))
        allowed = allowed_counts(looks, rule.rounds, 1 - rule.confidence)
        steps = [f"{count} of {number}" for number, count in zip(looks, allowed, strict=True) if count >= 0]
        few = f"PASS if at most {', '.join(steps)} independent launches are beyond the bound" if steps else "no PASS"
        launches += f" a round, at most {rule.most}: {few}"
    left = "" if rule.undecided == "marginal" else f"; what is MARGINAL then is a {rule.undecided}"
    return f"rule: {' and '.join(kinds)}, {share_text(rule.confidence)} sure; {launches}{left}"


def _short_note(verdict: CaseVerdict, footnotes: Mapping[str, str]) -> str:
    return "; ".join(footnotes.get(remark, remark) for remark in _remarks(verdict))


def _explain_undecided(acceptance: AcceptReport, strict: bool) -> list[str]:
    """Say what the exit code means where criteria are undecided."""
    left, code = acceptance.counts["MARGINAL"], exit_code(acceptance, strict)
    if not left or code not in (OK, INCONCLUSIVE):
        return []
    if code == OK:
        return [f"{left} undecided: exit code {code} says only that nothing failed; --strict exits with {INCONCLUSIVE}"]
    decided = acceptance.counts["PASS"]
    return [f"{left} undecided: exit code {code}" + (", because of --strict" if decided else ", nothing was decided")]


def _repetition(acceptance: AcceptReport) -> list[str]:
    """Say that the whole acceptance was made before: whoever repeats it until it passes will see it pass."""
    if not acceptance.earlier:
        return []
    before = ", ".join(
        f"{earlier.verdict} on {earlier.done[:10]} ({earlier.run_id}"
        f"{', other bounds' if earlier.bounds != acceptance.bounds else ''})"
        for earlier in acceptance.earlier
    )
    return [f"{_ordinal(len(acceptance.earlier) + 1)} acceptance of this suite on these hosts; before: {before}"]


def _ordinal(number: int) -> str:
    words = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
    if number <= len(words):
        return words[number - 1]
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _problems(acceptance: AcceptReport) -> list[str]:
    lines = [
        f"{'failed' if incident.failed else 'skipped'}: {incident.what}: {incident.reason}"
        for incident in acceptance.incidents
    ]
    return lines + [
        f"correctness {check.word}: {check.name}: {check.note}" for check in acceptance.checked if check.word == "FAIL"
    ]


def document_of(acceptance: AcceptReport, strict: bool = False) -> Document:
    """Make the document of an acceptance. With `strict`, MARGINAL is not good enough."""
    retested = [verdict for verdict in acceptance.verdicts if len(verdict.rounds) > 1]
    facts, footnotes = _facts(acceptance), _footnotes(acceptance.verdicts)
    properties = numbered(facts)
    for verdict in acceptance.verdicts:
        properties |= {
            f"{verdict.case.name}: bound": verdict.case.bound,
            f"{verdict.case.name}: measured": number(verdict, verdict.measured),
            f"{verdict.case.name}: interval": interval(verdict),
            f"{verdict.case.name}: launches": str(verdict.launches),
        }
    return Document(
        f"omb-py accept {acceptance.suite}",
        headline(acceptance),
        exit_code(acceptance, strict),
        partial(as_dict, acceptance),
        facts,
        (
            TextTable(
                HEADS,
                [(*row(verdict)[:-1], _short_note(verdict, footnotes)) for verdict in acceptance.verdicts],
                ("criterion", "source", "bound", "verdict", "note"),
                spare=("source", "interval", "launches", "note"),
            ),
            TextTable(
                ("correctness", "verdict", "note"),
                [(check.name, check.word, check.note) for check in acceptance.checked],
                in_terminal=False,
            ),
        ),
        notes=[f"{mark} {remark}" for remark, mark in footnotes.items()] + _explain_undecided(acceptance, strict),
        details=[f"retests of {verdict.case.name}: {_retests(verdict)}" for verdict in retested],
        problems=_problems(acceptance),
        cases=_cases(acceptance, strict),
        properties=properties,
        started_at=acceptance.started_at[:19],
        hostname=acceptance.hosts[0] if acceptance.hosts else "",
        seconds=acceptance.seconds,
        simulated=acceptance.simulated,
    )


def row(verdict: CaseVerdict) -> tuple[str, ...]:
    """Write a verdict as one text for each of :data:`HEADS`."""
    return (
        verdict.case.name,
        verdict.case.criterion.source,
        verdict.case.bound,
        number(verdict, verdict.measured),
        "" if verdict.word == "ERROR" else interval(verdict),
        _launches(verdict),
        verdict.word,
        note(verdict),
    )


def _launches(verdict: CaseVerdict) -> str:
    return f"{verdict.launches}" + (f" (round {len(verdict.rounds)})" if len(verdict.rounds) > 1 else "")


def _cases(acceptance: AcceptReport, strict: bool) -> list[CaseResult]:
    """Make one test case for each check, verdict and incident.

    FAIL is a failure, ERROR is an error, SKIPPED and MARGINAL are skipped (MARGINAL is a failure with `strict`).
    """
    outcomes: dict[str, Outcome] = {
        "FAIL": "failure",
        "ERROR": "error",
        "SKIPPED": "skipped",
        "NO BOUND": "skipped",
        "MARGINAL": "failure" if strict else "skipped",
    }
    group = f"omb-py.{acceptance.suite}"
    cases = [
        CaseResult(f"{group}.correctness", check.name, outcomes.get(check.word), f"{check.word}: {check.note}")
        for check in acceptance.checked
    ]
    for verdict in acceptance.verdicts:
        criterion = verdict.case.criterion
        retests = _retests(verdict) if len(verdict.rounds) > 1 else ""
        cases.append(
            CaseResult(
                f"{group}.{criterion.source.replace(' ', '-')}",
                verdict.case.name,
                outcomes.get(verdict.word),
                f"{verdict.word}: {sentence(verdict)}",
                "\n".join(filter(None, (criterion.text, f"asked by {criterion.at}", retests))),
            )
        )
    cases += [
        CaseResult(f"{group}.incident", incident.what, "error" if incident.failed else "skipped", incident.reason)
        for incident in acceptance.incidents
    ]
    return cases


def as_dict(acceptance: AcceptReport) -> dict[str, object]:
    return {
        "kind": "accept",
        "verdict": acceptance.word,
        "counts": dict(acceptance.counts),
        "suite": acceptance.suite,
        "suite_hash": acceptance.suite_hash,
        "description": acceptance.description,
        "run_id": acceptance.run_id,
        "store": acceptance.store,
        "started_at": acceptance.started_at,
        "seconds": round(acceptance.seconds, 3),
        "rule": asdict(acceptance.rule),
        "hosts": acceptance.hosts,
        "libraries": acceptance.libraries,
        "missing_nodes": acceptance.missing_nodes,
        "job": acceptance.job or None,
        "contract": acceptance.contract or None,
        "deviations": acceptance.deviations,
        "late_ranks": acceptance.late_ranks,
        "machine": acceptance.machine or None,
        "baseline": acceptance.baseline or None,
        "beside": acceptance.beside or None,
        "earlier": [
            {"run_id": each.run_id, "done_at": each.done, "verdict": each.verdict, "bounds": each.bounds}
            for each in acceptance.earlier
        ],
        "correctness": [asdict(check) for check in acceptance.checked],
        "incidents": [asdict(incident) for incident in acceptance.incidents],
        "verdicts": [_verdict(verdict) for verdict in acceptance.verdicts],
        "launches": acceptance.launches,
        "files": [{"path": path, "sha256": digest} for path, digest in acceptance.files],
        "command": acceptance.command,
    }


def _verdict(verdict: CaseVerdict) -> dict[str, object]:
    criterion = verdict.case.criterion
    return {
        "name": verdict.case.name,
        "criterion": criterion.id,
        "text": criterion.text,
        "source": criterion.source,
        "at": criterion.at,
        **verdict.case.facts,
        "metric": criterion.metric,
        "bound": verdict.case.bound,
        "verdict": verdict.word,
        "measured": verdict.measured,
        "low": verdict.low,
        "high": verdict.high,
        "limit": verdict.limit,
        "unit": "ratio" if verdict.is_ratio else BASE_UNITS[METRICS[criterion.metric].dimension],
        "margin": margin(verdict),
        "by_rule": verdict.by_rule,
        "note": note(verdict) or None,
        "launches_beyond": verdict.beyond,
        "share_beyond_at_most": verdict.share_at_most,
        "looks": [asdict(judged) for judged in verdict.rounds],
        "launches": [{"launch_id": launch, "value": value} for launch, value in verdict.values],
    }
