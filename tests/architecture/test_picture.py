"""The picture and the table of docs/architecture.md agree with the source, and so do the paths that it names."""

from __future__ import annotations

import re

import pytest

from tests.architecture.figures import figures
from tests.architecture.graph import ROOT, packages, source_files
from tests.architecture.picture import PAGE, PICTURE, page, svg


@pytest.mark.slow
def test_picture_and_table_are_those_of_the_source() -> None:
    text = PAGE.read_text(encoding="utf-8")
    remedy = "make them anew: python -m tests.architecture.picture"
    assert page(text) == text, remedy
    assert PICTURE.read_text(encoding="utf-8") == svg(), remedy


def test_every_package_says_what_it_is_for() -> None:
    assert {path.parent.relative_to(ROOT).as_posix() for path in source_files()} == set(packages())
    assert [name for name, about in packages().items() if not about] == []


def test_paths_in_the_page_exist() -> None:
    text = PAGE.read_text(encoding="utf-8").partition("<!-- packages")[0]
    named = re.findall(r"`((?:[a-z_]+/)+(?:[a-z_0-9]+\.(?:py|md))?)`", text)
    assert named
    for name in named:
        assert (ROOT / name).exists() or (ROOT / "omb_py" / name).exists(), name


@pytest.mark.slow
def test_nothing_that_every_feature_would_enlarge_grows_back() -> None:
    """A function over 80 lines, or a declaration over 25 fields, is a design question (docs/architecture.md)."""
    now = figures(ROOT)
    declared = {name: int(text) for name, text in now.items() if name.startswith(("fields of", "parameters of"))}
    assert max(declared.values()) <= 25, declared
    assert int(now["longest function, lines"].partition(" ")[0]) <= 80, now["longest function, lines"]
