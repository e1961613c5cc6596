"""A reader of somebody else: the text of NetPIPE, one line for each message size."""

from __future__ import annotations

import re
from collections.abc import Sequence

from omb_py.plugin import Context, ImportedTable, LogLine, Parsed

_ROW = re.compile(r"(?:\s*\d+:)?\s*(\d{1,18}) bytes\s+(\d{1,9}) times -->\s+[\d.]+ Mbps in\s+(\d{1,9}\.\d+) usec\s*")
_SHARED = {"source": "NetPIPE", "benchmark": "latency", "backend": "mpi", "ranks": 2, "metric": "latency", "unit": "us"}


class NetpipeText:
    """NetPIPE's text."""

    name = "NetPIPE text"

    def starts(self, text: str) -> bool:
        """A line with a time."""
        return _ROW.fullmatch(text) is not None

    def read(self, lines: Sequence[LogLine], context: Context) -> Parsed:
        """One table; each line is the one-way latency in µs of one message size."""
        values = [match.groups() for line in lines if (match := _ROW.fullmatch(line.text))]
        rows = [{**_SHARED, "size_bytes": int(v[0]), "iterations": int(v[1]), "value": float(v[2])} for v in values]
        return Parsed([ImportedTable("NetPIPE", None, "latency", lines[0].number, 0, rows)])


READER = NetpipeText()
