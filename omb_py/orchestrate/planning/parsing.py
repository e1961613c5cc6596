"""The first step of planning: the words of a request get their meaning. Nothing is looked up on this machine."""

from __future__ import annotations

from dataclasses import dataclass

from omb_py.backends.registry import capabilities
from omb_py.engine.program.benchmark import Benchmark
from omb_py.engine.program.dtypes import parse_dtype, parse_reductions
from omb_py.grammar.values import Iterations, parse_iterations
from omb_py.options.request import Request
from omb_py.options.table import named_sizes
from omb_py.results.dialects.dialect import Dialect
from omb_py.results.dialects.registry import dialect_of
from omb_py.suites import find


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """A request whose words mean something; whether they go together is not known yet."""

    request: Request
    benchmark: Benchmark
    dialect: Dialect
    """The tool in whose text the rows are printed, and as which they are measured."""
    sizes: tuple[int, ...]
    """Message sizes in bytes that it names; (0,) for a benchmark without a size."""
    dtypes: tuple[str, ...]
    """Element types by our names."""
    reductions: tuple[str, ...]
    """Reductions by our names; ``("",)`` where none is given."""
    counts: Iterations


def parse(request: Request) -> ParsedRequest:
    """Read the words of a request. Raises UsageError for a benchmark, type, size or count that is none."""
    asynchronous = all(capabilities(backend).asynchronous for backend in request.backends)
    benchmark, dialect = find(request.benchmark), dialect_of(request.printing.format).measured_on(asynchronous)
    sizes = named_sizes(request, benchmark)
    usual = dialect.dtype if "type" in benchmark.options else ""
    dtypes = tuple(map(parse_dtype, request.dtypes)) or (usual or benchmark.dtype,)
    reductions = parse_reductions(request.options.op) if request.options.op else ("",)
    iterations = request.repetition.iterations
    counts = parse_iterations((iterations == "auto" and dialect.samples) or str(iterations))
    return ParsedRequest(request, benchmark, dialect, sizes, dtypes, reductions, counts)
