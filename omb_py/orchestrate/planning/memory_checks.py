"""Checks of ``--buffer object`` and ``--cache rotate`` against the steps of a benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from omb_py.engine.measuring.cache_rotation import check_rotatable
from omb_py.engine.program.benchmark import Benchmark, World
from omb_py.engine.program.buffers import OBJECT, OBJECT_ITEM_BYTES, OBJECT_STEPS, OBJECTS, OUT_OF_BAND_STEPS
from omb_py.engine.program.dtypes import FP8
from omb_py.engine.program.language import Host, Program, Step, walk
from omb_py.errors import UsageError, nearest
from omb_py.options.request import Request
from omb_py.options.table import usual_cell

_OPS = ("sum", "prod", "band", "bor", "bxor")
"""Reductions that mpi4py can do on ndarrays; it compares whole objects for the others."""
_MOST_RANKS = 64
"""The search for the smallest world that a benchmark admits ends here."""


def check_objects(request: Request, benchmark: Benchmark) -> None:
    """Check ``--buffer object``, ``--object`` and ``--out-of-band``. Raises UsageError."""
    if request.buffer != OBJECT:
        for flag, given in (
            ("--object", request.options.object_kind),
            ("--out-of-band", request.options.out_of_band),
        ):
            if given:
                raise UsageError(f"{flag} is for Python objects: add --buffer object")
        return
    kind = request.options.object_kind or OBJECTS[0]
    if kind not in OBJECTS:
        raise UsageError(f"unknown object {kind!r}: {nearest(kind, OBJECTS)}")
    wrong = next((binding for binding in request.bindings if binding != "mpi4py"), None)
    if wrong:
        raise UsageError(f"binding {wrong} has no Python objects: use --binding mpi4py")
    _check_steps(request, benchmark)
    if request.options.in_place:
        raise UsageError("mpi4py's lower-case methods have no MPI_IN_PLACE: leave out --in-place or --buffer object")
    if "op" in benchmark.options:
        if kind != "ndarray":
            raise UsageError(f"a reduction of objects of kind {kind} would join them, not add: use --object ndarray")
        if (request.options.op or "sum") not in _OPS:
            raise UsageError(f"mpi4py cannot do {request.options.op} on ndarrays as objects: {nearest('', _OPS)}")
    unknown = next((name for name in request.dtypes if name in ("bfloat16", *FP8)), None)
    if unknown:
        raise UsageError(f"NumPy has no {unknown}: --buffer object takes the other types")


def check_object_size(kind: str, size: int) -> None:
    """Raises UsageError when a message of `size` bytes is no whole number of items of an object."""
    item = OBJECT_ITEM_BYTES[kind]
    if size % item:
        raise UsageError(f"{size} bytes are no whole number of items of {item} bytes: --object {kind} needs -m {item}:")


def check_cache(request: Request, benchmark: Benchmark) -> None:
    """Raises UsageError where ``--cache rotate`` cannot be done."""
    if request.options.cache != "rotate" or benchmark.sizes is None:
        return
    if request.buffer == OBJECT:
        raise UsageError("--cache rotate moves buffers; objects are made anew anyway: leave out --buffer object")
    for program in _programs(benchmark):
        check_rotatable(program)


def _programs(benchmark: Benchmark) -> Iterator[Program]:
    """The program of each rank in the smallest world that the benchmark admits."""
    ranks = next(n for n in range(1, _MOST_RANKS) if benchmark.ranks.admits(n))
    cell = replace(usual_cell(benchmark), size=benchmark.minimum_size)
    for rank in range(ranks):
        yield benchmark.program(World(rank, ranks, ("",) * ranks), cell)


def _check_steps(request: Request, benchmark: Benchmark) -> None:
    known, whose = OBJECT_STEPS, "mpi4py"
    if request.options.out_of_band:
        known, whose = OUT_OF_BAND_STEPS, "mpi4py.util.pkl5"
    if benchmark.sizes is None:
        raise UsageError(f"{benchmark.name} moves no data, so it takes no --buffer object")
    for program in _programs(benchmark):
        for stage in program.stages:
            for part in (stage.setup, *stage.variants, stage.teardown):
                for node, _ in walk(part):
                    if isinstance(node, Host) or (isinstance(node, Step) and node.op not in known):
                        what = node.name if isinstance(node, Host) else node.op
                        raise UsageError(
                            f"{benchmark.name} needs the step {what}, for which {whose} has no method on objects "
                            f"that could be timed; it has {', '.join(sorted(known))}"
                        )
