"""What the steps of two workloads communicate: time and bytes beside the verdict on the whole step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from omb_py.results.compare.match import SIDES, Side, work_of
from omb_py.results.store.row import Row


def communication(base: Sequence[Row], new: Sequence[Row]) -> dict[Side, dict[str, float]]:
    """Time that communication adds to a step in µs (median over launches), and the most bytes that a rank sends in it.

    Empty where the comparison is not about workloads.
    """
    if not (base and new and work_of(base[0]) and work_of(new[0])):
        return {}
    return {
        side: {
            "exposed_us": median(dict(row["metrics"])["exposed_us"] for row in rows),
            "bytes": max(_bytes_of(row) for row in rows),
        }
        for side, rows in zip(SIDES, (base, new), strict=True)
    }


def _bytes_of(row: Row) -> float:
    """A training counts the payload of its calls; a workload declares its own."""
    return dict(row["metrics"]).get("payload") or float(row.get("bytes_per_rank") or 0)


def communication_text(told: Mapping[Side, Mapping[str, float]]) -> list[str]:
    """A line for the time and one for the bytes.

    >>> communication_text({"BASE": {"exposed_us": 10.0, "bytes": 8.0}, "NEW": {"exposed_us": 15.0, "bytes": 16.0}})
    ['communication a step: 10.00 µs → 15.00 µs exposed (× 1.50)', 'bytes a step of a rank: 8 → 16 (× 2.00)']
    """
    if not told:
        return []
    base, new = (told[side] for side in SIDES)
    times = f"{base['exposed_us']:.2f} µs → {new['exposed_us']:.2f} µs exposed{_ratio(base, new, 'exposed_us')}"
    sent = f"{base['bytes']:.0f} → {new['bytes']:.0f}{_ratio(base, new, 'bytes')}"
    return [f"communication a step: {times}", f"bytes a step of a rank: {sent}"]


def _ratio(base: Mapping[str, float], new: Mapping[str, float], name: str) -> str:
    # the time beyond computing may come out below nothing
    return f" (× {new[name] / base[name]:.2f})" if base[name] > 0 and new[name] > 0 else ""
