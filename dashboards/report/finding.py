"""What a picture says beside its finding: lines and bands, ranks, hardware, launches and days."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omb_py import __version__
from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.view import listed, plural
from omb_py.dashboards.figures.multiples import Points
from omb_py.dashboards.views.cells import Cells

if TYPE_CHECKING:
    import pandas as pd

WHO = ("backend", "library", "library_version")


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
