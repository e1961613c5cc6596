"""The cells of a request: what is measured at each size and type, on each backend, device and binding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from omb_py.backends.capabilities import Capabilities, OwnOption
from omb_py.engine.devices.placement import FILLERS
from omb_py.engine.devices.registry import HOST
from omb_py.engine.measuring.async_timing import BATCH, BATCHED
from omb_py.engine.program.benchmark import Benchmark, Cell
from omb_py.engine.program.buffers import OBJECT, OBJECT_ITEM_BYTES
from omb_py.engine.program.datatype_layouts import fewest_elements
from omb_py.engine.program.dtypes import DTYPES
from omb_py.options.measured import VARIED_WINDOWS
from omb_py.options.request import DEFAULT_RANKS, Request
from omb_py.options.table import cell_options, make_cell, usual_cell
from omb_py.orchestrate.planning.object_rules import kind_of
from omb_py.orchestrate.planning.parsing import ParsedRequest


def common_cells(parsed: ParsedRequest) -> Iterator[Cell]:
    """The cells of a request before backend, device and binding are filled in. Raises UsageError."""
    request, benchmark, dialect = parsed.request, parsed.benchmark, parsed.dialect
    ranks, kind = request.ranks or DEFAULT_RANKS, kind_of(request)
    sizes = dialect.sizes(benchmark, parsed.sizes, ranks, request.sizes is None)
    for dtype, op in product(parsed.dtypes, parsed.reductions):
        for size in benchmark.sizes_for(dtype, sizes):
            if kind and size < OBJECT_ITEM_BYTES[kind]:
                continue
            usual, usual_warmup = benchmark.counts.of(size)
            iterations, auto = parsed.counts.of(size, usual)
            warmups = (request.repetition.warmup, dialect.warmup, usual_warmup)
            cell = make_cell(
                benchmark,
                request.backends[0],
                "",
                size,
                dtype=dtype,
                iterations=iterations,
                auto=auto,
                warmup=next(count for count in warmups if count is not None),
                **cell_options(request) | ({"op": op} if op else {}),
            )
            if 0 < size < fewest_elements_of(benchmark, cell) * DTYPES[dtype].itemsize:
                continue  # OMB's count is size // itemsize, and it skips a count of 0
            for window in VARIED_WINDOWS if request.options.vary_window else (cell.options.window,):
                yield cell.with_options(window=window)
            if dialect.has_both_placements(benchmark):
                yield cell.with_options(in_place=True)


def fewest_elements_of(benchmark: Benchmark, cell: Cell) -> int:
    """The least number of elements in a message."""
    elements = benchmark.unit_of(cell) if benchmark.unit_of else 1
    return max(elements, fewest_elements(cell.options.ddt)) if cell.options.ddt else elements


def cells_on(
    parsed: ParsedRequest, common: Sequence[Cell], backend: str, device: str, offer: Capabilities
) -> dict[str, tuple[Cell, ...]]:
    """The cells on one backend and device, by binding."""
    options = _timing_of(parsed, offer, device)
    placement = parsed.request.placement if "staging" in options else ""
    return {
        binding: tuple(
            replace(
                cell.with_options(**options),
                backend=backend,
                binding=binding,
                device=device,
                placement=placement,
                settings=_settings_of(parsed.request, backend, binding, offer.option),
            )
            for cell in common
        )
        for binding in bindings_of(parsed.request, offer)
    }


def fitted_cells(benchmark: Benchmark, cells: Sequence[Cell], offer: Capabilities) -> tuple[Cell, ...]:
    """The cells as the backend does them."""
    usual = usual_cell(benchmark)
    # in place alone, a cell and its form in place are one
    return tuple(dict.fromkeys(offer.fitted(benchmark, cell, usual) for cell in cells))


def bindings_of(request: Request, offer: Capabilities) -> tuple[str, ...]:
    """The requested bindings that a backend has, else its first one. Python objects go by mpi4py alone."""
    bindings = tuple(binding for binding in request.bindings if binding in offer.bindings)
    return bindings or (("mpi4py",) if request.buffer == OBJECT else tuple(offer.bindings)[:1])


def _settings_of(request: Request, backend: str, binding: str, option: OwnOption | None) -> str:
    """The text of a backend's own option, with what the dialect's method asks of a binding that can do it."""
    if option is None or option.run_wide:
        return ""
    text = request.settings.get(backend, "")
    as_dialect = option.measured_as(request.printing.format, text)
    return text if option.lacks(binding, as_dialect) else as_dialect


def _timing_of(parsed: ParsedRequest, offer: Capabilities, device: str) -> Mapping[str, str | int]:
    """The options of timing and staging on a device; none for buffers on the host."""
    given = parsed.request.options
    filler = given.filler or FILLERS[0]
    if device == HOST:
        return {}
    if not offer.asynchronous:
        return {"staging": given.staging or "auto", "filler": filler}
    mode = given.timing or parsed.dialect.timing or "isolated"
    return {"filler": filler, "timing": mode, "batch": (given.batch or BATCH) if mode in BATCHED else 1}
