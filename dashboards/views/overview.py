"""An overview of all cells, and the differences between their environments and GPUs."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pandas as pd

from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.theme import Facts, Record
from omb_py.dashboards.base.view import SEPARATOR, Shown, View, plural, records, table
from omb_py.dashboards.changes.sides import WAYS
from omb_py.dashboards.views.cells import Cells
from omb_py.engine.rank.launch_facts import GpuInventory, GpuPair
from omb_py.results.analysis.series import SIDE
from omb_py.results.compare.tags import COMPARE_SIDE
from omb_py.results.repro_command import storing
from omb_py.results.statistics.launch_time import OURS
from omb_py.results.store.keys import environment_facts, flat
from omb_py.results.store.provenance import is_simulated
from omb_py.results.store.redact import published
from omb_py.results.units import listed, size_text

MOST_ENVIRONMENTS = 4
"""Side by side in a table."""
_OF_LAUNCH = ["launch_id", "started_at", "environment_key", "backend", "library", "library_version"]
_SUMMARISED = ["benchmark", "library", "library_version", "launch_id", "date"]
MOST_HEADLINES = 16
"""Benchmarks on the first screen of a store in which nothing can be compared."""
MOST_LINES = 2000
"""Lines of the table of all measurements."""
_WHO = ("benchmark", "backend", "library", "library_version", "binding", "device", "ranks", "devices")
_OTHER_WAYS = (SIDE, *(name for name in (*WAYS, "parameters") if name not in _WHO))
_HEADS = (
    *("benchmark", "backend", "library", "version", "binding", "device", "ranks", "GPUs", "way", "sizes"),
    *("µs at the smallest", "µs at the largest", "GB/s at most", "launches", "cells", "failed", "last day"),
    "what draws it",
)


def summary(frames: Sequence[pd.DataFrame]) -> str:
    """Rows, launches, benchmarks, libraries and days of some frames, in one line."""
    cells = sum(map(len, frames))
    if not cells:
        return "nothing"
    rows = pd.concat([frame[_SUMMARISED].drop_duplicates().astype(object) for frame in frames if len(frame)])
    names = zip(rows["library"], rows["library_version"], strict=True)
    texts = {" ".join(word for word in name if isinstance(word, str)) for name in names}
    libraries = sorted(filter(None, texts))
    over = f" over {listed(libraries)}" if libraries else ""
    counts = f"{plural(cells, 'row')} from {plural(rows['launch_id'].nunique(), 'launch')}"
    return f"{counts}: {listed(sorted(rows['benchmark'].unique()))}{over}, measured {series.days(rows)}"


def machines(cells: Cells) -> str:
    """Numbers of GPUs, ranks and nodes, and their hardware, where the store says so."""
    rows = cells.rows
    if not len(rows):
        return ""
    parts = [
        _span(rows[column].dropna().unique(), word)
        for column, word in (("devices", "GPU"), ("ranks", "rank"), ("nodes", "node"))
    ]
    parts = parts[:1] + parts[2:] if parts[0].replace("GPU", "rank") == parts[1] else parts
    return SEPARATOR.join(part for part in (*parts, _hardware(cells)) if part)


def _span(counts: Iterable[int], word: str) -> str:
    values = sorted({int(count) for count in counts if count > 0})
    if not values:
        return ""
    return plural(values[0], word) if len(values) == 1 else f"{values[0]} to {values[-1]} {word}s"


def _hardware(cells: Cells) -> str:
    devices = [name for name in cells.rows["device_name"].unique() if not theme.absent(name)]
    if devices:
        return listed(devices)
    newest = cells.rows.sort_values("started_at").drop_duplicates([*series.FULL_NAME], keep="last")["launch_id"]
    facts = [fact for launch in newest if not is_simulated(fact := cells.provenance(str(launch)))]
    nodes = [node for fact in facts for node in fact.get("node_facts") or ()]
    names = [str((node.get("cpu") or {}).get("model name") or "") for node in nodes if isinstance(node, dict)]
    return listed(" ".join(name.split()) for name in names if name)


def by_side(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each benchmark, side, number of ranks and way of measuring, which are the index, of prepared cells.

    The ways are the sides of comparisons that only a tag tells apart, and the columns of type, operation, placement and
    the like whose values differ. ``low`` and ``high`` are its sizes in bytes, ``at_low`` and ``at_high`` the medians
    over launches there in µs, ``rate`` its most GB/s, ``value`` the largest in its ``unit``, both of the medians over
    launches too, then ``launches``, ``cells``, ``failed`` ones, and the last ``day``.
    """
    rows = rows.assign(**{SIDE: series.sides_of(rows)})
    keys = [*(name for name in _WHO if name in rows), *series.varying(rows, _OTHER_WAYS)]
    part = rows[[*keys, "size_bytes", "launch_id", "date", "validated", "median_us", "busbw_gbps", "value", "unit"]]
    sized = part.assign(
        size=part["size_bytes"].astype("float64"),
        day=part["date"].astype(str),
        failed=part["validated"].eq(False).fillna(False).astype(bool),
    )
    by = sized.groupby(keys, dropna=False, sort=True, observed=True)
    sides = by.agg(
        low=("size", "min"),
        high=("size", "max"),
        launches=("launch_id", "nunique"),
        cells=("launch_id", "size"),
        failed=("failed", "sum"),
        day=("day", "max"),
        unit=("unit", "first"),
    )
    of_size = sized.groupby([*keys, "size"], dropna=False, sort=True, observed=True)[["busbw_gbps", "value"]].median()
    highest = of_size.groupby(keys, dropna=False, sort=True, observed=True).max()
    sides = sides.assign(rate=highest["busbw_gbps"], value=highest["value"])
    for name, end in (("low", by["size"].transform("min")), ("high", by["size"].transform("max"))):
        there = sized[sized["size"].isna() | (sized["size"] == end)]
        sides[f"at_{name}"] = there.groupby(keys, dropna=False, sort=True, observed=True)["median_us"].median()
    return sides


