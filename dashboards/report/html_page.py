"""The report as one HTML file that needs nothing else: style, script, plotly.js once, and the views as JSON."""

from __future__ import annotations

import base64
import gzip
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from importlib.resources import files
from typing import Any

from omb_py import __version__
from omb_py.dashboards.base import theme
from omb_py.dashboards.base.theme import sparkline
from omb_py.dashboards.base.view import SEPARATOR, Tab, View, plural
from omb_py.dashboards.report.build import Report, TabContent
from omb_py.dashboards.views import registry
from omb_py.distribution import pip_install
from omb_py.errors import EnvironmentProblem
from omb_py.printing.writers.html import bullets, escape, frame, header, label, label_text, table_html
from omb_py.printing.writers.html import escape as _text
from omb_py.results.document import Document, TextTable

LEVEL = 6
"""Of gzip: 9 takes a third more processor time for two thousandths less."""


@lru_cache(maxsize=1)
def packed_script(script: str) -> str:
    """:func:`packed` of a script that many pages hold: plotly.js takes 2.0 MB instead of 4.8."""
    return packed(script)


def packed(text: str) -> str:
    """A text as gzip in base64, which ``assets/unpack.js`` reads."""
    return base64.b64encode(gzip.compress(text.encode(), LEVEL, mtime=0)).decode("ascii")


def tab_list(sections: Sequence[Section]) -> str:
    """The row of tabs. Without a script each is a link to its part, and all parts are there."""
    tabs = "".join(
        f'<a role="tab" id="tab-{escape(section.name)}" href="#{escape(section.name)}" '
        f'aria-controls="{escape(section.name)}">{escape(section.title)}</a>'
        for section in sections
    )
    return f'<header class="tabs"><div role="tablist" aria-label="Parts of the report">{tabs}</div></header>'


def panel(section: Section) -> str:
    """The attributes of a tab's part."""
    return f' class="tab" role="tabpanel" aria-labelledby="tab-{escape(section.name)}"' if section.tab else ""


def switch(views: Sequence[View]) -> str:
    """A button for each quantity that the curves of several ranks can show; empty where they can show but one."""
    drawn = [view.spec["layout"].get("meta", {}).get("switch", ()) for view in views if view.spec is not None]
    names = list(dict.fromkeys(["time", *(known["name"] for several in drawn for known in several)]))
    if len(names) < 2:
        return ""
    buttons = "".join(
        f'<button type="button" data-quantity="{escape(name)}" aria-pressed="{str(name == names[0]).lower()}">'
        f"{escape(name)}</button>"
        for name in names
    )
    return f'<div class="chips" role="group" aria-label="Quantity" hidden>{buttons}</div>'


def chips(views: Sequence[View]) -> str:
    """A button for each benchmark whose curves are among the views; empty where there is only one."""
    names = list(dict.fromkeys(view.choice for view in views if view.choice))
    if len(names) < 2:
        return ""
    buttons = "".join(f'<button type="button" data-choose="{escape(name)}">{escape(name)}</button>' for name in names)
    return f'<div class="chips" role="group" aria-label="Benchmark" hidden>{buttons}</div>'


