"""A model for a terminal."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table
from rich.text import Text

from omb_py.dashboards.terminal.history_text import heading
from omb_py.results.analysis.cost_model import OFFLOAD, Cell, Model, Scaled
from omb_py.results.formats.document import TextTable
from omb_py.results.formats.units import size_text
from omb_py.results.formats.writers.terminal import rich_table


def segments_table(found: Model) -> Group:
    """One line a segment."""
    name = heading(found.facts, [cell.size_bytes for cell in found.cells])
    rows = [
        (
            size_text(segment.first),
            size_text(segment.last),
            f"{segment.alpha_us:.3f}",
            f"{1000 * segment.beta_us:.4f}",
            "-" if segment.bandwidth is None else f"{segment.bandwidth:.0f}",
        )
        for segment in found.curve.segments
    ]
    table = rich_table(TextTable(("from", "to", "alpha µs", "beta ns/B", "MB/s"), rows))
    return Group(Text(f"{name} · T = alpha + beta · size, mean error {100 * found.curve.error:.1f} %"), table)


def cells_table(found: Model) -> Table:
    """One line a size."""
    rows = [
        (
            size_text(cell.size_bytes),
            str(cell.launches),
            f"{cell.measured_us:.3f}",
            f"{cell.fitted_us:.3f}",
            "-" if cell.bound_us is None else f"{cell.bound_us:.3f}",
            _efficiency(cell),
        )
        for cell in found.cells
    ]
    return rich_table(TextTable(("size", "launches", "measured µs", "fitted µs", "bound µs", "efficiency"), rows))


def scaled_table(found: Scaled, ranks: int) -> Group:
    """One line a size, at a number of ranks that was not measured."""
    measured = ", ".join(map(str, found.measured))
    name = heading(found.facts, tuple(found.sizes))
    rows = []
    for size, one in found.sizes.items():
        band = [f"{time:.3f}" for time in (one.time_us, one.low_us, one.high_us)]
        rows.append((size_text(size), *band, f"{100 * one.error:.0f} %", one.term))
    table = rich_table(TextTable(("size", "predicted µs", "from", "to", "left-out error", "T = a + b ·"), rows))
    return Group(Text(f"{name} · predicted at {ranks} ranks from {measured}"), table)


def _efficiency(cell: Cell) -> str:
    if cell.efficiency is None:
        return "-"
    return f"{100 * cell.efficiency:.0f} %" + (" offload" if cell.efficiency >= OFFLOAD else "")
