"""Texts on a page of HTML are texts, whatever is in them."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest
from hypothesis import given

from omb_py.dashboards.base.view import Item, View, table
from omb_py.dashboards.report.build import StoreReport
from omb_py.dashboards.report.html_page import Section, document
from omb_py.dashboards.report.html_page import page as html_of
from omb_py.dashboards.views.registry import NOTHING
from omb_py.results.document import printable
from tests.printing.writers.documents import TEXTS


class Page(HTMLParser):
    """Counts tags, and collects the texts of headings, items and scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: dict[str, int] = {}
        self.texts: dict[str, list[str]] = {}
        self._open = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] = self.tags.get(tag, 0) + 1
        self.texts.setdefault(tag, []).append("")
        self._open = tag

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts[self._open][-1] += data


def page(text: str) -> Page:
    view = View(text, text, text, None, notes=(text,), **table((text, "b"), [(text, text)]))
    return Page(document(text, text, [Section(text, text, [text], [view], as_list=True)], kind=text))


PLAIN = page("plain")


@pytest.mark.slow
@given(TEXTS)
def test_no_text_becomes_a_tag(text: str) -> None:
    read = page(text)
    assert read.tags == PLAIN.tags
    assert read.texts["h2"] == read.texts["li"] == [printable(text)]
    (views,) = (json.loads(script) for script in read.texts["script"] if script.startswith('[{"columns'))
    assert views[0]["rows"] == [[text, text]]


def test_nothing_odd_is_not_said_below_a_node_that_is_named() -> None:
    late = Item("odd", "every rank of node3 is late")
    views = [View("changes", "What is odd", "", None, (), (), items=(late,))]
    written = html_of(StoreReport("s", "", [], "s", first=views))
    assert NOTHING["Health"] not in written and "<li>every rank of node3 is late</li>" in written
    assert NOTHING["Health"] in html_of(StoreReport("s", "", [], "s"))


def test_a_row_leaves_out_what_the_row_above_ends_with() -> None:
    rows = [(1, "a", "c"), (2, "a", "c"), (2, "b", "c"), (2, "b", "c"), (2, 1, "c"), (2, True, "c")]
    view = View("tuned", "t", "", None, **table(("x", "y", "z"), rows))
    (views,) = (
        json.loads(script) for script in Page(document("t", "", [Section("t", "t", [], [view])])).texts["script"][1:2]
    )
    assert views[0]["rows"] == [[1, "a", "c"], [2], [2, "b"], [], [2, 1], [2, True]]
