"""An acceptance as JSON, Markdown, or JUnit for a build server."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from omb_py.results.accept.judge import Verdict
from omb_py.results.accept.report import (
    Verdicts,
    as_dict,
    closing,
    headline,
    interval,
    number,
    preamble,
    retests,
    sentence,
)
from omb_py.results.formats.junit import JunitCase, JunitSuite, Outcome, to_xml

HEADS = ("criterion", "source", "bound", "measured", "interval", "launches", "verdict", "note")


def table(found: Verdicts) -> list[tuple[str, ...]]:
    """The rows of the table, in the suite's order."""
    return [row(one) for one in found.verdicts]


def row(one: Verdict) -> tuple[str, ...]:
    """A text for each of :data:`HEADS`."""
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


def to_json(found: Verdicts) -> str:
    """One object; what is in it: :func:`omb_py.results.accept.report.as_dict`."""
    return json.dumps(as_dict(found), indent=1, allow_nan=False, ensure_ascii=False, default=str) + "\n"


def to_markdown(found: Verdicts) -> str:
    """For an issue or a wiki: the criteria, correctness, every launch of what needed more than one round."""
    lines = [f"**{headline(found)}**", "", *(f"- {_escaped(line)}" for line in preamble(found)), ""]
    lines += _table(HEADS, table(found))
    lines += ["", *_table(("correctness", "verdict", "note"), [(c.name, c.word, c.note) for c in found.checked])]
    again = [one for one in found.verdicts if len(one.rounds) > 1]
    lines += ["", *(f"- retests of {_escaped(one.case.name)}: {retests(one)}" for one in again)]
    return "\n".join([*lines, *(f"- {_escaped(line)}" for line in closing(found)[:-1])]).rstrip() + "\n"


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    if not rows:
        return []
    lines = ["| " + " | ".join(heads) + " |", "|" + "|".join("---" for _ in heads) + "|"]
    return lines + ["| " + " | ".join(map(_escaped, row)) + " |" for row in rows]


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;").replace("\n", " ")


def to_junit(found: Verdicts, strict: bool = False) -> str:
    """JUnit's XML: a test a verdict. FAIL is a failure, ERROR an error, MARGINAL skipped (a failure under `strict`)."""
    properties = {f"line{count}": line for count, line in enumerate(preamble(found), 1)}
    cases = [
        JunitCase(
            f"omb-py.{found.suite}.correctness",
            one.name,
            {"FAIL": "failure", "ERROR": "error", "SKIPPED": "skipped", "PASS": None}[one.word],
            f"{one.word}: {one.note}",
        )
        for one in found.checked
    ]
    outcomes: Mapping[str, Outcome] = {
        "FAIL": "failure",
        "ERROR": "error",
        "MARGINAL": "failure" if strict else "skipped",
    }
    for one in found.verdicts:
        criterion = one.case.criterion
        where = f"omb-py.{found.suite}.{criterion.source.replace(' ', '-')}"
        detail = "\n".join(
            filter(None, (criterion.text, f"asked by {criterion.at}", retests(one) if len(one.rounds) > 1 else ""))
        )
        cases.append(
            JunitCase(where, one.case.name, outcomes.get(one.word), f"{one.word}: {sentence(one)}", None, detail)
        )
        properties |= {
            f"{one.case.name}: bound": one.case.bound,
            f"{one.case.name}: measured": number(one, one.measured),
            f"{one.case.name}: interval": interval(one),
            f"{one.case.name}: launches": str(one.launches),
        }
    for incident in found.incidents:
        kind: Outcome = "error" if incident.failed else "skipped"
        cases.append(JunitCase(f"omb-py.{found.suite}.incident", incident.what, kind, incident.reason))
    stamp = found.started_at[:19]
    host = found.hosts[0] if found.hosts else ""
    return to_xml([JunitSuite(f"omb-py accept {found.suite}", cases, properties, stamp, host, found.seconds)])


FORMS: Mapping[str, Callable[[Verdicts], str]] = {"json": to_json, "markdown": to_markdown, "junit": to_junit}
