"""Steps of one workload at several numbers of ranks, from the store (docs/workloads/predict.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from omb_py.errors import UsageError
from omb_py.orchestrate.predicting import workload_of
from omb_py.orchestrate.printing import Row
from omb_py.results.efficiency import Kind, Scaling, efficiencies
from omb_py.results.predicted import SIDE, measured
from omb_py.suites.workloads.families import Workload


@dataclass(frozen=True, slots=True)
class Scaled:
    """The efficiency of a workload on one side."""

    workload: str
    kind: Kind
    side: Mapping[str, Any]
    steps: tuple[Scaling, ...]


def kind_of(workload: Workload) -> Kind:
    """Whether each rank has a fixed time to compute, or all together.

    Raises UsageError where the computing is as long as the communication, which differs with the ranks.
    """
    compute = workload.values["compute"]
    if compute is None:
        join = "," if ":" in workload.text else ":"
        raise UsageError(
            f"the computing of {workload.text} is as long as its communication, so it has no efficiency: measure "
            f"{workload.text}{join}compute=5ms (weak scaling) or compute=5ms/n (strong) at several -n"
        )
    return "strong" if compute.shared else "weak"


def scalings(workload: Workload, steps: Iterable[Row]) -> list[Scaled]:
    """The efficiency on each side with stored steps at two or more numbers of ranks.

    Args:
        workload: which steps.
        steps: stored steps of any workloads (:func:`omb_py.orchestrate.predicting.steps_of`).

    Raises:
        UsageError: there are too few, with what to measure.
    """
    kind, found = kind_of(workload), dict[tuple[Any, ...], dict[int, list[Row]]]()
    for row in steps:
        if workload_of(row) == workload.text:
            side = tuple(row[name] for name in SIDE)
            found.setdefault(side, {}).setdefault(int(row["ranks"]), []).append(row)
    made, refused = [], None
    for values, by_ranks in sorted(found.items(), key=str):
        laps = {ranks: measured(rows) for ranks, rows in by_ranks.items()}
        times = {ranks: (lap["compute_us"], lap["exposed_us"]) for ranks, lap in laps.items()}
        try:
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
