"""Predict step times from stored sweeps, show them beside measured ones, and say which sweeps are missing."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from omb_py.backends.registry import capabilities_of
from omb_py.orchestrate.workloads.step_times import predict_step
from omb_py.results.analysis import series, step_prediction
from omb_py.results.analysis.step_prediction import MESSAGES, SIDE, WRITES, Ask, Missing, Observed, Predicted
from omb_py.results.store.paths import pass_over
from omb_py.results.store.read import load_table, to_rows
from omb_py.results.store.row import Row
from omb_py.results.store.schema import value_of
from omb_py.suites.workloads.calls import OF_MESSAGES, WRITE, Call
from omb_py.suites.workloads.families import Workload

REDUCE = ("allreduce", "reduce", "reduce_scatter_block")
"""Operations whose time depends on the element type."""
ASKED = (*REDUCE, "allgather", "alltoall", "alltoallv", "bcast", "gather", "scatter", "barrier", MESSAGES, WRITES)
"""Benchmarks whose curves a prediction may need."""
WHERE = (*SIDE, "nodes", "ranks")
"""Columns that say where a step runs."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Predicted times of a step on one side, with the measured ones if there are any."""

    workload: str
    side: Mapping[str, object]
    """Column -> value, for the columns :data:`WHERE`."""
    prediction: Predicted
    metrics: Mapping[str, float]
    """Metrics of the measured step; empty if it was not measured."""
    times: Mapping[str, Observed] = field(default_factory=dict)
    """Times of its calls; empty if it was not measured."""


def asks(workload: Workload, ranks: int) -> list[list[Ask]]:
    """List the calls of each rank by the benchmarks and sizes that measure them.

    Raises UsageError where the workload does not fit the ranks.
    """
    calls = []
    for rank in range(ranks):
        rows = workload.labels(rank, ranks)
        calls.append([_ask(call, rows[call.label, call.size], rank, ranks) for call in workload.calls(rank, ranks)])
    return calls


def _ask(call: Call, row: str, rank: int, world: int) -> Ask:
    if call.op == WRITE:
        return Ask(row, WRITES, call.size, members=(rank,), sends=call.sends)
    if call.op in OF_MESSAGES:  # a server is predicted as if it sent its answers at once
        return Ask(row, MESSAGES, call.size, sends=call.sends, receives=call.receives)
    n, size = len(call.group) or world, call.nbytes
    if call.op == "alltoall":
        size //= n
    elif call.op == "alltoallv":  # the larger of what a rank sends and receives, as if its blocks were equal
        size = -(-max(sum(call.out), sum(call.back)) // n)
    return Ask(row, call.op, size, call.dtype if call.op in REDUCE else "", call.group, in_place=call.op == "allreduce")


def sweeps(store: Path, where: Mapping[str, object]) -> list[series.TimedRow]:
    """Read the stored cells from which predictions are made. Raises UsageError where there is no store."""
    chosen = {"benchmark": list(ASKED), **where}
    return series.timed(to_rows(load_table(store, columns=series.COLUMNS, on_skip=pass_over, **chosen)))


def steps_of(store: Path, where: Mapping[str, object]) -> list[Row]:
    """Read the stored steps of all workloads. Raises UsageError where there is no store."""
    columns = (*WHERE, "launch_id", "metrics", "parameters")
    return to_rows(load_table(store, columns=columns, on_skip=pass_over, **{"benchmark": "step", **where}))


def forecasts(
    workload: Workload, ranks: int, rows: Sequence[series.TimedRow], steps: Iterable[Row] = ()
) -> list[Forecast]:
    """Predict the step for each side on which it was measured, and for each side with sweeps at as many ranks.

    Args:
        workload: the workload of the step.
        ranks: size of the world.
        rows: sweeps (:func:`sweeps`).
        steps: measured steps, of any workloads and numbers of ranks (:func:`steps_of`).

    Raises:
        UsageError: the workload does not fit the ranks.
    """
    own: dict[tuple[object, ...], list[Row]] = {}
    for row in steps:
        if row["ranks"] == ranks and workload_of(row) == workload.text:
            own.setdefault(tuple(value_of(row, name) for name in WHERE), []).append(row)
    here = {tuple(value_of(row, name) for name in WHERE) for row in rows if row["ranks"] == ranks}
    calls, predicted = asks(workload, ranks), []
    for values in sorted({*own, *here}, key=str):
        side = dict(zip(WHERE, values, strict=True))
        measured = own.get(values, [])
        launches = {str(row["launch_id"]) for row in measured}
        prediction = predict_step(calls, step_prediction.Curves(rows, side, launches))
        metrics, times = step_prediction.median_metrics(measured), step_prediction.observed(measured)
        predicted.append(Forecast(workload.text, side, prediction, metrics, times))
    return predicted


def workload_of(row: Row) -> str:
    """Return the workload of a stored step as the user typed it."""
    return str(dict(row["parameters"] or {}).get("workload", ""))


def advice(missing: Missing, side: Mapping[str, object], store: Path) -> str:
    """Say what to measure: ``no model for allreduce of float32 at 4 ranks: not measured: run omb-py …``."""
    kind = f" of {missing.dtype}" if missing.dtype else ""
    return f"no model for {missing.benchmark}{kind} at {missing.ranks} ranks: {missing.why}: run " + command(
        missing, side, store
    )


def command(missing: Missing, side: Mapping[str, object], store: Path) -> str:
    """Return the command line that measures a missing sweep."""
    words = ["omb-py", missing.benchmark, "-n", str(missing.ranks), "--backend", str(side["backend"])]
    offer = capabilities_of().get(str(side["backend"]))
    if offer is None or side["binding"] != next(iter(offer.bindings)):
        words += ["--binding", str(side["binding"])]
    if side["device"] != "cpu":
        words += ["--device", str(side["device"])]
    if missing.dtype:
        words += ["-T", missing.dtype]
    if missing.size_bytes and not (offer and "rotate" in offer.refused.get("cache", ())):
        words += ["--cache", "rotate"]  # a step's calls have buffers of their own
    if missing.in_place:
        words.append("-l")
    if missing.size_bytes:
        words += ["-m", f"4:{max(4096, 1 << (missing.size_bytes - 1).bit_length())}"]
    return shlex.join([*words, "--store", str(store)])


def show(predicted: Sequence[Forecast], store: Path) -> None:
    """Print a table for each prediction, and on stderr the missing sweeps."""
    from omb_py.printing.analyses import forecast_table
    from omb_py.printing.writers.terminal import stdout_console

    console = stdout_console()
    for forecast in predicted:
        console.print(forecast_table(forecast.workload, forecast.side, forecast.prediction, forecast.times))
    sys.stdout.flush()
    gaps = [(gap, forecast.side) for forecast in predicted for gap in forecast.prediction.missing]
    for text in dict.fromkeys(advice(gap, side, store) for gap, side in gaps):
        print(f"omb-py: {text}", file=sys.stderr, flush=True)
