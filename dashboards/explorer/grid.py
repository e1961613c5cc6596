"""The rows that AG Grid asks for, sorted here: a browser holds a page of them, not a million."""

from __future__ import annotations

import pandas as pd

from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.theme import Facts
from omb_py.printing.export import without_formula
from omb_py.results.store.schema import BY_NAME

SHOWN = tuple(
    (
        "benchmark backend library library_version binding device dtype op ranks devices size_bytes value "
        "unit median_us p99_us busbw_gbps iterations validated tags started_at launch_id"
    ).split()
)
"""Columns of the grid; the downloads have all."""
KEY = "comparability_key"
"""Not shown: with the launch it names the cell of a row."""
BLOCK = 100
"""Rows that are asked for at once."""
_HEADS = {
    "library_version": "version",
    "devices": "GPUs",
    "size_bytes": "size (bytes)",
    "median_us": "median (µs)",
    "p99_us": "p99 (µs)",
    "busbw_gbps": "bus bandwidth (GB/s)",
    "iterations": "samples",
    "started_at": "started (UTC)",
    "launch_id": "launch",
}
_WIDTHS = {"started_at": 230, "launch_id": 230, "tags": 230, "library": 150, "benchmark": 160, "busbw_gbps": 190}
"""Pixels; of the others :data:`_WIDTH`."""
_WIDTH = 120
_DIGITS = {"valueFormatter": {"function": "params.value == null ? '' : d3.format('.6~r')(params.value)"}}


def columns() -> list[dict[str, object]]:
    """AG Grid's definitions of the columns: units in their heads, six digits."""
    return [
        {
            "field": name,
            "headerName": _HEADS.get(name, name),
            "width": _WIDTHS.get(name, _WIDTH),
            **({"type": "numericColumn"} if BY_NAME[name].kind in ("int32", "int64", "float64") else {}),
            **(_DIGITS if BY_NAME[name].kind == "float64" else {}),
        }
        for name in SHOWN
    ]


def without_formulas(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows for a CSV file, where no text is a formula to a spreadsheet."""
    texts = [name for name in rows.columns if not hasattr(rows[name].dtype, "kind") or rows[name].dtype.kind == "O"]

    def neutral(value: object) -> object:
        return without_formula(value) if isinstance(value, str) else value

    return rows.assign(**{name: rows[name].astype(object).map(neutral) for name in texts})


def answer(rows: pd.DataFrame, request: Facts) -> dict[str, object]:
    """Answer a request of AG Grid's infinite row model (``startRow``, ``endRow``, ``sortModel``) with ``rowData`` and
    ``rowCount``; what it asks of unknown columns is left out. The sidebar filters."""
    start, end = max(0, int(request.get("startRow") or 0)), int(request.get("endRow") or BLOCK)
    order = [column for column in request.get("sortModel") or () if column.get("colId") in SHOWN]
    if order:
        rows = series.as_stored(rows).sort_values(
            [column["colId"] for column in order],
            ascending=[column.get("sort") != "desc" for column in order],
            kind="stable",
        )
    part = series.as_stored(rows.iloc[start:end])[[*SHOWN, KEY]]  # a million rows need no copy for a hundred
    cells = part.assign(started_at=part["started_at"].astype(str)).astype(object).to_dict("records")
    data = [{str(name): None if theme.absent(v) else v for name, v in cell.items()} for cell in cells]
    return {"rowData": data, "rowCount": len(rows)}
