"""A measuring run as the user asked for it, before anything is looked up or planned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from omb_py.backends.registry import default
from omb_py.results.dialects.registry import USUAL, printed_names

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
class Part:
    """The place of a request in a suite."""

    suite: str
    """The suite's name."""
    digest: str
    """Hash of the suite's content: a run is resumed only by the suite that began it."""
    entry: int
    """Number of the entry, from 1."""
    varies: Mapping[str, str] = field(default_factory=dict)
    """Options in which it differs from the suite's other requests for its benchmark; printed above its table."""
    varies_too: Mapping[str, str] = field(default_factory=dict)
    """Further ones, whose effect the table shows: they are named only where `varies` leaves two requests alike."""


@dataclass(frozen=True, slots=True)
class Request:
    """Everything that a measuring run needs. ``None`` and ``()`` stand for the default of benchmark or backend."""

    benchmark: str
    """Name, without OMB's ``osu_``."""
    backends: tuple[str, ...] = field(default_factory=lambda: (default(),))
    """Communication libraries, in the order in which they are measured."""
    bindings: tuple[str, ...] = ()
    """The code that issues the calls, by name; ``()`` is the first binding of each backend."""
    device: str = "cpu"
    """Where buffers live; several with commas are measured one after the other."""
    placement: str = ""
    """``SOURCE DESTINATION`` of buffers, each of :data:`omb_py.engine.devices.placement.PLACES`; empty: on `device`."""
    filler: str = "cpu"
    """The computation beside a non-blocking collective, one of :data:`omb_py.engine.devices.placement.FILLERS`."""
    left_out: tuple[tuple[str, str], ...] = ()
    """Pairs of backend and device that cannot run here (``orchestrate.planning.backend_selection``)."""
    buffer: str = "numpy"
    """The object that holds the bytes, one of :data:`omb_py.engine.program.buffers.BUFFERS`."""
    object_kind: str | None = None
    """The pickled object where `buffer` is ``object``, one of :data:`omb_py.engine.program.buffers.OBJECTS`."""
    out_of_band: bool = False
    """Send large buffers inside an object beside its pickle."""
    ranks: int | None = None
    """World size; None: as many as the launcher around omb-py started, else :data:`DEFAULT_RANKS`."""
    hosts: tuple[str, ...] = ()
    """Hosts to start ranks on; ``()``: this one, or what the batch system gave."""
    launcher: str = "auto"
    """One of :data:`omb_py.launchers.registry.CHOICES`, or a launcher of another package."""
    launcher_args: tuple[str, ...] = ()
    """Words passed to the launcher as they are."""
    sizes: str | None = None
    """Message sizes, grammar of :func:`omb_py.grammar.values.parse_sizes`."""
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
    launches: int = 1
    """Number of times that the ranks are started; several backends or bindings take turns."""
    full: bool = False
    """Print minimum, maximum and iterations too."""
    validate: bool = False
    """Check every byte of every message."""
    validation_log: Path | None = None
    """Folder for a log of wrong bytes, which must not exist yet."""
    energy: bool = False
    """Read energy, clocks and throttling around the loop of each size."""
    counters: bool = False
    """Read the counters of the network around the loop of each size."""
    pvars: str | None = None
    """Performance variables of the library, with commas, to read around the loop of each size."""
    percentiles: tuple[float, ...] = ()
    """Tail percentiles to print, each above 0 and at most 100."""
    dtypes: tuple[str, ...] = ()
    """Element types by our names, measured one after the other."""
    op: str | None = None
    """Reduction operation."""
    window: int | None = None
    """Messages in flight."""
    vary_window: bool = False
    """Windows 1 to 128 in turn."""
    print_rate: int | None = None
    """1: mbw_mr prints the message rate in OMB's text; 0: it does not."""
    buffer_num: str | None = None
    """``single`` or ``multiple`` buffers."""
    ddt: str | None = None
    """Layout of a derived datatype, as :func:`omb_py.grammar.layouts.parse_layout` gives it."""
    partitions: int | None = None
    """Parts of a partitioned message."""
    thread_counts: str | None = None
    """``S:R`` threads that send and receive."""
    process_counts: str | None = None
    """``S:R`` forked children beside sender and receiver."""
    window_kind: str | None = None
    """Kind of the window of a one-sided benchmark (:data:`omb_py.engine.program.rma.WINDOWS`)."""
    sync: str | None = None
    """The synchronisation that completes a one-sided operation (:data:`omb_py.engine.program.rma.SYNCS`)."""
    mean: str | None = None
    """What the printed mean of a one-sided benchmark holds (:data:`omb_py.engine.program.benchmark.MEANS`)."""
    process_sync: str | None = None
    """Synchronisation of the ranks after each call of a collective, outside the timer: ``barrier`` or ``none``."""
    timing: str | None = None
    """The way to time calls on a device, one of :data:`omb_py.engine.measuring.async_timing.MODES`."""
    batch: int | None = None
    """Calls of a sample, where the timing has several."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Backend -> text of its own option (:class:`omb_py.backends.capabilities.OwnOption`)."""
    share_device: bool = False
    """Several ranks may use one device."""
    staging: str = "auto"
    """``never``: device buffers go to MPI as they are, or not at all."""
    cache: str | None = None
    """``hot`` or ``rotate`` (:data:`omb_py.engine.measuring.cache_rotation.CACHES`)."""
    in_place: bool = False
    """Use MPI_IN_PLACE."""
    root: int | None = None
    """Root of a collective; -1: another one in every iteration."""
    tests: int | None = None
    """MPI_Test calls while a non-blocking collective runs."""
    imbalance: float | None = None
    """Fraction of the size by which the blocks of a vector collective differ, 0 to 1."""
    groups: str | None = None
    """Groups of ranks that run at once, as :func:`omb_py.grammar.rank_groups.parse_groups` gives it."""
    traffic: str | None = None
    """Traffic from each rank to each other, as :func:`omb_py.grammar.traffic.parse_traffic` gives it."""
    neighborhood: str | None = None
    """``cart:DIMENSIONS:RADIUS`` or ``graph:0>1,1>0`` (:mod:`omb_py.grammar.graphs`)."""
    workload: str | None = None
    """``NAME:KEY=VALUE,…`` of a workload (docs/workloads)."""
    predict: bool = False
    """Print beside a workload's measured times those that stored sweeps predict."""
    session: bool = False
    """Begin with an MPI session instead of MPI_Init."""
    thread_level: str | None = None
    """MPI thread level to ask for; None: what benchmark and binding need."""
    format: str = USUAL.name
    """Form of the results on stdout, one of :data:`FORMATS` or :data:`SILENT`."""
    graph: str | None = None
    """Draw the results too, one of :data:`GRAPHS`."""
    store: Path | None = DEFAULT_STORE
    """Folder of the Parquet files; None: nothing is stored."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Stored with every row."""
    seed: int | None = None
    """Seed of everything random; None: one is drawn and stored."""
    timeout: float = DEFAULT_TIMEOUT_S
    """Seconds without any progress of a rank after which the run is ended."""
    quiet: bool = False
    """No progress and no notes on stderr; errors stay."""
    inject: str = ""
    """Faults to inject, for tests."""
    debug: bool = False
    """Show tracebacks."""
    part: Part | None = None
    """Place of the request in a suite; None for a benchmark that is measured by itself."""

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices, in the order in which they are measured."""
        return tuple(self.device.split(","))

    @property
    def sides(self) -> tuple[tuple[str, str], ...]:
        """The pairs of backend and device that are measured, in order."""
        return tuple((b, d) for b in self.backends for d in self.devices if (b, d) not in self.left_out)
