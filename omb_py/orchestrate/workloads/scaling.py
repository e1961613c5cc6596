"""Steps of one workload at several numbers of ranks, from the store (docs/workloads/predict.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from omb_py.errors import UsageError
from omb_py.orchestrate.running.printers import Row
from omb_py.orchestrate.workloads.prediction import workload_of
from omb_py.results.analysis.efficiency import Kind, Scaling, efficiencies
from omb_py.results.analysis.step_prediction import SIDE, measured
from omb_py.suites.workloads.families import Workload

_ALIKE = 1.02
"""Ratio of numbers of operations that differ in how sizes were rounded alone."""


@dataclass(frozen=True, slots=True)
class Scaled:
    """The efficiency of a workload on one side."""

    workload: str
    kind: Kind
    side: Mapping[str, Any]
    steps: tuple[Scaling, ...]


def kind_of(workload: Workload) -> Kind | None:
    """Whether each rank has a fixed time to compute, or all together; None where it is not a time but matrix products.

    Raises UsageError where the computing is as long as the communication, which differs with the ranks.
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
    """The same of matrix products.

    Args:
        flop: ranks -> floating point operations of a rank and step.

    Raises:
        UsageError: a rank does neither as many at all numbers of ranks, nor its part of as many.
    """
    if _alike(flop.values()):
        return "weak"
    if _alike([ranks * each for ranks, each in flop.items()]):
        return "strong"
    said = ", ".join(f"{each / 1e9:.4g} at {ranks} ranks" for ranks, each in sorted(flop.items()))
    raise UsageError(
        f"a rank does neither as much at all numbers of ranks nor its part of it (GFLOP a step: {said}), so the step "
        "has no efficiency: use compute=5ms"
    )


def _alike(values: Collection[float]) -> bool:
    return max(values) <= _ALIKE * min(values)


def scalings(workload: Workload, steps: Iterable[Row]) -> list[Scaled]:
    """The efficiency on each side with stored steps at two or more numbers of ranks.

    Args:
        workload: which steps.
        steps: stored steps of any workloads (:func:`omb_py.orchestrate.workloads.prediction.steps_of`).

    Raises:
        UsageError: there are too few, with what to measure.
    """
    fixed, found = kind_of(workload), dict[tuple[Any, ...], dict[int, list[Row]]]()
    for row in steps:
        if workload_of(row) == workload.text:
            side = tuple(row[name] for name in SIDE)
            found.setdefault(side, {}).setdefault(int(row["ranks"]), []).append(row)
    made, refused = [], None
    for values, by_ranks in sorted(found.items(), key=str):
        laps = {ranks: measured(rows) for ranks, rows in by_ranks.items()}
        times = {ranks: (lap["compute_us"], lap["exposed_us"]) for ranks, lap in laps.items()}
        try:
            kind = fixed or kind_by({ranks: lap.get("flop", 0.0) for ranks, lap in laps.items()})
            made.append(
                Scaled(workload.text, kind, dict(zip(SIDE, values, strict=True)), tuple(efficiencies(times, kind)))
            )
        except UsageError as error:
            refused = error
    if not made:
        why = refused or f"no step of {workload.text} in this store"
        raise UsageError(f"{why}: measure omb-py step --workload {workload.text} at -n 2, -n 4, …")
    return made


def as_json(one: Scaled) -> dict[str, Any]:
    """As JSON can hold it."""
    steps = [{**asdict(step), "speedup": step.speedup} for step in one.steps]
    return {"workload": one.workload, "kind": one.kind, "side": dict(one.side), "steps": steps}
