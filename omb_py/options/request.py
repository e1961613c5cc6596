"""A measuring run as the user asked for it, before anything is looked up or planned."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from omb_py.backends.registry import capabilities, default, own_options
from omb_py.engine.devices.registry import GPU_KINDS, HOST, find_kind
from omb_py.errors import UsageError
from omb_py.results.dialects.registry import USUAL, printed_names

NEWEST = "last"
"""What ``--resume`` without a run means."""
DEFAULT_RANKS = 2
"""Ranks that omb-py starts when ``-n`` is not given and no launcher started it."""
DEFAULT_STORE = Path("omb-results")
"""Folder of the Parquet files, relative to the current folder."""
DEFAULT_TIMEOUT_S = 60.0
"""Seconds without any progress of a rank after which a run is ended."""
FORMATS = (*printed_names(), "table", "csv", "json")
"""Values of ``--format``."""
GRAPHS = ("tty", "png", "pdf")
"""Values of ``--graph``."""
SILENT = "none"
"""The form of the Python API: nothing on stdout."""


@dataclass(frozen=True, slots=True)
class SuitePosition:
    """The place of a request in a suite."""

    suite: str
    """The suite's name."""
    digest: str
    """Hash of the suite's content: a run is resumed only by the suite that began it."""
    entry: int
    """Number of the entry, from 1."""
    name: str = ""
    """The entry's name; empty: it has none."""
    hosts: tuple[str, ...] = ()
    """Nodes of its ranks; ``()``: those of the request."""
    varies: Mapping[str, str] = field(default_factory=dict)
    """Options in which it differs from the suite's other requests for its benchmark; printed above its table."""
    varies_too: Mapping[str, str] = field(default_factory=dict)
    """Further ones, whose effect the table shows: they are named only where `varies` leaves two requests alike."""


@dataclass(frozen=True, slots=True)
class Launching:
    """How the ranks of a request are started."""

    hosts: tuple[str, ...] = ()
    """Hosts to start ranks on; ``()``: this one, or what the batch system gave."""
    launcher: str = "auto"
    """One of :data:`omb_py.launchers.registry.CHOICES`, or a launcher of another package."""
    launcher_args: tuple[str, ...] = ()
    """Words passed to the launcher as they are."""
    share_device: bool = False
    """Several ranks may use one device."""
    thread_level: str | None = None
    """MPI thread level to ask for; None: what benchmark and binding need."""
    timeout: float = DEFAULT_TIMEOUT_S
    """Seconds without any progress of a rank after which the run is ended."""
    inject: str = ""
    """Faults to inject, for tests."""


@dataclass(frozen=True, slots=True)
class Repetition:
    """How often the cells of a request are measured."""

    iterations: str = "auto"
    """Iteration counts, grammar of :func:`omb_py.grammar.values.parse_iterations`; ``auto`` may stop early."""
    warmup: int | None = None
    """Warm-up iterations for every size."""
    precision: float = 0.01
    """Relative half-width of the 95 % interval of the median at which ``-i auto`` stops."""
    time_limit: float | None = None
    """Seconds that the timed loop of one cell may take with ``-i auto``; None: no limit."""
    repeat_for: float | None = None
    """Seconds for which the cells of a launch are measured again and again (``running.run_notes``); None: once."""
    passes: int | None = None
    """How often they are, instead of a time."""
    launches: int = 1
    """Number of times that the ranks are started; several backends or bindings take turns."""

    @property
    def soaks(self) -> bool:
        """Whether the cells of a launch are measured again and again."""
        return bool(self.repeat_for or self.passes)


@dataclass(frozen=True, slots=True)
class Printing:
    """What the command line prints of a request."""

    format: str = USUAL.name
    """Form of the results on stdout, one of :data:`FORMATS` or :data:`SILENT`."""
    full: bool = False
    """Print minimum, maximum and iterations too."""
    percentiles: tuple[float, ...] = ()
    """Tail percentiles to print, each above 0 and at most 100."""
    graph: str | None = None
    """Draw the results too, one of :data:`GRAPHS`."""
    report: tuple[str, ...] = ()
    """What nccl-tests' text shows besides or instead, of :data:`omb_py.results.dialects.dialect.REPORTS`."""
    json: str = ""
    """File that gets the rows as JSON too; empty: none."""
    quiet: bool = False
    """No progress and no notes on stderr; errors stay."""
    debug: bool = False
    """Show tracebacks."""
    scratch: bool = False
    """The store is gone when the call returns, so no message names it."""


def usual_device(backends: Sequence[str], exists: Callable[[Path], bool] = Path.exists) -> str:
    """The device of a request that names none: the host, or where none of its backends has it the GPU that is here."""
    offers = [capabilities(name) for name in backends]
    fits = [kind for kind in GPU_KINDS if all(kind in offer.devices for offer in offers)]
    if any(HOST in offer.devices for offer in offers) or not fits:
        return HOST
    return next((kind for kind in fits if find_kind(kind).has_driver(exists)), fits[0])


class GivenOptions(dict[str, Any]):
    """Options that were given, by their names in the table; ``options.window`` is None where it was not given."""

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        from omb_py.options.table import kept_in  # the table needs this module

        if name not in kept_in("options"):
            raise AttributeError(f"there is no option {name!r}")
        return None


def is_given(value: object) -> bool:
    """Whether an option was given. 0 is a value, but None, False and () mean that it was not."""
    return value is not None and value is not False and value != ()


