"""A test that a page names exists."""

from __future__ import annotations

import re

from tests.architecture.graph import ROOT

NAMED = re.compile(r"(tests/[\w/]+\.py)::(test_\w+)")


def test_every_test_that_a_page_names_is_there() -> None:
    named = {
        match for page in sorted((ROOT / "docs").rglob("*.md")) for match in NAMED.findall(page.read_text("utf-8"))
    }
    assert len(named) > 15
    missing = [f"{path}::{name}" for path, name in named if f"def {name}(" not in (ROOT / path).read_text("utf-8")]
    assert not missing
