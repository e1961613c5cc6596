"""A dialect: one tool whose text omb-py prints and whose files it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from omb_py.results.store.row import Row

if TYPE_CHECKING:
    from omb_py.engine.program.benchmark import Benchmark
    from omb_py.engine.rank.launch_facts import LaunchFacts
    from omb_py.results.dialects.reading import TextReader, WholeReader
    from omb_py.results.store.provenance import Provenance

"""The facts of a launch, as its ranks tell them and as files hold them."""
Provenances: TypeAlias = "Callable[[str], Provenance]"
"""Launch -> its facts."""

OWN_TEXT = "omb-py text"
"""Column ``source`` of rows from omb-py's own text, whatever tool's layout it has."""


@dataclass(frozen=True, slots=True)
class TextOptions:
    """Options of a request on which the text of its rows depends."""

    full: bool = False
    """Whether to print minimum, maximum and iterations too."""
    percentiles: Sequence[float] = ()
    sizes: Sequence[int] = ()
    """The message sizes in bytes; empty where they are not known."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """What distinguishes this table from others, printed above it."""
    sweep: int = 0
    """Number of the request: another request begins another table."""
    report: Sequence[str] = ()
    """What nccl-tests' text shows besides or instead: words of ``--report``."""


USUAL_OPTIONS = TextOptions()
REPORTS = ("cputime", "timestamps", "memory", "rank0", "fastest", "slowest")
"""What nccl-tests' text shows besides or instead: the time to enqueue, the time of each line, the devices' memory, and
another rank's time in place of the mean."""


class Transcript:
    """The text of rows that become known one after the other."""

    def launch(self, facts: LaunchFacts) -> None:
        """Take the facts of a launch before its first row."""

    def row(self, row: Row, options: TextOptions) -> str:
        """Return the text to print now that a cell is finished. Raises UsageError for a row that has no such text."""
        raise NotImplementedError

    def end(self) -> str:
        """Return the text after the last row."""
        return ""


class Dialect:
    """One tool: its names, what a request in its text implies, its printer of rows and its readers of files.

    The planner, the options and the command line ask these objects, and name none of them. A tool overrides what it
    has; all else is as omb-py does it. This one has a reader alone::

        class NetPipe(Dialect):
            title = "NetPIPE"

            def readers(self):
                return (NetpipeText(),)
    """

    name: ClassVar[str] = ""
    """Value of ``--format``; empty: rows cannot be printed in this text."""
    title: ClassVar[str] = ""
    """Name of the tool, for people."""
    stored_as: ClassVar[str] = ""
    """Value of the column ``text_dialect`` of a row that can be printed so; empty: no row says it."""
    for_all: ClassVar[bool] = True
    """Whether ``--format`` offers it for every benchmark; False: a command has it of its own."""
    exports: ClassVar[bool] = True
    """Whether stored rows can be exported in this text."""
    usual: ClassVar[bool] = False
    """The text of a request that asks for none; a table replaces it where backends or devices stand side by side."""
    asks: ClassVar[bool] = False
    """Whether requests in its text are checked or measured otherwise than those in a table."""
    from_zero: ClassVar[bool] = False
    """Whether a range of sizes from 0 begins with a message of no bytes, for every benchmark."""
    dtype: ClassVar[str] = ""
    """Element type of a request that gives none; empty: the benchmark's."""
    samples: ClassVar[str] = ""
    """Iterations in place of ``auto``; empty: as many as the benchmark or the precision asks for."""
    warmup: ClassVar[int | None] = None
    """Warm-up iterations; None: the benchmark's."""
    timing: ClassVar[str] = ""
    """The timing of its requests, and with `timings` the only ones whose rows it can show; empty: any."""
    timings: ClassVar[tuple[str, ...]] = ()
    """Further timings, where they are asked for."""
    reports: ClassVar[bool] = False
    """Whether its text shows what ``--report`` asks for."""
    ranks_option: ClassVar[str] = "-n"
    """The option that gives the number of ranks, in omb-py's own lines and in those of the tool."""
    names_reduction: ClassVar[bool] = False
    """Whether a row says which reduction it is of, so that one table may have several."""

    def translate_line(self, words: Sequence[str]) -> list[str] | None:
        """A command line of the tool's own programs as words of omb-py; None where it is none. Raises UsageError."""
        return None

    def measured_on(self, asynchronous: bool) -> Dialect:
        """The dialect for backends whose calls return before they are done, or (False) when they are done."""
        return self

    def check(self, benchmark: str, unit: str, sync: str, groups: bool) -> None:
        """Raise UsageError where the tool has no such benchmark, or not with these options.

        Args:
            benchmark: our name.
            unit: unit of the printed value.
            sync: what completes a one-sided operation.
            groups: whether several groups of ranks run at once.
        """

    def sizes(self, benchmark: Benchmark, given: Sequence[int], ranks: int, usual: bool) -> tuple[int, ...]:
        """Return the message sizes in bytes that are measured. Raises UsageError where none is left.

        Args:
            benchmark: the benchmark.
            given: the sizes of the request, or the benchmark's own.
            ranks: the number of ranks.
            usual: whether the request gives no sizes.
        """
        return tuple(given)

    def has_both_placements(self, benchmark: Benchmark) -> bool:
        """Whether a row of the tool has times out of place and in place."""
        return False

    def transcript(self) -> Transcript:
        """Begin the text of rows that are being measured. Raises NotImplementedError where it prints none."""
        raise NotImplementedError(f"{self.title} has no text that could be printed")

    def export(self, rows: Sequence[Row], provenance: Provenances, options: TextOptions = USUAL_OPTIONS) -> str:
        """Return the text of stored rows; those that the tool cannot show are left out.

        Args:
            rows: rows of the store.
            provenance: the facts of a launch.
            options: what the text depends on, as far as the tool has it.

        Raises:
            UsageError: there are rows, and the tool can show none of them.
        """
        raise NotImplementedError(f"{self.title} has no text that could be exported")

    def shows(self, row: Row) -> bool:
        """Whether an export has a place for a stored row."""
        return True

    def to_json(self, rows: Sequence[Row], facts: LaunchFacts) -> str:
        """Return the tool's JSON of the rows of a run, with the facts of its first launch; empty where it has none."""
        return ""

    def readers(self) -> Sequence[TextReader | WholeReader]:
        """Return the readers of the tool's files."""
        return ()
