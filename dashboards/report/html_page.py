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
from importlib.util import find_spec
from itertools import pairwise

from omb_py import __version__
from omb_py.dashboards.base import theme
from omb_py.dashboards.base.view import MOST_ITEMS, SEPARATOR, Tab, View, plural
from omb_py.dashboards.report.build import StoreReport, TabContent
from omb_py.dashboards.views import registry
from omb_py.distribution import pip_install
from omb_py.errors import EnvironmentProblem
from omb_py.printing.writers.html import bullets, escape, frame, header, label, label_text, table_html
from omb_py.results.document import Document, TextTable

DIGITS = 6
"""Significant digits of a number in the page; the store has all digits."""
GZIP_LEVEL = 6
"""9 takes a third more processor time for two thousandths less."""
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:"
)
"""Content-Security-Policy: the page may load nothing, whatever its data contains."""
_UNSCRIPTED = (
    '<p id="unscripted" class="problem">The script of this page, which makes its figures and tables, may not run here. '
    "Servers that show files of others forbid it: download the file and open it in a browser.</p>"
    '<script>document.getElementById("unscripted").remove()</script>'
)
"""Stands on the page only where its scripts do not run."""
Places = Mapping[tuple[str, str], int]
"""Key of a view -> its number on the page."""


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
    opened: bool = False
    """True for the one that is chosen when the page opens; where none is, it is the first with a figure."""


def page(report: StoreReport, written_at: datetime | None = None) -> str:
    """Write a report as one HTML file; `written_at` is the time that it shows, by default now."""
    sections = [Section("first", None, [], report.first)]
    for name, content in report.tabs.items():
        if name == "Health" and not content.odd:
            odd = [item for item in report.changes if item.kind == "odd"]
            content = replace(content, odd=[item.text for item in odd], odd_count=sum(item.count for item in odd))
        sections.append(replace(_tab(name, content), opened=name == report.opens))
    below = f"{report.store} · {report.selection}" if report.selection else report.store
    sections = [] if report.problem else sections
    return document(report.summary, below, sections, written_at, problem=report.problem, extra=_skipped(report))


def _tab(name: Tab, content: TabContent) -> Section:
    titles = [view.title for view in content.views if view.title]
    odd = [line for line in content.odd if not any(title in line for title in titles)]  # else a figure says it
    texts = [text for text in (" ".join(content.texts), *odd) if text]
    if not content.views and not texts:
        texts = [registry.NOTHING[name]]
    common, views = split_captions(content.views)
    title = f"{name} ({content.odd_count})" if content.odd else name
    return Section(name.lower(), title, [*texts, *common], views, as_list=bool(odd), tab=True)


def split_captions(views: Sequence[View]) -> tuple[list[str], list[View]]:
    """What the captions of all figures have in common, as a sentence, and the views without it."""
    captions = [view.caption.split(SEPARATOR) for view in views if view.spec is not None]
    common = [part for part in captions[0] if all(part in other for other in captions)] if len(captions) > 1 else []
    if not common:
        return [], list(views)

    def rest(view: View) -> str:
        return SEPARATOR.join(part for part in view.caption.split(SEPARATOR) if part not in common)

    shorter = [view if view.spec is None else replace(view, caption=rest(view)) for view in views]
    return [f"All figures here: {SEPARATOR.join(common)}."], shorter


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
    """Write sections as one HTML file that needs nothing else. Without plotly it has tables alone, and says so.

    Args:
        summary: heading of the page.
        below: line under the heading.
        sections: parts of the page, in order.
        written_at: time that the page shows; None means now.
        kind: kind of report, for the window's title.
        problem: reason why there is nothing to show.
        extra: HTML after the sections.
    """
    if find_spec("plotly") is None:
        sections = [replace(each, views=[replace(view, spec=None) for view in each.views]) for each in sections]
        below = f"{below} · figures need plotly, which is not installed: {pip_install('dashboard')}"
    views = [view for section in sections for view in section.views]
    places = {view.key: place for place, view in reversed(list(enumerate(views)))}
    tabs = [section for section in sections if section.tab]
    body = [_head(summary, below, sections, written_at or datetime.now(UTC))]
    body += [f"<main>{_problem(problem)}</main>"] if problem else []
    body += [f"<main>{_UNSCRIPTED}</main>"] if views else []
    first = 0
    for section in sections:
        body += [_tab_list(tabs)] if section in tabs[:1] else []
        body.append(_section(section, first, places))
        first += len(section.views)
    return _html(f"omb-py {kind}: {summary}", [*body, extra], views)


def with_figures(report: Document, name: str, title: str, below: str, views: Sequence[View]) -> str:
    """Write a document with views as one HTML file.

    Args:
        report: the document.
        name: kind of report, for the window's title and the anchor.
        title: heading of its section.
        below: line under the headline.
        views: figures after its tables.
    """
    lines = [*report.facts, *report.problems, *report.notes]
    section = Section(name, title, lines, views, as_list=True, tables=report.tables, label=label_text(report))
    return document(report.headline, below, [section], kind=name)


