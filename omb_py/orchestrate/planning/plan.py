"""From requests to launches: which cells are measured, in what order, in which process start.

Pure: nothing is started and no library is loaded. Backend, number of ranks and everything in :class:`Needs` are fixed
when a process starts, so cells are grouped by them into launches; with ``--launches N`` the groups take turns, because
measurements that are to be compared should see the same drift of the machine. One benchmark is one request, a suite
is several.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from omb_py.backends.capabilities import Capabilities
from omb_py.backends.registry import capabilities, capabilities_of
from omb_py.engine.devices.filler import FILLERS
from omb_py.engine.measuring.async_timing import BATCH, BATCHED
from omb_py.engine.program.benchmark import Benchmark, Cell, Needs
from omb_py.engine.program.buffers import OBJECT, OBJECT_ITEM_BYTES
from omb_py.engine.program.datatype_layouts import pieces_of
from omb_py.engine.program.dtypes import DTYPES, check_reduction, parse_dtype, reduction_dtype
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.options.graphs import check_graph
from omb_py.options.request import DEFAULT_RANKS, NCCL_TESTS, Request
from omb_py.options.traffic import check_traffic
from omb_py.options.values import parse_iterations, parse_sizes
from omb_py.orchestrate.planning.memory_checks import check_cache, check_object_size, check_objects
from omb_py.orchestrate.planning.validation import HOST_MEMORY, check_choices
from omb_py.suites import BENCHMARKS, find
from omb_py.suites.collective.forms import ROTATE

_DEFAULT_LEVEL = {"mpi4py": "multiple"}
"""Thread levels that a binding asks for by itself; others ask for what the benchmark needs."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option that only some benchmarks take."""

    flag: str
    what: str
    """What a benchmark without it lacks."""
    request: str
    """Field of the request."""
    cell: str = ""
    """Field of the cell that gets the value; empty: it is used otherwise."""


OPTIONS: Mapping[str, Option] = {
    "type": Option("-T/--type", "element type", "dtypes"),
    "op": Option("--op", "reduction operation", "op", "op"),
    "window": Option("-W/--window-size", "window of messages in flight", "window", "window"),
    "window_kind": Option("-w/--win-options", "window of memory that peers access", "window_kind", "window_kind"),
    "sync": Option("-s/--sync-option", "synchronisation of a window", "sync", "sync"),
    "validation": Option("-c/--validation", "data to validate", "validate"),
    "full": Option("-f/--full", "minimum and maximum over ranks", "full"),
    "process_sync": Option("--process-sync", "synchronisation after each call", "process_sync", "process_sync"),
    "sizes": Option("-m/--message-size", "message size", "sizes"),
    "in_place": Option("-l/--in-place", "in-place form", "in_place", "in_place"),
    "root": Option("-k/--root-rank", "choice of a root", "root", "root"),
    "tests": Option("-t/--num-test-calls", "MPI_Test calls", "tests", "tests"),
    "object": Option("--object", "objects", "object_kind", "object_kind"),
    "out_of_band": Option("--out-of-band", "objects", "out_of_band", "out_of_band"),
    "cache": Option("--cache", "data", "cache", "cache"),
    "session": Option("-I/--session", "start", "session", "session"),
    "imbalance": Option("--imbalance", "blocks of different sizes", "imbalance", "imbalance"),
    "traffic": Option("--traffic", "blocks that a matrix gives", "traffic", "traffic"),
    "vary_window": Option("-V/--vary-window", "sweep over windows", "vary_window", "vary_window"),
    "print_rate": Option("-R/--print-rate", "message rate", "print_rate", "print_rate"),
    "buffer_num": Option("-b/--buffer-num", "choice of one or several buffers", "buffer_num", "buffer_num"),
    "ddt": Option("-D/--ddt", "derived datatypes", "ddt", "ddt"),
    "partitions": Option("-q/--partitions", "partitions", "partitions", "partitions"),
    "thread_counts": Option("-t/--num-threads", "threads", "thread_counts", "thread_counts"),
    "process_counts": Option("-t/--num-processes", "forked processes", "process_counts", "process_counts"),
    "workload": Option("--workload", "choice of a workload", "workload", "workload"),
    "predict": Option("--predict", "step to predict", "predict"),
    "neighborhood": Option("-N/--nhbr", "graph of neighbors", "neighborhood", "neighborhood"),
}
"""By the key that stands in ``Benchmark.options``."""
OF_DATA = ("object", "out_of_band", "cache")
"""Options that every benchmark takes that moves data."""
OF_ALL = ("session",)
"""Options that every benchmark takes."""
_NAMED = 12
NCCL_TESTS_SAMPLES, NCCL_TESTS_WARMUP = "1", 1
"""One sample of :data:`~omb_py.engine.measuring.async_timing.BATCH` calls after one of warm-up."""
VARIED_WINDOWS = (1, 2, 4, 8, 16, 32, 64, 128)
"""The windows of ``-V``."""


