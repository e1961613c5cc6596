"""Bounds with units, read strictly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.errors import UsageError
from omb_py.results.accept.quantities import UNITS, in_unit, parse_quantity, parse_share


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("5 us", 5.0, "time"),
        ("0.5ms", 500.0, "time"),
        (".5 µs", 0.5, "time"),
        ("2e3 ns", 2.0, "time"),
        ("12 GB/s", 12000.0, "rate"),
        ("100 Gbit/s", 12500.0, "rate"),
        ("5%", 5.0, "share"),
        ("0 %", 0.0, "share"),
    ],
)
def test_units(text: str, value: float, kind: str) -> None:
    found = parse_quantity(text)
    assert found.value == pytest.approx(value) and found.kind == kind


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("5", "has no unit"),
        ("five us", "is no quantity"),
        ("5 uss", "did you mean us?"),
        ("-5 us", "0 or more"),
        ("0 us", "every time is more than 0"),
        ("5 gb/s", "did you mean GB/s?"),
        ("1e999 s", "0 or more"),
        ("5 us us", "unknown unit"),
        ("", "is no quantity"),
        ("nan us", "is no quantity"),
        ("5 GiB/s", "GB/s"),
    ],
)
def test_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=r"^[^\n]+$") as caught:
        parse_quantity(text)
    assert said in str(caught.value)


@given(st.text(max_size=20))
def test_any_text_is_a_quantity_or_one_clear_line(text: str) -> None:
    try:
        assert parse_quantity(text).value >= 0
    except UsageError as error:
        assert str(error)


@given(st.floats(1e-3, 1e6), st.sampled_from([(k, u) for k, units in UNITS.items() for u in units]))
def test_a_number_in_any_unit(number: float, known: tuple[str, str]) -> None:
    kind, unit = known
    assert parse_quantity(f"{number!r} {unit}").value == pytest.approx(number * UNITS[kind][unit])  # type: ignore[index]


def test_shares() -> None:
    assert parse_share("12.5%") == 0.125
    for text, said in (("5 us", "is no share"), ("101%", "50% to 100%"), ("-1 %", "0 or more")):
        with pytest.raises(UsageError, match=said):
            parse_share(text, 0.5, 1.0)


@pytest.mark.parametrize(
    ("value", "kind", "text"),
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
def test_for_a_reader(value: float, kind: str, text: str) -> None:
    assert in_unit(value, kind) == text  # type: ignore[arg-type]
