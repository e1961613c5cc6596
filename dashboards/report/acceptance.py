"""The acceptance report: the fourteen parts of an acceptance, as sections of one offline page."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from omb_py.dashboards.base import theme
from omb_py.dashboards.base.reading import StoreSelection
from omb_py.dashboards.base.view import TableFields, View, plural, table
from omb_py.dashboards.figures import stragglers
from omb_py.dashboards.figures.comparison import ends_of, verdict_figure
from omb_py.dashboards.report.build import read_cells
from omb_py.dashboards.report.html_page import Section, document
from omb_py.dashboards.views.cells import RANK_LISTS, Cells
from omb_py.dashboards.views.over_size import over_count, over_size
from omb_py.dashboards.views.overview import environment
from omb_py.printing.writers.html import label_text
from omb_py.results.accept.judge import CaseVerdict
from omb_py.results.accept.report import HEADS, AcceptReport, document_of, headline, launch_text, margin, number, row
from omb_py.results.checks import links
from omb_py.results.compare.false_alarm_rate import site_rate
from omb_py.results.compare.tags import ACCEPT_PHASE, PERFORMANCE
from omb_py.results.document import TextTable
from omb_py.results.statistics.sequential import WORDS
from omb_py.results.store.keys import environment_facts, flat
from omb_py.results.store.redact import published

MOST_DRAWN = 60
"""Most verdicts that are drawn; the table has all."""
MOST_FACTS = 400
"""Most facts of the first launch in the configuration."""
MOST_LATE = 4
"""Most figures of late ranks."""
METHOD = (
    "Correctness first: every byte of every cell is checked, in launches of their own. What is wrong is not timed.",
    "The launch is the sample: a launch gives one number, the named metric of the maximum over ranks.",
    "The median of launches is judged by counting: PASS when so few launches are beyond the bound that their median is "
    "within it, FAIL when so few are within it that the median is beyond it, else MARGINAL: as many launches again, up "
    "to the maximum. All launches count; none is chosen, none is dropped.",
    "A count needs no assumption about how launches are distributed. How much a launch resembles the one before is "
    "estimated from all cells, and counts allow for it.",
    "The chance of an error covers all rounds, and for FAIL also all verdicts.",
    "A baseline is judged by nights: one more night is compared with the earlier ones by their own spread.",
    "Derivation: docs/statistics.md, section Acceptance; format of the criteria: docs/accept.md.",
)


def acceptance_page(acceptance: AcceptReport) -> str:
    """Write the acceptance report as one HTML file."""
    store = Path(acceptance.store)
    timed = StoreSelection({"run_id": [acceptance.run_id]}, {ACCEPT_PHASE: [PERFORMANCE]})
    cells = read_cells(store, timed, [])
    below = (
        f"acceptance of {', '.join(acceptance.hosts) or 'no node'} by suite {acceptance.suite}, run {acceptance.run_id}"
    )
    return document(headline(acceptance), below, sections(acceptance, cells), kind="acceptance")


def sections(acceptance: AcceptReport, cells: Cells) -> list[Section]:
    """Make the parts in the order in which an acceptance is read, from the cells of its run."""
    report = document_of(acceptance)
    suite, *facts = report.facts
    views = [board(acceptance)] if acceptance.verdicts else []
    disturbed = [f"warning: {text}" for text in acceptance.machine.get("warnings", ())]
    scope = [
        *(fact for fact in facts if fact not in disturbed),
        f"{plural(len(acceptance.verdicts), 'verdict')}, {plural(len(acceptance.checked), 'check')}",
    ]
    incidents = [_incidents(acceptance), _launches(acceptance)]
    retested = sum(len(verdict.rounds) > 1 for verdict in acceptance.verdicts)
    counts = f"{plural(len(acceptance.incidents), 'incident')}; {plural(retested, 'verdict')} took more than one round"
    measured, scaling = ([s.view for s in draw(cells) if s.view is not None] for draw in (over_size, over_count))
    files = table(("file", "SHA-256"), acceptance.files)
    return [
        Section("cover", "Acceptance", [suite, *disturbed], tables=[_signatures(acceptance)], label=label_text(report)),
        Section("criteria", "Criteria", [], views, tables=[_promises(acceptance, report.tables[0])]),
        Section("scope", "Scope, deviations, nodes left out", scope, as_list=True),
        Section("configuration", "Configuration", [], _configuration(acceptance, cells)),
        Section("curves", "What was measured", [], measured),
        Section("pairs", "Pairs of nodes", [_pairs_text(acceptance)], _late(cells)),
        _make_section(acceptance, "guidelines", "Guidelines", "guideline"),
        _make_section(acceptance, "efficiency", "Scaling and efficiency", "lower bound", more=scaling),
        _make_section(acceptance, "stability", "Stability and interference", "drift", "interference"),
        Section("correctness", "Correctness", [] if acceptance.checked else ["Not checked."], _checks(acceptance)),
        Section("incidents", "Incidents and retests", [f"{counts}. None is hidden."], incidents),
        Section("method", "Method", [*METHOD, site_rate(cells.store).sentence()], as_list=True),
        Section("data", "Raw data", [], [View("files", plural(len(acceptance.files), "file"), "", None, **files)]),
        Section("again", "How to do it again", [acceptance.command or "omb-py accept SUITE"]),
    ]


def _promises(acceptance: AcceptReport, criteria: TextTable) -> TextTable:
    """The table of criteria with the sentence of the contract in front of each, where the suite has any."""
    texts = [verdict.case.criterion.text for verdict in acceptance.verdicts]
    if not any(texts):
        return criteria
    rows = [(text, *cells) for text, cells in zip(texts, criteria.rows, strict=True)]
    return replace(criteria, heads=("promise", *criteria.heads), rows=rows, left=("promise", *criteria.left))


def _make_section(acceptance: AcceptReport, name: str, title: str, *sources: str, more: Sequence[View] = ()) -> Section:
    """The verdicts of some kinds of criteria, and which of the kinds the suite has none of."""
    several = {name: [v for v in acceptance.verdicts if v.case.criterion.source == name] for name in sources}
    texts = ["" if own else f"The suite has no criterion of the kind {source}." for source, own in several.items()]
    verdicts = [verdict for own in several.values() for verdict in own]
    if not verdicts:
        return Section(name, title, texts, more)
    bad = sum(verdict.word == "FAIL" for verdict in verdicts)
    headline = f"{bad} of {plural(len(verdicts), 'verdict')} failed"
    return Section(name, title, texts, [View(name, headline, "", None, **_verdict_table(verdicts)), *more])


def board(acceptance: AcceptReport) -> View:
    """Draw measured over bound with its interval, one line a verdict, the worst first; the table has all verdicts."""
    ranked = sorted(acceptance.verdicts, key=lambda verdict: WORDS.index(verdict.word))
    drawn = [verdict for verdict in ranked if margin(verdict) is not None][:MOST_DRAWN]
    points = pd.DataFrame(map(_point, drawn), columns=["cell", "verdict", "ratio", "low", "high", "text", "label"])
    axis = theme.value_axis("measured over bound (ratio)", values=[*ends_of(points), 1.0])
    spec = verdict_figure(points, WORDS, xaxis=axis, shapes=[{**theme.line_at(1), "layer": "below"}])
    notes = [
        "Left of 1 is good for what has an upper bound, right of 1 for what has a lower one (bandwidth, efficiency)."
    ]
    if len(drawn) < len(acceptance.verdicts):
        notes.append(f"Drawn: {len(drawn)} of {plural(len(acceptance.verdicts), 'verdict')}; the table has all.")
    caption = f"{plural(acceptance.launches, 'launch')}; bars are the two one-sided limits that decide"
    numbers, drawing = _verdict_table(ranked), spec if drawn else None
    return View("criteria", headline(acceptance), caption, drawing, notes=tuple(notes), **numbers)


def shortened(name: str, head: int = 9, tail: int = 16) -> str:
    """Shorten a name for an axis on a phone: keep its beginning, and its end, which has size and ranks.

    >>> shortened("small-messages-of-the-contract, 8 B, 4 ranks")
    'small-mes…ct, 8 B, 4 ranks'
    """
    return name if len(name) <= head + 1 + tail else f"{name[:head]}…{name[-tail:]}"


def _point(verdict: CaseVerdict) -> tuple[object, ...]:
    name, value = verdict.case.name, 1 + (margin(verdict) or 0.0)
    low, high = _share_of_limit(verdict, "low"), _share_of_limit(verdict, "high")
    # an interval holds its value, but for rounding
    ends = None if low is None else min(low, value), None if high is None else max(high, value)
    text = theme.escape(f"{number(verdict, verdict.measured)}, {verdict.case.bound}")
    return name, verdict.word, value, *ends, text, theme.escape(shortened(name))


def _share_of_limit(verdict: CaseVerdict, end: str) -> float | None:
    value = theme.finite(getattr(verdict, end))
    return None if value is None or not verdict.limit else value / verdict.limit


def _verdict_table(ranked: Sequence[CaseVerdict]) -> TableFields:
    rows = []
    for verdict in ranked:
        far = margin(verdict)
        distance = "" if far is None else f"{100 * far:+.1f} %"
        rows.append((*row(verdict), distance, verdict.case.criterion.at, verdict.case.criterion.text))
    return table((*HEADS, "from the bound", "asked by", "text"), rows)


def _pairs_text(acceptance: AcceptReport) -> str:
    if len(acceptance.hosts) < links.LEAST:
        return "This run has no sweep over all pairs of nodes. Late ranks stand below."
    where = " --backend mock" if acceptance.simulated else f" --hosts {','.join(acceptance.hosts)}"
    return f"Every pair of nodes is measured by omb-py links{where}; this run has none. Late ranks stand below."


def _signatures(acceptance: AcceptReport) -> TextTable:
    facts = [
        ("system", ", ".join(acceptance.hosts)),
        ("libraries", ", ".join(acceptance.libraries)),
        ("begun", acceptance.started_at),
        ("took", f"{acceptance.seconds:.0f} s"),
        ("measured by", _who()),
        ("verdict", acceptance.word),
        ("signed for the supplier, date", ""),
        ("signed for the customer, date", ""),
    ]
    heads = ("what", "value")
    return TextTable(heads, facts, heads)


def _who() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container without a name for this user
        return ""


def _configuration(acceptance: AcceptReport, cells: Cells) -> list[View]:
    sides: dict[str, Any] = {}
    for path, _ in acceptance.files:
        provenance = cells.provenance(Path(path).stem)
        known = published(environment_facts(provenance)) if provenance else {}
        if known and known not in sides.values():
            sides[Path(path).stem] = known
    if not sides:
        return []
    facts = list(flat(next(iter(sides.values())), numbered=True))[:MOST_FACTS]
    title = f"{plural(len(facts), 'fact')} of the first launch"
    views = [View("configuration", title, "", None, **table(("fact", "value"), facts))]
    return [*views, environment(sides)] if len(sides) > 1 else views


def _late(cells: Cells) -> list[View]:
    views = []
    for _, rows in cells.timed.groupby("benchmark", sort=True, observed=True):
        most = cells.read_again(rows[rows["ranks"] == rows["ranks"].max()], *RANK_LISTS)
        views.append(stragglers.stragglers(most))
    return [view for view in views if view is not None][:MOST_LATE]


def _checks(acceptance: AcceptReport) -> list[View]:
    if not acceptance.checked:
        return []
    bad = sum(check.word == "FAIL" for check in acceptance.checked)
    rows = [(check.name, check.word, check.note) for check in acceptance.checked]
    title = f"{bad} of {plural(len(rows), 'benchmark')} returned wrong bytes"
    return [View("correctness", title, "", None, **table(("benchmark", "verdict", "note"), rows))]


def _incidents(acceptance: AcceptReport) -> View:
    rows = [
        ("failed" if incident.failed else "skipped", incident.what, incident.reason)
        for incident in acceptance.incidents
    ]
    rows += [("missing node", node, why) for node, why in acceptance.missing_nodes.items()]
    return View("incidents", plural(len(rows), "incident"), "", None, **table(("kind", "what", "reason"), rows))


def _launches(acceptance: AcceptReport) -> View:
    rows = []
    for verdict in acceptance.verdicts:
        ends = {ending.launches: (index, ending) for index, ending in enumerate(verdict.rounds, 1)}
        for place, (launch, value) in enumerate(verdict.values, 1):
            ending = ends.get(place)
            after = f"round {ending[0]}: {ending[1].word}" if ending else ""
            rows.append((verdict.case.name, launch, place, launch_text(verdict, value), after))
    heads = ("criterion", "launch", "number", "measured", "said after it")
    return View("launches", f"all {plural(len(rows), 'number')}, retests too", "", None, **table(heads, rows))