def _given(value: object) -> bool:
    """Whether an option of a request was given: 0 is a value."""
    return value is not None and value is not False and value != ()


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """One start of the rank set."""

    backend: str
    needs: Needs
    """What is fixed when the processes start."""
    ranks: int
    index: int
    """Number of the launch within the run, from 0."""
    cells: tuple[Cell, ...]
    """What is measured, in this order."""
    requests: tuple[Request, ...] = ()
    """What was asked for, in the whole run; ``Cell.sweep`` is an index into it."""
    turn: int = 0
    """With ``--launches N``: which of the N this is, from 0."""

    @property
    def thread_level(self) -> str:
        """MPI thread level to ask for."""
        return self.needs.thread_level


def takes(benchmark: Benchmark, option: str) -> bool:
    """Does an option (a key as in ``Benchmark.options``) mean something for a benchmark?"""
    if option in ("sizes", *OF_DATA):
        return benchmark.sizes is not None
    return option in OF_ALL or option in benchmark.options


def _takers(key: str) -> str:
    """The benchmarks that take an option; of many the first, and how many more."""
    names = [b.name for b in BENCHMARKS.values() if takes(b, key)]
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


def check(request: Request, offers: Mapping[str, Capabilities] | None = None) -> Benchmark:
    """Everything about a request that can be checked before the number of ranks is known.

    Returns:
        The benchmark's declaration.

    Raises:
        UsageError: an unknown word, a value out of range, or an option that the benchmark does not take.
        EnvironmentProblem: a known backend or device that cannot be used here.
    """
    benchmark = find(request.benchmark)
    offers = offers or capabilities_of(request.backends)
    check_choices(request, offers)
    for key, option in OPTIONS.items():
        if _given(getattr(request, option.request)) and not takes(benchmark, key):
            raise UsageError(f"{benchmark.name} has no {option.what}, so it takes no {option.flag}: for {_takers(key)}")
    for what, value, smallest in (
        ("ranks", request.ranks, 1),
        ("launches", request.launches, 1),
        ("window size", request.window, 1),
        ("warm-up", request.warmup, 0),
        ("number of test calls", request.tests, 0),
        ("number of partitions", request.partitions, 1),
        ("root rank", request.root, ROTATE),
        ("batch", request.batch, 1),
    ):
        if value is not None and value < smallest:
            raise UsageError(f"{what} must be {smallest} or more, not {value}")
    if request.ddt and (request.in_place or request.imbalance):
        what = "-l/--in-place" if request.in_place else "--imbalance"
        raise UsageError(f"-D/--ddt does not go together with {what}: leave one of them out")
    if request.traffic and (request.in_place or request.imbalance or request.ddt):
        what = "-l/--in-place" if request.in_place else "--imbalance" if request.imbalance else "-D/--ddt"
        raise UsageError(f"--traffic does not go together with {what}: leave one of them out")
    needed = benchmark.needs.thread_level
    if request.thread_level and needed == "multiple" and request.thread_level != needed:
        raise UsageError(f"{benchmark.name} needs --thread-level {needed}, not {request.thread_level}: leave it out")
    if request.vary_window and request.window is not None:
        raise UsageError(f"-V/--vary-window takes the windows {_words(VARIED_WINDOWS)} in turn: leave out -W")
    if request.vary_window and request.percentiles and request.format == "osu":
        raise UsageError(
            "the tables of -V/--vary-window have no place for percentiles: leave out -z or -V, or add --format table"
        )
    if request.session and not all(offers[backend].mpi_sessions for backend in request.backends):
        able = " or ".join(name for name, known in offers.items() if known.mpi_sessions)
        raise UsageError(f"-I/--session begins MPI with a session: leave it out, or use --backend {able} alone")
    check_objects(request, benchmark)
    check_cache(request, benchmark)
    if takes(benchmark, "op"):
        for dtype in _dtypes(request, benchmark):
            check_reduction(reduction_dtype(dtype), request.op or "sum")
    if request.ranks is not None:
        check_places(request, benchmark, request.ranks)
    cells = list(_cells(request, benchmark, request.backends[0], "", request.devices[0]))
    refused = next((why for cell in cells if benchmark.refuses and (why := benchmark.refuses(cell))), "")
    if refused:
        raise UsageError(refused)
    for backend, device in request.sides:
        for binding in bindings_of(request, offers[backend]):
            mine = [replace(cell, device=device, binding=binding) for cell in cells]
            check_backend(backend, offers[backend], benchmark, mine)
    if not cells:
        item = sorted({DTYPES[d].itemsize for d in _dtypes(request, benchmark)})[0]
        elements = _elements(benchmark, replace(Cell(benchmark.name, "", "", 0), **_options(request)))
        wanted = item * elements
        what = f"one element of {item} bytes" if elements == 1 else f"{elements} elements of {item} bytes"
        raise UsageError(f"no message size of {request.sizes!r} holds {what}: write -m {wanted}:{wanted}")
    return benchmark


