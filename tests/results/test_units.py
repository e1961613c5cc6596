"""Numbers with units, for a reader."""

from __future__ import annotations

import pytest

from omb_py.results.units import in_unit


@pytest.mark.parametrize(
    ("value", "dimension", "text"),
    [
        (1.23456, "time", "1.235 us"),
        (12345.0, "time", "12.35 ms"),
        (1e-6, "time", "0.000001 us"),
        (0.0, "share", "0 %"),
        (999.0, "rate", "999 MB/s"),
        (1500.0, "rate", "1.5 GB/s"),
        (float("inf"), "time", "unknown"),
    ],
)
def test_for_a_reader(value: float, dimension: str, text: str) -> None:
    assert in_unit(value, dimension) == text  # type: ignore[arg-type]
