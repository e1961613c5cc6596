"""UCC on host memory: against the stand-in in every run, and against the library itself where it is."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Any

import pytest

from omb_py.backends.registry import find as find_backend
from omb_py.backends.ucc import structures
from omb_py.backends.ucc.capabilities import CAPABILITIES
from omb_py.backends.ucc.library import FILES, candidates, load
from omb_py.backends.ucc.session import UccSession
from omb_py.backends.ucc.structures import COLLECTIVES, TYPES, VARIABLE
from omb_py.cli import main
from omb_py.engine.program.benchmark import World
from omb_py.engine.session import StepFailed
from omb_py.errors import EnvironmentProblem
from omb_py.options.table import make_cell, usual_cell
from omb_py.suites.registry import BENCHMARKS, find
from tests.support.machines.standin import library, needs_compiler, on_both, report, wrong

OWN = os.environ.get("OMB_PY_TEST_UCC", "")
"""A file of the library itself."""
Cell = dict[str, Any]


def cells_on(ranks: int, own: bool) -> list[Cell]:
    """Cells of the stand-in, which reduces NCCL's types alone, or of the library itself."""
    cells: list[Cell] = []
    for op in COLLECTIVES:
        # with more ranks than cores each call is slow: what does not depend on how many there are is tried on two
        for name in (op, f"i{op}", f"{op}_persistent") if ranks == 2 else (op,):
            takes = BENCHMARKS[name].options
            sizes = (16, 70_016) if ranks == 2 else (70_016,)
            cells += [{"benchmark": name, "size": size} for size in (sizes if BENCHMARKS[name].sizes else sizes[:1])]
            if ranks == 2 and "in_place" in takes and "alltoall" not in name:
                cells.append({"benchmark": name, "size": 4096, "in_place": True})
            if name != op:
                continue
            if "imbalance" in takes:
                cells.append({"benchmark": name, "size": 4096, "imbalance": 0.5})
            if "root" in takes:
                cells.append({"benchmark": name, "size": 64, "root": -1})
            if "groups" in takes and ranks == 4:
                cells.append({"benchmark": name, "size": 64, "groups": "2x2"})
    if ranks == 2:
        types = [dtype for dtype in TYPES if own or not dtype.startswith(("complex", "int16", "uint16"))]
        cells += [{"benchmark": "allgather", "size": 4128, "dtype": dtype} for dtype in TYPES]
        cells += [{"benchmark": "allreduce", "size": 4128, "dtype": dtype} for dtype in types if dtype != "float16"]
        cells += [{"benchmark": "allreduce", "size": 64, "op": op} for op in ("prod", "min", "max")]
        cells += [{"benchmark": "iallreduce", "size": 4096, "tests": 3}]
        cells += [{"benchmark": "allreduce", "size": 4096, "buffer": kind} for kind in ("bytearray", "array")]
        cells += [{"benchmark": "allgatherv", "size": 4096, "cache": "rotate"}]
        cells += [{"benchmark": "allreduce", "size": 64, "inject": "flip:1"}]
    return cells


@cache
def measured(ranks: int, own: bool) -> list[dict[str, Any]]:
    """What the cells gave on the stand-in, or the library itself."""
    where = OWN if own else str(library(source="ucc.c"))
    done: list[dict[str, Any]] = report(
        "tests.support.sessions.nccl_cells", ranks, cells_on(ranks, own), OMB_PY_TEST_BACKEND="ucc", **{VARIABLE: where}
    )
    return done


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("ranks", "own"), on_both(pytest.mark.skipif(not OWN, reason="OMB_PY_TEST_UCC names no libucc"))
)
def test_every_byte_is_right(ranks: int, own: bool) -> None:
    assert wrong(cells_on(ranks, own), measured(ranks, own)) == []


