"""Histories, fitted models and workloads as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from omb_py.printing.writers.terminal import rich_table
from omb_py.results.analysis.cost_model import OFFLOAD, CostModel, ModelCell, ScaledTimes
from omb_py.results.analysis.efficiency import Scaling
from omb_py.results.analysis.history import History, Level, LevelStep
from omb_py.results.analysis.series import PLURALS, SIDE, Series
from omb_py.results.analysis.step_prediction import Observed, Predicted, put_beside
from omb_py.results.compare.cell_names import value_text
from omb_py.results.document import TextTable
from omb_py.results.units import size_text

_SHOWN = 6
"""Most differences of an environment that are listed."""


def title(series: Series) -> str:
    """Name a series: ``allreduce · 8 B · 4 ranks · mpi · Open MPI · native``."""
    return heading(series.facts, (series.facts["size_bytes"],))


def heading(facts: Mapping[str, object], measured: Sequence[int | None]) -> str:
    """Say what was measured: benchmark, sizes, ranks, backend, library; for imported rows also whose means they are.
    A history has no one version."""
    library = " ".join(str(facts[name]) for name in ("library", "library_version") if facts.get(name))
    sizes = [size_text(size) for size in measured if size is not None]
    shown = "" if not sizes else sizes[0] if len(sizes) == 1 else f"{len(sizes)} sizes, {sizes[0]} to {sizes[-1]}"
    ranks = value_text("ranks", facts["ranks"]) if facts.get("ranks") else ""
    parts = [facts["benchmark"], shown, ranks, facts.get("backend"), library, facts.get("binding"), facts.get("dtype")]
    if facts.get("statistic") == "mean":
        parts.append(f"means of {facts['source']}")
    if facts.get(SIDE):
        parts.append(f"side {facts[SIDE]} of comparisons")
    return " · ".join(str(word) for word in parts if word)


def history_table(history: History) -> Group:
    """Make a table of the levels, one line each, with the change that began it."""
    labels = ("from (UTC)", "first launch", "version")
    units = () if history.unit == "launch" else (PLURALS[history.unit],)
    numbers = (*units, "launches", f"{history.series.facts['statistic']} µs", "spread", "change", "p")
    steps = [None, *history.steps]
    rows = [_cells(level, step, bool(units)) for level, step in zip(history.levels, steps, strict=False)]
    return Group(Text(title(history.series)), rich_table(TextTable((*labels, *numbers), rows, labels)))


def environment_lines(history: History) -> list[str]:
    """Write a line for each change with the differences between the launches around it."""
    lines = []
    for step in history.steps:
        head = f"{step.before.launch_id} → {step.after.launch_id} ({_percent(step.ratio)})"
        shown = "; ".join(map(str, step.what_changed[:_SHOWN])) or "nothing that is recorded changed"
        more = f"; and {len(step.what_changed) - _SHOWN} more" if len(step.what_changed) > _SHOWN else ""
        lines.append(f"{head}: {shown}{more}")
    return lines


def _cells(level: Level, step: LevelStep | None, units: bool) -> list[str]:
    versions = level.versions[0] if len(level.versions) == 1 else f"{level.versions[0]} … {level.versions[-1]}"
    change = ["", ""] if step is None else [_percent(step.ratio), f"{step.p:.3f}"]
    return [
        level.first.started_at[:16].replace("T", " "),
        level.first.launch_id,
        versions,
        *([str(level.units)] if units else []),
        str(level.launches),
        f"{level.time_us:.3f}",
        f"{100 * level.spread:.1f} %",
        *change,
    ]


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %"


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


def forecast_table(
    workload: str, side: Mapping[str, object], prediction: Predicted, times: Mapping[str, Observed]
) -> Group:
    """Make a table of predicted and measured times: a line for each row of the calls, and one for all calls."""
    rows = []
    for line in put_beside(prediction, times):
        if not line.predicted_us and not line.measured_us and line.predicted_us is not None:
            continue  # a row of calls that these ranks do not make
        error = "-" if line.error is None else f"{100 * line.error:+.0f} %"
        floor = line.observed.floor if line.observed else None
        spread = "-" if floor is None else f"{100 * floor:.0f} %"
        rows.append((line.what, _us(line.predicted_us), _us(line.measured_us), error, spread))
    heads = ("calls", "predicted µs", "measured µs", "error", "launches differ by")
    table = rich_table(TextTable(heads, rows, ("calls",)))
    notes = [Text(f"predicted too: {text}") for text in prediction.ranks_scaled]
    if text := _judge(prediction, times):
        notes.append(Text(text))
    return Group(Text(f"{_heading(workload, side)} · predicted from stored sweeps"), table, *notes)


def _judge(prediction: Predicted, times: Mapping[str, Observed]) -> str:
    """Say how good the prediction can be at best; empty where the step was not measured."""
    whole = put_beside(prediction, times)[-1]
    if whole.observed is None or whole.error is None:
        return ""
    if whole.observed.floor is None:
        return "One launch of the step: how far its launches differ is unknown (--launches 5 shows it)."
    floor = f"{whole.observed.launches} launches of the step differ by {100 * whole.observed.floor:.0f} %"
    if whole.as_good_as_a_launch:
        return f"{floor}: the prediction is as close as a launch is to another, and none can be closer."
    return f"{floor}: the prediction is further off than that."


def scaling_table(workload: str, kind: str, side: Mapping[str, object], steps: Sequence[Scaling]) -> Group:
    """Make a table of a step's scaling, one line a number of ranks."""
    heads = ("ranks", "step µs", "compute µs", "exposed µs", "speedup", "efficiency", "against 1 rank")
    rows = []
    for step in steps:
        shares = (f"{100 * share:.1f} %" for share in (step.efficiency, step.alone))
        times = (_us(us) for us in (step.step_us, step.compute_us, step.exposed_us))
        rows.append((str(step.ranks), *times, f"{step.speedup:.2f}", *shares))
    parts = (workload, f"{kind} scaling", side["backend"], side["library"], side["binding"])
    return Group(Text(" · ".join(str(word) for word in parts if word)), rich_table(TextTable(heads, rows)))


def _heading(workload: str, side: Mapping[str, object]) -> str:
    parts = (workload, value_text("ranks", side["ranks"]), side["backend"], side["library"], side["binding"])
    return " · ".join(str(word) for word in parts if word)


def _us(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
