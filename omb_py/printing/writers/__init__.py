"""Writers that turn a :class:`omb_py.results.document.Document` into text, one for each format."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from omb_py.printing.writers.html import to_html
from omb_py.printing.writers.junit import to_junit
from omb_py.printing.writers.markdown import to_markdown
from omb_py.printing.writers.terminal import to_text
from omb_py.results.document import Document
from omb_py.results.json_values import json_text


def to_json(document: Document) -> str:
    """The machine-readable form of a document as one object."""
    return json_text(document.data())


WRITERS: Mapping[str, Callable[[Document], str]] = {
    "table": to_text,
    "json": to_json,
    "markdown": to_markdown,
    "junit": to_junit,
    "html": to_html,
}