def figure_page(spec: theme.Layout) -> str:
    """Write a page of nothing but a figure, as large as its layout says; an element ``svg`` holds it in base64."""
    width, height = spec["layout"]["width"], spec["layout"]["height"]
    style = f"@page {{ size: {width}px {height}px; margin: 0 }} html, body {{ margin: 0; overflow: hidden }}"
    body = (
        f'<div id="figure"></div><pre id="svg" hidden></pre>{_json_script("spec", spec)}'
        f"<script>{plotly_script()}</script><script>{asset('figure.js')}</script>"
    )
    return frame("omb-py", body, style, _POLICY, "light")


def _html(title: str, body: Sequence[str], views: Sequence[View]) -> str:
    # the tables are never compressed, so that every browser shows them
    tables = [{"columns": view.columns, "rows": _drop_repeats(view.rows), "commands": view.commands} for view in views]
    drawing = _drawing(views) if any(view.spec is not None for view in views) else ""
    script = "".join(map(asset, ("unpack.js", "legend.js", "report.js")))
    parts = [*body, _json_script("views", tables), drawing, f"<script>{script}</script>"]
    return frame(title, "\n".join(filter(None, parts)), asset("report.css"), _POLICY, "light")


def _drop_repeats(rows: Sequence[Sequence[object]]) -> list[Sequence[object]]:
    """The rows without the values at their ends that the row above has too; ``assets/report.js`` puts them back."""
    shorter: list[Sequence[object]] = [*rows[:1]]
    for above, row in pairwise(rows):
        kept = len(row)
        while kept and type(row[kept - 1]) is type(above[kept - 1]) and row[kept - 1] == above[kept - 1]:
            kept -= 1
        shorter.append(row[:kept])
    return shorter


def _drawing(views: Sequence[View]) -> str:
    templates = {name: theme.template(name) for name in theme.THEMES}
    figures = {"templates": templates, "specs": [view.spec for view in views]}
    return (
        f'<script type="text/plain" id="figures">{_pack(_json_text(figures))}</script>'
        f'<script type="text/plain" id="packed">{_packed_plotly(plotly_script())}</script>'
    )


def _pack(text: str) -> str:
    """A text as gzip in base64, which ``assets/unpack.js`` reads."""
    return base64.b64encode(gzip.compress(text.encode(), GZIP_LEVEL, mtime=0)).decode("ascii")


_packed_plotly = lru_cache(maxsize=1)(_pack)


def plotly_script() -> str:
    """Read plotly.js from the installed plotly.

    Raises:
        EnvironmentProblem: plotly is not installed.
    """
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        install = pip_install("dashboard")
        raise EnvironmentProblem(f"a report needs plotly, which is not installed: {install}") from error
    # the script stands inside <script>: nothing in it may end that element
    text: str = get_plotlyjs()
    return text.replace("</script", "<\\/script")


def rounded(value: object) -> object:
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


def _json_script(name: str, content: object) -> str:
    return f'<script type="application/json" id="{name}">{_json_text(content)}</script>'


