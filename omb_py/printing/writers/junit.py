"""Write a document as JUnit XML for build servers.

The structure is ``testsuites > testsuite > properties + testcase``. A case has at most one of failure, error and
skipped, since Jenkins keeps one. Times have no exponent. Facts about a case stand in the suite's properties and in the
text of the case, because Jenkins' schema has no properties for a case.
"""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree

from omb_py.results.document import CaseResult, Document, printable


def to_junit(document: Document) -> str:
    """The XML text: one suite with the document's cases."""
    counts = Counter(case.outcome for case in document.cases)
    totals = {"tests": str(len(document.cases)), "failures": str(counts["failure"]), "errors": str(counts["error"])}
    facts = {
        "skipped": str(counts["skipped"]),
        "timestamp": document.started_at,
        "hostname": printable(document.hostname),
        "time": "" if document.seconds is None else f"{document.seconds:.3f}",
    }
    root = ElementTree.Element("testsuites", totals)
    suite = ElementTree.SubElement(root, "testsuite", {"name": printable(document.title), **totals})
    suite.attrib.update({name: value for name, value in facts.items() if value})
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in document.properties.items():
        ElementTree.SubElement(properties, "property", name=printable(name), value=printable(value))
    for case in document.cases:
        _add_case(suite, case)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _add_case(suite: ElementTree.Element, case: CaseResult) -> None:
    node = ElementTree.SubElement(suite, "testcase", classname=printable(case.group), name=printable(case.name))
    if case.outcome is not None:
        outcome = ElementTree.SubElement(node, case.outcome, message=printable(case.message))
        outcome.text = printable(case.detail) or None
    else:
        text = "\n".join(filter(None, (case.message, case.detail)))
        ElementTree.SubElement(node, "system-out").text = printable(text)
