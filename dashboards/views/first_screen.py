"""The first screen: a status line, the ranked list of changes with their evidence, and the map of ratios."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from urllib.parse import urlencode

import pandas as pd

from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.theme import Facts
from omb_py.dashboards.base.view import SEPARATOR, Item, Shown, View, plural
from omb_py.dashboards.changes import over_time, ratios
from omb_py.dashboards.changes.over_time import Launches
from omb_py.dashboards.changes.scaling import odd_counts
from omb_py.dashboards.changes.sides import KEY, VERSION, Pair, StoredSide, keep_common_method, pairs, rows_of, sides
from omb_py.dashboards.figures import curves, maps, stragglers
from omb_py.dashboards.figures.fastest import UNITS, JudgedPair, fastest_at, finding, title
from omb_py.dashboards.figures.launches import cell_name, history
from omb_py.dashboards.figures.size_by_count import SizeByCount, size_by_count
from omb_py.dashboards.views import anomalies, checks, comparisons
from omb_py.dashboards.views.cells import Cells
from omb_py.dashboards.views.overview import headline, machines
from omb_py.dashboards.views.repro_commands import Commands
from omb_py.results.accept.outcomes import AcceptOutcome, ended_acceptances
from omb_py.results.analysis.crossover import ALPHA
from omb_py.results.statistics.sequential import WORDS
from omb_py.results.store.paths import pass_over
from omb_py.results.store.provenance import is_simulated
from omb_py.results.units import factor_text, listed

MOST_ODD = 20
"""Odd cells of a kind among which one is looked for that no other line names."""
MOST_SIDES = 6
"""Sides drawn below the map: as many as have a colour of their own."""
NEAR = 1.1
"""Largest factor between the ratios of slowdowns at the same sizes and counts that are one line."""
_ACCEPTED = "accepted"
KINDS = ("slower", "odd", "faster", "changed")
"""Kinds of lines, in their order."""
MOST_ASKED = 256
"""Launches, the newest, that are asked for what else used the machine: each is a file that is opened."""
MOST_ACCEPTED = 4
"""Further acceptances that the first line names."""
MOST_FAILED = 8
"""Lines of criteria of an acceptance that failed."""
_KIND_OF = {"SLOWER": "slower", "FASTER": "faster"}
"""Verdict of a stored comparison -> kind of its line."""


@dataclass
class FirstScreen:
    """What is computed once for all parts of the screen."""

    cells: Cells

    def __post_init__(self) -> None:
        """Find the sides of the store among the rows with a time."""
        self.commands = Commands(self.cells.provenance)
        self.timed = ratios.with_logs(self.cells.timed)
        self.sides = sides(self.timed)

    @cached_property
    def pairs(self) -> list[Pair]:
        """The pairs of sides, the one that is looked at first at the front."""
        every = pairs(self.sides)
        if self.cells.against is not None:
            return _pair_stores(every, self.cells.store_names[0])
        started = self.timed.groupby(VERSION, observed=True, dropna=False)["started_at"].max()

        def newest(pair: Pair) -> float:
            moment = started.get(pair.new.values.get(VERSION))
            return -moment.timestamp() if moment is not None else math.inf

        first = min((pair for pair in every if pair.kind == "versions"), key=newest, default=None)
        return every if first is None else [first, *(pair for pair in every if pair is not first)]

    @cached_property
    def launches(self) -> Launches:
        """A number a launch."""
        return over_time.launches(self.timed)

    @cached_property
    def drifts(self) -> list[over_time.LaunchDrift]:
        """What drifts."""
        return over_time.drifts(self.launches)

    @cached_property
    def level(self) -> pd.DataFrame:
        """The timed rows without their drifts."""
        return over_time.without_drifts(self.timed, self.launches, self.drifts)

    @cached_property
    def upgrades(self) -> list[tuple[Pair, pd.DataFrame]]:
        """Each version against the one before it, or of two stores the second against the first: the pair and its
        ratios, the newest first."""
        if self.cells.against is not None:
            return [(pair, ratios.ratios(pair, self.level)) for pair in self.pairs]
        following: dict[tuple[object, ...], Pair] = {}
        for pair in self.pairs:
            if pair.kind == "versions":
                rest = tuple(value for name, value in pair.new.values.items() if name != VERSION)
                following.setdefault((rest, pair.new.values[VERSION]), pair)
        return [(pair, ratios.ratios(pair, self.level)) for pair in following.values()]

    @cached_property
    def front(self) -> tuple[Pair, pd.DataFrame] | None:
        """The pair of the map and its ratios; None where no two sides measured the same thing."""
        if not self.pairs:
            return None
        if self.cells.against is not None:
            return max(self.upgrades, key=lambda each: int((each[1]["verdict"] != "").sum()))
        pair = self.pairs[0]
        table = next((table for other, table in self.upgrades if other is pair), None)
        table = ratios.ratios(pair, self.timed) if table is None else table
        return (pair, table) if len(table) else None

    def judged(self, benchmark: str, over: str) -> JudgedPair | None:
        """The verdicts of the front pair on a benchmark, by number of ranks or GPUs (`over`) and message size."""
        if self.front is None:
            return None
        pair, table = self.front
        own = table[table["benchmark"] == benchmark]
        places = zip(own[over].fillna(0).astype(int), own["size_bytes"].fillna(0).astype(int), strict=True)
        verdicts = dict(zip(places, map(str, own["verdict"]), strict=True))
        return JudgedPair(pair.base.name, pair.new.name, verdicts)

    @cached_property
    def maps(self) -> dict[tuple[str, str], Shown]:
        """Names of BASE and NEW -> the map of their ratios: of the front pair, and of each other newest version."""
        upgraded = [each for each in self.upgrades if each[0].new.name in self.newest and len(each[1])]
        shown: dict[tuple[str, str], Shown] = {}
        for pair, table in [*([self.front] if self.front and self.has_few_sides else []), *upgraded][:MOST_SIDES]:
            names = (pair.base.name, pair.new.name)
            if names not in shown:
                both = self.cells.timed[self.cells.timed[KEY].isin(set(table[KEY]))]
                view = maps.ratio_map(table, names, series.counted_over(table))
                if self.front and pair is self.front[0] and self.is_said_above:
                    view = replace(view, title=view.caption, caption="")
                shown[names] = Shown(view, both)
        return shown

    @property
    def is_said_above(self) -> bool:
        """Whether the headline of the page is the verdict on the front pair."""
        return self.cells.against is None and not self.accepted and self.has_few_sides

    @property
    def has_few_sides(self) -> bool:
        """Whether the front pair says something: of many libraries one pair is no answer, and a figure has all."""
        return self.front is None or self.front[0].kind == "versions" or len(self.newest_of_each()) <= MOST_SIDES

    @cached_property
    def newest(self) -> set[str]:
        """Names of the sides that are the newest version of their library."""
        return {side.name for side in self.newest_of_each().values()}

    def newest_of_each(self) -> dict[tuple[object, ...], StoredSide]:
        """The newest version of each library, by what else tells the sides apart."""
        return {tuple(v for name, v in side.values.items() if name != VERSION): side for side in self.sides}

    @cached_property
    def accepted(self) -> list[AcceptOutcome]:
        """The newest acceptance of each set of nodes by each suite, the worst first, then the newest; where something
        of the store is left out, of those whose launches are looked at. None of two stores."""
        if self.cells.against is not None or not len(self.cells.rows):
            return []
        runs = {str(launch).rpartition("-")[0] for launch in self.cells.rows["launch_id"].unique()}
        ended = [end for end in ended_acceptances(self.cells.store) if self.cells.whole or end.run_id in runs]
        newest = {(end.suite, frozenset(end.hosts)): end for end in ended}
        by_time = sorted(newest.values(), key=ended.index, reverse=True)
        return sorted(by_time, key=lambda end: [*WORDS, end.verdict].index(end.verdict))

    def accepted_name(self, outcome: AcceptOutcome) -> str:
        """The suite, with the nodes where it accepted others too."""
        several = sum(other.suite == outcome.suite for other in self.accepted) > 1
        return f"{outcome.suite} on {listed(outcome.hosts) or 'no node'}" if several else outcome.suite

    @property
    def names(self) -> list[str]:
        """Who measured."""
        return [side.name for side in self.sides] or [series.common(self.timed)]

    @property
    def drawn(self) -> list[StoredSide]:
        """BASE and NEW, then the newest version of every other library; without a pair only those."""
        first = self.front[0] if self.front else next(iter(self.pairs), None)
        front = [] if first is None else [first.base, first.new]
        own = front[1].library if front else None
        return [
            *front,
            *(side for side in self.newest_of_each().values() if side not in front and side.library != own),
        ][:MOST_SIDES]


def _pair_stores(every: Iterable[Pair], first: str) -> list[Pair]:
    """The pairs of a side of the first store and the like side of the second, in this order."""
    several: list[Pair] = []
    named = series.value_in_text(series.OF_STORE)
    for pair in every:
        base, new = (named.findall(str(side.values.get("tags"))) for side in (pair.base, pair.new))
        if base != new and pair.base.library == pair.new.library:
            several.append(pair if base == [first] else Pair(pair.new, pair.base, pair.kind))
    return several


def first_screen(cells: Cells, quantity: str = "auto") -> Iterator[Shown]:
    """The status line, the list of changes, the maps of ratios, one benchmark over size and count, and the curves of
    the benchmark that changed most: of its bus bandwidth or of the ratio to BASE where that is the quantity, else of
    its time."""
    screen = FirstScreen(cells)
    yield from _overall(screen)
    for benchmark in _sort_by_change(screen)[:1]:
        wanted = curves_of(screen, benchmark, quantity) if quantity in UNITS else None
        yield from filter(None, [wanted or curves_of(screen, benchmark)])


def first_screen_in_report(cells: Cells) -> Iterator[Shown]:
    """The same with the curves of every benchmark that was measured on several numbers of ranks or GPUs."""
    screen = FirstScreen(cells)
    yield from _overall(screen)
    for benchmark in dict.fromkeys(
        [*_sort_by_change(screen), *sorted(screen.timed["benchmark"].unique(), key=maps.usual)]
    ):
        if benchmark in several_counts(cells.timed):
            yield from filter(None, [curves_of(screen, benchmark)])


def several_counts(rows: pd.DataFrame) -> list[str]:
    """Benchmarks of message sizes that were measured on several numbers of ranks: one figure shows all numbers."""
    sized = rows[rows["size_bytes"].fillna(0) > 0]
    counts = sized.groupby("benchmark", observed=True)["ranks"].nunique()
    return [str(name) for name, count in counts.items() if count > 1]


def _overall(screen: FirstScreen) -> Iterator[Shown]:
    items = changes(screen)
    yield Shown(_status(screen, items))
    if items or screen.front is not None:
        yield Shown(_list(screen, items))
    timed = screen.cells.timed
    if screen.front is None and len(timed):
        # the rows on the fewest ranks are what a reader who wants a base can measure soonest
        fewest = timed[timed["ranks"] == timed["ranks"].min()] if timed["ranks"].notna().any() else timed
        command, *_ = screen.commands.of(fewest)
        yield headline(screen.cells, screen.names, command.partition("  # ")[0])
    yield from screen.maps.values()
    yield from filter(None, [answer(screen)])


def answer(screen: FirstScreen) -> Shown | None:
    """One benchmark over message size and number of ranks or GPUs: that which changed most, else an allreduce."""
    several = several_counts(screen.timed)
    wanted = [name for name in _sort_by_change(screen) if name in several] or sorted(several, key=maps.usual)
    return next((over_size_and_count(screen, name) for name in wanted), None)


def over_size_and_count(screen: FirstScreen, benchmark: str) -> Shown | None:
    """The figure of :mod:`omb_py.dashboards.figures.size_by_count`; None where one count or one size was measured."""
    rows, parts, notes = _sides_of(screen, benchmark)
    over = series.counted_over(rows)
    if not parts:
        return None
    times = curves.points(parts, curves.PanelGrid(over))
    rates = curves.points(parts, curves.PanelGrid(over, quantity="busbw"))
    counts = sorted({count for _, count in times.known})
    nodes = rows.groupby(over, observed=True)["nodes"].max()
    data = SizeByCount(
        benchmark,
        times,
        rates,
        {count: fastest_at(times, count, screen.judged(benchmark, over)) for count in counts},
        {count: int(nodes[count]) for count in counts if not theme.absent(nodes.get(count))},
    )
    shown = series.concat(part for _, part in parts)
    sentence = title(benchmark, times, {count: data.fastest[count] for count in counts})
    view = size_by_count(data, sentence, series.caption(shown))
    if view is None:
        return None
    caption = " · ".join([*notes, view.caption] if view.caption else notes)  # what qualifies the title stands below it
    return Shown(replace(view, caption=caption), shown)


def curves_of(screen: FirstScreen, benchmark: str, quantity: str = "time") -> Shown | None:
    """Curves of a benchmark, a panel for each number of ranks or GPUs; None where the quantity is known at no size."""
    rows, sides, notes = _sides_of(screen, benchmark)
    grid = curves.PanelGrid(series.counted_over(rows), quantity=quantity)
    view = panels_of(sides, benchmark, grid, judged=screen.judged(benchmark, grid.over)) if sides else None
    if view is None:
        return None
    return Shown(replace(view, choice=benchmark).noted(notes), series.concat(part for _, part in sides))


def _sides_of(screen: FirstScreen, benchmark: str) -> tuple[pd.DataFrame, list[tuple[str, pd.DataFrame]], list[str]]:
    """The rows of a benchmark, the sides that are drawn of it, and notes on how they were measured."""
    rows = screen.cells.timed[screen.cells.timed["benchmark"] == benchmark]
    parts = ((side.name, part) for side in screen.drawn if len(part := side.rows(rows)))
    return rows, *keep_common_method(parts)


def panels_of(
    sides: curves.Sides,
    name: str,
    grid: curves.PanelGrid,
    banded: bool = False,
    judged: JudgedPair | None = None,
) -> View | None:
    """Panels of some sides with who is fastest as their title; None where the quantity is known at no size."""
    known = curves.points(sides, grid)
    view = curves.multiples(sides, name, known, banded=banded)
    if view is None:
        return None
    caption = series.caption(series.concat(part for _, part in sides))
    return replace(view, title=finding(name, known, judged), caption=caption)


def _sort_by_change(screen: FirstScreen) -> list[str]:
    if screen.front is None:
        return []
    table = screen.front[1]
    beyond = table.assign(beyond=table["verdict"] != "").groupby("benchmark", observed=True)["beyond"].sum()
    return sorted(map(str, beyond.index), key=lambda name: (-int(beyond[name]), maps.usual(name)))


def _status(screen: FirstScreen, items: list[Item]) -> View:
    title, lacking, others = _split_answer(screen, items)
    numbers = {kind: sum(item.count for item in others if item.kind == kind) for kind in KINDS}
    kinds = [f"{number} {kind}" for kind, number in numbers.items() if number]
    findings = f"; {'other ' if title else ''}findings: {', '.join(kinds)}" if kinds else ""
    title = f"{title or _describe_measured(screen)}{findings}"
    about = [text for text in (machines(screen.cells), lacking) if text]
    return View("status", title, SEPARATOR.join(about), None, (), (), notes=labels(screen.cells))


def _split_answer(screen: FirstScreen, items: list[Item]) -> tuple[str, str, list[Item]]:
    """The answer of the store, what it lacks, and the lines that the answer does not speak of."""
    if screen.accepted:
        worst, *rest = screen.accepted
        words = [f"{screen.accepted_name(end)}: {end.verdict}" for end in rest[:MOST_ACCEPTED]]
        words += [f"{len(rest) - MOST_ACCEPTED} more"] if len(rest) > MOST_ACCEPTED else []
        verdicts = SEPARATOR.join([f"{screen.accepted_name(worst)}: {worst.headline}", *words])
        return verdicts, "", [item for item in items if item.about[0] != _ACCEPTED]
    if screen.front is None:
        return "", "", items
    if not screen.has_few_sides:
        names = [side.name for side in screen.newest_of_each().values()]
        return f"{len(names)} sides measured the same: {listed(names, 2)}", "", items
    pair, table = screen.front
    lacking = ratios.describe_missing(pair, screen.timed)
    if not lacking and pair.kind == "versions":
        lacking = "both versions were measured in the same cells"
    if screen.cells.against is None:
        tables, names = [table], [pair.new.name, pair.base.name]
        others = [item for item in items if item.about[1:] != tuple(names)]
        base = str(pair.base.values.get(VERSION)) if pair.kind == "versions" else pair.base.name
    else:
        base, new = screen.cells.store_names[:2]
        tables, names = [table for _, table in screen.upgrades], [new, base]
        others = [item for item in items if not item.about[1]]
    over = series.counted_over(screen.timed)
    return f"{names[0]} against {base}: {maps.describe_counts(tables, over)}", lacking, others


def _describe_measured(screen: FirstScreen) -> str:
    """What a store says in which nothing can be compared."""
    cells = screen.cells
    if len(cells.rows):
        by = f" with {listed(screen.names)}" if any(screen.names) else ""
        return f"{plural(cells.rows['benchmark'].nunique(), 'benchmark')} measured{by}"
    others = {"links": cells.links, "guidelines": cells.guidelines, "settings": cells.trials}
    return f"{listed(name for name, rows in others.items() if len(rows)) or 'nothing'} measured".capitalize()


def labels(cells: Cells) -> tuple[str, ...]:
    """Words that a reader must know before any number: SIMULATED, STAGED, SHARED, and of what."""
    simulated = [
        str(library)
        for rows in (cells.rows, cells.guidelines, cells.links, cells.trials)
        for first in [rows.drop_duplicates(["backend", "library"])]
        for library, launch in zip(first["library"], first["launch_id"], strict=True)
        if is_simulated(cells.provenance(str(launch)))
    ]
    words = [f"SIMULATED: nothing of {listed(simulated)} was measured"] if simulated else []
    parameters = [str(text) for text in cells.rows["parameters"].unique()]
    if any("staging=staged" in text for text in parameters):
        words.append("STAGED: some bytes on devices travelled through host memory")
    shared = series.value_in_text("ranks_per_device")
    if any(count.isdecimal() and int(count) > 1 for text in parameters for count in shared.findall(text)):
        words.append("SHARED: some ranks shared a device")
    return (*words, *_busy(cells))


def _busy(cells: Cells) -> Iterator[str]:
    """That other programs used a machine before launches, as the launches keep it."""
    newest = cells.rows.sort_values("started_at", ascending=False, kind="stable")["launch_id"].unique()
    looked = [str(launch) for launch in newest[:MOST_ASKED]]
    busy = []
    for launch in looked:
        match cells.provenance(launch):
            case {"launch": {"busy_before": str() as text}}:
                busy.append(text)
    if busy:
        of = plural(len(looked), "launch") if len(looked) == len(newest) else f"the newest {len(looked)} launches"
        yield f"BUSY: before {len(busy)} of {of}, the newest: {busy[0].removeprefix('busy machine: ')}"


def _list(screen: FirstScreen, items: list[Item]) -> View:
    is_open = screen.front is not None and not bool(maps.decidable(screen.front[1]).any())
    if is_open and all(item.kind == "odd" for item in items):
        title = f"{'What' if items else 'Nothing'} is odd; one launch a side cannot tell whether anything changed"
    else:
        title = "Nothing changed over time beyond the noise, and nothing is odd"
        title = "What changed, and what is odd" if items else title
    return View("changes", title, _certainty(screen), None, (), (), items=tuple(items))


def _certainty(screen: FirstScreen) -> str:
    """How sure the lines on pairs of versions or stores are; empty where there is no pair."""
    tables = [table for _, table in screen.upgrades if len(table)]
    counts = [int(n) for table in tables for name in ("launches_base", "launches_new") for n in table[name]]
    if not counts or max(counts) < 2:
        return ""
    span = f"{min(counts)} to {max(counts)}" if min(counts) < max(counts) else f"{counts[0]}"
    return (
        f"How sure? {span} launches a side in each cell. Where nothing changed, the chance that even "
        f"one cell here is called slower or faster is at most {100 * ALPHA * len(tables):g} %"
    )


def changes(screen: FirstScreen) -> list[Item]:
    """The lines of the list: what is slower, odd, faster, what else changed; the largest of each first."""
    parts = (
        (_accepted, _list_stored, _list_upgraded, _list_scaling, _list_moved, _late, _broken, _odd)
        if len(screen.cells.rows)
        else (_broken,)
    )
    return sorted((item for part in parts for item in part(screen)), key=lambda item: KINDS.index(item.kind))


def _describe_together(pair: Pair, several: list[ratios.ChangedRegion]) -> str:
    factors = sorted(max(region.ratio, 1 / region.ratio) for region in several)
    low, high = theme.amount(factors[0]), theme.amount(factors[-1])
    names = listed((region.benchmark for region in several), len(several))
    factor = low if low == high else f"{low} to {high}"
    where = {region.where for region in several}
    at = f" {several[0].where}" if len(where) == 1 and several[0].where else ""
    base = pair.base.values.get(VERSION) if pair.kind == "versions" else pair.base.name
    sides = f"{pair.new.name} than with {base}{at}"
    cells = f"{sum(len(region.cells) for region in several)} of {sum(region.among for region in several)} cells"
    return f"{plural(len(several), 'benchmark')} {factor}× {several[0].verdict} with {sides}: {names} ({cells})"


def near_equal(found: Iterable[ratios.ChangedRegion]) -> list[list[ratios.ChangedRegion]]:
    """Slower regions at the same sizes and counts whose ratios are near each other; each other region for itself."""
    groups: list[list[ratios.ChangedRegion]] = []
    for region in found:
        for group in groups if region.verdict == "slower" else ():
            first = group[0]
            near = abs(math.log(region.ratio / first.ratio)) <= math.log(NEAR)
            if (first.verdict, first.where) == (region.verdict, region.where) and near:
                group.append(region)
                break
        else:
            groups.append([region])
    return groups


def _accepted(screen: FirstScreen) -> Iterator[Item]:
    failed = []
    for end in screen.accepted:
        name = screen.accepted_name(end)
        failed += [text if name == end.suite else f"{name}: {text}" for text in end.failed]
    for text in failed[:MOST_FAILED]:
        yield Item("slower", text, about=(_ACCEPTED, "", ""))
    if (left := len(failed) - MOST_FAILED) > 0:
        yield Item("slower", f"… and {left} more failed", about=(_ACCEPTED, "", ""), count=left)


def _list_stored(screen: FirstScreen) -> Iterator[Item]:
    for compared in comparisons.read_stored(screen.cells, pass_over):
        about = _pair_of(compared, screen)
        for word, kind in _KIND_OF.items():
            judged = compared.verdicts[compared.verdicts["verdict"] == word]
            if len(judged):
                board, *_ = comparisons.views(compared, screen.cells.store)
                names = listed(judged["cell"], 2)
                text = f"{compared.name}: {word} in {len(judged)} of {plural(len(compared.verdicts), 'cell')} ({names})"
                yield Item(kind, text, evidence=board, link=_link("verdicts"), about=(kind, *about))


def _pair_of(compared: comparisons.StoredComparison, screen: FirstScreen) -> tuple[str, str]:
    """Names of NEW and BASE of the front pair where a stored comparison is about the same cells."""
    if screen.front is None or screen.front[0].kind == "versions":
        return "", ""
    pair, table = screen.front
    same = set(table[KEY]) == set(compared.verdicts["comparability_key"])
    return (pair.new.name, pair.base.name) if same else ("", "")


def _list_upgraded(screen: FirstScreen) -> Iterator[Item]:
    """Regions of cells that a version changed: slower where it is the newest, else changed; or faster."""
    for pair, table in screen.upgrades:
        versions: dict[str, object] = {name: pair.new.values.get(name) for name in ("backend", "library")}
        versions[VERSION] = [side.values[VERSION] for side in (pair.base, pair.new)]
        regions = [*ratios.regions(table)]
        faster = [region for region in regions if region.verdict == "faster"]
        # one line for all that became faster
        for several in near_equal(each for each in regions if each.verdict == "slower" or each is faster[0]):
            region = several[0]
            rows = screen.timed[screen.timed[KEY].isin({key for each in several for key in each.cells[KEY]})]
            is_newest = pair.new.name in screen.newest or region.verdict == "faster"
            kind = region.verdict if is_newest else "changed"
            link = _link("first", benchmark=[each.benchmark for each in several], **versions)
            on_map = screen.maps.get((pair.base.name, pair.new.name))
            view = _ratio_panels(screen, pair, region.benchmark) if on_map is None else on_map.view
            evidence = view and screen.commands.on(view, rows)
            about = (region.verdict, pair.new.name, pair.base.name)
            alike = faster if region.verdict == "faster" else several
            text = region.sentence(pair) if len(alike) == 1 else _describe_together(pair, alike)
            yield Item(kind, text, evidence, link, about)


def _ratio_panels(screen: FirstScreen, pair: Pair, benchmark: str) -> View | None:
    """Of a pair without a map: one of older versions."""
    base, new = rows_of(pair, screen.timed[screen.timed["benchmark"] == benchmark])
    grid = curves.PanelGrid(series.counted_over(base), quantity="ratio")
    return panels_of([(pair.base.name, base), (pair.new.name, new)], benchmark, grid, banded=True)


def _list_scaling(screen: FirstScreen) -> Iterator[Item]:
    one_store = screen.cells.against is None
    for odd in odd_counts(screen.timed, list(screen.newest_of_each().values())) if one_store else ():
        counted = curves.COUNTED[series.counted_over(odd.side.rows(screen.timed))]
        filters = {name: odd.side.values.get(name) for name in ("library", VERSION)}
        yield Item("slower", odd.sentence(counted), link=_link("scaling", count="ranks", **filters))


def _select_any_version(rows: pd.DataFrame, values: Facts) -> pd.DataFrame:
    for name, value in values.items():
        if name != VERSION:
            rows = rows[series.having(rows[name], value)]
    return rows


def _list_moved(screen: FirstScreen) -> Iterator[Item]:
    for drift in sorted(screen.drifts, key=lambda drift: -abs(math.log(drift.ratio))):
        more = f"{100 * (drift.ratio - 1):+.0f} %"
        change = f"drifts: {more} from the first launch to the last, without a step at a version"
        rows = _select_any_version(screen.timed, screen.launches.subjects[drift.subject])
        longest = rows.groupby(KEY, observed=True)["launch_id"].nunique().idxmax()
        yield _timed_item(screen, drift.subject, change, rows[rows[KEY] == longest], change, drift.ratio)
    for step in over_time.steps(screen.launches, screen.drifts):
        when = f"from {step.began_at:%Y-%m-%d %H:%M} UTC on, without a new version"
        rows = _select_any_version(screen.timed, screen.launches.subjects[step.subject])
        most, cell = over_time.moved_most(step, rows)
        text = f"is {factor_text(step.ratio)} {when}"
        if abs(math.log(most)) > 2 * abs(math.log(step.ratio)):
            text += f"; most for {cell_name(cell)}: {factor_text(most)}"
        yield _timed_item(screen, step.subject, text, cell, f"{factor_text(most)} {when}", step.ratio)


def _timed_item(screen: FirstScreen, subject: int, text: str, cell: pd.DataFrame, change: str, ratio: float) -> Item:
    """A line on a subject that moved, with the history of a cell and what changed there."""
    view = screen.commands.on(history(cell, f"{cell_name(cell)}, {series.short(cell)}", change), cell)
    link = _link("history", benchmark=str(cell["benchmark"].iloc[0]))
    kind = "slower" if ratio > 1 else "faster"
    return Item(kind, f"{screen.launches.name(subject)} {text}", view, link)


def _late(screen: FirstScreen) -> Iterator[Item]:
    for node in screen.cells.late:
        part = node.parts[0]
        link = _link("stragglers", benchmark=str(part["benchmark"].iloc[0]), ranks=part["ranks"].iloc[0])
        view = stragglers.stragglers(part)
        yield Item("odd", node.sentence, evidence=view and screen.commands.on(view, part), link=link)


def _broken(screen: FirstScreen) -> Iterator[Item]:
    for name, draw in (("pairs", checks.sweeps), ("guidelines", checks.guidelines)):
        present = screen.cells.links if name == "pairs" else screen.cells.guidelines
        for shown in draw(screen.cells) if len(present) else ():
            if shown.odd:
                yield Item("odd", shown.odd, evidence=shown.view, link=_link(name))


def _odd(screen: FirstScreen) -> Iterator[Item]:
    changed = [(pair, table[table["verdict"] != ""]) for pair, table in screen.upgrades]
    covered = {(str(key), str(pair.new.values.get(VERSION))) for pair, table in changed for key in table[KEY]}
    drifting = covered | set(_list_drifting_cells(screen))
    for kind in anomalies.kinds(screen.cells, MOST_ODD):
        # what a line on a version or a drift names already is not said again
        named = drifting if kind and kind[0].over_launches else covered
        at = next((at for at, odd in enumerate(kind[:MOST_ODD]) if not odd.is_among(named)), MOST_ODD)
        left = kind[at:]
        if not left or not left[0].text:
            continue
        odd, cells, link = left[0], left[0].cells, ""
        if odd.look and len(cells):
            first = cells.iloc[0]
            more = {} if theme.absent(first["size_bytes"]) else {"size": int(first["size_bytes"])}
            link = _link(odd.look, benchmark=first["benchmark"], ranks=first["ranks"], **more)
        others = f", and {len(left) - 1} more of this kind." if len(left) > 1 else "."
        yield Item("odd", odd.text.removesuffix(".") + others, link=link, count=len(left))


def _list_drifting_cells(screen: FirstScreen) -> Iterator[tuple[str, str]]:
    """Key and version of the cells of each subject that drifts."""
    for drift in screen.drifts:
        rows = _select_any_version(screen.timed, screen.launches.subjects[drift.subject])
        yield from zip(rows[KEY].astype(str), rows[VERSION].astype(str), strict=True)


def _link(view: str, **filters: object) -> str:
    """A query of the explorer; values that are null are left out."""
    pairs_of = [("view", view)]
    for name, value in filters.items():
        pairs_of += [(name, str(v)) for v in (value if isinstance(value, list) else [value]) if not theme.absent(v)]
    return f"?{urlencode(pairs_of)}"
