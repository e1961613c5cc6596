from __future__ import annotations

from omb_py.printing.drawings import curve

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