@needs_compiler
@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("init", "no UCC library .*ucc_init_version: UCC: Operation is not supported.*: install UCC with UCX"),
        ("context", "ucc_context_create: UCC: Operation is not supported"),
        ("team", "ucc_team_create_test: UCC: No pending message"),
    ],
)
def test_a_library_that_refuses_is_named_with_its_own_words(
    call: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone(monkeypatch, STANDIN_FAIL=call)
    with pytest.raises(EnvironmentProblem, match=why):
        find_backend("ucc").connect({})


def alone(monkeypatch: pytest.MonkeyPatch, **more: str) -> None:
    """Let this process be the only rank, on the stand-in."""
    for name in ("RANK", "WORLD_SIZE", "PMI_RANK", "OMPI_COMM_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {VARIABLE: str(library(source="ucc.c")), **more}.items():
        monkeypatch.setenv(name, value)


@needs_compiler
@pytest.mark.parametrize(("call", "step", "code"), [("post", 0, -3), ("progress", 0, -6)])
def test_a_call_that_fails_names_its_step(call: str, step: int, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(monkeypatch)
    session = UccSession({})
    benchmark = find("allreduce")
    cell = make_cell(benchmark, "ucc", "native", 64)
    runner = session.load(cell, {0: benchmark.program(World(0, 1), cell)})
    runner.enter(0, {})
    runner.run(0, 0, 1)
    monkeypatch.setenv("STANDIN_FAIL", call)
    with pytest.raises(StepFailed) as failed:
        runner.run(0, 0, 1)
    assert (failed.value.step, failed.value.code) == (step, code)
    assert runner.labels[step].startswith("allreduce 64 B") and "UCC: " in failed.value.text
    monkeypatch.delenv("STANDIN_FAIL")
    session.ucc.call("ucc_context_progress", session.teams.context)  # takes what was posted out of shared memory
    session.close()


def test_where_it_is_looked_for() -> None:
    assert candidates({}) == FILES == ("libucc.so.1", "libucc.so")
    assert candidates({VARIABLE: "/a/libucc.so"}) == ("/a/libucc.so",)


@pytest.mark.slow
def test_without_it_doctor_and_a_run_say_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(VARIABLE, "/nowhere/libucc.so.1")
    inspected = CAPABILITIES.here()
    assert not inspected.available and "no UCC library (OSError: /nowhere/" in inspected.inspection.reason
    assert inspected.inspection.fix.startswith("install UCC with UCX")
    with pytest.raises(EnvironmentProblem, match=r"backend ucc: no UCC library .*: install UCC with UCX"):
        load()
    main(["doctor"])
    assert "no    backend ucc" in capsys.readouterr().out


@needs_compiler
def test_doctor_names_file_and_version(monkeypatch: pytest.MonkeyPatch) -> None:
    alone(monkeypatch)
    inspection = CAPABILITIES.here().inspection
    assert (inspection.library, inspection.version, inspection.reason) == ("UCC", "1.10.0", "")
    assert inspection.facts == {"library": str(library(source="ucc.c"))}


@pytest.mark.parametrize(
    ("name", "why"),
    [
        *((name, "") for name in (*COLLECTIVES, "iallreduce", "allreduce_persistent")),
        ("latency", "UCC has no send: use --backend mpi"),
        ("put_latency", "UCC has no "),
        ("scatter", "UCC has no scatter: use --backend mpi"),
        ("neighbor_allgather", "UCC has no neighbor_allgather"),
        ("alltoallw", "UCC has no alltoallw"),
        ("comm_dup", "UCC has no comm_dup"),
        ("allreduce_mt", "UCC runs one thread a rank here"),
    ],
)
def test_what_it_cannot_do_is_said_before_anything_starts(name: str, why: str) -> None:
    refused = CAPABILITIES.why_not(find(name), usual_cell(find(name)))
    assert (why in refused) if why else not refused


@pytest.mark.parametrize(
    ("name", "options", "why"),
    [
        ("allreduce", {"dtype": "float8e4m3"}, "has no type float8e4m3"),
        ("allreduce", {"dtype": "float16"}, "reduces no float16"),
        ("allgather", {"dtype": "float16"}, ""),
        ("allreduce", {"op": "mulsum"}, "has no reduction mulsum"),
        ("allreduce", {"op": "avg", "dtype": "int32"}, "averages floats alone"),
        ("allreduce", {"op": "avg", "dtype": "float32"}, ""),
        ("alltoall", {"in_place": True}, "no in-place alltoall"),
        ("reduce_scatter", {"in_place": True}, ""),
    ],
)
def test_options_that_it_lacks(name: str, options: dict[str, Any], why: str) -> None:
    cell = make_cell(find(name), "ucc", "native", 64, **options)
    refused = CAPABILITIES.why_refused(find(name), cell)
    assert (why in refused) if why else not refused


@pytest.mark.parametrize(
    ("structure", "size", "offsets"),
    [
        (structures.CollectiveArguments, 200, {"src": 16, "dst": 56, "op": 96, "flags": 104, "root": 112, "tag": 124}),
        (structures.TeamParameters, 208, {"ep": 32, "ep_range": 48, "team_size": 56, "oob": 72, "ep_map": 168}),
        (structures.ContextParameters, 80, {"oob": 16, "ctx_id": 56, "mem_params": 64}),
        (structures.LibraryParameters, 40, {"thread_mode": 8, "coll_types": 16}),
        (structures.BufferInfo, 32, {"count": 8, "datatype": 16, "mem_type": 24}),
        (structures.BlocksInfo, 40, {"counts": 8, "displacements": 16, "datatype": 24, "mem_type": 32}),
    ],
)
def test_structures_lie_as_in_the_header(structure: Any, size: int, offsets: dict[str, int]) -> None:
    """The numbers are what a C compiler says of ucc.h of UCC 1.10."""
    assert ctypes.sizeof(structure) == size
    assert {name: getattr(structure, name).offset for name in offsets} == offsets
    assert (structures.datatype("float32"), structures.OPS["avg"], 1 << COLLECTIVES["scatterv"]) == (88, 12, 32768)
