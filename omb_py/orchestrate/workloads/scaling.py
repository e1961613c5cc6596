"""Scaling efficiency of a workload, from stored steps at several numbers of ranks (docs/workloads/predict.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass

from omb_py.errors import UsageError
from omb_py.orchestrate.workloads.prediction import workload_of
from omb_py.results.analysis.efficiency import Kind, Scaling, efficiencies
from omb_py.results.analysis.step_prediction import SIDE, median_metrics
from omb_py.results.store.row import Row
from omb_py.suites.workloads.families import Workload

_ALIKE = 1.02
"""Largest ratio of two numbers of operations that differ only by the rounding of sizes."""


@dataclass(frozen=True, slots=True)
class Scaled:
    """The efficiency of a workload on one side."""

    workload: str
    kind: Kind
    side: Mapping[str, object]
    steps: tuple[Scaling, ...]


def kind_of(workload: Workload) -> Kind | None:
    """Return ``weak`` if each rank computes for a fixed time, ``strong`` if all ranks share a fixed time.

    None where the computing is not a time but matrix products (:func:`kind_by`).

    Raises:
        UsageError: the computing is as long as the communication, which differs with the number of ranks.
    """
    compute = workload.values["compute"]
    if compute is None:
        join = "," if ":" in workload.text else ":"
        raise UsageError(
            f"the computing of {workload.text} is as long as its communication, so it has no efficiency: measure "
            f"{workload.text}{join}compute=5ms (weak scaling) or compute=5ms/n (strong) at several -n"
        )
    return None if compute.products else "strong" if compute.shared else "weak"


def kind_by(flop: Mapping[int, float]) -> Kind:
    """Return ``weak`` or ``strong`` for a workload whose computing is matrix products.

    Args:
        flop: number of ranks -> floating point operations of a rank in a step.

    Raises:
        UsageError: neither the operations of a rank nor those of all ranks together are constant.
    """
    if _are_equal(flop.values()):
        return "weak"
    if _are_equal([ranks * count for ranks, count in flop.items()]):
        return "strong"
    counts = ", ".join(f"{count / 1e9:.4g} at {ranks} ranks" for ranks, count in sorted(flop.items()))
    raise UsageError(
        f"a rank does neither as much at all numbers of ranks nor its part of it (GFLOP a step: {counts}), so the step "
        "has no efficiency: use compute=5ms"
    )


def _are_equal(values: Collection[float]) -> bool:
    return max(values) <= _ALIKE * min(values)


def scalings(workload: Workload, steps: Iterable[Row]) -> list[Scaled]:
    """Compute the efficiency on each side with stored steps at two or more numbers of ranks.

    Args:
        workload: the workload of the steps.
        steps: stored steps of any workloads (:func:`omb_py.orchestrate.workloads.prediction.steps_of`).

    Raises:
        UsageError: there are too few steps; the message says what to measure.
    """
    kind, sides = kind_of(workload), dict[tuple[object, ...], dict[int, list[Row]]]()
    for row in steps:
        if workload_of(row) == workload.text:
            side = tuple(row[name] for name in SIDE)
            sides.setdefault(side, {}).setdefault(int(row["ranks"]), []).append(row)
    scaled, refused = [], None
    for values, by_ranks in sorted(sides.items(), key=str):
        laps = {ranks: median_metrics(rows) for ranks, rows in by_ranks.items()}
        times = {ranks: (lap["compute_us"], lap["exposed_us"]) for ranks, lap in laps.items()}
        try:
            own = kind or kind_by({ranks: lap.get("flop", 0.0) for ranks, lap in laps.items()})
            side_facts = dict(zip(SIDE, values, strict=True))
            scaled.append(Scaled(workload.text, own, side_facts, tuple(efficiencies(times, own))))
        except UsageError as error:
            refused = error
    if not scaled:
        why = refused or f"no step of {workload.text} in this store"
        raise UsageError(f"{why}: measure omb-py step --workload {workload.text} at -n 2, -n 4, …")
    return scaled


def as_json(scaled: Scaled) -> dict[str, object]:
    """Return an efficiency as plain data for JSON."""
    steps = [{**asdict(step), "speedup": step.speedup} for step in scaled.steps]
    return {"workload": scaled.workload, "kind": scaled.kind, "side": dict(scaled.side), "steps": steps}
