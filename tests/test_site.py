"""The documentation site: its pages, and the links between those of docs/ and of the root. make docs builds it."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
_SPEC = importlib.util.spec_from_file_location("site_build", ROOT / "docs" / "site" / "build.py")
assert _SPEC is not None and _SPEC.loader is not None
build = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(build)
LINK = re.compile(r"(?<!\!)\]\((?!https?:|mailto:)([^)#\s]+)(?:#[^)]*)?\)")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "pages"
    build.lay_out(folder)
    return folder


def test_every_page_is_reached_from_the_front_page(pages: Path) -> None:
    entries = re.findall(r"^([\w./*-]+)$", (pages / "index.md").read_text().partition("```{toctree}")[2], re.M)
    entries += re.findall(r"^(\d{4}-[\w-]+)$", (pages / "decisions" / "index.md").read_text(), re.M)
    reached = {path for entry in entries for base in (pages, pages / "decisions") for path in base.glob(f"{entry}.md")}
    assert set(pages.rglob("*.md")) - reached == {pages / "index.md"}


def test_a_page_that_nobody_named_comes_last(tmp_path: Path) -> None:
    for name in ("index", "tour", "new"):
        (tmp_path / f"{name}.md").write_text("")
    more = build.others(tmp_path, "```{toctree}\ntour\n```")
    assert more == ["new"] and build.toctree("More", more).splitlines()[-3:] == ["", "new", "```"]
    assert build.toctree("More", []) == ""


def test_every_link_leads_to_a_page_or_a_file(pages: Path) -> None:
    broken = [
        (page.relative_to(pages), target)
        for page in pages.rglob("*.md")
        for target in LINK.findall(re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.S))
        if not (page.parent / target).exists()
    ]
    assert broken == []


def test_links_between_root_and_docs() -> None:
    assert build.from_docs("[a](../CONTRIBUTING.md#rules) [b](../../README.md) [c](tour.md)") == (
        "[a](contributing.md#rules) [b](../index.md) [c](tour.md)"
    )
    assert build.from_root("[a](docs/tour.md#x) [b](CHANGELOG.md) [c](docs/decisions)") == (
        "[a](tour.md#x) [b](changelog.md) [c](decisions/index.md)"
    )


def test_what_is_fetched_from_elsewhere_is_found() -> None:
    page = '<a href="https://a"></a><link rel=x href="//b/c.css"><script src="d.js"></script><img alt=x src="http://e">'
    assert build.fetched(page) == ["//b/c.css", "http://e"]


def test_the_api_page_has_every_public_name() -> None:
    import omb_py

    page = (ROOT / "docs" / "site" / "api.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\.\. auto\w+:: (\w+)$", page, re.M))
    assert named == set(omb_py.__all__) - {"__version__"}