def _json_text(content: object) -> str:
    text = json.dumps(rounded(content), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # inside <script>: no tag, no comment, no line end that JavaScript sees and JSON does not
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def asset(name: str) -> str:
    """Read a file of the folder assets."""
    return (files("omb_py.dashboards") / "assets" / name).read_text(encoding="utf-8")


def _head(summary: str, below: str, sections: Sequence[Section], written_at: datetime) -> str:
    named = [escape(section.name) for section in sections if section.title is not None and not section.tab]
    links = "".join(f'<a href="#{name}">{name}</a>' for name in named)
    labels = "".join(label(section.label) for section in sections)
    line = f"{below} · written by omb-py {__version__}, {written_at:%Y-%m-%d %H:%M} UTC"
    return header(summary, line, f'{labels}<nav>{links}<button id="theme" type="button">dark</button></nav>')


def _problem(text: str) -> str:
    return f'<p class="problem">{escape(text)}</p>'


def _tab_list(sections: Sequence[Section]) -> str:
    """The row of tabs. Without a script each is a link to its part, and all parts are there."""
    links = []
    for section in sections:
        name = escape(section.name)
        more = f'href="#{name}" aria-controls="{name}"'
        links.append(f'<a role="tab" id="tab-{name}" {more}>{escape(section.title)}</a>')
    row = f'<div role="tablist" aria-label="Parts of the report">{"".join(links)}</div>'
    return f'<header class="tabs">{row}</header>'


def _chips(name: str, buttons: Mapping[str, str]) -> str:
    """A row of buttons of which a reader chooses one, by their attributes; empty with fewer than two."""
    row = "".join(f'<button type="button" {more}>{escape(text)}</button>' for text, more in buttons.items())
    return f'<div class="chips" role="group" aria-label="{name}" hidden>{row}</div>' if len(buttons) > 1 else ""


def quantity_chips(views: Sequence[View]) -> str:
    """A button for each quantity that the curves of several ranks can show; empty where they can show but one."""
    names = dict.fromkeys(["time", *(shown["name"] for view in views for shown in _switches(view))])
    pressed = {name: str(name == "time").lower() for name in names}
    return _chips("Quantity", {n: f'data-quantity="{escape(n)}" aria-pressed="{pressed[n]}"' for n in names})


def _switches(view: View) -> Sequence[theme.Layout]:
    """The quantities that a figure can show instead."""
    return () if view.spec is None else view.spec["layout"].get("meta", {}).get("switch", ())


def benchmark_chips(views: Sequence[View]) -> str:
    """A button for each benchmark whose curves are among the views; empty where there is only one."""
    return _chips("Benchmark", {v.choice: f'data-choose="{escape(v.choice)}"' for v in views if v.choice})


def _section(section: Section, first: int, places: Places) -> str:
    texts = "".join(f"<p>{escape(text)}</p>" for text in section.texts if text)
    texts = bullets(section.texts) if section.as_list else texts
    chosen = next((at for at, view in enumerate(section.views) if view.choice), len(section.views))
    figures = ["".join(_figure(view, place, places)) for place, view in enumerate(section.views, first)]
    switched = next((at for at, view in enumerate(section.views) if _switches(view)), len(section.views))
    chips = ((chosen, benchmark_chips(section.views)), (switched, quantity_chips(section.views)))
    for at, row in sorted(chips, reverse=True):
        figures.insert(at, row)
    head = "" if section.title is None else f"<h2>{escape(section.title)}</h2>"
    tables = "".join(map(table_html, section.tables))
    name = escape(section.name)
    panel = f' class="tab" role="tabpanel" aria-labelledby="tab-{name}"' if section.tab else ""
    panel += " data-opened" * section.opened
    return f'<main id="{name}"{panel}>{head}{texts}{tables}{"".join(figures)}</main>'


def _write_view(view: View, place: int) -> Iterator[str]:
    yield f"<h3>{escape(view.title)}</h3><figcaption>{escape(view.caption)}</figcaption>"
    if view.spec is not None:
        height = int(view.spec["layout"].get("height", 380))
        named = f'role="img" aria-label="{escape(view.title)}"'
        yield f'<div class="plot" data-view="{place}" style="min-height:{height}px" {named}></div>'
    note_class = "label" if view.kind == "status" else "note"
    for note in view.notes:
        yield f'<p class="{note_class}">{escape(note)}</p>'


def _items(view: View, places: Places) -> Iterator[str]:
    if not view.items:
        return
    yield '<ol class="changes">'
    for number, item in enumerate(view.items):
        if number == MOST_ITEMS:
            more = plural(len(view.items) - number, "line")
            yield f'</ol><details><summary>{more} more</summary><ol class="changes">'
        place = None if item.evidence is None else places.get(item.evidence.key)
        text = escape(item.text) if place is None else f'<a href="#view-{place}">{escape(item.text)}</a>'
        yield f'<li><b class="kind {escape(item.kind)}">{escape(item.kind)}</b><span>{text}</span></li>'
    yield "</ol>" + "</details>" * (len(view.items) > MOST_ITEMS)


def _figure(view: View, place: int, places: Places) -> Iterator[str]:
    choice = f' data-choice="{escape(view.choice)}"' if view.choice else ""
    yield f'<figure id="view-{place}" data-kind="{escape(view.kind)}"{choice}>'
    yield from _write_view(view, place)
    yield from _items(view, places)
    if view.columns:
        opened = " open" if view.spec is None else ""
        yield (
            f'<details data-table="{place}"{opened}><summary>Table, {plural(len(view.rows), "row")}</summary>'
            f'<div class="scroll" tabindex="0"></div>'
            f'<button type="button" data-copy="{place}" data-what="csv">copy as CSV</button></details>'
        )
    if view.columns and view.commands:
        lines = "\n".join(map(escape, view.commands))
        yield (
            f"<details><summary>To see or measure this again</summary><pre>{lines}</pre>"
            f'<button type="button" data-copy="{place}" data-what="command">copy</button></details>'
        )
    yield "</figure>"


def _skipped(report: StoreReport) -> str:
    if not report.skipped:
        return ""
    lines = "".join(f"<li>{escape(path)}: {escape(why)}</li>" for path, why in report.skipped)
    rest = "" if report.problem else "; the rest is shown"
    problem = f"{plural(len(report.skipped), 'file')} of the store could not be read{rest}."
    return f'<main id="skipped"><h2>What could not be read</h2>{_problem(problem)}<ul>{lines}</ul></main>'
