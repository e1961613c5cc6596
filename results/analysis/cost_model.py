"""The cost model of a benchmark: its curve over sizes, its efficiency against a bound, its times at more ranks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import cast

import numpy as np

from omb_py.errors import UsageError
from omb_py.results.analysis.series import MEASURED, SIDE, TimedRow, side_of
from omb_py.results.statistics.bandwidth import FORMULAS, formula_name
from omb_py.results.statistics.curve_fit import LEAST, Curve, fit
from omb_py.results.statistics.rank_scaling import Prediction, predict
from omb_py.results.store.keys import COMPARED
from omb_py.results.store.row import Row
from omb_py.results.store.schema import value_of

ALIKE = (*MEASURED, *(name for name in COMPARED if name != "size_bytes"))
"""Columns that are equal in all rows of a model, and of times predicted at more ranks."""
VERSION = "library_version"
"""Equal in all rows of a model too: a median over versions is the time of none."""
RANKED = ("ranks", "nodes", "ranks_per_node")
"""Those columns of :data:`ALIKE` that change with the number of ranks."""
OFFLOAD = 1.1
"""Efficiency from which a bound counts as beaten: something other than messages between ranks did the work."""
SMALL, LARGE = 64, 64 * 1024
"""Largest size in bytes that gives the latency of a message, and smallest one that gives its bandwidth."""


@dataclass(frozen=True, slots=True)
class MessageCost:
    """Cost of one message between two ranks, as `latency` measured it in the same store."""

    alpha_us: float
    beta_us: float
    """Time per byte in µs."""
    source: str


@dataclass(frozen=True, slots=True)
class ModelCell:
    """One size of a model."""

    size_bytes: int
    launches: int
    measured_us: float
    fitted_us: float
    bound_us: float | None
    efficiency: float | None
    """Lower bound over measured time; over 1 when the network or the node did the work (offload)."""


@dataclass(frozen=True, slots=True)
class CostModel:
    """The model of one benchmark with one set of values of :data:`ALIKE`."""

    facts: Mapping[str, object]
    curve: Curve
    cells: tuple[ModelCell, ...]
    message: MessageCost | None


@dataclass(frozen=True, slots=True)
class ScaledTimes:
    """Predicted times at a number of ranks, by size."""

    facts: Mapping[str, object]
    measured: tuple[int, ...]
    sizes: Mapping[int, Prediction]


class TooFewSizes(UsageError):
    """A curve needs more sizes."""


def models(rows: Sequence[TimedRow], messages: Sequence[TimedRow] = ()) -> list[CostModel]:
    """Make a model of each group of rows that are alike, those with most sizes first.

    Args:
        rows: cells of one benchmark: :data:`ALIKE`, size_bytes, time_us, launch_id, bytes_total, bw_formula.
        messages: cells of `latency` of the same store, for the lower bounds.

    Raises:
        UsageError: the benchmark measures no latency.
        TooFewSizes: no group has at least :data:`~omb_py.results.statistics.curve_fit.LEAST` sizes.
    """
    if all(row["metric"] != "latency" for row in rows):
        raise UsageError(f"{rows[0]['benchmark']} measures {rows[0]['metric']}, and a model is of times: see latency")
    groups = [group for group in _group_by_side(rows, (*ALIKE, VERSION)) if group[0]["metric"] == "latency"]
    enough = [group for group in groups if len({row["size_bytes"] for row in group}) >= LEAST]
    if not enough:
        most = max(len({row["size_bytes"] for row in group}) for group in groups)
        raise TooFewSizes(f"{most} sizes are too few for a model: {LEAST} are needed")
    return sorted((_model(group, messages) for group in enough), key=lambda model: -len(model.cells))


def predict_at_ranks(rows: Sequence[TimedRow], ranks: int) -> list[ScaledTimes]:
    """Predict the time of every size at a number of ranks from rows at other numbers.

    Raises:
        UsageError: no size can be predicted (:func:`~omb_py.results.statistics.rank_scaling.predict`).
    """
    predictions, refused = [], None
    for group in _group_by_side(rows, tuple(name for name in ALIKE if name not in RANKED)):
        sizes: dict[int, Prediction] = {}
        known: set[int] = set()
        for size in sorted({row["size_bytes"] or 0 for row in group}):
            of_size = [row for row in group if (row["size_bytes"] or 0) == size and row["ranks"]]
            times = {
                p: launch_time([row for row in of_size if row["ranks"] == p])[0]
                for p in {row["ranks"] for row in of_size}
            }
            try:
                sizes[size] = predict(times, ranks)
                known |= set(times)
            except UsageError as error:
                refused = error
        if sizes:
            facts = _facts(group, [name for name in ALIKE if name not in RANKED])
            predictions.append(ScaledTimes(facts, tuple(sorted(known)), sizes))
    if not predictions:
        raise refused or UsageError("nothing to predict from")
    return predictions


def as_json(model: CostModel) -> dict[str, object]:
    return {
        "facts": {name: value for name, value in model.facts.items() if value is not None},
        "segments": [{**asdict(segment), "bandwidth_mb_s": segment.bandwidth} for segment in model.curve.segments],
        "breaks": [list(pair) for pair in model.curve.breaks],
        "mean_error": model.curve.error,
        "message": None if model.message is None else asdict(model.message),
        "cells": [asdict(cell) for cell in model.cells],
    }


def scaled_as_json(predictions: ScaledTimes) -> dict[str, object]:
    facts = {name: value for name, value in predictions.facts.items() if value is not None}
    sizes = [{"size_bytes": size, **asdict(prediction)} for size, prediction in predictions.sizes.items()]
    return {"facts": facts, "measured_ranks": list(predictions.measured), "predictions": sizes}


def _model(group: Sequence[TimedRow], messages: Sequence[TimedRow]) -> CostModel:
    by_size: dict[int, list[TimedRow]] = {}
    for row in group:
        by_size.setdefault(row["size_bytes"] or 0, []).append(row)
    sizes = sorted(by_size)
    times = [launch_time(by_size[size]) for size in sizes]
    curve = fit(sizes, [time for time, _ in times])
    facts = _facts(group, (*ALIKE, VERSION))
    message = message_of(facts, messages)
    cells = []
    for size, (time, launches), fitted in zip(sizes, times, curve.time_us(sizes), strict=True):
        bound = None if message is None else bound_us(by_size[size][0], message)
        cells.append(ModelCell(size, launches, time, float(fitted), bound, None if bound is None else bound / time))
    return CostModel(facts, curve, tuple(cells), message)


def message_of(facts: Mapping[str, object], messages: Sequence[TimedRow]) -> MessageCost | None:
    """Find the cost of a message: the fastest small one, and the fastest byte of a large one.

    Args:
        facts: values of :data:`MEASURED`, device and buffer that the messages must share.

    Returns:
        None where `latency` was not measured at small and at large sizes.
    """
    same = (*MEASURED, "device", "buffer")
    alike = [
        row
        for row in messages
        if all(value_of(row, name) == facts[name] for name in same) and row["metric"] == "latency"
    ]
    small = [row for row in alike if (row["size_bytes"] or 0) <= SMALL]
    large = [row for row in alike if (row["size_bytes"] or 0) >= LARGE]
    if not small or not large:
        return None
    alpha = min(launch_time(rows)[0] for rows in grouped(small, ("size_bytes",)))
    beta = min(launch_time(rows)[0] / rows[0]["size_bytes"] for rows in grouped(large, ("size_bytes",)))
    return MessageCost(alpha, beta, "latency")


def bound_us(row: Row, message: MessageCost) -> float | None:
    """Compute the lower bound in µs of a row's operation from the cost of a message; None where no bound is known."""
    bytes_total, ranks = row["bytes_total"] or 0, row["ranks"] or 1
    return lower_bound_us(row["bw_formula"], row["benchmark"], bytes_total, ranks, message.alpha_us, message.beta_us)