def tags_of(given: object) -> dict[str, str]:
    """Tags as they are stored. Raises UsageError where they are no mapping."""
    if not isinstance(given, Mapping):
        raise UsageError(f"tags {given!r} are no mapping: write them as {{'cluster': 'alps'}}")
    return {str(name): str(value) for name, value in given.items()}


@dataclass(frozen=True, slots=True, init=False)
class Request:
    """Everything that a measuring run needs. ``None`` and ``()`` stand for the default of benchmark or backend.

    Every value is a keyword, wherever it is kept::

        request = Request("bw", window=4, ranks=2, iterations="100", energy=True)
        request.options.window, request.repetition.iterations, "energy" in request.observers
    """

    benchmark: str
    """Name, without OMB's ``osu_``."""
    backends: tuple[str, ...] = field(default_factory=lambda: (default(),))
    """Communication libraries, in the order in which they are measured."""
    bindings: tuple[str, ...] = ()
    """The code that issues the calls, by name; ``()`` is the first binding of each backend."""
    device: str = HOST
    """Where buffers live (:func:`usual_device`); several with commas are measured one after the other."""
    placement: str = ""
    """``SOURCE DESTINATION`` of buffers, each of :data:`omb_py.engine.devices.placement.PLACES`; empty: on `device`."""
    left_out: tuple[tuple[str, str], ...] = ()
    """Pairs of backend and device that cannot run here (``orchestrate.planning.resolution``)."""
    buffer: str = "numpy"
    """The object that holds the bytes, one of :data:`omb_py.engine.program.buffers.BUFFERS`."""
    ranks: int | None = None
    """World size; None: as many as the launcher around omb-py started, else :data:`DEFAULT_RANKS`."""
    sizes: str | None = None
    """Message sizes, grammar of :func:`omb_py.grammar.values.parse_sizes`."""
    dtypes: tuple[str, ...] = ()
    """Element types by our names, measured one after the other."""
    options: GivenOptions = field(default_factory=GivenOptions)
    """The given ones of the options that the table keeps in a cell, by name."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Backend -> text of its own option (:class:`omb_py.backends.capabilities.OwnOption`)."""
    validate: bool = False
    """Check every byte of every message."""
    validation_log: Path | None = None
    """Folder for a log of wrong bytes, which must not exist yet."""
    launching: Launching = Launching()
    repetition: Repetition = Repetition()
    observers: Mapping[str, str] = field(default_factory=dict)
    """What is read around the loop of each size: name of the option -> its text."""
    printing: Printing = Printing()
    store: Path | None = DEFAULT_STORE
    """Folder of the Parquet files; None: nothing is stored."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Stored with every row."""
    seed: int | None = None
    """Seed of everything random; None: one is drawn and stored."""
    part: SuitePosition | None = None
    """Place of the request in a suite; None for a benchmark that is measured by itself."""

    def __init__(
        self, benchmark: str, backends: tuple[str, ...] | None = None, bindings: tuple[str, ...] = (), **values: Any
    ) -> None:
        """Make a request of values by name.

        Raises:
            TypeError: no option has this name.
            UsageError: a value that :func:`omb_py.options.table.read_value` cannot read.
        """
        from omb_py.options.table import kept_in, nearest_option, read_value  # the table needs this module

        values |= {"bindings": bindings, **({} if backends is None else {"backends": backends})}
        tags = tags_of(values.pop("tags", {}))
        values = {"tags": tags, **{name: read_value(name, value) for name, value in values.items()}}
        for name, group in _GROUPS.items():
            own = {key: values.pop(key) for key in group.__dataclass_fields__ if key in values}
            values[name] = replace(values.get(name) or group(), **own)
        for name in ("options", "observers"):
            own = {key: values.pop(key) for key in kept_in(name) if key in values}
            given = {**values.get(name, {}), **own}
            values[name] = GivenOptions({key: value for key, value in given.items() if is_given(value)})
        values["observers"] = {key: "" if text is True else text for key, text in values["observers"].items()}
        values["benchmark"] = benchmark
        for name in sorted(values.keys() - {each.name for each in fields(self)}):
            if name not in own_options():
                raise TypeError(f"a request has no option {name!r}: {nearest_option(name)}")
            if text := values.pop(name):
                values["settings"] = {**values.get("settings", {}), name: text}
        values.setdefault("backends", (default(),))
        values.setdefault("device", usual_device(values["backends"]))
        for each in fields(self):
            usual = each.default if each.default_factory is MISSING else each.default_factory()
            object.__setattr__(self, each.name, values.pop(each.name, usual))

    def get(self, name: str) -> Any:
        """The value of an option, wherever it is kept; None where it is not given."""
        for holder in (self, self.launching, self.repetition, self.printing):
            if name in holder.__dataclass_fields__:
                return getattr(holder, name)
        return self.options.get(name, self.observers.get(name))

    def changed(self, **values: object) -> Request:
        """The same request with other values, by name."""
        return Request(**{**{each.name: getattr(self, each.name) for each in fields(self)}, **values})

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices, in the order in which they are measured."""
        return tuple(self.device.split(","))

    @property
    def sides(self) -> tuple[tuple[str, str], ...]:
        """The pairs of backend and device that are measured, in order."""
        return tuple((b, d) for b in self.backends for d in self.devices if (b, d) not in self.left_out)


_GROUPS: Mapping[str, type[Launching | Repetition | Printing]] = {
    "launching": Launching,
    "repetition": Repetition,
    "printing": Printing,
}
