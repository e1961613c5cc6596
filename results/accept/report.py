"""The acceptance of a machine: its data, and the document that every form of its report is written from."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Literal

from omb_py.errors import ENVIRONMENT, INCONCLUSIVE, NEGATIVE, OK
from omb_py.results.accept.criteria import METRICS
from omb_py.results.accept.judge import Verdict
from omb_py.results.formats.document import CaseResult, Document, Outcome, TextTable, numbered
from omb_py.results.formats.units import counted, in_unit, share_text
from omb_py.results.statistics.sequential import WORDS, Rule, Word, worst

HEADS = ("criterion", "source", "bound", "measured", "interval", "launches", "verdict", "note")


@dataclass(frozen=True, slots=True)
class Checked:
    """Correctness of one benchmark with its options."""

    name: str
    word: Literal["PASS", "FAIL", "ERROR", "SKIPPED"]
    note: str
    """How many cells were checked, or why none was."""


@dataclass(frozen=True, slots=True)
class Incident:
    """Something that did not go as planned."""

    what: str
    reason: str
    failed: bool
    """It began, and ranks died or hung; else it could not be measured here."""


@dataclass(slots=True)
class Verdicts:
    """What ``omb-py accept`` has found."""

    suite: str
    description: str
    suite_hash: str
    rule: Rule
    run_id: str
    store: str
    started_at: str
    """ISO 8601, UTC."""
    seconds: float = 0.0
    verdicts: list[Verdict] = field(default_factory=list)
    checked: list[Checked] = field(default_factory=list)
    incidents: list[Incident] = field(default_factory=list)
    missing_nodes: dict[str, str] = field(default_factory=dict)
    """Node -> why it did not take part."""
    deviations: list[str] = field(default_factory=list)
    """From what the suite asks for."""
    hosts: list[str] = field(default_factory=list)
    libraries: list[str] = field(default_factory=list)
    launches: int = 0
    baseline: str = ""
    beside: str = ""
    """Command of the other job of an interference test."""
    files: list[tuple[str, str]] = field(default_factory=list)
    """Raw data and its SHA-256."""
    command: str = ""
    """How to do it again."""

    @property
    def words(self) -> Counter[Word]:
        """Verdict -> how many cases."""
        return Counter(verdict.word for verdict in self.verdicts)

    @property
    def word(self) -> Word:
        """One for all: correctness too."""
        words: list[Word] = [verdict.word for verdict in self.verdicts]
        words += [one.word for one in self.checked if one.word in ("FAIL", "ERROR")]
        words += ["ERROR" for one in self.incidents if one.failed]
        return worst(words)


def exit_code(found: Verdicts, strict: bool = False) -> int:
    """1 where anything is a FAIL, 3 where something could not be measured, 4 under `strict` where it is MARGINAL."""
    codes = {"FAIL": NEGATIVE, "ERROR": ENVIRONMENT, "MARGINAL": INCONCLUSIVE if strict else OK, "PASS": OK}
    return codes[found.word]


def headline(found: Verdicts) -> str:
    """``FAIL: 1 fail, 3 pass of 4 criteria; correctness: 2 of 2 right``."""
    words = found.words
    told = ", ".join(f"{words[word]} {word.lower()}" for word in WORDS if words[word])
    looked = [one for one in found.checked if one.word != "SKIPPED"]
    right = sum(one.word == "PASS" for one in looked)
    checks = f"; correctness: {right} of {len(looked)} right" if looked else "; correctness was not checked"
    missing = f"; {counted(len(found.missing_nodes), 'node')} missing" if found.missing_nodes else ""
    return f"{found.word}: {told} of {counted(len(found.verdicts), 'verdict')}{checks}{missing}"


def number(verdict: Verdict, value: float | None) -> str:
    """A number of a verdict for a reader, in its unit."""
    if value is None or not math.isfinite(value):
        return "-"
    if verdict.is_ratio:
        return f"× {value:.3f}"
    return in_unit(value, METRICS[verdict.case.criterion.metric].dimension)


def launch_text(verdict: Verdict, value: float) -> str:
    """The number of one launch for a reader."""
    return in_unit(value, METRICS[verdict.case.criterion.metric].dimension)


def _retests(verdict: Verdict) -> str:
    """What was said after each round, and every launch behind it."""
    rounds = "; ".join(f"{one.word} after {counted(one.launches, 'launch')}" for one in verdict.rounds)
    return f"{rounds}; all launches: {', '.join(launch_text(verdict, value) for _, value in verdict.values)}"


def interval(verdict: Verdict) -> str:
    """The two limits that decide; nothing where the spread is not known."""
    low, high = verdict.low, verdict.high
    known = low is not None and high is not None and math.isfinite(low) and math.isfinite(high)
    return f"{number(verdict, low)} … {number(verdict, high)}" if known else "unknown"


def margin(verdict: Verdict) -> float | None:
    """How far the measured number is from the bound, as a ratio over it; None where there is none."""
    if verdict.measured is None or not verdict.limit or not math.isfinite(verdict.measured):
        return None
    return verdict.measured / verdict.limit - 1


def sentence(verdict: Verdict) -> str:
    """``12.1 us (11.9 us … 12.4 us), at most 13 us, 3 launches``."""
    if verdict.word == "ERROR":
        return verdict.note
    far = margin(verdict)
    told = [
        f"{number(verdict, verdict.measured)} ({interval(verdict)})",
        verdict.case.bound,
        f"{counted(verdict.launches, 'launch')} in {counted(len(verdict.rounds), 'round')}",
    ]
    if far is not None:
        told.append(f"{100 * far:+.1f} % from the bound")
    if verdict.by_rule:
        told.append("undecided after the last launch: the suite's rule says so")
    return ", ".join(told) + (f"; {verdict.note}" if verdict.note else "")


def _facts(found: Verdicts) -> list[str]:
    rule = found.rule
    lines = [
        f"suite {found.suite} ({found.suite_hash}): {found.description}",
        f"run {found.run_id} in {found.store}, {found.started_at}, {counted(found.launches, 'launch')}, "
        f"{found.seconds:.0f} s",
        f"{counted(len(found.hosts), 'node')}: {_listed(found.hosts)}; {_listed(found.libraries) or 'no library'}",
        f"rule: {share_text(rule.confidence)} one-sided, {counted(rule.launches, 'launch')} a round, at most "
        f"{rule.most}; what is MARGINAL after that is "
        f"{'left so' if rule.undecided == 'marginal' else f'a {rule.undecided}'}",
    ]
    lines += [f"missing node {name}: {why}" for name, why in found.missing_nodes.items()]
    lines += [f"deviation: {text}" for text in found.deviations]
    if found.baseline:
        lines.append(f"baseline: {found.baseline}")
    if found.beside:
        lines.append(f"the other job of the interference test: omb-py {found.beside}")
    return lines


def _problems(found: Verdicts) -> list[str]:
    lines = [f"{'failed' if one.failed else 'skipped'}: {one.what}: {one.reason}" for one in found.incidents]
    return lines + [f"correctness {one.word}: {one.name}: {one.note}" for one in found.checked if one.word == "FAIL"]


def _listed(words: Iterable[str], most: int = 8) -> str:
    known = list(dict.fromkeys(words))
    return ", ".join(known[:most]) + (f" and {len(known) - most} more" if len(known) > most else "")


def document_of(found: Verdicts, strict: bool = False) -> Document:
    """What is written of an acceptance; `strict`: MARGINAL is not good enough."""
    again = [one for one in found.verdicts if len(one.rounds) > 1]
    facts = _facts(found)
    properties = numbered(facts)
    for one in found.verdicts:
        properties |= {
            f"{one.case.name}: bound": one.case.bound,
            f"{one.case.name}: measured": number(one, one.measured),
            f"{one.case.name}: interval": interval(one),
            f"{one.case.name}: launches": str(one.launches),
        }
    return Document(
        f"omb-py accept {found.suite}",
        headline(found),
        exit_code(found, strict),
        partial(as_dict, found),
        facts,
        (
            TextTable(HEADS, [*map(row, found.verdicts)], ("criterion", "source", "bound", "verdict", "note")),
            TextTable(
                ("correctness", "verdict", "note"),
                [(one.name, one.word, one.note) for one in found.checked],
                in_terminal=False,
            ),
        ),
        details=[f"retests of {one.case.name}: {_retests(one)}" for one in again],
        problems=_problems(found),
        cases=_cases(found, strict),
        properties=properties,
        started_at=found.started_at[:19],
        hostname=found.hosts[0] if found.hosts else "",
        seconds=found.seconds,
    )


def row(one: Verdict) -> tuple[str, ...]:
    """A verdict as a text for each of :data:`HEADS`."""
    return (
        one.case.name,
        one.case.criterion.source,
        one.case.bound,
        number(one, one.measured),
        "" if one.word == "ERROR" else interval(one),
        _launches(one),
        one.word,
        one.note,
    )


def _launches(one: Verdict) -> str:
    return f"{one.launches}" + (f" (round {len(one.rounds)})" if len(one.rounds) > 1 else "")


def _cases(found: Verdicts, strict: bool) -> list[CaseResult]:
    """A test a check, a verdict and an incident: FAIL is a failure, ERROR an error, SKIPPED and MARGINAL are skipped
    (MARGINAL is a failure under `strict`)."""
    outcomes: dict[str, Outcome] = {
        "FAIL": "failure",
        "ERROR": "error",
        "SKIPPED": "skipped",
        "MARGINAL": "failure" if strict else "skipped",
    }
    group = f"omb-py.{found.suite}"
    cases = [
        CaseResult(f"{group}.correctness", one.name, outcomes.get(one.word), f"{one.word}: {one.note}")
        for one in found.checked
    ]
    for verdict in found.verdicts:
        criterion = verdict.case.criterion
        again = _retests(verdict) if len(verdict.rounds) > 1 else ""
        cases.append(
            CaseResult(
                f"{group}.{criterion.source.replace(' ', '-')}",
                verdict.case.name,
                outcomes.get(verdict.word),
                f"{verdict.word}: {sentence(verdict)}",
                "\n".join(filter(None, (criterion.text, f"asked by {criterion.at}", again))),
            )
        )
    cases += [
        CaseResult(f"{group}.incident", one.what, "error" if one.failed else "skipped", one.reason)
        for one in found.incidents
    ]
    return cases


def as_dict(found: Verdicts) -> dict[str, Any]:
    """Everything, for JSON."""
    return {
        "kind": "accept",
        "verdict": found.word,
        "counts": dict(found.words),
        "suite": found.suite,
        "suite_hash": found.suite_hash,
        "description": found.description,
        "run_id": found.run_id,
        "store": found.store,
        "started_at": found.started_at,
        "seconds": round(found.seconds, 3),
        "rule": asdict(found.rule),
        "hosts": found.hosts,
        "libraries": found.libraries,
        "missing_nodes": found.missing_nodes,
        "deviations": found.deviations,
        "baseline": found.baseline or None,
        "beside": found.beside or None,
        "correctness": [asdict(one) for one in found.checked],
        "incidents": [asdict(one) for one in found.incidents],
        "verdicts": [_verdict(one) for one in found.verdicts],
        "launches": found.launches,
        "files": [{"path": path, "sha256": digest} for path, digest in found.files],
        "command": found.command,
    }


def _verdict(one: Verdict) -> dict[str, Any]:
    criterion = one.case.criterion
    return {
        "name": one.case.name,
        "criterion": criterion.id,
        "text": criterion.text,
        "source": criterion.source,
        "at": criterion.at,
        **one.case.facts,
        "metric": criterion.metric,
        "bound": one.case.bound,
        "verdict": one.word,
        "measured": one.measured,
        "low": one.low,
        "high": one.high,
        "limit": one.limit,
        "unit": "ratio" if one.is_ratio else METRICS[criterion.metric].dimension,
        "margin": margin(one),
        "by_rule": one.by_rule,
        "note": one.note or None,
        "looks": [asdict(one) for one in one.rounds],
        "launches": [{"launch_id": launch, "value": value} for launch, value in one.values],
    }
