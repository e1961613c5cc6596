"""Write a document as one HTML page that needs nothing else: no script, no network, no plotly.

Pages with figures (``omb_py.dashboards.report``) are made of the same parts, so that every text is escaped here.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files

from omb_py import __version__
from omb_py.results.document import Document, TextTable, printable, tone

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""Content-Security-Policy: the page may load nothing and run nothing, whatever its texts contain."""
SIMULATED = "SIMULATED: nothing was measured"


def to_html(document: Document) -> str:
    """The whole page: headline, facts, problems, tables, details and notes."""
    started = f" · {document.started_at.replace('T', ' ')} UTC" if document.started_at else ""
    below = f"{document.title} · omb-py {__version__}{started}"
    body = f"{header(document.headline, below, label(label_text(document)))}<main>{body_of(document)}</main>"
    return frame(f"{document.title}: {document.headline}", body)


def frame(title: str, body: str, style: str = "", policy: str = POLICY, theme: str = "") -> str:
    """A page around a body.

    Args:
        title: plain text for the window.
        body: HTML.
        style: CSS after that of every page.
        policy: the Content-Security-Policy.
        theme: ``light`` or ``dark``; empty: that of the reader's system.
    """
    themed = f' data-theme="{escape(theme)}"' if theme else ""
    return (
        f'<!DOCTYPE html>\n<html lang="en"{themed}><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{page_style()}{style}</style></head><body>\n{body}\n</body></html>\n"
    )


def header(headline: str, below: str, more: str = "") -> str:
    """The head of a page: the conclusion, a line below it, and further HTML."""
    shown = headline[:1].upper() + headline[1:]
    return f'<header><h1>{escape(shown)}</h1><p class="soft">{escape(below)}</p>{more}</header>'


def label_text(document: Document) -> str:
    """Says that ranks were simulated; empty where they were not."""
    return SIMULATED if document.simulated else ""


def label(text: str) -> str:
    """What a reader must know before any number, as a mark; empty for no text."""
    return f'<p class="label">{escape(text)}</p>' if text else ""


def body_of(document: Document) -> str:
    """Everything but the head: lists of lines, and tables."""
    problems = [f'<p class="problem">{escape(text)}</p>' for text in document.problems]
    picture = f"<pre>{escape(document.picture)}</pre>" if document.picture else ""
    tables = map(table_html, document.tables)
    return "\n".join(
        [bullets(document.facts), *problems, *tables, picture, bullets(document.details), bullets(document.notes)]
    )


def bullets(texts: Sequence[str]) -> str:
    """Plain texts as a list; empty where there are none."""
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>" if texts else ""


def table_html(table: TextTable) -> str:
    """A table; empty where it has no rows. Words with a :func:`~omb_py.results.document.tone` are coloured."""
    if not table.rows:
        return ""
    left = [head in table.left for head in table.heads]
    heads = "".join(_cells("th", table.heads, left))
    rows = "".join(f"<tr>{''.join(_cells('td', row, left))}</tr>" for row in table.rows)
    return f'<div class="scroll" tabindex="0"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'


def _cells(element: str, texts: Sequence[str], left: Sequence[bool]) -> Iterable[str]:
    for text, is_left in zip(texts, left, strict=True):
        names = [*([] if is_left else ["number"]), *filter(None, [tone(text)])]
        classes = f' class="{" ".join(names)}"' if names else ""
        yield f"<{element}{classes}>{escape(text)}</{element}>"


def escape(value: object) -> str:
    """A text as HTML that shows it unchanged, in an element or in an attribute."""
    return html.escape(printable(str(value)))


@cache
def page_style() -> str:
    """The CSS of every page."""
    return (files(__package__) / "page.css").read_text(encoding="utf-8")