def overview(cells: Cells) -> Iterator[Shown]:
    """All measurements: a line for each benchmark, side and number of ranks, and the command that draws its figures."""
    rows = cells.rows
    if not len(rows):
        return
    sides = _add_ways(by_side(rows).reset_index())
    lines = [_line(cells, row) for row in records(sides.head(MOST_LINES))]
    left = len(sides) - len(lines)
    more = f"; the first {MOST_LINES} of {plural(len(sides), 'line')}: filters show the others" if left else ""
    caption = f"Medians over launches; the command in the last column draws the line{more}"
    at = _HEADS.index("way")  # no column where nobody measured in two ways
    kept = [place for place in range(len(_HEADS)) if place != at or any(line[at] for line in lines)]
    numbers = table([_HEADS[place] for place in kept], [[line[place] for place in kept] for line in lines])
    yield Shown(View("overview", summary([rows]), caption, None, **numbers))


def _add_ways(sides: pd.DataFrame) -> pd.DataFrame:
    """Rows of :func:`by_side` with ``way``: the values in which one differs from others of the same benchmark, side and
    number of ranks, by column; empty where they were measured in one way."""
    keys, ways = ([name for name in names if name in sides] for names in (_WHO, _OTHER_WAYS))
    values = sides[ways].astype("object").fillna("")
    by = [sides[key] for key in keys]
    counts = values.groupby(by, dropna=False, observed=True).transform("nunique") if ways else values
    apart = zip(values.to_numpy(), counts.to_numpy() > 1, strict=True)
    own = [dict(zip(values.columns[differ], row[differ], strict=True)) for row, differ in apart]
    return sides.assign(way=pd.Series(own, index=sides.index, dtype=object))


