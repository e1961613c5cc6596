"""All pairs of nodes as characters."""

from __future__ import annotations

import pandas as pd

from omb_py.printing.drawings import MOST, heat_map


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
