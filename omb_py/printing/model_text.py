"""Cost models as tables for a terminal."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table
from rich.text import Text

from omb_py.printing.history_text import heading
from omb_py.printing.writers.terminal import rich_table
from omb_py.results.analysis.cost_model import OFFLOAD, CostModel, ModelCell, ScaledTimes
from omb_py.results.document import TextTable
from omb_py.results.units import size_text


def segments_table(model: CostModel) -> Group:
    """Make a table of a model's segments, one line each."""
    name = heading(model.facts, [cell.size_bytes for cell in model.cells])
    rows = [
        (
            size_text(segment.first),
            size_text(segment.last),
            f"{segment.alpha_us:.3f}",
            f"{1000 * segment.beta_us:.4f}",
            "-" if segment.bandwidth is None else f"{segment.bandwidth:.0f}",
        )
        for segment in model.curve.segments
    ]
    table = rich_table(TextTable(("from", "to", "alpha µs", "beta ns/B", "MB/s"), rows))
    return Group(Text(f"{name} · T = alpha + beta · size, mean error {100 * model.curve.error:.1f} %"), table)


def cells_table(model: CostModel) -> Table:
    """Make a table of a model's sizes, one line each."""
    rows = [
        (
            size_text(cell.size_bytes),
            str(cell.launches),
            f"{cell.measured_us:.3f}",
            f"{cell.fitted_us:.3f}",
            "-" if cell.bound_us is None else f"{cell.bound_us:.3f}",
            _efficiency(cell),
        )
        for cell in model.cells
    ]
    return rich_table(TextTable(("size", "launches", "measured µs", "fitted µs", "bound µs", "efficiency"), rows))


def scaled_table(predictions: ScaledTimes, ranks: int) -> Group:
    """Make a table of the times predicted at a number of ranks, one line a size."""
    measured = ", ".join(map(str, predictions.measured))
    name = heading(predictions.facts, tuple(predictions.sizes))
    rows = []
    for size, prediction in predictions.sizes.items():
        band = [f"{time:.3f}" for time in (prediction.time_us, prediction.low_us, prediction.high_us)]
        rows.append((size_text(size), *band, f"{100 * prediction.error:.0f} %", prediction.term))
    table = rich_table(TextTable(("size", "predicted µs", "from", "to", "left-out error", "T = a + b ·"), rows))
    return Group(Text(f"{name} · predicted at {ranks} ranks from {measured}"), table)


def _efficiency(cell: ModelCell) -> str:
    if cell.efficiency is None:
        return "-"
    return f"{100 * cell.efficiency:.0f} %" + (" offload" if cell.efficiency >= OFFLOAD else "")
