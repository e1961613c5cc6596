"""One of each other thing that a package of somebody else can add: observer, dialect, launcher, device, command."""

from __future__ import annotations

import re
from collections.abc import Sequence

import click

from omb_py.plugin import (
    Command,
    Context,
    Device,
    DeviceKind,
    Dialect,
    ImportedTable,
    LaunchCommand,
    Launcher,
    LogLine,
    Observer,
    Parsed,
    RankRequest,
    RankVariables,
    Row,
    TextOptions,
    TextReader,
    Transcript,
)


class CountOfLoops(Observer):
    """Counts the loops around which it is read."""

    name, option, help = "loops", "--loops", "Count the operations of the loop of each size."
    columns = (("operations", lambda row: f"{row['metrics'].get('loop_operations', 0):.0f}"),)

    def stop(self, operations: int) -> dict[str, float]:
        return {"loop_operations": float(operations)}


class PipeTranscript(Transcript):
    """One line a row, with bars between the numbers."""

    def row(self, row: Row, options: TextOptions) -> str:
        return f"|{row['benchmark']}|{row['size_bytes']}|{row['value']:.2f}|\n"


class PipeReader:
    """Reads what :class:`PipeTranscript` prints."""

    name = "pipes"
    line = re.compile(r"\|(\w+)\|(\d+)\|([\d.]+)\|")

    def starts(self, text: str) -> bool:
        return self.line.fullmatch(text.strip()) is not None

    def read(self, lines: Sequence[LogLine], context: Context) -> Parsed:
        matches = [match.groups() for line in lines if (match := self.line.fullmatch(line.text.strip()))]
        shared = {"source": "pipes", "backend": "mpi", "ranks": 2, "metric": "latency", "unit": "us"}
        rows = [
            {**shared, "benchmark": name, "size_bytes": int(size), "value": float(value)}
            for name, size, value in matches
        ]
        return Parsed([ImportedTable("pipes", None, matches[0][0], lines[0].number, 0, rows)], [])


class Pipes(Dialect):
    """Text with bars."""

    name, title = "pipes", "Pipes"

    def transcript(self) -> Transcript:
        return PipeTranscript()

    def readers(self) -> Sequence[TextReader]:
        return (PipeReader(),)


class AbacusRun(Launcher):
    """A launcher that this machine does not have."""

    def missing(self, machine: object) -> str:
        return "no abacus here: buy one"

    def command(self, ranks: RankRequest, machine: object) -> LaunchCommand:
        return LaunchCommand("abacusrun", ("abacusrun", str(ranks.count), *ranks.program), {}, local=True)


class Abacus(DeviceKind):
    """A kind of device of which this machine has none."""

    def count(self) -> int:
        return 0

    def open(self, index: int) -> Device:
        raise NotImplementedError


def _greet(name: str) -> int:
    click.echo(f"hello, {name}")
    return 0


def _make() -> click.Command:
    return click.Command("greet", params=[click.Argument(["name"])], callback=_greet, help="Say hello to somebody.")


PIPES = Pipes()
ABACUS_RUN = AbacusRun("abacusrun", "ranks by hand", (RankVariables("abacusrun", rank=("ROW",), size=("ROWS",)),))
ABACUS = Abacus("abacus", maker="Napier", driver_files=("/nonexistent",))
GREET = Command("greet", "say hello to somebody", _make)
