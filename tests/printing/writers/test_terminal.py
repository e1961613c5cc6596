"""Documents in a terminal."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from rich.console import Console

from omb_py.printing.writers import to_text
from omb_py.results.document import Document, TextTable
from tests.printing.writers.documents import DOCUMENTS

WIDE = Console(width=300, file=io.StringIO())
ROWS = [("bcast [a] 2 KiB", "1.10", "SLOWER", ""), ("bcast 4 KiB*", "1.00", "SAME", ""), ("put", "", "SAME", "")]


@pytest.mark.slow
@given(DOCUMENTS)
def test_nothing_that_a_terminal_obeys_is_printed(document: Document) -> None:
    text = to_text(document, WIDE)
    assert not set(text) & {"\x00", "\x07", "\x1b", "\x85", "\x9b", "\ud800"}


def test_the_order_of_a_document() -> None:
    table = TextTable(("cell", "ratio", "verdict", "tail"), ROWS, ("cell", "verdict"), ["bcast", "bcast", "put"])
    files_only = TextTable(("file",), [("a",)], in_terminal=False)
    document = Document(
        "t", "1 slower", 1, dict, ["BASE x"], [table, files_only], "##", ["file"], ["failed: y"], ["site: z"]
    )
    lines = [line.strip() for line in to_text(document, WIDE).splitlines() if line.strip(" ─")]
    assert lines == [
        "BASE x",
        "cell              ratio   verdict",
        "bcast [a] 2 KiB    1.10   SLOWER",
        "bcast 4 KiB*       1.00   SAME",
        "put                       SAME",
        "##",
        "failed: y",
        "1 slower",
        "site: z",
    ], "columns that are empty everywhere are left out"


def test_a_verdict_has_its_colour() -> None:
    colours = Console(width=80, file=io.StringIO(), force_terminal=True, color_system="standard", no_color=False)
    table = TextTable(("cell", "verdict"), [("a", "UNCLEAR, needs 9"), ("b", "SAME")])
    text = to_text(Document("t", "h", 0, dict, tables=[table]), colours)
    assert "\x1b[33mUNCLEAR, needs 9" in text and "\x1b[33mSAME" not in text


@pytest.mark.parametrize(
    ("width", "spared"),
    [(40, ["tail verdict", "detectable"]), (60, ["tail verdict", "detectable"]), (80, ["detectable"]), (120, [])],
)
def test_a_narrow_terminal_does_without_spare_columns_and_cuts_no_other(width: int, spared: list[str]) -> None:
    heads = ("cell", "BASE µs", "NEW µs", "ratio", "verdict", "tail verdict", "detectable")
    row = ("allreduce 64 KiB", "10.12", "13.66", "1.350", "SLOWER", "UNCLEAR (about 225)", "3.4 %")
    table = TextTable(heads, [row], ("cell", "verdict", "tail verdict"), spare=("detectable", "tail verdict"))
    text = to_text(Document("t", "1 slower", 1, dict, [], [table]), Console(width=width, file=io.StringIO()))
    shown, _, note = text.partition("left out of")
    assert [head for head in heads if head not in shown] == spared and bool(note) == bool(spared)
    assert "…" not in text
    assert all(cell in shown for head, cell in zip(heads, row, strict=True) if head not in spared)


@pytest.mark.parametrize("width", [24, 60, 1000])
def test_a_terminal_folds_words_before_it_leaves_them_out_and_a_pipe_folds_none(width: int) -> None:
    words = "auto, binomial, scatter_ring_allgather"
    table = TextTable(
        ("knob", "values"), [("bcast", words)], ("knob", "values"), spare=("values",), folding=("values",)
    )
    text = to_text(Document("t", "h", 0, dict, tables=[table]), Console(width=width, file=io.StringIO()))
    assert ("left out of" in text) == (width == 24)
    assert (words in text) == (width == 1000)
    assert (["bcast", "auto,", "binomial,"] in [line.split() for line in text.splitlines()]) == (width == 60)
