"""The Intel MPI Benchmarks, with a line for all groups of ranks or with one for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from omb_py.errors import UsageError
from omb_py.results.dialects.dialect import USUAL_OPTIONS, Dialect, Provenances, TextOptions, Transcript
from omb_py.results.store.row import Row

if TYPE_CHECKING:
    from omb_py.engine.program.benchmark import Benchmark
    from omb_py.results.dialects.reading import TextReader


class Imb(Dialect):
    """The text of IMB 2021.11; with ``--groups`` that of ``-multi 0``."""

    name = "imb"
    title = "Intel MPI Benchmarks"
    asks = True
    each_group = False
    from_zero = True

    def translate_line(self, words: Sequence[str]) -> list[str] | None:
        """A line that begins with IMB's name of a benchmark, in any case."""
        from omb_py.results.dialects.imb.names import benchmark_of

        program, *rest = words
        if program.lower().startswith("imb-"):
            example = next((word for word in rest if benchmark_of(word)), "PingPong")
            raise UsageError(f"{program} is a program of IMB: name its benchmark, as omb-py {example} --format imb")
        ours = benchmark_of(program)
        return None if ours is None else [ours, *rest]

    def check(self, benchmark: str, unit: str, sync: str, groups: bool) -> None:
        from omb_py.results.dialects.imb.text import why_refused

        row: Row = {"benchmark": benchmark, "unit": unit, "parameters": {"sync": sync}}
        if why := why_refused(row, self.each_group, groups):
            raise UsageError(why)

    def sizes(self, benchmark: Benchmark, given: Sequence[int], ranks: int, usual: bool) -> tuple[int, ...]:
        """Where no sizes are given, IMB begins with a message of no bytes."""
        return (0, *given) if usual and benchmark.sizes and 0 not in given else tuple(given)

    def transcript(self) -> Transcript:
        from omb_py.results.dialects.imb.text import ImbTranscript

        return ImbTranscript(self.each_group)

    def export(self, rows: Sequence[Row], provenance: Provenances, options: TextOptions = USUAL_OPTIONS) -> str:
        from omb_py.results.dialects.imb.text import to_imb

        return to_imb(rows, self.each_group, provenance)

    def shows(self, row: Row) -> bool:
        from omb_py.results.dialects.imb.text import why_refused

        return not why_refused(row, self.each_group)

    def readers(self) -> Sequence[TextReader]:
        from omb_py.results.dialects.imb.reader import ImbText

        return (ImbText(),)


class ImbMulti(Imb):
    """The text of ``-multi 1``."""

    name = "imb-multi"
    each_group = True

    def readers(self) -> Sequence[TextReader]:
        """None: it is read as IMB's text."""
        return ()
