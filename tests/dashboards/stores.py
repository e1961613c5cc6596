"""Cells of the fixtures as a store, and what a page draws."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pandas as pd

from omb_py.results.store.write import write_launch

ACCEPTANCE = """
name = "small"
description = "two benchmarks at four sizes"
[accept]
launches = 8
most-launches = 8
[[entry]]
benchmarks = ["allreduce", "latency"]
ranks = 2
message-size = "8:512:4"
iterations = 4
[[criterion]]
id = "fast"
benchmark = "latency"
max = "1 s"
"""
OSU = """\
# OSU MPI Allreduce Latency Test v7.5
# Datatype: MPI_INT.
# Size       Avg Latency(us)
4                       1.31
64                      1.40
1024                    2.51
65536                  30.11
"""


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row of a frame as the store takes it."""
    made = {}
    for name, value in row.items():
        if hasattr(value, "tolist"):
            value = value.tolist()
        null = not isinstance(value, (list, dict)) and pd.isna(value)
        made[name] = None if null else value.isoformat() if hasattr(value, "isoformat") else value
    return made


def write(place: Path, frame: pd.DataFrame, busy: str = "") -> Path:
    """A file a launch, with the command that measured it, and what used the machine before the first launch."""
    for launch, part in frame.groupby("launch_id"):
        rows = [plain(row) for row in part.drop(columns="date").to_dict("records")]
        command = ["/x/omb_py/__main__.py", "allreduce", "-n", "4", "--store", str(place), "--quiet"]
        first = {"busy_before": busy} if busy and part["launch_index"].iloc[0] == 0 else {}
        about = {"run": {"tool": {"command_line": command}}, "launch": {"launch_id": launch, **first}}
        write_launch(place, rows, about)
    return place


def drawings(page: str) -> list[Any]:
    """The figures that stand compressed in a page, as Plotly takes them; None where a view has none."""
    (figures,) = re.findall(r'<script type="text/plain" id="figures">(.*?)</script>', page)
    made: list[Any] = json.loads(gzip.decompress(base64.b64decode(figures)))["specs"]
    return made