DIGITS = 6
"""Significant digits of a number in the page; the store has all digits."""
INSTALL = pip_install("dashboard")
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:"
)
"""Content-Security-Policy: the page may load nothing, whatever its data contains."""


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a page. Texts are plain, not HTML."""

    name: str
    """Name of its anchor, and text of the link to it."""
    title: str | None
    """Its heading; None for the first screen, which needs none."""
    texts: Sequence[str] = ()
    views: Sequence[View] = ()
    as_list: bool = False
    tables: Sequence[TextTable] = ()
    """Tables that stand on paper too; those of a view are folded."""
    label: str = ""
    """What a reader must know before any number, as that ranks were simulated."""
    tab: bool = False
    """True for one of several of which the reader chooses one; on paper, and without a script, all are there."""


def page(report: Report, written_at: datetime | None = None) -> str:
    """Write a report as one HTML file; `written_at` is the time that it shows, by default now.

    Raises:
        EnvironmentProblem: plotly, which holds the script, is not installed.
    """
    sections = [Section("first", None, [], report.first)]
    for name, content in report.tabs.items():
        odd = content.odd or [item.text for item in report.changes if item.kind == "odd" and name == "Health"]
        sections.append(_tab(name, replace(content, odd=odd)))
    sections = [] if report.problem else sections
    chosen = f" · {report.selection}" if report.selection else ""
    below = f"{report.store}{chosen}"
    return document(report.summary, below, sections, written_at, problem=report.problem, extra=_skipped(report))


def _tab(name: Tab, content: TabContent) -> Section:
    texts = [" ".join(content.texts), *content.odd]
    if not content.views and not content.odd and not content.texts:
        texts = [registry.NOTHING[name]]
    lines = [text for text in texts if text]
    common, views = told_once(content.views)
    title = f"{name} ({len(content.odd)})" if content.odd else name
    return Section(name.lower(), title, [*lines, *common], views, as_list=bool(content.odd), tab=True)


def told_once(views: Sequence[View]) -> tuple[list[str], list[View]]:
    """What the captions of all figures have in common, as a sentence, and the views without it."""
    parts = [view.caption.split(SEPARATOR) for view in views if view.spec is not None]
    if len(parts) < 2:
        return [], list(views)
    common = [part for part in parts[0] if all(part in others for others in parts)]
    if not common:
        return [], list(views)
    kept = [
        replace(view, caption=SEPARATOR.join(part for part in view.caption.split(SEPARATOR) if part not in common))
        if view.spec is not None
        else view
        for view in views
    ]
    return [f"All figures here: {SEPARATOR.join(common)}."], kept


def document(
    summary: str,
    below: str,
    sections: Sequence[Section],
    written_at: datetime | None = None,
    *,
    kind: str = "report",
    problem: str = "",
    extra: str = "",
) -> str:
    """Write sections as one HTML file that needs nothing else.

    Args:
        summary: heading of the page.
        below: line under the heading.
        sections: parts of the page, in order.
        written_at: time that the page shows; None means now.
        kind: kind of report, for the window's title.
        problem: reason why there is nothing to show.
        extra: HTML after the sections.

    Raises:
        EnvironmentProblem: plotly, which holds the script, is not installed.
    """
    views = [view for section in sections for view in section.views]
    body = [_head(summary, below, sections, written_at or datetime.now(UTC))]
    if problem:
        body.append(f'<p class="problem">{_text(problem)}</p>')
    places = {view.key: place for place, view in reversed(list(enumerate(views)))}
    first = 0
    for section in sections:
        if section.tab and not any("tablist" in part for part in body):
            body.append(tab_list([known for known in sections if known.tab]))
        body.append(_section(section, first, places))
        first += len(section.views)
    body.append(extra)
    return _html(f"omb-py {kind}: {summary}", body, views)


def with_figures(report: Document, name: str, title: str, below: str, views: Sequence[View]) -> str:
    """Write a document with views as one HTML file; without views the writer of HTML needs no plotly.

    Args:
        report: the document.
        name: kind of report, for the window's title and the anchor.
        title: heading of its section.
        below: line under the headline.
        views: figures after its tables.

    Raises:
        EnvironmentProblem: plotly is not installed.
    """
    lines = [*report.facts, *report.problems, *report.notes]
    section = Section(name, title, lines, views, as_list=True, tables=report.tables, label=label_text(report))
    return document(report.headline, below, [section], kind=name)


def alone(view: View) -> str:
    """Write a page of one view that is drawn at once and has nothing to click, for printing."""
    body = [f'<main><figure class="alone">{"".join(_drawn(view, 0))}</figure></main>']
    return _html(view.title, body, [view], "drawAll();")


def figure_page(spec: Mapping[str, Any]) -> str:
    """Write a page of nothing but a figure, as large as its layout says; an element ``svg`` holds it in base64."""
    width, height = spec["layout"]["width"], spec["layout"]["height"]
    style = f"@page {{ size: {width}px {height}px; margin: 0 }} html, body {{ margin: 0; overflow: hidden }}"
    body = (
        f'<div id="figure"></div><pre id="svg" hidden></pre>'
        f'<script type="application/json" id="spec">{_json_text(rounded(spec))}</script>'
        f"<script>{plotly_script()}</script><script>{asset('figure.js')}</script>"
    )
    return frame("omb-py", body, style, _POLICY, "light")


def _html(title: str, body: Sequence[str], views: Sequence[View], last: str = "") -> str:
    drawing = any(view.spec is not None for view in views)
    scripts = [
        f'<script type="application/json" id="views">{_tables(views)}</script>',
        _drawing(views, plain=bool(last)) if drawing else "",
        f"<script>{asset('unpack.js')}{asset('legend.js')}{asset('linked_hover.js')}{asset('report.js')}{last}</script>",
    ]
    return frame(title, "\n".join(part for part in [*body, *scripts] if part), asset("report.css"), _POLICY, "light")


def _drawing(views: Sequence[View], plain: bool) -> str:
    """The figures and the script that draws them; plain where a browser prints the page as soon as it is loaded."""
    figures = _specs(views)
    if plain:
        return f'<script type="application/json" id="figures">{figures}</script><script>{plotly_script()}</script>'
    return (
        f'<script type="text/plain" id="figures">{packed(figures)}</script>'
        f'<script type="text/plain" id="packed">{packed_script(plotly_script())}</script>'
    )


def plotly_script() -> str:
    """Read plotly.js from the installed plotly.

    Raises:
        EnvironmentProblem: plotly is not installed.
    """
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise EnvironmentProblem(f"a report needs plotly, which is not installed: {INSTALL}") from error
    # the script stands inside <script>: nothing in it may end that element
    text: str = get_plotlyjs()
    return text.replace("</script", "<\\/script")


def rounded(value: Any) -> Any:
    """Convert a value for JSON: floats get :data:`DIGITS` significant digits, NaN and infinity become null."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(inner) for inner in value]
    if value is None or isinstance(value, (str, int)):
        return value
    return rounded(value.item()) if hasattr(value, "item") else str(value)


