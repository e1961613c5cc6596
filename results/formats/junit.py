"""JUnit's XML, as build servers read it: one writer for every report.

``testsuites > testsuite > properties + testcase``; a case has at most one of failure, error and skipped, since Jenkins
keeps one; times have no exponent; facts of a case stand in the suite's properties and in its text, because Jenkins'
schema knows no properties of a case.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal
from xml.etree import ElementTree

Outcome = Literal["failure", "error", "skipped"]
_FORBIDDEN = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class JunitCase:
    """One test."""

    classname: str
    name: str
    """Stable between runs."""
    outcome: Outcome | None
    """None: it passed."""
    message: str
    """What is said of it, also when it passed."""
    seconds: float | None = None
    detail: str = ""
    """Further lines."""


@dataclass(frozen=True, slots=True)
class JunitSuite:
    """What one report has."""

    name: str
    cases: Sequence[JunitCase]
    properties: Mapping[str, str] = field(default_factory=dict)
    timestamp: str = ""
    """ISO 8601 without a zone, UTC."""
    hostname: str = ""
    seconds: float | None = None


def to_xml(suites: Sequence[JunitSuite]) -> str:
    """The document. What XML cannot hold is replaced by ``?``."""
    root = ElementTree.Element("testsuites")
    total: Counter[str] = Counter()
    for suite in suites:
        counts = Counter(str(case.outcome) for case in suite.cases)
        told = {
            "tests": str(len(suite.cases)),
            "failures": str(counts["failure"]),
            "errors": str(counts["error"]),
            "skipped": str(counts["skipped"]),
            "timestamp": suite.timestamp,
            "hostname": _clean(suite.hostname),
            "time": _seconds(suite.seconds),
        }
        node = ElementTree.SubElement(root, "testsuite", {"name": _clean(suite.name)})
        node.attrib.update({name: value for name, value in told.items() if value})
        properties = ElementTree.SubElement(node, "properties")
        for name, value in suite.properties.items():
            ElementTree.SubElement(properties, "property", name=_clean(name), value=_clean(value))
        for case in suite.cases:
            _case(node, case)
        total.update({"tests": len(suite.cases), "failures": counts["failure"], "errors": counts["error"]})
    for name, count in total.items():
        root.set(name, str(count))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _case(suite: ElementTree.Element, case: JunitCase) -> None:
    node = ElementTree.SubElement(suite, "testcase", classname=_clean(case.classname), name=_clean(case.name))
    if case.seconds is not None:
        node.set("time", _seconds(case.seconds))
    if case.outcome is not None:
        outcome = ElementTree.SubElement(node, case.outcome, message=_clean(case.message))
        outcome.text = _clean(case.detail) or None
    else:
        text = "\n".join(filter(None, (case.message, case.detail)))
        ElementTree.SubElement(node, "system-out").text = _clean(text)


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("?", text)
