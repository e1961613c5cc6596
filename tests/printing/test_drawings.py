"""Curves and maps as characters."""

from __future__ import annotations

import pandas as pd

from omb_py.printing.drawings import MOST, curve, heat_map

ROW = {"benchmark": "latency", "unit": "us", "backend": "mpi", "binding": "native"}


def test_a_curve_rises_from_left_to_right() -> None:
    rows = [{**ROW, "size_bytes": 2**n, "value": 2.0**n} for n in range(0, 11, 5)]
    lines = curve(rows, width=21, height=11).splitlines()
    assert lines[0] == "µs, latency"
    assert lines[1] == "1 024 |" + " " * 20 + "o"
    assert lines[6] == "   32 |" + " " * 10 + "o"
    assert lines[11] == "    1 |o"
    assert lines[-1].split() == ["1", "B", "1", "KiB"]


def test_two_series_have_their_marks_and_a_legend() -> None:
    rows = [
        {**ROW, "size_bytes": s, "value": v, "binding": b}
        for b, v in (("native", 1.0), ("mpi4py", 9.0))
        for s in (8, 64)
    ]
    text = curve(rows)
    assert "  o mpi · native\n  x mpi · mpi4py\n" in text
    assert text.count("o") >= 2 and text.splitlines()[1].endswith("x")


def test_nothing_to_draw() -> None:
    assert curve([]) == "nothing to draw: a curve needs two message sizes\n"
    assert "nothing to draw" in curve(
        [{**ROW, "size_bytes": None, "value": 1.0}, {**ROW, "size_bytes": 8, "value": None}]
    )


def pairs(names: list[str], slow: dict[tuple[str, str], float]) -> pd.DataFrame:
    rows = [(a, b, slow.get((a, b), 100.0), "MB/s") for a in names for b in names if a != b]
    return pd.DataFrame(rows, columns=["source", "target", "value", "unit"])


def test_each_direction_of_a_pair_has_its_character() -> None:
    lines = heat_map(pairs(["a", "bb", "c"], {("a", "bb"): 40.0, ("c", "a"): 85.0, ("bb", "c"): 300.0})).splitlines()
    assert lines[0] == "bandwidth from a line's node to a column's, of the median 100 MB/s"
    assert lines[1:4] == [" a |\\#.|", "bb |.\\ |", " c |+.\\|"]
    assert lines[4].startswith("    # 0%-50%  x 50%-80%")


def test_too_many_nodes_are_not_drawn() -> None:
    names = [f"n{k}" for k in range(MOST + 1)]
    frame = pd.DataFrame({"source": names, "target": names[::-1], "value": 1.0, "unit": "MB/s"})
    assert heat_map(frame) == f"{MOST + 1} nodes are too many to draw here: --output FILE.html\n"