def headline(cells: Cells, sides: Sequence[str], command: str) -> Shown:
    """What a store says whose measurements cannot be compared: a line a benchmark, who measured (`sides`), and how to
    make a comparison, by a `command` that measures the same again."""
    every = _add_ways(by_side(cells.timed).reset_index()).sort_values(["ranks", "day", "cells"], kind="stable")
    newest = every.drop_duplicates("benchmark", keep="last").sort_values("benchmark")
    lines = [_headline(row) for row in records(newest.head(MOST_HEADLINES))]
    left = len(newest) - len(lines)
    more = f"; {plural(left, 'benchmark')} more in the tab Cell" if left else ""
    again = "measure the same with another version or library: "
    if not (cells.timed["source"] == OURS).any():  # another tool's means are compared with its own alone
        again, command = "import the same of another version or library: ", "omb-py results import FILE…"
    how = (
        f"No base: only {listed(sides)} measured. To get one, {again}{storing(command, cells.store)}. "
        f"Then type omb-py compare BASE NEW, the ids of two runs"
    )
    title = "Each benchmark, on the most ranks that it ran on"
    numbers = table(("benchmark", "ranks", "time", "highest rate"), lines)
    return Shown(View("headline", title, f"{how}{more}.", None, **numbers), cells.timed)


def _headline(row: Record) -> tuple[object, ...]:
    sized = not theme.absent(row.high) and row.high > 0
    ends = [(row.low, row.at_low), *([(row.high, row.at_high)] if sized and row.high > row.low else [])]
    known = [(size, at) for size, at in ends if row.unit == "us" and not theme.absent(at)]
    times = [f"{theme.duration(at)} at {size_text(size)}" if sized else theme.duration(at) for size, at in known]
    rate = f"{theme.amount(row.value)} {row.unit}" if row.unit != "us" else ""
    rate = rate if theme.absent(row.rate) else f"{theme.amount(row.rate)} GB/s bus bandwidth"
    name = ", ".join(filter(None, (str(row.benchmark), _way_text(row.way))))
    return name, "" if theme.absent(row.ranks) else int(row.ranks), ", ".join(times), rate


def _way_text(way: Mapping[str, object]) -> str:
    """``float32, in_place=False``: text alone, other values with the name of their column."""
    return ", ".join(
        str(value) if isinstance(value, str) else f"{name}={value}" for name, value in way.items() if value != ""
    )


def _line(cells: Cells, row: Record) -> tuple[object, ...]:
    who = {name: "" if theme.absent(value := getattr(row, name, None)) else value for name in _WHO}
    sized = not theme.absent(row.high) and row.high > 0
    span = " to ".join(dict.fromkeys(map(size_text, (row.low, row.high)))) if sized else "-"
    sought = {**who, **{name: value for name, value in row.way.items() if name != "parameters"}}
    said = sought if who["library"] == "" else {**sought, "backend": ""}  # a library has one backend
    columns = {SIDE: f"tag={COMPARE_SIDE}"}
    filters = [f"{columns.get(name, name)}={value}" for name, value in said.items() if value != ""]
    command = shlex.join(["omb-py", "report", str(cells.store), *filters])
    numbers = (theme.finite(row.at_low), theme.finite(row.at_high) if sized else None, theme.finite(row.rate))
    if row.unit == "MB/s":  # its times are those of a window of messages
        numbers = (None, None, theme.finite(row.value / 1e3))
    counts = (int(row.launches), int(row.cells), int(row.failed) or "", row.day)
    return (*who.values(), _way_text(row.way), span, *numbers, *counts, command)


def environments(cells: Cells) -> Iterator[Shown]:
    """Differences between the newest launches of the newest environments; nothing where all are alike."""
    launches = cells.rows[_OF_LAUNCH].drop_duplicates(["launch_id", "environment_key"])
    newest = launches.sort_values("started_at").drop_duplicates("environment_key", keep="last")
    sides = {}
    for row in records(newest.tail(MOST_ENVIRONMENTS)):
        facts = published(environment_facts(cells.provenance(row.launch_id)))
        if facts:
            words = (row.backend if theme.absent(row.library) else row.library, row.library_version)
            sides[f"{' '.join(str(w) for w in words if not theme.absent(w))}, {row.launch_id}"] = facts
    if len(sides) > 1:
        yield Shown(environment(sides), cells.rows)


