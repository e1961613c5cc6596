"""nccl-tests and rccl-tests, which time batches of calls on devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from omb_py.errors import UsageError
from omb_py.results.dialects.dialect import USUAL_OPTIONS, Dialect, Provenances, TextOptions, Transcript
from omb_py.results.store.row import Row

if TYPE_CHECKING:
    from omb_py.engine.program.benchmark import Benchmark
    from omb_py.engine.rank.launch_facts import LaunchFacts
    from omb_py.results.dialects.reading import TextReader, WholeReader

TOTAL_BYTES = 32 << 20
"""Bytes of the whole operation where no size is given: its ``-b`` and ``-e``; its README's sweep is 8 B to 128 MiB."""
BLOCK_BYTES = 16
"""A rank's block is cut to a multiple of so many bytes (``GetCollByteCount`` in nccl-tests' ``src/*.cu``)."""
_OF_BLOCKS = ("all_gather", "reduce_scatter", "alltoall", "gather", "scatter", "hypercube")
"""Operations, by their formula, whose blocks nccl-tests cut."""


class NcclTests(Dialect):
    """nccl-tests: one sample of a batch of calls after one of warm-up, where calls are enqueued."""

    name = title = "nccl-tests"
    asks = True
    dtype = "float32"
    samples = "1"
    warmup = 1
    timing = "pipelined"
    timings: ClassVar[tuple[str, ...]] = ("isolated", "graph")
    reports = True
    names_reduction = True
    ranks_option = "--ranks"

    def translate_line(self, words: Sequence[str]) -> list[str] | None:
        from omb_py.results.dialects.nccl.command_line import benchmark_of, translate

        return translate(words) if benchmark_of(words[0]) else None

    def measured_on(self, asynchronous: bool) -> Dialect:
        return _BATCHED if asynchronous else _BLOCKING

    def usual_bytes(self) -> Sequence[int]:
        """Bytes of the whole operation where no size is given."""
        return (TOTAL_BYTES,)

    def sizes(self, benchmark: Benchmark, given: Sequence[int], ranks: int, usual: bool) -> tuple[int, ...]:
        """The sizes, or nccl-tests' default, cut as it does."""
        from omb_py.results.dialects.nccl.text import has_collective

        if benchmark.bandwidth is None or not has_collective(benchmark.name):
            raise UsageError(f"--format {self.name}: {self.title} have no {benchmark.name}: --format table")
        if not benchmark.sizes:
            return tuple(given)
        unit = max(1, benchmark.bytes_total(1, ranks))
        sizes = tuple(total // unit for total in self.usual_bytes()) if usual else tuple(given)
        if benchmark.bandwidth not in _OF_BLOCKS:
            return sizes
        unit = BLOCK_BYTES * (ranks if benchmark.bandwidth == "reduce_scatter" else 1)
        cut = tuple(dict.fromkeys(size // unit * unit for size in sizes if size >= unit))
        if not cut:
            raise UsageError(
                f"--format {self.name}: {benchmark.name} has blocks of {BLOCK_BYTES} B or more a rank there: -m "
                f"{unit}, or --format table"
            )
        return cut

    def has_both_placements(self, benchmark: Benchmark) -> bool:
        return "in_place" in benchmark.options and benchmark.bandwidth not in ("alltoall", None)

    def transcript(self) -> Transcript:
        from omb_py.results.dialects.nccl.text import NcclTranscript

        return NcclTranscript()

    def export(self, rows: Sequence[Row], provenance: Provenances, options: TextOptions = USUAL_OPTIONS) -> str:
        from omb_py.results.dialects.nccl.text import to_nccl

        text = to_nccl(rows, provenance)
        if rows and not text:
            raise UsageError(f"none of these rows is a collective of {self.title} with type and time: --format csv")
        return text

    def shows(self, row: Row) -> bool:
        from omb_py.results.dialects.nccl.text import is_shown

        return is_shown(row)

    def to_json(self, rows: Sequence[Row], facts: LaunchFacts) -> str:
        from omb_py.results.dialects.nccl.json_text import rows_to_json

        return rows_to_json(rows, facts)

    def readers(self) -> Sequence[TextReader | WholeReader]:
        from omb_py.results.dialects.nccl.reader import NcclText
        from omb_py.results.dialects.nccl.whole_files import NcclJson

        return (NcclText(), NcclJson())


class BlockingNcclTests(NcclTests):
    """nccl-tests' table of calls that return when they are done (Gloo, MPI): each call is timed alone."""

    samples = "20"
    warmup = 5
    timing = ""
    timings = ()

    def translate_line(self, words: Sequence[str]) -> None:
        """The line says nothing of the backend."""

    def usual_bytes(self) -> Sequence[int]:
        return [1 << power for power in range(3, 28)]


_BATCHED, _BLOCKING = NcclTests(), BlockingNcclTests()


class RcclTests(Dialect):
    """rccl-tests, whose text is that of nccl-tests; its files are read alone."""

    title = "rccl-tests"

    def readers(self) -> Sequence[WholeReader]:
        from omb_py.results.dialects.nccl.whole_files import RcclCsv, RcclJson

        return (RcclJson(), RcclCsv())
