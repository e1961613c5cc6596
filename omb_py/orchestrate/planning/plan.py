"""From requests to launches: which cells are measured, in what order, in which process start.

Planning starts nothing and loads no library. Backend, number of ranks and everything in :class:`Needs` are fixed
when a process starts, so cells are grouped by them into launches; with ``--launches N`` the groups take turns, because
measurements that are to be compared should see the same drift of the machine. One benchmark is one request, a suite
consists of several.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from omb_py.backends.capabilities import Capabilities, OwnOption
from omb_py.backends.registry import capabilities, capabilities_of
from omb_py.engine.devices.placement import FILLERS
from omb_py.engine.measuring.async_timing import BATCH, BATCHED
from omb_py.engine.program.benchmark import Benchmark, Cell, Needs
from omb_py.engine.program.buffers import OBJECT, OBJECT_ITEM_BYTES
from omb_py.engine.program.datatype_layouts import fewest_elements
from omb_py.engine.program.dtypes import DTYPES, check_reduction, parse_dtype
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.grammar.graphs import check_graph
from omb_py.grammar.rank_groups import groups_of_ranks, needs_hosts
from omb_py.grammar.traffic import check_traffic
from omb_py.grammar.values import parse_iterations, parse_sizes
from omb_py.options.measured import VARIED_WINDOWS
from omb_py.options.request import DEFAULT_RANKS, Request
from omb_py.options.table import cell_options, check_ranges, check_taken, make_cell, takes, usual_cell
from omb_py.orchestrate.planning.memory_checks import check_cache, check_object_size, check_objects
from omb_py.orchestrate.planning.rules import RuleContext, check_rules, factored_problem
from omb_py.orchestrate.planning.skip import Skip
from omb_py.orchestrate.planning.validation import HOST_MEMORY, check_choices, check_pvars
from omb_py.results.dialects.registry import dialect_of
from omb_py.suites import find

_DEFAULT_LEVEL = {"mpi4py": "multiple"}
"""Thread levels that a binding asks for by itself; others ask for what the benchmark needs."""


_OF_THE_RUN = frozenset({"ranks", "part", "format", "launches", "graph", "quiet", "seed", "tags", "store"})
"""Request fields on which no check and no cell depends; a format where its dialect asks for nothing."""


@dataclass(frozen=True, slots=True)
class CheckedRequest:
    """A request that was checked and can be measured here, with its cells. No later step checks it again."""

    request: Request
    """The request as it is measured: without the backends and devices that cannot run it here."""
    asked: Request
    """The request as the user made it."""
    benchmark: Benchmark
    cells: Mapping[tuple[str, str, str], tuple[Cell, ...]]
    """(backend, device, binding) -> the cells, with the changes that the backend needs."""
    problems: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """(backend, device) -> why it is left out."""

    @property
    def skips(self) -> tuple[Skip, ...]:
        """The backends and devices that are left out, in the order in which they were asked for."""
        several = len(self.asked.devices) > 1
        sides = [side for side in self.asked.sides if side in self.problems]
        return tuple(Skip(" on ".join(side) if several else side[0], self.problems[side]) for side in sides)

    def changed(self, **fields: Any) -> CheckedRequest:
        """Replace fields of the request, and check it again where its cells may depend on them.

        Raises:
            UsageError, EnvironmentProblem: as :func:`check`, where it is checked again.
        """
        request = self.request.changed(**fields)
        forms = {self.request.printing.format, request.printing.format}
        if fields.keys() <= _OF_THE_RUN and (len(forms) == 1 or not any(dialect_of(form).asks for form in forms)):
            return replace(self, request=request)
        return check(request)


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """One launch: the ranks start together and measure these cells."""

    backend: str
    needs: Needs
    """The properties of the processes that are fixed when they start."""
    ranks: int
    index: int
    """Number of the launch within the run, from 0."""
    cells: tuple[Cell, ...]
    """The cells, in the order in which they are measured."""
    requests: tuple[Request, ...] = ()
    """All requests of the run; ``Cell.sweep`` is an index into them."""
    turn: int = 0
    """Number of the repetition with ``--launches``, from 0."""

    @property
    def thread_level(self) -> str:
        """The MPI thread level that ranks request."""
        return self.needs.thread_level


def check(request: Request, offers: Mapping[str, Capabilities] | None = None) -> CheckedRequest:
    """Check everything about a request that does not need the number of ranks, on every backend and device.

    Raises:
        UsageError: an unknown word, a value out of range, or an option that the benchmark does not take.
        EnvironmentProblem: a known backend or device that cannot be used here.
    """
    benchmark = find(request.benchmark)
    offers = offers or capabilities_of(request.backends)
    check_choices(request, offers)
    check_options(request, benchmark, offers)
    check_pvars(request, offers)
    common = common_cells(request, benchmark)
    cells: dict[tuple[str, str, str], tuple[Cell, ...]] = {}
    for backend, device in request.sides:
        cells |= cells_on(request, benchmark, common, backend, device, offers[backend])
    check_sizes(request, benchmark, common)
    return CheckedRequest(request, request, benchmark, cells)


def check_options(request: Request, benchmark: Benchmark, offers: Mapping[str, Capabilities]) -> None:
    """Check the options of a request against the benchmark, their ranges, and each other. Raises UsageError."""
    check_taken(request, benchmark)
    check_ranges(request)
    sync = request.options.sync or dict(benchmark.defaults).get("sync", "flush")
    dialect_of(request.printing.format).check(benchmark.name, benchmark.metric.unit, sync, bool(request.options.groups))
    context = RuleContext(request, benchmark, offers)
    check_rules(context)
    check_objects(request, benchmark)
    check_cache(request, benchmark)
    if why := factored_problem(context):
        raise UsageError(why)
    if takes(benchmark, "op"):
        for dtype in _dtypes(request, benchmark):
            check_reduction(dtype, request.options.op or "sum")
    if request.ranks is not None:
        check_places(request, benchmark, request.ranks)


def check_sizes(request: Request, benchmark: Benchmark, cells: Sequence[Cell]) -> None:
    """Raises UsageError when no message size of a request holds an element; the text names the smallest size."""
    if not cells:
        item = sorted({DTYPES[d].itemsize for d in _dtypes(request, benchmark)})[0]
        elements = _elements(benchmark, make_cell(benchmark, "", "", 0, **cell_options(request)))
        wanted = item * elements
        what = f"one element of {item} bytes" if elements == 1 else f"{elements} elements of {item} bytes"
        raise UsageError(f"no message size of {request.sizes!r} holds {what}: write -m {wanted}:{wanted}")


def check_backend(backend: str, offer: Capabilities, benchmark: Benchmark, cells: Sequence[Cell]) -> None:
    """Raises EnvironmentProblem when a backend cannot run a benchmark, or not with the options of these cells."""
    reasons = (offer.why_refused(benchmark, cell) for cell in cells)
    why = offer.why_not(benchmark, usual_cell(benchmark)) or next(filter(None, reasons), "")
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
    """Check the number of ranks, and that root, neighbors and traffic are among them. Raises UsageError."""
    together = _group_size(request, ranks)
    if together < ranks and not benchmark.ranks.admits(together):
        raise UsageError(
            f"{benchmark.name} needs {benchmark.ranks.text} in a group, not {together}: "
            f"--groups {request.options.groups} makes groups of {together} from {ranks} ranks"
        )
    check_ranks(benchmark, together)
    if request.options.root is not None and request.options.root >= together:
        raise UsageError(
            f"there is no root rank {request.options.root} among {together}: fixed:0 to fixed:{together - 1}, or rotate"
        )
    if request.options.neighborhood is not None:
        check_graph(request.options.neighborhood, ranks)
    if request.options.traffic is not None:
        check_traffic(request.options.traffic, ranks)


def _group_size(request: Request, ranks: int) -> int:
    """Ranks of a group; of all where ranks alone know their nodes. Raises UsageError."""
    if not request.options.groups or needs_hosts(request.options.groups):
        return ranks
    return len(groups_of_ranks(request.options.groups, ranks)[0])


def check_fits(checked: CheckedRequest, ranks: int) -> None:
    """Raises UsageError when the options of a request cannot be used with this number of ranks."""
    if checked.benchmark.fits:
        for cell in next(iter(checked.cells.values())):
            checked.benchmark.fits(cell, ranks)


def plan(request: Request, ranks: int, offers: Mapping[str, Capabilities] | None = None) -> list[LaunchPlan]:
    """Plan the launches of one request, in the order in which they are made.

    Args:
        request: the request, not checked yet.
        ranks: number of ranks; it replaces that of the request.
        offers: capabilities by backend; None: those of the registry.

    Raises:
        UsageError: as :func:`check`, and when the benchmark does not admit `ranks`.
        EnvironmentProblem: as :func:`check`.
    """
    return plan_all([check(request.changed(ranks=ranks), offers)])


def plan_all(checked: Sequence[CheckedRequest]) -> list[LaunchPlan]:
    """Plan the launches of several requests that make one run. Requests with equal needs share launches.

    Each request is measured on its own number of ranks; the number of repetitions is that of the first request.

    Raises:
        UsageError: a benchmark, or the options of a request, do not go with the number of ranks.
    """
    groups: dict[tuple[str, int, Needs], list[Cell]] = {}
    for sweep, each in enumerate(checked):
        request, benchmark = each.request, each.benchmark
        ranks = request.ranks or DEFAULT_RANKS
        check_places(request, benchmark, ranks)
        check_fits(each, ranks)
        for (backend, device, binding), cells in each.cells.items():
            on_device = device != HOST_MEMORY
            level = request.launching.thread_level or _DEFAULT_LEVEL.get(binding, benchmark.needs.thread_level)
            needs = replace(
                benchmark.needs,
                thread_level=level,  # type: ignore[arg-type]
                session=bool(request.options.session),
                device=device,
                share_device=on_device and request.launching.share_device,
                placement=request.placement if on_device else "",
            )
            groups.setdefault((backend, ranks, needs), []).extend(replace(cell, sweep=sweep) for cell in cells)
    requests = tuple(each.request for each in checked)
    return [
        LaunchPlan(backend, needs, ranks, turn * len(groups) + position, tuple(cells), requests, turn)
        for turn in range(requests[0].repetition.launches if requests else 0)
        for position, ((backend, ranks, needs), cells) in enumerate(groups.items())
    ]


def bindings_of(request: Request, offer: Capabilities) -> tuple[str, ...]:
    """The requested bindings that a backend has, else its first one. Python objects go by mpi4py alone."""
    bindings = tuple(binding for binding in request.bindings if binding in offer.bindings)
    return bindings or (("mpi4py",) if request.buffer == OBJECT else tuple(offer.bindings)[:1])


def sizes_of(request: Request, benchmark: Benchmark) -> tuple[int, ...]:
    """Message sizes in bytes of a request, as its dialect measures them; (0,) for a benchmark without a size."""
    dialect, usual = dialect_of(request.printing.format), request.sizes is None
    named: tuple[int, ...] = (0,)
    if benchmark.sizes is not None:
        text = None if usual else str(request.sizes)
        from_zero = benchmark.zero_size or dialect.from_zero
        named = parse_sizes(text, benchmark.sizes.minimum, benchmark.sizes.maximum, from_zero)
    return dialect.sizes(benchmark, named, request.ranks or DEFAULT_RANKS, usual)


def _dtypes(request: Request, benchmark: Benchmark) -> list[str]:
    usual = dialect_of(request.printing.format).dtype if "type" in benchmark.options else ""
    return [parse_dtype(word) for word in request.dtypes] or [usual or benchmark.dtype]


def common_cells(request: Request, benchmark: Benchmark) -> tuple[Cell, ...]:
    """The cells of a request before backend, device and binding are filled in.

    Raises:
        UsageError: the benchmark refuses the options of a cell.
    """
    cells = tuple(_cells(request, benchmark))
    refused = next((why for cell in cells if benchmark.refuses and (why := benchmark.refuses(cell))), "")
    if refused:
        raise UsageError(refused)
    return cells


def cells_on(
    request: Request, benchmark: Benchmark, common: Sequence[Cell], backend: str, device: str, offer: Capabilities
) -> dict[tuple[str, str, str], tuple[Cell, ...]]:
    """The cells of a request on one backend and device, by backend, device and binding.

    Raises:
        UsageError: the benchmark's calls cannot be timed as the request asks.
        EnvironmentProblem: the backend cannot run the benchmark, or not with these options.
    """
    options = timing_of(request, benchmark, backend, device)
    placement = request.placement if "staging" in options else ""
    usual, by_binding = usual_cell(benchmark), {}
    for binding in bindings_of(request, offer):
        settings = _settings_of(request, backend, binding, offer.option)
        cells = [
            replace(
                cell.with_options(**options),
                backend=backend,
                binding=binding,
                device=device,
                placement=placement,
                settings=settings,
            )
            for cell in common
        ]
        check_backend(backend, offer, benchmark, cells)
        by_binding[backend, device, binding] = tuple(offer.fitted(benchmark, cell, usual) for cell in cells)
    return by_binding


def _settings_of(request: Request, backend: str, binding: str, option: OwnOption | None) -> str:
    """The text of a backend's own option, with what the dialect's method asks of a binding that can do it."""
    if option is None or option.run_wide:
        return ""
    text = request.settings.get(backend, "")
    alike = option.measured_as(request.printing.format, text)
    return text if option.lacks(binding, alike) else alike


def _cells(request: Request, benchmark: Benchmark) -> Iterator[Cell]:
    dialect = dialect_of(request.printing.format)
    counts = parse_iterations(
        (request.repetition.iterations == "auto" and dialect.samples) or str(request.repetition.iterations)
    )
    fields = cell_options(request)
    for dtype in _dtypes(request, benchmark):
        for size in benchmark.sizes_for(dtype, sizes_of(request, benchmark)):
            if request.buffer == OBJECT:
                if size < OBJECT_ITEM_BYTES[request.options.object_kind or "bytes"]:
                    continue
                check_object_size(request.options.object_kind or "bytes", size)
            usual, usual_warmup = benchmark.counts.of(size)
            iterations, auto = counts.of(size, usual)
            cell = make_cell(
                benchmark,
                request.backends[0],
                "",
                size,
                dtype=dtype,
                iterations=iterations,
                auto=auto,
                warmup=_warmup(request, usual_warmup),
                **fields,
            )
            if 0 < size < _elements(benchmark, cell) * DTYPES[dtype].itemsize:
                continue  # OMB's count is size // itemsize, and it skips a count of 0
            for window in VARIED_WINDOWS if request.options.vary_window else (cell.options.window,):
                yield cell.with_options(window=window)
            if dialect.has_both_placements(benchmark):
                yield cell.with_options(in_place=True)


def timing_of(request: Request, benchmark: Benchmark, backend: str, device: str) -> dict[str, Any]:
    """The options of timing and staging on a device; none for buffers on the host. Raises UsageError."""
    if device == HOST_MEMORY:
        return {}
    if request.options.filler not in (None, FILLERS[0]) and not takes(benchmark, "tests"):
        raise UsageError(f"{benchmark.name} computes nothing beside its call, so it takes no -r/--cuda-target")
    if not capabilities(backend).asynchronous:
        return {"staging": request.options.staging or "auto", "filler": request.options.filler or FILLERS[0]}
    mode = request.options.timing or dialect_of(request.printing.format).timing or "isolated"
    if mode != "isolated" and benchmark.family != "collective":
        raise UsageError(f"--timing {mode} is for blocking collectives, not for {benchmark.name}: leave it out")
    batch = (request.options.batch or BATCH) if mode in BATCHED else 1
    return {"filler": request.options.filler or FILLERS[0], "timing": mode, "batch": batch}


def _warmup(request: Request, usual: int) -> int:
    counts = (request.repetition.warmup, dialect_of(request.printing.format).warmup, usual)
    return next(count for count in counts if count is not None)


def _elements(benchmark: Benchmark, cell: Cell) -> int:
    """The least number of elements in a message."""
    elements = benchmark.unit_of(cell) if benchmark.unit_of else 1
    return max(elements, fewest_elements(cell.options.ddt)) if cell.options.ddt else elements