def check_backend(backend: str, offer: Capabilities, benchmark: Benchmark, cells: Sequence[Cell]) -> None:
    """Raises EnvironmentProblem when a backend cannot do a benchmark, or not with the options of these cells."""
    reasons = (offer.why_refused(benchmark, cell) for cell in cells)
    why = offer.why_not(benchmark) or next(filter(None, reasons), "")
    if why:
        raise EnvironmentProblem(f"backend {backend} cannot do {benchmark.name}: {why}")


def check_ranks(benchmark: Benchmark, ranks: int) -> None:
    """Raises UsageError, with the rule and the nearest admitted count, when a benchmark does not admit `ranks`."""
    if benchmark.ranks.admits(ranks):
        return
    near = sorted(range(1, ranks + 65), key=lambda n: (abs(n - ranks), n))
    hint = next((f": use -n {n}" for n in near if benchmark.ranks.admits(n)), "")
    raise UsageError(f"{benchmark.name} needs {benchmark.ranks.text}, not {ranks}{hint}")


def check_places(request: Request, benchmark: Benchmark, ranks: int) -> None:
    """As :func:`check_ranks`, and that root and neighbors are among the ranks."""
    check_ranks(benchmark, ranks)
    if request.root is not None and request.root >= ranks:
        raise UsageError(f"there is no root rank {request.root} among {ranks}: fixed:0 to fixed:{ranks - 1}, or rotate")
    if request.neighborhood is not None:
        check_graph(request.neighborhood, ranks)
    if request.traffic is not None:
        check_traffic(request.traffic, ranks)


def check_fits(request: Request, benchmark: Benchmark, ranks: int) -> None:
    """Raises UsageError when the options of a request do not go with so many ranks."""
    if benchmark.fits:
        backend, device = request.sides[0]
        for cell in _cells(request, benchmark, backend, "", device):
            benchmark.fits(cell, ranks)


def plan(request: Request, ranks: int, offers: Mapping[str, Capabilities] | None = None) -> list[LaunchPlan]:
    """The launches of one request, in the order in which they are made.

    Args:
        request: what was asked for.
        ranks: world size.
        offers: what each backend can do; None: asked of the registry.

    Raises:
        UsageError: as :func:`check`, and when the benchmark does not admit `ranks`.
        EnvironmentProblem: as :func:`check`.
    """
    return plan_all([replace(request, ranks=ranks)], offers)


def plan_all(requests: Sequence[Request], offers: Mapping[str, Capabilities] | None = None) -> list[LaunchPlan]:
    """The launches of several requests that make one run: those with equal needs share their launches.

    Each is measured on its own number of ranks; ``launches`` is that of the first.

    Raises:
        UsageError, EnvironmentProblem: as :func:`check`.
    """
    offers = offers or capabilities_of(backend for request in requests for backend in request.backends)
    groups: dict[tuple[str, int, Needs], list[Cell]] = {}
    for sweep, request in enumerate(requests):
        ranks = request.ranks or DEFAULT_RANKS
        benchmark = check(replace(request, ranks=ranks), offers)
        check_fits(request, benchmark, ranks)
        for backend, device in request.sides:
            there = device != HOST_MEMORY
            for binding in bindings_of(request, offers[backend]):
                level = request.thread_level or _DEFAULT_LEVEL.get(binding, benchmark.needs.thread_level)
                needs = replace(
                    benchmark.needs,
                    thread_level=level,  # type: ignore[arg-type]
                    session=request.session,
                    device=device,
                    share_device=there and request.share_device,
                    placement=request.placement if there else "",
                )
                cells = groups.setdefault((backend, ranks, needs), [])
                made = _cells(request, benchmark, backend, binding, device)
                cells += (replace(offers[backend].fitted(benchmark, cell), sweep=sweep) for cell in made)
    return [
        LaunchPlan(backend, needs, ranks, turn * len(groups) + place, tuple(cells), tuple(requests), turn)
        for turn in range(requests[0].launches if requests else 0)
        for place, ((backend, ranks, needs), cells) in enumerate(groups.items())
    ]