def _tables(views: Sequence[View]) -> str:
    """What a page shows without drawing: never compressed, so that every browser shows it."""
    return _json_text(
        rounded([{"columns": view.columns, "rows": view.rows, "commands": view.commands} for view in views])
    )


def _specs(views: Sequence[View]) -> str:
    """Plotly's specs in the order of the views, null where a view has none, and the templates by theme."""
    templates = {name: theme.template(name) for name in theme.THEMES}
    return _json_text(rounded({"templates": templates, "specs": [view.spec for view in views]}))


def _json_text(content: Any) -> str:
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # inside <script>: no tag, no comment, no line end that JavaScript sees and JSON does not
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def asset(name: str) -> str:
    """Read a file of the folder assets."""
    return (files("omb_py.dashboards") / "assets" / name).read_text(encoding="utf-8")


def _head(summary: str, below: str, sections: Sequence[Section], written_at: datetime) -> str:
    named = [section for section in sections if section.title is not None and not section.tab]
    links = "".join(f'<a href="#{_text(section.name)}">{_text(section.name)}</a>' for section in named)
    labels = "".join(label(section.label) for section in sections)
    line = f"{below} · omb-py {__version__} · {written_at:%Y-%m-%d %H:%M} UTC"
    return header(summary, line, f'{labels}<nav>{links}<button id="theme" type="button">dark</button></nav>')


def _section(section: Section, first: int, places: Mapping[tuple[str, str], int]) -> str:
    """Write a section; `first` is the number of its first view on the page, `places` gives that of each view's key."""
    if section.as_list:
        texts = bullets(section.texts)
    else:
        texts = "".join(f"<p>{_text(text)}</p>" for text in section.texts if text)
    chosen = next((at for at, view in enumerate(section.views) if view.choice), len(section.views))
    figures = ["".join(_figure(view, place, places)) for place, view in enumerate(section.views, first)]
    figures.insert(chosen, chips(section.views) + switch(section.views))
    head = "" if section.title is None else f"<h2>{_text(section.title)}</h2>"
    tables = "".join(map(table_html, section.tables))
    return f'<main id="{_text(section.name)}"{panel(section)}>{head}{texts}{tables}{"".join(figures)}</main>'


def _drawn(view: View, place: int) -> Iterator[str]:
    yield f"<h3>{_text(view.title)}</h3><figcaption>{_text(view.caption)}</figcaption>"
    if view.spec is not None:
        height = int(view.spec["layout"].get("height", 380))
        named = f'role="img" aria-label="{_text(view.title)}"'
        yield f'<div class="plot" data-view="{place}" style="min-height:{height}px" {named}></div>'
    note_class = "label" if view.kind == "status" else "note"
    for note in view.notes:
        yield f'<p class="{note_class}">{_text(note)}</p>'


def _items(view: View, places: Mapping[tuple[str, str], int]) -> Iterator[str]:
    """The lines of a list, each a link to its evidence, with a sparkline."""
    if not view.items:
        return
    yield '<ol class="changes">'
    for item in view.items:
        place = None if item.evidence is None else places.get(item.evidence.key)
        text = _text(item.text) if place is None else f'<a href="#view-{place}">{_text(item.text)}</a>'
        picture = sparkline(item.values, item.mark)
        spark = f'<img src="{picture}" width="120" height="22" alt="">' if picture else ""
        yield f'<li><b class="kind {_text(item.kind)}">{_text(item.kind)}</b><span>{text}</span>{spark}</li>'
    yield "</ol>"


def _figure(view: View, place: int, places: Mapping[tuple[str, str], int]) -> Iterator[str]:
    choice = f' data-choice="{_text(view.choice)}"' if view.choice else ""
    yield f'<figure id="view-{place}" data-kind="{_text(view.kind)}"{choice}>'
    yield from _drawn(view, place)
    yield from _items(view, places)
    if not view.columns:
        yield "</figure>"
        return
    opened = " open" if view.spec is None else ""
    yield (
        f'<details data-table="{place}"{opened}><summary>Table, {plural(len(view.rows), "row")}</summary>'
        f'<div class="scroll" tabindex="0"></div>'
        f'<button type="button" data-copy="{place}" data-what="csv">copy as CSV</button></details>'
    )
    if view.commands:
        lines = "\n".join(_text(line) for line in view.commands)
        yield (
            f"<details><summary>To see or measure this again</summary><pre>{lines}</pre>"
            f'<button type="button" data-copy="{place}" data-what="command">copy</button></details>'
        )
    yield "</figure>"


def _skipped(report: Report) -> str:
    if not report.skipped:
        return ""
    lines = "".join(f"<li>{_text(path)}: {_text(why)}</li>" for path, why in report.skipped)
    return (
        f'<main id="skipped"><h2>What could not be read</h2><p '
        f'class="problem">{plural(len(report.skipped), "file")} of the store '
        f"could not be read; the rest is shown.</p><ul>{lines}</ul></main>"
    )
