"""OMB's optional values, glued to their option."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.cli.help import Glued, complete_long, unglue

VALUED = {"-m": "-m", "-n": "--ranks", "--ranks": "--ranks", "--seed": "--seed"}
TAILS = Glued("--tail-lat", "50,90,99", lambda text: text[0].isdigit())
CHECK = Glued("--validation", "on", lambda text: text.startswith("log"))
GLUED = {"-z": TAILS, "--tail-lat": TAILS, "-c": CHECK, "--validation": CHECK}


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("-z", "--tail-lat=50,90,99"),
        ("-z50,99", "--tail-lat=50,99"),
        ("--tail-lat", "--tail-lat=50,90,99"),
        ("--tail-lat=1", "--tail-lat=1"),
        ("-c", "--validation=on"),
        ("-clog", "--validation=log"),
        ("-clog:DIR", "--validation=log:DIR"),
        ("--validation=log:a", "--validation=log:a"),
        ("-c H H", "--validation=on H H"),
        ("-z -c -f", "--tail-lat=50,90,99 --validation=on -f"),
        ("-fcz", "-f --validation=on --tail-lat=50,90,99"),
        ("-fz50", "-f --tail-lat=50"),
        ("-cz50,99 -m4", "--validation=on --tail-lat=50,99 -m4"),
        ("-zc", "--tail-lat=50,90,99 --validation=on"),
        ("-m -z", "-m -z"),
        ("-fm -c", "-f -m -c"),
        ("-m4z", "-m4z"),
        ("--seed -c -z", "--seed -c --tail-lat=50,90,99"),
        ("--seed=5 -c", "--seed=5 --validation=on"),
        ("-n 4 -- -z", "--ranks 4 -- -z"),
        ("-fn 4", "-f --ranks 4"),
        ("- x", "- x"),
        ("-z x -n", "--tail-lat=50,90,99 x -n"),
    ],
)
def test_rewriting(line: str, wanted: str) -> None:
    assert unglue(line.split(), VALUED, GLUED) == wanted.split()


@pytest.mark.parametrize(
    ("typed", "whole"),
    [
        ("--iter", "--iterations"),
        ("--iterations", "--iterations"),
        ("--in", "--in-place"),
        ("--i", "--i"),
        ("--seed", "--seed"),
        ("--see", "--see"),
        ("--win", "--window-size"),
    ],
)
def test_unique_beginnings_of_long_options(typed: str, whole: str) -> None:
    shown = ["--iterations", "--in-place", "--seed", "--seeds"]
    assert complete_long(typed, shown, ["--window-size", "--in-hidden"]) == whole


@given(st.lists(st.text(alphabet="-abfmnxyz=4, ", max_size=6), max_size=6))
def test_what_is_not_glued_stays(words: list[str]) -> None:
    """Nothing is lost or changed in lines without glued options; only letters are taken apart."""
    out = unglue(words, {name: name for name in VALUED}, {})
    assert "".join(out).replace("-", "") == "".join(words).replace("-", "")
