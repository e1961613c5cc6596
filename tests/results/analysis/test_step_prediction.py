"""Predicted times beside measured ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.results.analysis import step_prediction as p

STEP = {"serial.a": 12.0, "serial.a.median": 10.0, "serial.b": 30.0, "serial.b.median": 20.0, "serial_us": 42.0}


def test_beside_the_measured() -> None:
    predicted = p.Predicted({"a": 9.0, "b": None})
    times = p.observed([{"metrics": {"serial.a.median": t, "serial.b.median": 2 * t}} for t in (8.0, 10.0, 90.0)])
    row, other, whole = p.put_beside(predicted, times)
    assert (row.what, row.predicted_us, row.measured_us, row.error) == ("a", 9.0, 10.0, pytest.approx(-0.1))
    assert (other.measured_us, other.error) == (20.0, None)
    assert (whole.what, whole.predicted_us, whole.measured_us, whole.error) == (p.ALL, None, 30.0, None)


def test_medians_over_iterations_are_compared_where_they_are_stored() -> None:
    times = p.observed([{"metrics": STEP}])
    assert {what: (t.time_us, t.floor) for what, t in times.items()} == {
        "a": (10.0, None),
        "b": (20.0, None),
        p.ALL: (30.0, None),
    }


def test_how_far_launches_differ_is_the_floor_of_an_error() -> None:
    times = p.observed([{"metrics": {"serial.a.median": us}} for us in (8.0, 10.0, 12.5)])
    assert times["a"].floor == pytest.approx(0.25), "the ratios are 1.25, 1.25 and 1.56"
    good, bad = (p.put_beside(p.Predicted({"a": us}), times)[0] for us in (8.1, 7.9))
    assert good.as_good_as_a_launch and not bad.as_good_as_a_launch
    lone = p.put_beside(p.Predicted({"a": 8.0}), p.observed([{"metrics": {"serial.a.median": 8.0}}]))[0]
    assert lone.error == 0 and not lone.as_good_as_a_launch, "one launch says nothing of others"


def test_a_step_without_calls_has_no_times() -> None:
    assert p.observed([{"metrics": {"compute_us": 3.0}}, {"metrics": None}]) == {}


@given(st.floats(0.1, 100), st.floats(1e-6, 1), st.integers(4, 4096))
def test_an_affine_cost_is_met_between_sizes(alpha: float, beta: float, size: int) -> None:
    sweep = p.SizeSweep.of({1 << k: alpha + beta * (1 << k) for k in range(2, 13)})
    assert sweep.time_us(size) == pytest.approx(alpha + beta * size)
    assert sweep.time_us(2 * 4096) == pytest.approx(alpha + beta * 2 * 4096, rel=0.05), (
        "outside of the sizes by the fit"
    )


def test_a_jump_of_the_protocol_stays_where_it_is() -> None:
    sweep = p.SizeSweep.of({1 << k: (5.0 if k < 8 else 50.0) for k in range(2, 16)})
    assert sweep.time_us(100) == 5.0 and sweep.time_us(300) == 50.0
