"""The table of all options of a measurement, which command line, suites, checks and plan read.

To add an option, write one entry in the module of its heading. CONTRIBUTING.md has a whole example.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from operator import index
from typing import Any

from omb_py.engine.program.benchmark import Benchmark, Cell, Options, Sampling
from omb_py.errors import UsageError, nearest
from omb_py.grammar.values import one_size, parse_sizes
from omb_py.options.conduct import CHECKS, HOW_OFTEN, OTHER, OUTPUT, STORAGE
from omb_py.options.measured import MEASURED
from omb_py.options.option import Option
from omb_py.options.placed import PLACED
from omb_py.options.readers import Reader
from omb_py.options.request import DEFAULT_RANKS, Request, is_given
from omb_py.results.dialects.registry import dialect_of
from omb_py.suites import BENCHMARKS

TABLE: tuple[Option, ...] = (*MEASURED, *PLACED, *HOW_OFTEN, *CHECKS, *OUTPUT, *STORAGE, *OTHER)
"""One entry for each option, in the order of a help page."""
_NAMED = 12
"""Most benchmarks that a refusal names."""


def option_of(name: str) -> Option:
    """The option with this name, or with this word of ``Benchmark.options``. Raises KeyError."""
    for option in TABLE:
        if name in (option.name, option.key):
            return option
    raise KeyError(name)


def nearest_option(word: str) -> str:
    """The end of an error about a name that no option has in Python: that of the option with this flag, or the nearest.

    >>> nearest_option("message_size"), nearest_option("n"), nearest_option("rnks")
    ('did you mean sizes?', 'did you mean ranks?', 'did you mean ranks?')
    """
    from omb_py.run_options import RunOptions  # only for errors

    names, flags = RunOptions.__annotations__, {f"-{word}", f"--{word.replace('_', '-')}"}
    flagged = (option.name for option in TABLE if option.name in names and flags & {*option.flags.split()})
    name = next(flagged, "")
    return f"did you mean {name}?" if name else nearest(word, names)


@cache
def kept_in(part: str) -> tuple[str, ...]:
    """Names of the options that a cell keeps in its ``options`` or ``observers``."""
    if part == "options":
        return tuple(option.name for option in TABLE if option.usual is not None)
    return tuple(option.name for option in TABLE if option.cell == part)


@cache
def _readers() -> Mapping[str, Reader | None]:
    return {option.name: option.reader for option in TABLE}


def read_value(name: str, value: Any) -> Any:
    """A value in the form in which a request holds it, where Python code wrote it otherwise.

    A text is read as the command line reads it where no text is held, and values are written as a text where one is.

    >>> read_value("backends", "mpi,gloo"), read_value("sizes", [8, 1024]), read_value("ranks", "4")
    (('mpi', 'gloo'), '8,1024', 4)

    Raises:
        UsageError: the text cannot be read, or a number is not whole.
    """
    reader = _readers().get(name)
    if value is None or reader is None:
        return value
    kind, several = reader.kind, isinstance(value, Iterable) and not isinstance(value, str)
    if kind.startswith("tuple"):
        return reader.parse(value) if isinstance(value, str) else tuple(value) if several else (value,)
    if kind.startswith("str"):
        text = ",".join(map(str, value)) if several else str(value)
        return one_size(text) if name == "sizes" and text and not isinstance(value, str) else text
    if isinstance(value, str) or kind.startswith("float"):
        return reader.parse(str(value))
    try:
        return value if reader.smallest is None else index(value)
    except TypeError:
        raise UsageError(f"{reader.what} {value!r} is not a whole number") from None


def options_of(benchmark: Benchmark) -> list[Option]:
    """The options of a benchmark's command: all, but only one of those that share a flag, as three have ``-t``.

    That is the one that the benchmark takes, else the last in the table.
    """
    owners: dict[str, Option] = {}
    for option in TABLE:
        for flag in option.flags.split():
            if flag not in owners or not owners[flag].takes(benchmark):
                owners[flag] = option
    return [option for option in TABLE if all(owners[flag] == option for flag in option.flags.split())]


def takes(benchmark: Benchmark, name: str) -> bool:
    """Whether a benchmark takes the option that :func:`option_of` finds by this name."""
    return option_of(name).takes(benchmark)


def one_of(what: str, word: str, choices: Iterable[str]) -> None:
    """Raises UsageError with the nearest choice when `word` is none of them."""
    if word not in choices:
        raise UsageError(f"unknown {what} {word!r}: {nearest(word, choices)}")


def check_words(request: Request) -> None:
    """Raises UsageError, with the nearest choice, for a word of the request that is no choice of its option."""
    for option in TABLE:
        value = request.get(option.name)
        # launchers of other packages are among the choices, and not listed
        if option.reader is not None and option.reader.closed and value not in (None, *option.also):
            for word in value if isinstance(value, tuple) else (value,):
                one_of(option.reader.what, word, option.reader.choices)


def check_taken(request: Request, benchmark: Benchmark) -> None:
    """Raises UsageError for an option that the benchmark does not take; the message names benchmarks that do."""
    for option in TABLE:
        if option.lacks and is_given(request.get(option.name)) and not option.takes(benchmark):
            names = [other.name for other in BENCHMARKS.values() if option.takes(other)]
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            raise UsageError(
                f"{benchmark.name} has no {option.lacks}, so it takes no {option.spelled}: "
                f"for {', '.join(names[:_NAMED])}{more}"
            )


def check_ranges(request: Request) -> None:
    """Raises UsageError for a number that is too small."""
    for option in TABLE:
        reader, value = option.reader, request.get(option.name)
        if reader and reader.smallest is not None and value is not None and value < reader.smallest:
            raise UsageError(f"{reader.what} must be {reader.smallest} or more, not {value}")


def cell_options(request: Request) -> dict[str, object]:
    """The given options that a cell gets as they are, by name; :func:`make_cell` takes them."""
    given = ((option.name, request.get(option.name)) for option in TABLE if option.cell)
    return {name: value for name, value in given if is_given(value)}


def make_cell(benchmark: Benchmark | str, backend: str, binding: str, size: int, **values: object) -> Cell:
    """A cell with every option of the table: the given ones, else the benchmark's defaults, else the table's.

    >>> make_cell("bw", "mpi", "native", 8, window=2, iterations=10).options.window
    2

    Args:
        benchmark: the benchmark; a name alone has no defaults of its own.
        backend: name of the backend.
        binding: the code that issues the calls.
        size: message size in bytes.
        **values: fields of the cell or of its sampling, options and observers, by name.

    Raises:
        TypeError: there is no field and no option of a name.
    """
    options = Options({option.name: option.usual for option in TABLE if option.usual is not None})
    if isinstance(benchmark, str):
        return change_cell(Cell(benchmark, backend, binding, size, options=options), **values)
    options.update(benchmark.defaults)
    return change_cell(Cell(benchmark.name, backend, binding, size, benchmark.dtype, options=options), **values)


def change_cell(cell: Cell, **values: Any) -> Cell:
    """The same cell with other values, which are named as those of :func:`make_cell`. Raises TypeError."""
    options = {name: values.pop(name) for name in list(values) if name in cell.options}
    sampling = {name: values.pop(name) for name in list(values) if name in Sampling.__dataclass_fields__}
    observers: dict[str, Any] = {**cell.observers}
    observers |= {name: values.pop(name) for name in kept_in("observers") if name in values}
    return replace(
        cell.with_options(**options),
        sampling=replace(cell.sampling, **sampling),
        observers={name: "" if text is True else text for name, text in observers.items() if is_given(text)},
        **values,
    )


@cache
def usual_cell(benchmark: Benchmark) -> Cell:
    """The cell of a benchmark without any option, of no backend; messages have 1024 bytes."""
    (size,) = benchmark.sizes_for(benchmark.dtype, (1024,))
    return make_cell(benchmark, "", "", size)


def parameters(benchmark: Benchmark, options: Mapping[str, object]) -> dict[str, str]:
    """The options of a cell that the benchmark declares and that have no column in the store."""
    shown = {o.name for o in TABLE if o.cell == "options" and not o.column and o.key and o.key in benchmark.options}
    return {name: str(value) for name, value in options.items() if name in shown and value != ""}


def named_sizes(request: Request, benchmark: Benchmark) -> tuple[int, ...]:
    """Message sizes in bytes that a request names; (0,) for a benchmark without a size. Raises UsageError."""
    if benchmark.sizes is None:
        return (0,)
    text = None if request.sizes is None else str(request.sizes)
    from_zero = benchmark.zero_size or dialect_of(request.printing.format).from_zero
    return parse_sizes(text, benchmark.sizes.minimum, benchmark.sizes.maximum, from_zero)


def sizes_of(request: Request, benchmark: Benchmark) -> tuple[int, ...]:
    """Message sizes in bytes of a request, as its dialect measures them. Raises UsageError."""
    ranks, usual = request.ranks or DEFAULT_RANKS, request.sizes is None
    return dialect_of(request.printing.format).sizes(benchmark, named_sizes(request, benchmark), ranks, usual)


def request_from(benchmark: Benchmark, values: Mapping[str, Any], **more: Any) -> Request:
    """A request from values that were read, by option name.

    Args:
        benchmark: what is measured.
        values: None, False and () mean: not given.
        **more: values that no option has.

    Raises:
        UsageError: a value is wrong.
    """
    fields: dict[str, Any] = {}
    for option in TABLE:
        if is_given(value := values.get(option.name)):
            for name, part in option.fields(value).items():
                # Each backend's option gives a part of `settings`: the parts are merged.
                fields[name] = {**fields[name], **part} if name in fields and isinstance(part, Mapping) else part
    return Request(benchmark.name, **fields, **more)
