"""Markdown shows every text as it is: what a parser reads from the writer's text is what the document holds."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from markdown_it import MarkdownIt
from markdown_it.token import Token

from omb_py.printing.writers import to_markdown
from omb_py.printing.writers.markdown import escaped
from omb_py.results.document import Document, TextTable, printable
from tests.printing.writers.documents import DOCUMENTS

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def shown(text: str) -> str:
    """A text as a browser shows it: blanks joined."""
    return " ".join(printable(text).split())


def read(markdown: str, kind: str) -> list[str]:
    """The texts of all elements of a kind, as ``td``; fails where a text became anything but text."""
    found, tokens = [], PARSER.parse(markdown)
    for before, token in itertools.pairwise(tokens):
        if token.type == "inline" and before.tag == kind:
            found.append(shown("".join(map(plain, token.children or ()))))
    return found


def plain(token: Token) -> str:
    assert token.type in ("text", "text_special", "strong_open", "strong_close", "softbreak"), token
    return token.content


@pytest.mark.slow
@given(DOCUMENTS)
def test_every_text_is_shown_as_it_is(document: Document) -> None:
    markdown = to_markdown(document)
    tables = [table for table in document.tables if table.rows]
    assert read(markdown, "th") == [shown(head) for table in tables for head in table.heads]
    assert read(markdown, "td") == [shown(cell) for table in tables for row in table.rows for cell in row]
    lines = [*document.facts, *document.details, *document.problems, *document.notes]
    headline, *items = read(markdown, "p")
    assert [*filter(None, items)] == [*filter(None, map(shown, lines))]
    assert headline == shown(document.headline)


def test_what_is_escaped() -> None:
    assert escaped("a|b * <c> `d` ~/e [f] g\\h\ni") == "a\\|b \\* &lt;c> \\`d\\` \\~/e \\[f] g\\\\h i"
    assert escaped("gl5_allreduce _x_ a & b &amp; µ\x1b") == "gl5_allreduce \\_x\\_ a & b &amp;amp; µ?"


def test_the_order_of_a_document() -> None:
    table = TextTable(("cell", "µs"), [("bcast", "1.00")])
    hidden = TextTable(("file",), [("a",)], in_terminal=False)
    document = Document("t", "1 slower", 1, dict, ["BASE a", "NEW  b"], [table, hidden, TextTable(("x",), [])])
    assert to_markdown(document) == (
        "**1 slower**\n\n- BASE a\n- NEW  b\n\n| cell | µs |\n|---|---|\n| bcast | 1.00 |\n\n| file |\n|---|\n| a |\n"
    )
