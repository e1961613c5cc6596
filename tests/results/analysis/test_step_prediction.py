"""Predicted times beside measured ones."""

from __future__ import annotations

import pytest

from omb_py.results.analysis import step_prediction as p


def test_beside_the_measured() -> None:
    found = p.Predicted({"a": 9.0, "b": None})
    metrics = p.measured([{"metrics": {"serial.a": t, "serial_us": 3 * t}} for t in (8.0, 10.0, 90.0)])
    one, other, whole = p.beside(found, metrics)
    assert (one.what, one.predicted_us, one.measured_us, one.error) == ("a", 9.0, 10.0, pytest.approx(-0.1))
    assert (other.measured_us, other.error) == (None, None)
    assert (whole.what, whole.predicted_us, whole.measured_us, whole.error) == (p.ALL, None, 30.0, None)
