"""Rules on Python objects (``--buffer object``) and on ``--cache rotate``, by the steps of the benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from omb_py.engine.measuring.cache_rotation import check_rotatable
from omb_py.engine.program.benchmark import Benchmark, World
from omb_py.engine.program.buffers import OBJECT, OBJECT_ITEM_BYTES, OBJECT_STEPS, OBJECTS, OUT_OF_BAND_STEPS
from omb_py.engine.program.dtypes import FP8
from omb_py.engine.program.language import Host, Program, Step, each_node
from omb_py.errors import nearest
from omb_py.options.request import Request
from omb_py.options.table import usual_cell
from omb_py.orchestrate.planning.rule import RequestRule, RuleContext

_OPS = ("sum", "prod", "band", "bor", "bxor")
"""Reductions that mpi4py can do on ndarrays; it compares whole objects for the others."""
_MOST_RANKS = 64
"""The search for the smallest world that a benchmark admits ends here."""


def kind_of(request: Request) -> str:
    """The kind of Python objects that a request sends; empty where it sends arrays."""
    return (request.options.object_kind or OBJECTS[0]) if request.buffer == OBJECT else ""


def _check_only_objects(on: RuleContext) -> str:
    options = on.request.options
    flag = "--object" if options.object_kind else "--out-of-band" if options.out_of_band else ""
    return f"{flag} is for Python objects: add --buffer object" if flag and not kind_of(on.request) else ""


def _binding(on: RuleContext) -> str:
    wrong = next((binding for binding in on.request.bindings if binding != "mpi4py"), "")
    return f"binding {wrong} has no Python objects: use --binding mpi4py" if kind_of(on.request) and wrong else ""


def _steps(on: RuleContext) -> str:
    if not kind_of(on.request):
        return ""
    methods, owner = OBJECT_STEPS, "mpi4py"
    if on.request.options.out_of_band:
        methods, owner = OUT_OF_BAND_STEPS, "mpi4py.util.pkl5"
    if on.benchmark.sizes is None:
        return f"{on.benchmark.name} moves no data, so it takes no --buffer object"
    for program in _programs(on.benchmark):
        for stage in program.stages:
            for part in (stage.setup, *stage.variants, stage.teardown):
                for node in each_node(part):
                    if isinstance(node, Host) or (isinstance(node, Step) and node.op not in methods):
                        return (
                            f"{on.benchmark.name} needs the step {node.name if isinstance(node, Host) else node.op}, "
                            f"for which {owner} has no method on objects that could be timed; "
                            f"it has {', '.join(sorted(methods))}"
                        )
    return ""


def _check_in_place(on: RuleContext) -> str:
    if not kind_of(on.request):
        return ""
    return "mpi4py's lower-case methods have no MPI_IN_PLACE: leave out --in-place or --buffer object"


def _reduction(on: RuleContext) -> str:
    kind = kind_of(on.request)
    if kind in ("", "ndarray") or "op" not in on.benchmark.options:
        return ""
    return f"a reduction of objects of kind {kind} would join them, not add: use --object ndarray"


def _op(on: RuleContext) -> str:
    op = next((op for op in on.parsed.reductions if op not in ("", *_OPS)), "")
    if not kind_of(on.request) or "op" not in on.benchmark.options or not op:
        return ""
    return f"mpi4py cannot do {op} on ndarrays as objects: {nearest('', _OPS)}"


def _type(on: RuleContext) -> str:
    unknown = next((name for name in on.request.dtypes if name in ("bfloat16", *FP8)), "")
    return f"NumPy has no {unknown}: --buffer object takes the other types" if kind_of(on.request) and unknown else ""


def _size(on: RuleContext) -> str:
    kind = kind_of(on.request)
    item = OBJECT_ITEM_BYTES[kind] if kind else 1
    size = next((cell.size for cell in on.cells if cell.size % item), 0)
    return (
        f"{size} bytes are no whole number of items of {item} bytes: --object {kind} needs -m {item}:" if size else ""
    )


def _check_cached_objects(on: RuleContext) -> str:
    if on.request.options.cache != "rotate" or on.benchmark.sizes is None or not kind_of(on.request):
        return ""
    return "--cache rotate moves buffers; objects are made anew anyway: leave out --buffer object"


def _bound_buffers(on: RuleContext) -> None:
    if on.request.options.cache == "rotate" and on.benchmark.sizes is not None:
        for program in _programs(on.benchmark):
            check_rotatable(program)


def _programs(benchmark: Benchmark) -> Iterator[Program]:
    """The program of each rank in the smallest world that the benchmark admits."""
    ranks = next(n for n in range(1, _MOST_RANKS) if benchmark.ranks.admits(n))
    cell = replace(usual_cell(benchmark), size=benchmark.minimum_size)
    for rank in range(ranks):
        yield benchmark.program(World(rank, ranks, ("",) * ranks), cell)


OBJECT_RULES = (
    RequestRule("option of objects without objects", "options", _check_only_objects),
    RequestRule("binding without objects", "options", _binding, option="bindings"),
    RequestRule("steps without objects", "options", _steps),
    RequestRule("objects in place", "options", _check_in_place, option="in_place"),
    RequestRule("reduction that joins objects", "options", _reduction),
    RequestRule("reduction that objects lack", "options", _op, option="op"),
    RequestRule("type that objects lack", "options", _type, option="dtypes"),
    RequestRule("objects in a rotating cache", "options", _check_cached_objects, option="cache"),
    RequestRule("bound buffers in a rotating cache", "options", _bound_buffers, option="cache"),
    RequestRule("size that is no whole number of objects", "cells", _size),
)
