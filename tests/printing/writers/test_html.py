"""A document as HTML: every text is a text, nothing is loaded, and verdicts have a tone."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given

from omb_py.printing.writers import WRITERS
from omb_py.printing.writers.html import SIMULATED, escape, to_html
from omb_py.printing.writers.terminal import rich_table
from omb_py.results.document import TONES, Document, TextTable, printable, tone
from tests.printing.writers.documents import DOCUMENTS


class Page(HTMLParser):
    """The texts of some elements, in order, and the classes of cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: dict[str, list[str]] = {name: [] for name in ("h1", "li", "td", "th", "pre", "p", "title")}
        self.tags: list[str] = []
        self.classes: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag in self.texts:
            self.texts[tag].append("")
            self._open.append(tag)
        if tag == "td":
            self.classes.append(dict(attrs).get("class") or "")

    def handle_endtag(self, tag: str) -> None:
        if self._open and self._open[-1] == tag:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts[self._open[-1]][-1] += data


def shown(texts: object) -> list[str]:
    """Texts as a parser of HTML gives them back: it knows one line end only."""
    return [printable(text).replace("\r\n", "\n").replace("\r", "\n") for text in texts]  # type: ignore[attr-defined]


@pytest.mark.slow
@given(DOCUMENTS)
def test_every_text_is_read_back(document: Document) -> None:
    page = Page(WRITERS["html"](document).replace("\r\n", "\n").replace("\r", "\n"))
    tables = [table for table in document.tables if table.rows]
    assert page.texts["h1"] == shown([document.headline])
    assert page.texts["th"] == shown(head for table in tables for head in table.heads)
    assert page.texts["td"] == shown(cell for table in tables for row in table.rows for cell in row)
    assert page.texts["li"] == shown([*document.facts, *document.details, *document.notes])
    assert page.texts["p"][1:] == shown(document.problems)
    assert {"script", "img", "a", "iframe"}.isdisjoint(page.tags)


def test_nothing_is_loaded_and_nothing_runs() -> None:
    text = to_html(Document("t", "h", 0, dict))
    assert "http:" not in text and "https:" not in text and "url(" not in text and "<script" not in text
    assert "default-src 'none'" in text


def test_verdicts_have_a_tone_and_numbers_stand_right() -> None:
    table = TextTable(
        ("cell", "ratio", "verdict"), [("a", "1.2", "SLOWER"), ("b", "1", "UNCLEAR (about 8)")], ("cell",)
    )
    page = Page(to_html(Document("t", "h", 0, dict, tables=(table,))))
    assert page.classes == ["", "number", "number bad", "", "number", "number open"]
    assert tone("MARGINAL, 3 launches") == "open" and tone("a cell") is None
    for word in TONES:
        rich_table(TextTable(("verdict",), [(word,)]))


@pytest.mark.parametrize(("simulated", "count"), [(True, 1), (False, 0)])
def test_simulated_ranks_are_marked(simulated: bool, count: int) -> None:
    assert to_html(Document("t", "h", 0, dict, simulated=simulated)).count(SIMULATED) == count


def test_an_attribute_cannot_be_left() -> None:
    assert escape("\"'<>&\x00") == "&quot;&#x27;&lt;&gt;&amp;?"
