"""Read the text of Horovod's synthetic benchmarks: each training is a launch, the rate of each iteration a sample."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from omb_py.results.dialects.log_lines import LogLine
from omb_py.results.dialects.reading import BadTable, Context, ImportedTable, LogReader, OpenTable, Problem
from omb_py.results.dialects.sampled import HIGHER, sampled_row

_FACT = re.compile(r"\s*(?:Model: (?P<model>\S+)|Batch size: (?P<batch>\d{1,9}))\s*")
_BEGINS = "Running benchmark..."
_ITERATION = re.compile(r"\s*Iter #\d+: (?P<rate>[\d.]+) (?P<sample>\w+)/sec per [CG]PU\s*")
_TOTAL = re.compile(r"\s*Total (?P<sample>\w+)/sec on (?P<ranks>\d{1,9}) (?P<device>[CG]PU)\(s\): .*")


@dataclass(slots=True)
class TrainingTable(OpenTable):
    """A training that is being read."""

    facts: dict[str, str]
    rates: list[float] = field(default_factory=list)
    total: re.Match[str] | None = None


class HorovodText(LogReader[TrainingTable]):
    """Reader of a training's text."""

    name = "Horovod text"
    without_rows = ""

    def __init__(self, context: Context | None = None) -> None:
        super().__init__(context)
        self.facts: dict[str, str] = {}
        for line in self.context.before:
            self._fact(line.text)

    def starts(self, text: str) -> bool:
        return text.strip() == _BEGINS

    def _fact(self, text: str) -> bool:
        """Take a line that says what is trained. The model comes first."""
        if not (match := _FACT.fullmatch(text)):
            return False
        known = {name: value for name, value in match.groupdict().items() if value is not None}
        self.facts = known if "model" in known else {**self.facts, **known}
        return True

    def above(self, line: LogLine) -> bool:
        if self._fact(line.text):
            self.close()
        elif self.starts(line.text):
            self.close()
            self.table = TrainingTable(line.number, self.facts)
        else:
            return False
        return True

    def inside(self, table: TrainingTable, line: LogLine) -> None:
        if match := _ITERATION.fullmatch(line.text):
            table.rates.append(float(match["rate"]))
        elif match := _TOTAL.fullmatch(line.text):
            table.total = match

    def left_out(self, table: TrainingTable, problem: Problem) -> str:
        return f"training left out: {problem.text}"

    def finish(self, table: TrainingTable) -> ImportedTable:
        if table.total is None or not table.rates or len(table.facts) < 2:
            raise BadTable("it ended before its last line, Total …/sec")
        row = sampled_row("Horovod", "train", f"{table.total['sample']}/sec", HIGHER, table.rates)
        row["ranks"] = int(table.total["ranks"])
        row["parameters"] |= {**table.facts, "device": table.total["device"]}
        return ImportedTable("Horovod", None, "train", table.line, len(self.parsed.tables), [row])
