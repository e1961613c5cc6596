"""What a picture says: who is fastest where, the crossovers, ranks, hardware, launches and days."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from omb_py import __version__
from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.view import listed, plural
from omb_py.dashboards.figures.multiples import QUANTITIES, SIZE, Grid, Points
from omb_py.dashboards.views.cells import Cells
from omb_py.results.analysis.crossover import lowest, stretches

if TYPE_CHECKING:
    import pandas as pd

WHO = ("backend", "library", "library_version")


def fastest_at(known: Points, panel: int) -> dict[int, str | None]:
    """Value on the x axis -> who is fastest, None where the launches do not tell; where two sides or more have it."""
    tables = {side: table for (side, at), table in known.known.items() if at == panel}
    best: dict[int, str | None] = {}
    for x in sorted({int(value) for table in tables.values() for value in table.index}):
        ranges = {}
        for side, table in tables.items():
            if x in table.index:
                low, middle, high = (float(table[name].loc[x]) for name in ("low", "middle", "high"))
                rate = known.grid.quantity == "busbw"
                ranges[side] = (1 / high, 1 / middle, 1 / low) if rate else (low, middle, high)
        if len(ranges) > 1:
            best[x] = lowest(ranges)
    return best


def crossovers(fastest: Mapping[int, str | None], grid: Grid) -> list[tuple[float, str]]:
    """Where another side becomes the fastest: the first value at which it is."""
    decided = [(x, side) for x, side in fastest.items() if side is not None]
    return [(float(x), f"from {grid.said(grid.across, x)}") for (_, a), (x, b) in pairwise(decided) if a != b]


def title(name: str, known: Points, fastest: Mapping[int, Mapping[int, str | None]]) -> str:
    """The finding, of the largest panel: who is fastest where, and how far apart they are."""
    grid = known.grid
    panel = max((at for at, places in fastest.items() if crossovers(places, grid)), default=max(fastest))
    subject = f"{name}, {grid.said(grid.panel, panel)}"
    tables = {side: table for (side, at), table in known.known.items() if at == panel}
    if len(tables) == 1:
        (table,) = tables.values()
        ends = [(int(x), float(table["middle"].loc[x])) for x in (table.index[0], table.index[-1])]
        return f"{subject}: " + ", ".join(
            f"{_amount(value, grid.quantity)} at {grid.said(grid.across, x)}" for x, value in dict(ends).items()
        )
    places = fastest[panel]
    decided = [(grid.said(grid.across, x), side) for x, side in places.items() if side is not None]
    whole = len(decided) == len(places)
    every = "at every size" if grid.across == SIZE else "at every number"
    text = stretches(decided, whole, every) if decided else "no side is faster beyond the range of the launches"
    far, x = max((max(values) / min(values), x) for x in places if (values := _middles(tables, x)))
    apart = f"; up to {theme.amount(far)}× apart, at {grid.said(grid.across, x)}" if far > 1.005 else ""
    return f"{subject}: {text}{apart}"


def _amount(value: float, quantity: str) -> str:
    return theme.duration(value) if quantity == "time" else f"{theme.amount(value)} {QUANTITIES[quantity]}"


def _middles(tables: Mapping[str, pd.DataFrame], x: int) -> list[float]:
    return [float(table["middle"].loc[x]) for table in tables.values() if x in table.index]


def legend(known: Points, crossed: bool) -> str:
    """What lines, bands and dashes are."""
    several = any(table["launches"].max() > 1 for table in known.known.values())
    single = any(table["launches"].max() < 2 for table in known.known.values())
    parts = ["line: median over launches", *(["band: their range"] if several else [])]
    parts += ["dashed: another side is the fastest from here on"] if crossed else []
    parts += ["where a side has one launch, its spread is unknown"] if single else []
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}. Drawn by omb-py {__version__}."


def caption(cells: Cells) -> str:
    """Ranks, GPUs and nodes, hardware, launches and days."""
    rows = cells.rows
    parts = [_span(rows[column], word) for column, word in (("devices", "GPU"), ("ranks", "rank"), ("nodes", "node"))]
    parts = parts[:1] + parts[2:] if parts[0].replace("GPU", "rank") == parts[1] else parts
    launches = rows.groupby([*WHO, "ranks"], observed=True, dropna=False)["launch_id"].nunique()
    low, high = int(launches.min()), int(launches.max())
    parts += [_hardware(cells)]
    parts += [f"{plural(high, 'launch') if low == high else f'{low} to {high} launches'} each"]
    parts += ["printed means, no samples"] if series.statistic(rows) == series.PRINTED_MEAN else []
    return " · ".join(part for part in [*parts, series.days(rows)] if part)


def _span(column: pd.Series[Any], word: str) -> str:
    """``2 to 64 GPUs``; empty where there is none."""
    values = sorted({int(value) for value in column.dropna() if value > 0})
    if not values:
        return ""
    return plural(values[0], word) if len(values) == 1 else f"{values[0]} to {values[-1]} {word}s"


def _hardware(cells: Cells) -> str:
    """Names of the devices; of the processors where there is none."""
    devices = [name for name in cells.rows["device_name"].unique() if not theme.absent(name)]
    if devices:
        return listed(devices)
    newest = cells.rows.sort_values("started_at").drop_duplicates([*WHO], keep="last")["launch_id"]
    nodes = [node for launch in newest for node in cells.provenance(str(launch)).get("node_facts") or ()]
    names = [str((node.get("cpu") or {}).get("model name") or "") for node in nodes if isinstance(node, dict)]
    return listed(" ".join(name.split()) for name in names if name)
