"""What a criterion is about, and what it is called."""

from __future__ import annotations

from dataclasses import replace

import pytest

from omb_py.results.accept.criteria import METRICS, Criterion, Range
from tests.support.accepting import case, row


def test_which_cells_it_covers() -> None:
    one = Criterion(
        "a", "contract", "allreduce", "median", sizes=(8,), where={"ranks": 4}, ranges={None: Range(high=1)}
    )
    facts = {"benchmark": "allreduce", "size_bytes": 8, "ranks": 4}
    assert one.covers(facts)
    for other in ({"benchmark": "bcast"}, {"size_bytes": 16}, {"ranks": 2}):
        assert not one.covers({**facts, **other})


@pytest.mark.parametrize(
    ("metric", "more", "value"),
    [
        ("median", {}, 4.0),
        ("busbw", {"busbw_gbps": 1.5}, 1500.0),
        ("bandwidth", {}, None),
        ("bandwidth", {"unit": "MB/s", "value": 9.0}, 9.0),
        ("overlap", {"metrics": {"overlap_pct": 30.0}}, 30.0),
        ("overlap", {}, None),
        ("stolen", {"mean_us": 5.0, "min_us": 4.0}, 25.0),
        ("stolen", {"min_us": 0.0}, None),
    ],
)
def test_metrics(metric: str, more: dict[str, object], value: float | None) -> None:
    assert METRICS[metric].read(row(4.0, **more)) == value


def test_names_and_bounds() -> None:
    made = case()
    assert made.name == "crit, 8 B" and made.bound == "at most 10 us"
    apart = replace(made, apart=("ranks", "binding"))
    assert apart.name == "crit, 8 B, 2 ranks, native"
    both = case(ranges={8: Range(1.0, 2.0), 16: Range(high=3.0)})
    assert both.bound == "at least 1 us, at most 2 us"
    assert (
        case("guideline", program="gl5_allreduce", mock_up="reduce + bcast", share=0.1).bound
        == "at most 10 % slower than reduce + bcast"
    )
