"""The two reductions that MPI lacks, ``avg`` and ``mulsum``: every byte, in every type, and who has them."""

from __future__ import annotations

from typing import Any

import pytest

from omb_py.backends.nccl import calls
from omb_py.backends.nccl.calls import OPS, TYPES, check_types
from omb_py.backends.nccl.capabilities import CAPABILITIES, NATIVE
from omb_py.backends.nccl.capabilities import OPS as NAMES
from omb_py.backends.nccl.family import NCCL
from omb_py.backends.nccl.library import load
from omb_py.engine.program import steps
from omb_py.engine.program.language import Region
from omb_py.errors import EnvironmentProblem
from omb_py.options.table import make_cell
from omb_py.suites.registry import BENCHMARKS
from tests.support.machines.standin import library, needs_compiler, report

pytestmark = pytest.mark.calm
SIZE = 1920
"""Divides by 2 and 3 ranks' blocks of every type."""
EVERY = [
    {"benchmark": "allreduce", "size": SIZE, "dtype": dtype, "op": op}
    for op in ("avg", "mulsum")
    for dtype in TYPES
    if dtype != "char"
]
FORMS = [
    {"benchmark": name, "size": SIZE, "dtype": dtype, "op": op, **more}
    for op in ("avg", "mulsum")
    for name, dtype, more in (
        ("reduce", "int8", {"root": 1}),
        ("reduce", "float16", {"in_place": True}),
        ("allreduce", "int32", {"in_place": True}),
        ("reduce_scatter", "bfloat16", {}),
        ("reduce_scatter_block", "uint8", {"in_place": True}),
        ("iallreduce", "float64", {}),
        ("allreduce", "float32", {"timing": "graph", "batch": 2}),
        ("allreduce", "float32", {"settings": "communicators=2", "batch": 1}),
    )
]


@pytest.mark.slow
@needs_compiler
@pytest.mark.mpi
def test_every_byte_is_right_in_every_type_and_form() -> None:
    """On three ranks, by which a sum seldom divides; on two in test_nccl.py, through Python in test_bindings.py."""
    cells: list[dict[str, Any]] = [*EVERY, *FORMS]
    done = report("tests.support.sessions.nccl_cells", 3, cells, OMB_PY_SIM_DELAY_US="50")
    assert [(cell, one) for cell, one in zip(cells, done, strict=True) if one.get("wrong") != 0] == []


@pytest.mark.slow
@needs_compiler
@pytest.mark.mpi
def test_a_wrong_factor_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [{"benchmark": "allreduce", "size": SIZE, "dtype": "float32", "op": op} for op in ("avg", "mulsum")]
    done = report("tests.support.sessions.nccl_cells", 2, cells, STANDIN_FACTOR="0.75")
    assert all(one["wrong"] > SIZE / 8 for one in done)


@needs_compiler
@pytest.mark.parametrize(
    ("op", "version", "says"),
    [
        ("avg", "2907", r"2\.9\.7 has no reduction avg \(it came with 2\.10\): --op with one of sum, prod, min, max$"),
        ("mulsum", "21003", r"2\.10\.3 has no reduction mulsum \(it came with 2\.11\): .* max, avg$"),
    ],
)
def test_an_older_library_is_refused(op: str, version: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NCCL.variable, str(library()))
    region, gpu = Region("send", 0, 64), Gpu()
    for number, refused in ((version, True), ("21103", False)):
        monkeypatch.setenv("STANDIN_VERSION", number)
        step = steps.allreduce(region, region, "float32", op)
        if refused:
            with pytest.raises(EnvironmentProblem, match=says):
                check_types(step, load("sim"), gpu)
        else:
            check_types(step, load("sim"), gpu)


class Gpu:
    """A device, as far as types ask for it."""

    name, capability = "GPU of the test", None


def test_names_and_numbers_are_of_the_same_reductions() -> None:
    assert set(NAMES) == {*OPS, calls.MULSUM}


@pytest.mark.parametrize("binding", ["torch", "cupy", "nccl4py"])
def test_a_reduction_of_the_native_communicator_is_for_native(binding: str) -> None:
    benchmark = BENCHMARKS["allreduce"]
    why = [
        CAPABILITIES.why_refused(benchmark, make_cell(benchmark, "nccl", name, 64, op="mulsum", dtype="float32"))
        for name in (binding, NATIVE)
    ]
    assert why == [f"binding {binding} makes no reduction mulsum here: --binding native", ""]