_NO_PEER = "no peer access"


def environment(sides: Mapping[str, Facts]) -> View:
    """The facts in which environments differ, of those that an environment key is made of; only a table."""
    every = [dict(flat(facts, numbered=True)) for facts in sides.values()]
    names = list(dict.fromkeys(key for facts in every for key in facts))
    rows = []
    for name in names:
        values = [facts.get(name, "-") for facts in every]
        if len(set(values)) > 1:
            group, _, rest = name.partition(".")
            rows.append((group, rest or group, *values))
    title = f"{plural(len(rows), 'fact')} differ" if len(rows) != 1 else "1 fact differs"
    title += f" between {listed(sides) if len(sides) < 3 else plural(len(sides), 'environment')}"
    title += f": {listed(f'{row[1]}' for row in rows)}" if rows else ""
    numbers = table(("group", "fact", *sides), sorted(rows))
    return View("environment", title, f"{plural(len(names), 'fact')} compared", None, **numbers)


def gpu_paths(hosts: Sequence[str], inventory: GpuInventory) -> View:
    """The table of a node's GPUs, as a launch stores them (:meth:`omb_py.engine.devices.nvml.Inventory.as_dict`); nodes
    that are alike share one."""
    gpus = list(inventory.get("gpus") or ())
    pairs = {(pair["first"], pair["second"]): pair for pair in inventory.get("pairs") or ()}
    numbers = [gpu["index"] for gpu in gpus]
    rows = [
        (
            f"GPU {gpu['index']}",
            gpu.get("name") or "-",
            *(_cell(pairs, gpu["index"], other) for other in numbers),
            "-" if gpu.get("numa") is None else gpu["numa"],
            gpu.get("pcie") or "-",
            gpu.get("mig") or "-",
        )
        for gpu in gpus
    ]
    driver = f"driver {inventory.get('driver') or 'unknown'}, CUDA {inventory.get('cuda') or 'unknown'}"
    heads = ("GPU", "name", *(f"to {number}" for number in numbers), "NUMA node", "PCIe", "MIG")
    return View("gpu paths", _title(hosts, len(gpus), pairs), driver, None, **table(heads, rows))


def unknown_paths(hosts: Sequence[str], why: str) -> View:
    """Nodes on which no launch could ask for the paths, with the reason and what to do."""
    rows = [(host, why) for host in hosts]
    title = f"The paths between GPUs of {listed(hosts)} are unknown: {why}"
    return View("gpu paths", title, "", None, **table(("node", "why"), rows))


def _cell(pairs: Mapping[tuple[int, int], GpuPair], first: int, second: int) -> str:
    if first == second:
        return "·"
    pair = pairs.get((min(first, second), max(first, second)))
    if pair is None:
        return "?"
    path = pair["path"] or "?"
    return f"{path}, {_NO_PEER}" if pair["no_peer"] else path


def _title(hosts: Sequence[str], count: int, pairs: Mapping[tuple[int, int], GpuPair]) -> str:
    """The finding: ``NV18 between all pairs of 8 GPUs on n1, n2``."""
    where = f"{plural(count, 'GPU')} on {listed(hosts)}"
    paths = Counter(str(pair.get("path") or "an unknown path") for pair in pairs.values())
    if not paths:
        return where
    apart = [pair for pair in pairs.values() if pair.get("no_peer")]
    reasons = f"; {_NO_PEER} on {plural(len(apart), 'pair')}: {listed(p['no_peer'] for p in apart)}" if apart else ""
    if len(paths) == 1:
        return f"{next(iter(paths))} between all pairs of {where}{reasons}"
    parts = (f"{path} between {plural(number, 'pair')}" for path, number in paths.most_common())
    return f"{where}: {listed(parts)}{reasons}"
