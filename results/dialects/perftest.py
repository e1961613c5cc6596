"""perftest, the tools of InfiniBand and RoCE (``ib_write_bw``, ``ib_send_lat`` …); only their text is read.

Format: ``src/perftest_parameters.h`` of perftest 2.0 to 25.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from omb_py.results.dialects.log_lines import LogLine
from omb_py.results.dialects.reading import (
    BadTable,
    ImportedRow,
    ImportedTable,
    LogReader,
    OpenTable,
    Problem,
    check_row,
    is_numeric,
    number,
    result,
    whole,
)
from omb_py.results.dialects.ucx import MIB

_TITLE = re.compile(
    r"\s+(?P<verb>Send|Send_imm|RDMA_Write|RDMA_Write_imm|RDMA_Read|Atomic)(?P<atomic> CMP_AND_SWAP| FETCH_AND_ADD)? "
    r"(?P<both>Bidirectional )?(?P<list>Post List )?(?P<what>BW|Latency) (?:forwarding )?(?P<cast>Multicast )?Test\s*"
)
_FACT = re.compile(
    r"(?P<name>Device|Number of qps|Transport type|Connection type|Using SRQ|Mtu|Link type)\s*: (?P<value>\S+)"
)
_HEAD = re.compile(r"\s*#bytes\s+(?:#sl\s+)?#iterations\s+(?:BW peak\[|t_min\[usec\]|t_avg\[usec\]).*")
_COLUMN = re.compile(
    r"(?:99(?:\.9)?% percentile|BW (?:peak|average|Port\d)|MsgRate(?: Port\d)?|tps average|\S+?)(?:\[[^\]]*\])?(?=\s|$)"
)
_RATES: Mapping[str, float] = {"MB/sec": MIB, "MiB/sec": MIB, "Gb/sec": 125.0}
"""Unit of a bandwidth -> MB/s; what older versions called MB/sec was 2^20 bytes too."""


@dataclass(slots=True)
class PerftestTable(OpenTable):
    """A table that is being read."""

    title: re.Match[str]
    facts: dict[str, str] = field(default_factory=dict)
    columns: Sequence[str] = ()
    """Heads of the columns; empty above them."""

    @property
    def benchmark(self) -> str:
        """The program, as ``ib_write_bw``."""
        verb = self.title["verb"].lower().removeprefix("rdma_")
        return f"ib_{verb}_{'bw' if self.title['what'] == 'BW' else 'lat'}"


class PerftestText(LogReader[PerftestTable]):
    """Reader of their text; a title begins a launch."""

    name = "perftest text"

    def starts(self, text: str) -> bool:
        return _TITLE.fullmatch(text) is not None

    def above(self, line: LogLine) -> bool:
        if not (match := _TITLE.fullmatch(line.text)):
            return False
        self.close()
        self.table = PerftestTable(line.number, match)
        return True

    def inside(self, table: PerftestTable, line: LogLine) -> None:
        words = line.text.split()
        if _HEAD.fullmatch(line.text):
            table.columns = [match[0] for match in _COLUMN.finditer(line.text)]
        elif not table.columns:
            table.facts.update((match["name"], match["value"]) for match in _FACT.finditer(line.text))
        elif words and is_numeric(words[0]):
            check_row(table, line, words, len(table.columns))
            table.rows.append(_row(table, dict(zip(table.columns, words, strict=True))))

    def left_out(self, table: PerftestTable, problem: Problem) -> str:
        return f"table of {table.benchmark} left out: {problem.text}"

    def finish(self, table: PerftestTable) -> ImportedTable:
        launch = len(self.parsed.tables)
        return ImportedTable("perftest", None, table.benchmark, table.line, launch, table.rows, table.facts)


def _row(table: PerftestTable, cells: Mapping[str, str]) -> ImportedRow:
    own = ("Number of qps", "Connection type", "Mtu", "Link type")
    parameters = {name.lower().replace(" ", "_"): table.facts[name] for name in own if name in table.facts}
    parameters |= {name: "yes" for name in ("both", "list", "cast") if table.title[name]}
    if table.title["atomic"]:
        parameters["atomic"] = table.title["atomic"].strip().lower()
    if "#sl" in cells:
        parameters["sl"] = str(whole(cells["#sl"]))
    row: ImportedRow = {
        "source": "perftest",
        "benchmark": table.benchmark,
        "family": "pt2pt" if "send" in table.benchmark else "one-sided",
        "backend": "verbs",
        "ranks": 2,
        "size_bytes": whole(cells["#bytes"]),
        "iterations": whole(cells["#iterations"]),
        "parameters": parameters,
    }
    average = next((column for column in cells if column.startswith("BW average[")), None)
    if average is not None:
        scale = _RATES.get(average[len("BW average[") : -1])
        if scale is None:
            raise BadTable(f"unknown unit in {average}")
        metrics = {"message_rate": result(number(cells["MsgRate[Mpps]"])) * 1e6} if "MsgRate[Mpps]" in cells else {}
        value = round(result(number(cells[average])) * scale, 6)
        return row | {"metric": "bandwidth", "unit": "MB/s", "value": value, "metrics": metrics}
    # versions before 2016 print no mean
    shown = "t_avg[usec]" if "t_avg[usec]" in cells else "t_typical[usec]"
    if shown != "t_avg[usec]":
        parameters["value"] = "typical"
    columns = {
        "typical_us": "t_typical[usec]",
        "fastest_us": "t_min[usec]",
        "slowest_us": "t_max[usec]",
        "tail_p99": "99% percentile[usec]",
        "tail_p99.9": "99.9% percentile[usec]",
    }
    metrics = {name: result(number(cells[column])) for name, column in columns.items() if column in cells}
    return row | {"metric": "latency", "unit": "us", "value": result(number(cells[shown])), "metrics": metrics}
