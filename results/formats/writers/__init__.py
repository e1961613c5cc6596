"""Writers that turn a :class:`omb_py.results.formats.document.Document` into text, one for each format."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from omb_py.results.formats.document import Document
from omb_py.results.formats.writers.html import to_html
from omb_py.results.formats.writers.json_text import to_json
from omb_py.results.formats.writers.junit import to_junit
from omb_py.results.formats.writers.markdown import to_markdown
from omb_py.results.formats.writers.terminal import to_text

WRITERS: Mapping[str, Callable[[Document], str]] = {
    "table": to_text,
    "json": to_json,
    "markdown": to_markdown,
    "junit": to_junit,
    "html": to_html,
}
