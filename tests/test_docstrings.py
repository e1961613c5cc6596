"""The examples in docstrings: each prints what stands below it."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("omb_py", "backends", "suites", "results", "dashboards")
FILES = [
    file.relative_to(ROOT)
    for folder in FOLDERS
    for file in sorted((ROOT / folder).rglob("*.py"))
    if re.search(r"^ +>>> ", file.read_text(), re.MULTILINE)
]


def test_there_are_examples() -> None:
    assert len(FILES) > 50


@pytest.mark.parametrize("file", FILES, ids=str)
def test_examples_of_docstrings_are_right(file: Path) -> None:
    name = ".".join(file.with_suffix("").parts).removesuffix(".__init__")
    module = importlib.import_module(name if name.startswith("omb_py") else f"omb_py.{name}")
    done = doctest.testmod(module)
    assert done.attempted and not done.failed