def launch_time(rows: Sequence[TimedRow]) -> tuple[float, int]:
    """Compute (median over the launches in µs, number of launches); a launch counts by its geometric mean."""
    launches: dict[str, list[float]] = {}
    for row in rows:
        launches.setdefault(row["launch_id"], []).append(math.log(row["time_us"]))
    return math.exp(float(np.median([np.mean(logs) for logs in launches.values()]))), len(launches)


def grouped(rows: Sequence[TimedRow], names: Sequence[str]) -> list[list[TimedRow]]:
    """Group rows by the columns `names`, each group in the order of the rows."""
    groups: dict[tuple[object, ...], list[TimedRow]] = {}
    for row in rows:
        groups.setdefault(tuple(map(cast(Mapping[str, object], row).get, names)), []).append(row)
    return list(groups.values())


def _group_by_side(rows: Sequence[TimedRow], names: Sequence[str]) -> list[list[TimedRow]]:
    """Group rows as :func:`grouped`, and keep the sides of comparisons apart."""
    groups: dict[object, list[TimedRow]] = {}
    for number, group in enumerate(grouped(rows, names)):
        for row in group:
            groups.setdefault((number, side_of(row)), []).append(row)
    return list(groups.values())


def _facts(group: Sequence[TimedRow], names: Sequence[str]) -> dict[str, object]:
    return {**{name: value_of(group[0], name) for name in names}, SIDE: side_of(group[0])}


BARRIER = "barrier"


def lower_bound_us(
    formula: str | None, benchmark: str, bytes_total: int, ranks: int, alpha_us: float, beta_us: float
) -> float | None:
    """Compute the larger of two bounds: ceil(log2 p) alpha, and beta times the bytes that each port must carry.

    Args:
        formula: value of the column ``bw_formula``, or its name alone. Its bus factor is the share of `bytes_total`
            that crosses each port.
        benchmark: name of the benchmark. A barrier moves no bytes and has the first bound only.
        bytes_total: bytes of the whole operation, as nccl-tests counts (the vector of an allreduce, else all blocks).
        ranks: number of ranks of the operation.
        alpha_us: latency of a message between two ranks in µs.
        beta_us: time of a byte between two ranks in µs.

    Returns:
        The bound in µs; None where none is known: the operation is no collective, or has one rank.
    """
    name = formula_name(formula)
    is_barrier = benchmark.removeprefix("i").removesuffix("_persistent") == BARRIER
    if ranks < 2 or (name not in FORMULAS and not is_barrier) or name == "sendrecv":
        return None
    rounds = math.ceil(math.log2(ranks)) * alpha_us
    if is_barrier:
        return rounds
    return max(rounds, FORMULAS[name].bus(ranks) * FORMULAS[name].algorithm(ranks) * bytes_total * beta_us)
