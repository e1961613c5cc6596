"""Values of options: numbers, sizes, counts, percentiles, tags, times, rates and shares."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.errors import UsageError
from omb_py.grammar import values as grammar

ONE_LINE = r"^[^\n]+$"

SIZES = st.integers(0, grammar.MAX_BYTES)
JUNK = st.text(max_size=30)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8", 8),
        ("0", 0),
        ("8B", 8),
        ("4K", 4096),
        ("4k", 4096),
        ("4KB", 4096),
        ("4KiB", 4096),
        ("1MiB", 1 << 20),
        ("2G", 2 << 30),
        ("1T", 1 << 40),
        ("2^20", 1 << 20),
        (" 16 ", 16),
        ("2^62", 1 << 62),
        ("10^3", 1000),
    ],
)
def test_size(text: str, size: int) -> None:
    assert grammar.parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("-4", "cannot be negative"),
        ("", "is not a message size"),
        ("4.5K", "write bytes as 8, 4K, 1MiB or 2^20"),
        ("four", "write bytes as"),
        ("4X", "write bytes as 8, 4K, 1MiB or 2^20"),
        ("4MIB4", "is not a message size"),
        ("2^20K", "without a unit"),
        ("2^63", "too large"),
        ("9^9^9", "is not a message size"),
        ("9^99999999999", "too large"),
        ("99999999999999999999", "too large"),
        ("٤", "is not a message size"),
    ],
)
def test_bad_size(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=ONE_LINE) as caught:
        grammar.parse_size(text)
    assert says in str(caught.value)


@given(SIZES)
def test_every_size_is_read_back(size: int) -> None:
    assert grammar.parse_size(str(size)) == size


@given(
    st.integers(0, 4095),
    st.sampled_from([("K", 10), ("M", 20), ("G", 30), ("T", 40)]),
    st.sampled_from(["", "B", "iB"]),
)
def test_units_are_binary(number: int, unit: tuple[str, int], tail: str) -> None:
    letter, power = unit
    assert grammar.parse_size(f"{number}{letter}{tail}") == number << power
    assert grammar.parse_size(f"{number}{letter.lower()}{tail.lower()}") == number << power


@pytest.mark.slow
@given(JUNK)
def test_junk_is_refused_in_one_line_or_read(text: str) -> None:
    """No parser ever raises anything but UsageError, or says more than a line."""
    for parse in (
        grammar.parse_size,
        lambda t: grammar.parse_sizes(t, 1, 1 << 20),
        grammar.parse_iterations,
        grammar.parse_warmup,
        grammar.parse_percentiles,
        grammar.parse_duration,
        grammar.parse_fraction,
        grammar.parse_nanoseconds,
        grammar.parse_age,
        grammar.parse_share,
        lambda t: grammar.parse_count(t, "steps"),
        lambda t: grammar.parse_tags([t]),
    ):
        try:
            parse(text)
        except UsageError as error:
            assert str(error)


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        (None, (1, 2, 4, 8, 16)),
        ("8", (1, 2, 4, 8)),
        (":8", (1, 2, 4, 8)),
        ("4:", (4, 8, 16)),
        ("3:", (3, 6, 12)),
        ("8:8", (8,)),
        ("4:64:4", (4, 16, 64)),
        ("5:64", (5, 10, 20, 40)),
        ("64,8,1K", (64, 8, 1024)),
        ("1:1K:1024", (1, 1024)),
        ("::2", (1, 2, 4, 8, 16)),
    ],
)
def test_sizes(text: str | None, sizes: tuple[int, ...]) -> None:
    assert grammar.parse_sizes(text, 1, 16) == sizes


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("9:4", "MIN 9 is greater than MAX 4: write 4:9"),
        ("-4:8", "cannot be negative"),
        ("1:-8", "cannot be negative"),
        ("32:", "MIN 32 is greater than the largest size of its default sweep, 16"),
        ("2", "the smallest size of this benchmark, 4, is greater than MAX 2"),
        ("1:8:1", "factor '1' of a range of sizes must be a whole number of 2 or more"),
        ("1:8:0", "2 or more"),
        ("1:8:-2", "2 or more"),
        ("1:8:1.5", "2 or more"),
        ("1:8:2:2", "write MAX, MIN:MAX, MIN:MAX:FACTOR or A,B,C"),
        ("", "write MAX"),
        (":", "write MAX"),
        ("8,8", "8 is listed twice"),
        ("8,16,8", "8 is listed twice"),
        ("8,0x8", "is not a message size"),
        ("1K,1024", "1024 is listed twice"),
        ("8,", "one size alone is 8:8"),
        ("8,,16", "write 8,16"),
        ("8:16,32", "either a range"),
    ],
)
def test_bad_sizes(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=ONE_LINE) as caught:
        grammar.parse_sizes(text, 4, 16)
    assert says in str(caught.value)


def test_a_range_from_0_begins_at_1_as_in_omb_but_who_names_0_gets_it() -> None:
    assert grammar.parse_sizes("0:4", 1, 16) == (1, 2, 4)
    assert grammar.parse_sizes("0:4", 1, 16, from_zero=True) == (0, 1, 2, 4)
    assert grammar.parse_sizes("8,0", 1, 16) == (8, 0)
    assert grammar.parse_sizes("0:0", 1, 16) == (0,)


@given(st.integers(1, 1 << 40), st.integers(1, 1 << 40), st.integers(2, 100))
def test_a_range_multiplies_from_its_minimum(a: int, b: int, factor: int) -> None:
    low, high = min(a, b), max(a, b)
    sizes = grammar.parse_sizes(f"{low}:{high}:{factor}", 1, 2)
    assert sizes[0] == low and sizes[-1] <= high < sizes[-1] * factor
    assert all(y == x * factor for x, y in pairwise(sizes))


@given(st.lists(st.integers(1, 1 << 40), min_size=2, max_size=8, unique=True))
def test_a_list_keeps_its_order(sizes: list[int]) -> None:
    assert grammar.parse_sizes(",".join(map(str, sizes)), 4, 8) == tuple(sizes)


def test_iterations_of_omb_751() -> None:
    """OMB 7.5.1: up to and with S1 c1, up to S2 c2, …; the last count for the rest."""
    counts = grammar.parse_iterations("8192:1000,131072:100,16777216:5,0:2")
    assert not counts.auto
    assert [counts.of(size, 7)[0] for size in (0, 1, 8192, 8193, 131072, 131073, 1 << 24, (1 << 24) + 1)] == [
        1000,
        1000,
        1000,
        100,
        100,
        5,
        5,
        2,
    ]
    assert counts == grammar.parse_iterations("8K:1000,128K:100,16M:5,17M:2"), "the last size is not used"


def test_iterations_plain_auto_and_short() -> None:
    assert grammar.parse_iterations("auto").of(8, 123) == (123, True)
    assert grammar.parse_iterations("AUTO").auto
    assert grammar.parse_iterations("omb").of(8, 123) == (123, False)
    assert not grammar.parse_iterations("OMB").auto
    assert grammar.parse_iterations("50").of(8, 123) == (50, False)
    assert grammar.parse_iterations("50").of(1 << 20, 123) == (50, False)
    assert grammar.parse_iterations("8192:1000:10") == grammar.parse_iterations("8192:1000,0:10")


@given(st.lists(st.integers(1, 1 << 40), min_size=1, max_size=6, unique=True), st.integers(0, 1 << 41), st.data())
def test_iteration_buckets(limits: list[int], size: int, data: st.DataObject) -> None:
    limits.sort()
    counts = data.draw(st.lists(st.integers(1, 10**6), min_size=len(limits) + 1, max_size=len(limits) + 1))
    text = ",".join(f"{s}:{c}" for s, c in zip([*limits, 0], counts, strict=True))
    bucket = sum(limit < size for limit in limits)
    assert grammar.parse_iterations(text).of(size, 1) == (counts[bucket], False)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0", "iterations must be 1 or more, not 0"),
        ("-5", "iterations must be 1 or more, not -5"),
        ("ten", "write auto, omb or a whole number"),
        ("", "is not a number of iterations"),
        ("1.5", "is not a number of iterations"),
        ("8K:100", "write 8K:100,0:N"),
        ("8K:0,0:10", "1 or more"),
        ("8K:100,4K:10,0:1", "sizes must ascend (4096, 8192)"),
        ("8K:100,8K:10", "sizes must ascend"),
        ("8K:100,10", "'10' is not SIZE:N"),
        ("100,200", "each part of a list is SIZE:N"),
        ("1:2:3:4", "write auto, omb, N"),
        ("9" * 30, "too large"),
    ],
)
def test_bad_iterations(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=ONE_LINE) as caught:
        grammar.parse_iterations(text)
    assert says in str(caught.value)


def test_warmup() -> None:
    assert grammar.parse_warmup("0") == 0
    assert grammar.parse_warmup("12") == 12
    with pytest.raises(UsageError, match="0 or more, not -1"):
        grammar.parse_warmup("-1")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", (50, 90, 99)),
        ("50,99", (50, 99)),
        ("99,1", (99, 1)),
        ("100", (100,)),
        ("99.9", (99.9,)),
        ("1,2,3,4,5,6", (1, 2, 3, 4, 5, 6)),
    ],
)
def test_percentiles(text: str, values: tuple[float, ...]) -> None:
    read = grammar.parse_percentiles(text)
    assert (read, [type(p) for p in read]) == (values, [type(p) for p in values])


@pytest.mark.parametrize("text", ["0", "0.0", "101", "100.1", "50,", "50,50", "p99", "99.", "nan", "-1", "5" * 50])
def test_bad_percentiles(text: str) -> None:
    with pytest.raises(UsageError):
        grammar.parse_percentiles(text)


def test_tags() -> None:
    assert grammar.parse_tags(["a=1", "b = x=y ", "c="]) == {"a": "1", "b": "x=y", "c": ""}
    for bad in (["novalue"], ["=x"], ["a=1", "a=2"]):
        with pytest.raises(UsageError):
            grammar.parse_tags(bad)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 30), ("2m", 120), ("500ms", 0.5), ("1h", 3600), ("1.5s", 1.5), ("10us", 1e-5), (".5", 0.5), ("2 min", 120)],
)
def test_duration(text: str, seconds: float) -> None:
    assert grammar.parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["0", "-1", "-2m", "1d", "", "m", "1e9", "inf", "nan", "9" * 20])
def test_bad_duration(text: str) -> None:
    with pytest.raises(UsageError):
        grammar.parse_duration(text)


def test_fraction() -> None:
    assert grammar.parse_fraction("1%") == pytest.approx(0.01)
    assert grammar.parse_fraction("0.05") == pytest.approx(0.05)
    for bad in ("0", "1", "100%", "-0.1", "one", "nan", "inf"):
        with pytest.raises(UsageError):
            grammar.parse_fraction(bad)


def test_age() -> None:
    assert [grammar.parse_age(text).days for text in ("3", "3d", "2w", "1m", "1Y", "0d")] == [3, 3, 14, 30, 365, 0]
    for bad in ("", "d", "1.5d", "99999999d", "200y", "-1d"):
        with pytest.raises(UsageError):
            grammar.parse_age(bad)


@pytest.mark.parametrize(("text", "nanoseconds"), [("1.5us", 1500.0), ("0.1ns", 0.1), ("2 ms", 2e6), ("0s", 0.0)])
def test_nanoseconds(text: str, nanoseconds: float) -> None:
    assert grammar.parse_nanoseconds(text) == nanoseconds


@pytest.mark.parametrize("text", ["", "1", "us", "-1us", "nan us", "1e999us", "1 US", "1us us"])
def test_bad_nanoseconds(text: str) -> None:
    with pytest.raises(UsageError, match="us"):
        grammar.parse_nanoseconds(text)


@given(st.integers(0, 10**15), st.integers(0, 10**15), st.sampled_from(":,-"))
def test_whole_numbers_and_pairs_are_read_back(first: int, second: int, separator: str) -> None:
    assert grammar.parse_whole(str(first)) == grammar.digits_of(str(first)) == first
    assert grammar.pair_of(f"{first}{separator} {second}", separator) == (first, second)
    assert grammar.parse_number(str(first)) == first


@pytest.mark.parametrize("text", ["", "-1", "+1", "1.0", "1e3", "one", "٤", "9" * 19, "1 2"])
def test_bad_whole_numbers(text: str) -> None:
    assert grammar.digits_of(text) is None and grammar.pair_of(f"1:{text}", ":") is None
    with pytest.raises(UsageError, match="is not a whole number from 0 on"):
        grammar.parse_whole(text)


def test_bounds_of_numbers() -> None:
    assert grammar.parse_whole("64", 1, 64) == 64
    with pytest.raises(UsageError, match=r"^width is 1 to 64, not '65'$"):
        grammar.parse_whole("65", 1, 64, "width is {least} to {most}, not {text!r}")
    for text, says in (("0", "steps must be 1 or more, not 0"), ("9", "steps 9 is too large: at most 8"), ("x", "'x'")):
        with pytest.raises(UsageError, match=says):
            grammar.parse_count(text, "steps", 1, 8)
    for text in ("-1", "nan", "inf", "1e999", "", "one"):
        with pytest.raises(UsageError, match="is not a number from 0 on"):
            grammar.parse_number(text)


def test_word() -> None:
    assert grammar.parse_word("ring", ("ring", "tree")) == "ring"
    with pytest.raises(UsageError, match=r"^'rng': did you mean ring\?$"):
        grammar.parse_word("rng", ("ring", "tree"))


@pytest.mark.parametrize(
    ("text", "value", "dimension"),
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
def test_quantity(text: str, value: float, dimension: str) -> None:
    quantity = grammar.parse_quantity(text)
    assert quantity.value == pytest.approx(value) and quantity.dimension == dimension


@pytest.mark.parametrize(
    ("text", "says"),
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
def test_bad_quantity(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=r"^[^\n]+$") as caught:
        grammar.parse_quantity(text)
    assert says in str(caught.value)


@given(st.text(max_size=20))
def test_any_text_is_a_quantity_or_one_line(text: str) -> None:
    try:
        assert grammar.parse_quantity(text).value >= 0
    except UsageError as error:
        assert str(error)


@given(st.floats(1e-3, 1e6), st.sampled_from([(k, u) for k, units in grammar.UNITS.items() for u in units]))
def test_a_quantity_in_any_unit(number: float, known: tuple[str, str]) -> None:
    dimension, unit = known
    assert grammar.parse_quantity(f"{number!r} {unit}").value == pytest.approx(number * grammar.UNITS[dimension][unit])  # type: ignore[index]


def test_shares() -> None:
    assert grammar.parse_share("12.5%") == 0.125
    for text, says in (("5 us", "is no share"), ("101%", "50% to 100%"), ("-1 %", "0 or more")):
        with pytest.raises(UsageError, match=says):
            grammar.parse_share(text, 0.5, 1.0)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "0 s"),
        (59.4, "59 s"),
        (60, "1 min"),
        (61, "1 min 1 s"),
        (1210, "20 min"),
        (3600, "1 h"),
        (9000, "2 h 30 min"),
    ],
)
def test_durations_in_words(seconds: float, text: str) -> None:
    assert grammar.duration_text(seconds) == text
