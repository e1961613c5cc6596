"""Documents of arbitrary texts."""

from __future__ import annotations

from hypothesis import strategies as st

from omb_py.results.document import CaseResult, Document, TextTable

TEXTS = st.text() | st.text("|*<>&\\`_~[](){}#+-=.:! ab1µ\n\r\t\x00\x1b\x85\ud800\u2028")
OUTCOMES = st.sampled_from(["failure", "error", "skipped", None])


@st.composite
def _tables(draw: st.DrawFn) -> TextTable:
    heads = draw(st.lists(TEXTS, min_size=1, max_size=4))
    rows = draw(st.lists(st.tuples(*(TEXTS for _ in heads)), max_size=4))
    return TextTable(heads, rows, heads[:1], [row[0] for row in rows], draw(st.booleans()))


DOCUMENTS = st.builds(
    Document,
    TEXTS,
    TEXTS.map(lambda text: f"1 {text} slower"),
    st.integers(0, 4),
    st.dictionaries(TEXTS, TEXTS | st.floats() | st.lists(st.floats())).map(lambda data: lambda: data),
    st.lists(TEXTS, max_size=3),
    st.lists(_tables(), max_size=2),
    st.just("") | TEXTS,
    *(st.lists(TEXTS, max_size=2) for _ in range(3)),
    cases=st.lists(st.builds(CaseResult, TEXTS, TEXTS, OUTCOMES, TEXTS, TEXTS), max_size=3),
    properties=st.dictionaries(TEXTS, TEXTS, max_size=3),
    started_at=st.sampled_from(["", "2026-01-01T00:00:00"]),
    hostname=TEXTS,
    seconds=st.none() | st.floats(0, 1e9),
)
