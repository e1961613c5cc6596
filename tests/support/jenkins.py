"""What Jenkins' schema for JUnit (junit-10.xsd of its xUnit plug-in) admits: elements, children, attributes, times.

Of its versions the narrowest: what any of them requires is required.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

RESULT = ({"type", "message"}, set[str](), set[str]())
TEXT = (set[str](), set[str](), set[str]())
ELEMENTS: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": ({"name", "time", "tests", "failures", "disabled", "errors"}, set(), {"testsuite"}),
    "testsuite": (
        set("time disabled skipped skips timestamp hostname id package assertions file skip log url".split()),
        {"name", "tests", "failures", "errors"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "testcase": (
        {"assertions", "time", "timestamp", "classname", "status", "class", "file", "line", "log", "group", "url"},
        {"name"},
        {"skipped", "error", "failure", "rerunFailure", "rerunError", "system-out", "system-err"},
    ),
    "properties": (set(), set(), {"property"}),
    "property": (set(), {"name", "value"}, set()),
    "failure": RESULT,
    "error": RESULT,
    "skipped": RESULT,
    "system-out": TEXT,
    "system-err": TEXT,
}
"""Element -> (optional attributes, required ones, children)."""
TIME = re.compile(r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]{0,3})?")
"""SUREFIRE_TIME: no sign, no exponent, at most three digits behind the point."""
MIXED = ("failure", "error", "skipped", "system-out", "system-err")


def violations(xml: str) -> list[str]:
    """What of a document the schema does not admit."""
    root = ElementTree.fromstring(xml)
    found = [] if root.tag == "testsuites" else [f"root {root.tag}"]
    for element in root.iter():
        if element.tag not in ELEMENTS:
            found.append(f"element {element.tag}")
            continue
        optional, required, children = ELEMENTS[element.tag]
        found += [f"{element.tag} lacks {name}" for name in sorted(required - set(element.attrib))]
        found += [f"{element.tag} has {name}" for name in set(element.attrib) - optional - required]
        found += [f"{child.tag} in {element.tag}" for child in element if child.tag not in children]
        if not TIME.fullmatch(element.get("time", "")):
            found.append(f"time {element.get('time')} of {element.tag}")
        if element.tag not in MIXED and (element.text or "").strip():
            found.append(f"text in {element.tag}")
    return found
