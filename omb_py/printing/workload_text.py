"""Workloads as tables for a terminal: predicted beside measured times, and efficiency over ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group
from rich.text import Text

from omb_py.printing.writers.terminal import rich_table
from omb_py.results.analysis.efficiency import Scaling
from omb_py.results.analysis.step_prediction import Observed, Predicted, beside
from omb_py.results.document import TextTable


def forecast_table(
    workload: str, side: Mapping[str, Any], prediction: Predicted, times: Mapping[str, Observed]
) -> Group:
    """Make a table of predicted and measured times: a line for each row of the calls, and one for all calls."""
    rows = []
    for line in beside(prediction, times):
        if not line.predicted_us and not line.measured_us and line.predicted_us is not None:
            continue  # a row of calls that these ranks do not make
        error = "-" if line.error is None else f"{100 * line.error:+.0f} %"
        floor = line.observed.floor if line.observed else None
        spread = "-" if floor is None else f"{100 * floor:.0f} %"
        rows.append((line.what, _us(line.predicted_us), _us(line.measured_us), error, spread))
    heads = ("calls", "predicted µs", "measured µs", "error", "launches differ by")
    table = rich_table(TextTable(heads, rows, ("calls",)))
    notes = [Text(f"predicted too: {text}") for text in prediction.ranks_scaled]
    if text := _judged(prediction, times):
        notes.append(Text(text))
    return Group(Text(f"{_heading(workload, side)} · predicted from stored sweeps"), table, *notes)


def _judged(prediction: Predicted, times: Mapping[str, Observed]) -> str:
    """Say how good the prediction can be at best; empty where the step was not measured."""
    whole = beside(prediction, times)[-1]
    if whole.observed is None or whole.error is None:
        return ""
    if whole.observed.floor is None:
        return "One launch of the step: how far its launches differ is unknown (--launches 5 shows it)."
    floor = f"{whole.observed.launches} launches of the step differ by {100 * whole.observed.floor:.0f} %"
    if whole.as_good_as_a_launch:
        return f"{floor}: the prediction is as close as a launch is to another, and none can be closer."
    return f"{floor}: the prediction is further off than that."


def scaling_table(workload: str, kind: str, side: Mapping[str, Any], steps: Sequence[Scaling]) -> Group:
    """Make a table of a step's scaling, one line a number of ranks."""
    heads = ("ranks", "step µs", "compute µs", "exposed µs", "speedup", "efficiency", "against 1 rank")
    rows = []
    for step in steps:
        shares = (f"{100 * share:.1f} %" for share in (step.efficiency, step.alone))
        times = (_us(us) for us in (step.step_us, step.compute_us, step.exposed_us))
        rows.append((str(step.ranks), *times, f"{step.speedup:.2f}", *shares))
    parts = (workload, f"{kind} scaling", side["backend"], side["library"], side["binding"])
    return Group(Text(" · ".join(str(word) for word in parts if word)), rich_table(TextTable(heads, rows)))


def _heading(workload: str, side: Mapping[str, Any]) -> str:
    parts = (workload, f"{side['ranks']} ranks", side["backend"], side["library"], side["binding"])
    return " · ".join(str(word) for word in parts if word)


def _us(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