def bindings_of(request: Request, offer: Capabilities) -> tuple[str, ...]:
    """Those asked for that it has, or the backend's first; objects have one only."""
    mine = tuple(binding for binding in request.bindings if binding in offer.bindings)
    return mine or (("mpi4py",) if request.buffer == OBJECT else tuple(offer.bindings)[:1])


def sizes_of(benchmark: Benchmark, text: str | None) -> tuple[int, ...]:
    """Message sizes in bytes of a request for a benchmark; one 0 for a benchmark without a size."""
    if benchmark.sizes is None:
        return (0,)
    return parse_sizes(
        None if text is None else str(text), benchmark.sizes.minimum, benchmark.sizes.maximum, benchmark.zero_size
    )


def _dtypes(request: Request, benchmark: Benchmark) -> list[str]:
    return [parse_dtype(word) for word in request.dtypes] or [benchmark.dtype]


def _cells(request: Request, benchmark: Benchmark, backend: str, binding: str, device: str) -> Iterator[Cell]:
    counts = parse_iterations(str(request.iterations))
    option = capabilities(backend).option
    extra = _options(request) | timing_of(request, benchmark, backend, device)
    if option and not option.run_wide:
        extra["settings"] = request.settings.get(backend, "")
    if request.format == NCCL_TESTS:
        counts = parse_iterations(NCCL_TESTS_SAMPLES if request.iterations == "auto" else str(request.iterations))
    for dtype in _dtypes(request, benchmark):
        for size in benchmark.sizes_for(dtype, sizes_of(benchmark, request.sizes)):
            if request.buffer == OBJECT:
                if size < OBJECT_ITEM_BYTES[request.object_kind or "bytes"]:
                    continue
                check_object_size(request.object_kind or "bytes", size)
            usual, usual_warmup = benchmark.counts.of(size)
            iterations, auto = counts.of(size, usual)
            cell = benchmark.cell(
                backend,
                binding,
                size,
                dtype=dtype,
                device=device,
                buffer=request.buffer,
                iterations=iterations,
                auto=auto,
                warmup=_warmup(request, usual_warmup),
                precision=request.precision,
                time_limit=request.time_limit,
                validate=request.validate,
                **extra,
            )
            if 0 < size < _elements(benchmark, cell) * DTYPES[dtype].itemsize:
                continue  # OMB's count is size // itemsize, and it skips a count of 0
            for window in VARIED_WINDOWS if request.vary_window else (cell.window,):
                yield replace(cell, window=window)
            if request.format == NCCL_TESTS and has_in_place(benchmark):
                yield replace(cell, in_place=True)


def timing_of(request: Request, benchmark: Benchmark, backend: str, device: str) -> dict[str, Any]:
    """How calls are timed and how data gets to a device: nothing to say where buffers are on the host."""
    if device == HOST_MEMORY:
        return {}
    if request.filler != FILLERS[0] and not takes(benchmark, "tests"):
        raise UsageError(f"{benchmark.name} computes nothing beside its call, so it takes no -r/--cuda-target")
    if not capabilities(backend).asynchronous:
        return {"staging": request.staging, "placement": request.placement, "filler": request.filler}
    mode = request.timing or ("pipelined" if request.format == NCCL_TESTS else "isolated")
    if mode != "isolated" and benchmark.family != "collective":
        raise UsageError(f"--timing {mode} is for blocking collectives, not for {benchmark.name}: leave it out")
    batch = (request.batch or BATCH) if mode in BATCHED else 1
    return {"filler": request.filler, "timing": mode, "batch": batch}


def _warmup(request: Request, usual: int) -> int:
    if request.warmup is not None:
        return request.warmup
    return NCCL_TESTS_WARMUP if request.format == NCCL_TESTS else usual


def has_in_place(benchmark: Benchmark) -> bool:
    """Whether nccl-tests' second half of a row can be measured."""
    return "in_place" in benchmark.options and benchmark.bandwidth not in ("alltoall", None)


def _elements(benchmark: Benchmark, cell: Cell) -> int:
    """Elements that a message must have."""
    elements = benchmark.unit_of(cell) if benchmark.unit_of else 1
    return max(elements, pieces_of(cell.ddt)[1]) if cell.ddt else elements


def _options(request: Request) -> dict[str, Any]:
    """The fields of a cell that were given as options."""
    given = ((option.cell, getattr(request, option.request)) for option in OPTIONS.values() if option.cell)
    return {field: value for field, value in given if _given(value)}


def _words(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))
