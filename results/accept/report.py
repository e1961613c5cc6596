"""The acceptance of a machine as data: what every form of its report shows, and the exit code."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from omb_py.errors import ENVIRONMENT, INCONCLUSIVE, NEGATIVE, OK
from omb_py.results.accept.criteria import METRICS
from omb_py.results.accept.judge import Verdict
from omb_py.results.compare.report import finite
from omb_py.results.formats.units import counted, in_unit, share_text
from omb_py.results.statistics.sequential import WORDS, Rule, Word, worst


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


def retests(verdict: Verdict) -> str:
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


def preamble(found: Verdicts) -> list[str]:
    """Where, by which rule."""
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


def closing(found: Verdicts) -> list[str]:
    """What did not go as planned, then the verdict."""
    lines = [f"{'failed' if one.failed else 'skipped'}: {one.what}: {one.reason}" for one in found.incidents]
    lines += [f"correctness {one.word}: {one.name}: {one.note}" for one in found.checked if one.word == "FAIL"]
    return [*lines, headline(found)]


def _listed(words: Iterable[str], most: int = 8) -> str:
    known = list(dict.fromkeys(words))
    return ", ".join(known[:most]) + (f" and {len(known) - most} more" if len(known) > most else "")


def as_dict(found: Verdicts) -> dict[str, Any]:
    """Everything, for JSON; numbers that are not finite are null."""
    told = {
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
    whole = finite(told)
    assert isinstance(whole, dict)
    return whole


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
