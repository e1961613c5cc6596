"""The type of an entry in :data:`omb_py.options.table.TABLE`, which has one for each option of a measurement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from omb_py.engine.program.benchmark import Benchmark, Cell
from omb_py.options.readers import Reader
from omb_py.options.request import Request

Scope = Literal["cell", "run", "line"]
"""Where an option may be given: in each entry of a suite, once for a whole run, or on the command line only."""


@dataclass(frozen=True)
class Defaults:
    """The values of a benchmark when no option is given, for help texts."""

    benchmark: Benchmark
    backends: Sequence[str]
    """Names of the backends that come with omb-py."""
    bindings: Sequence[str]
    """Bindings of all of them; the first is the default."""
    cell: Cell
    """A cell of the benchmark without any option."""

    @cached_property
    def request(self) -> Request:
        """The request without any option."""
        return Request(self.benchmark.name)


Text = str | Callable[[Defaults], str]
"""A text, or a function that makes it for a benchmark."""


def everyone(benchmark: Benchmark) -> bool:
    """True: every benchmark takes the option."""
    return True


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a measurement; command line, suites, checks, plan and store read it here."""

    name: str
    """Field of :class:`omb_py.options.request.Request`."""
    flags: str
    """Its spellings, short ones first: ``-m --message-size``."""
    help: Text
    """A sentence for the help page."""
    metavar: str = ""
    """Stands for the value on the help page; empty: a switch without a value."""
    reader: Reader | None = None
    """Reads the value; None: a switch."""
    default: Text | None = None
    """The default on the help page; None: that of the cell or the request; empty: the page shows none."""
    heading: str = ""
    """Section of the help page (:func:`under`)."""
    key: str = ""
    """Word of ``Benchmark.options``: only benchmarks take the option that declare it; empty: see `takers`."""
    takers: Callable[[Benchmark], bool] = everyone
    """Whether a benchmark takes the option, where no word declares it."""
    lacks: str = ""
    """What benchmarks that do not take the option lack, for the refusal; empty: no refusal, or one elsewhere."""
    usual: Any = None
    """Its value in a cell where it is not given; None: it is none of ``Cell.options``."""
    cell: Literal["", "identity", "options", "sampling", "observers"] = ""
    """Part of the cell that gets the value as it is; empty: the planner makes something of it."""
    column: str = ""
    """Column of the store that shows it; empty: it goes into ``parameters`` where a benchmark declares `key`."""
    scope: Scope = "cell"
    also: tuple[str, ...] = ()
    """Words that a request may hold, and the command line does not offer."""
    repeats: bool = False
    """It may be given several times; the value is a tuple."""
    joins: bool = False
    """It may be given several times on the command line; the value is the texts with commas between them, read once
    more."""
    bare: str = ""
    """The text that the option stands for without a value, which is then optional and glued (``-z50``)."""
    is_glued: Callable[[str], bool] | None = None
    """Where `bare` is set: whether letters glued to the short option are its value, and not more short options."""
    hidden: bool = False
    """It is for tests: no help page shows it."""
    rare: bool = False
    """Few people need it: ``--help-all`` shows it, and ``--help`` does not."""
    envvar: str = ""
    """Variable that gives the value where the option does not."""
    waived: bool = False
    """A benchmark that does not take it goes on without it, on the command line, and a note says so: scripts for OMB
    give all its benchmarks the same options."""
    ignored: str = ""
    """Why an option of OMB has no effect here. It is accepted with this as a note, and no request field holds it."""
    offers: Callable[[Defaults], Sequence[str]] | None = None
    """Words that shell completion offers; None: those of the reader."""
    makes: Callable[[Any], Mapping[str, object]] | None = None
    """Request fields from the value; None: the field `name` has the value as it is."""

    @property
    def long(self) -> str:
        """Its long name without dashes, which is its key in a suite."""
        return next(flag for flag in self.flags.split() if flag.startswith("--")).removeprefix("--")

    @property
    def spelled(self) -> str:
        """Its spellings as errors show them: ``-m/--message-size``."""
        return "/".join(self.flags.split())

    def takes(self, benchmark: Benchmark) -> bool:
        """Whether a benchmark takes the option."""
        return (not self.key or self.key in benchmark.options) and self.takers(benchmark)

    def fields(self, value: object) -> Mapping[str, object]:
        """Request fields from a value that was read."""
        if self.ignored:
            return {}
        return self.makes(value) if self.makes else {self.name: value}

    def default_text(self, defaults: Defaults) -> str:
        """The default on the help page; empty: the page shows none."""
        if self.default is not None:
            return render(self.default, defaults)
        if self.reader is None:
            return ""
        usual = defaults.cell.options.get(self.name, defaults.request.get(self.name))
        return ",".join(usual) if isinstance(usual, tuple) else str(usual)

    def help_text(self, defaults: Defaults) -> str:
        """The sentence of the help page, with the default."""
        default = self.default_text(defaults)
        return render(self.help, defaults) + (f" (default: {default})" if default else "")


def declared(name: str, flags: str, help: Text, metavar: str = "", reader: Reader | None = None, **more: Any) -> Option:
    """An option of the cell that benchmarks declare by its name; `usual` is its value where it is not given."""
    return Option(name, flags, help, metavar, reader, key=name, cell="options", **more)


def under(heading: str, *options: Option) -> tuple[Option, ...]:
    """The options of one section of the help page."""
    return tuple(replace(option, heading=heading) for option in options)


def render(text: Text, defaults: Defaults) -> str:
    """Make a text for a benchmark."""
    return text if isinstance(text, str) else text(defaults)
