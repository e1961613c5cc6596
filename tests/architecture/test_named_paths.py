"""Files, folders, modules and tests that a page names exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from tests.architecture.graph import ROOT

PATH = re.compile(r"`((?:omb_py|backends|suites|results|dashboards|tests|docs)/[\w./-]*?)/?(?:::(test_\w+))?`")
MODULE = re.compile(r"python3? -m (tests[\w.]*\w)")
PAGES = [
    ROOT / "CONTRIBUTING.md",
    *sorted(set((ROOT / "docs").rglob("*.md")) - set((ROOT / "docs").glob("decisions/*.md"))),
]


def missing(text: str) -> Iterator[str]:
    for path, test in PATH.findall(text):
        file = ROOT / path
        if not file.exists() or (test and f"def {test}(" not in file.read_text("utf-8")):
            yield path
    yield from (module for module in MODULE.findall(text) if find_spec(module) is None)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_what_a_page_names_is_there(page) -> None:
    assert list(missing(page.read_text("utf-8"))) == []


def test_what_is_not_there_is_found() -> None:
    text = "`tests/no.py`, `docs/cli.md`, `tests/architecture/graph.py::test_no`, python -m tests.no"
    assert list(missing(text)) == ["tests/no.py", "tests/architecture/graph.py", "tests.no"]
