"""oneCCL on host memory, by the code of NCCL: against the stand-in in every run, and the library where it is."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from omb_py.backends.nccl.family import NCCL, OF_DEVICE, ONECCL, RCCL
from omb_py.backends.nccl.library import asked, load
from omb_py.backends.nccl.lower import lowered
from omb_py.backends.oneccl.capabilities import CAPABILITIES, TYPES
from omb_py.backends.oneccl.lower import DIRECT, HostLowering
from omb_py.backends.oneccl.session import kept_from_stdout
from omb_py.cli import main
from omb_py.engine.program.benchmark import World
from omb_py.engine.program.language import Step, walk
from omb_py.errors import EnvironmentProblem
from omb_py.options.table import make_cell, usual_cell
from omb_py.suites.registry import BENCHMARKS, find
from tests.support.machines.standin import library, needs_compiler, on_both, report, wrong

IS_HERE = any(Path(path).exists() for path in ONECCL.candidates() if "/" in path)
Cell = dict[str, Any]
COLLECTIVES = (
    "allreduce reduce bcast allgather allgatherv reduce_scatter reduce_scatter_block alltoall alltoallv gather gatherv "
    "scatter scatterv barrier"
).split()


def cells_on(ranks: int) -> list[Cell]:
    found: list[Cell] = []
    for name in COLLECTIVES:
        takes = BENCHMARKS[name].options
        # with more ranks than cores each call is slow: what does not depend on how many there are is tried on two
        sizes = (16, 70_016) if ranks == 2 else (70_016,)
        found += [{"benchmark": name, "size": size} for size in (sizes if BENCHMARKS[name].sizes else sizes[:1])]
        if ranks == 2 and "in_place" in takes and name not in ("alltoall", "alltoallv", "reduce_scatter"):
            found.append({"benchmark": name, "size": 4096, "in_place": True})
        if "imbalance" in takes:
            found.append({"benchmark": name, "size": 4096, "imbalance": 0.5})
        if "root" in takes:
            found.append({"benchmark": name, "size": 64, "root": -1})
        if "groups" in takes and ranks == 4:
            found.append({"benchmark": name, "size": 64, "groups": "2x2"})
    if ranks == 2:
        found += [{"benchmark": "allreduce", "size": 4104, "dtype": dtype} for dtype in TYPES if dtype != "char"]
        found += [{"benchmark": "allreduce", "size": 64, "dtype": "float32", "op": op} for op in CAPABILITIES.ops]
        found += [{"benchmark": name, "size": 70_016} for name in ("latency", "multi_lat", "bw", "mbw_mr")]
        found += [{"benchmark": "allreduce", "size": 64, "inject": "flip:1"}]
    return found


@cache
def measured(ranks: int, own: bool) -> list[dict[str, Any]]:
    """What the cells gave on the stand-in, or the library itself."""
    where = next(path for path in ONECCL.candidates() if "/" in path) if own else str(library("ONECCL"))
    found: list[dict[str, Any]] = report(
        "tests.support.sessions.nccl_cells", ranks, cells_on(ranks), OMB_PY_TEST_BACKEND="oneccl", OMB_PY_ONECCL=where
    )
    return found


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("ranks", "own"), on_both(pytest.mark.oneccl, pytest.mark.skipif(not IS_HERE, reason="no oneCCL"))
)
def test_every_byte_is_right(ranks: int, own: bool) -> None:
    assert wrong(cells_on(ranks), measured(ranks, own)) == []


@pytest.mark.parametrize(
    ("name", "rank", "calls"),
    [
        ("gather", 0, ["alltoallv send 64+0+0 recv 64+64+64"]),
        ("gather", 2, ["alltoallv send 64+0+0 recv 0+0+0"]),
        ("scatterv", 0, ["alltoallv send 64+64+64 recv 64+0+0"]),
        ("scatterv", 1, ["alltoallv send 0+0+0 recv 64+0+0"]),
        ("allgatherv", 1, ["bcast_from 0 recv", "bcast_from 1 send", "bcast_from 2 recv"]),
        ("reduce_scatter", 1, ["reduce 0", "reduce 1", "reduce 2"]),
    ],
)
def test_what_it_has_no_call_for_becomes_others(name: str, rank: int, calls: list[str]) -> None:
    benchmark, world = find(name), World(rank, 3)
    cell = make_cell(benchmark, "oneccl", "native", 64, imbalance=0.0 if name != "reduce_scatter" else 0.5)
    program, mark = lowered(benchmark.program(world, cell), world, DIRECT.__contains__, HostLowering)
    steps = [node for node, _ in walk(program.stages[0].variants[0]) if isinstance(node, Step)]
    assert [told(step) for step in steps if step.op != "barrier"] == calls and mark


def told(step: Step) -> str:
    if step.op == "alltoallv":
        return "alltoallv " + " ".join(f"{end} {'+'.join(map(str, step[end].sizes))}" for end in ("send", "recv"))
    return f"{step.op} {step['root']}" + (f" {step['send'].buffer}" if step.op == "bcast_from" else "")


@pytest.mark.mpi
@needs_compiler
def test_who_does_the_work_stands_in_the_row() -> None:
    marks = {cell["benchmark"]: done["marks"] for cell, done in zip(cells_on(2), measured(2, False), strict=True)}
    assert marks["allreduce"] == {"ccl_worker": "calling thread"}
    assert marks["gather"] == marks["allreduce"] | {"calls": "onecclAllToAllV"}
    assert marks["bw"]["calls"] == "blocking onecclSend and onecclRecv"


@pytest.mark.parametrize(
    ("family", "function", "symbol"),
    [
        (NCCL, "ncclAllReduce", "ncclAllReduce"),
        (NCCL, "ncclAlltoAll", "ncclAlltoAll"),
        (RCCL, "ncclAlltoAll", "ncclAllToAll"),
        (ONECCL, "ncclAllReduce", "onecclAllReduce"),
        (ONECCL, "ncclAlltoAll", "onecclAllToAll"),
    ],
)
def test_a_function_has_the_name_that_its_library_gives_it(family: Any, function: str, symbol: str) -> None:
    assert family.symbol(function) == symbol


def test_each_device_has_one_library() -> None:
    assert {device: family.name for device, family in OF_DEVICE.items()} == {
        "cpu": "oneCCL",
        "cuda": "NCCL",
        "rocm": "RCCL",
        "sim": "NCCL",
    }


@needs_compiler
def test_the_library_is_taken_from_the_variable_and_its_defaults_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ONECCL.variable, str(library("ONECCL")))
    monkeypatch.setenv("CCL_WORKER_OFFLOAD", "1")
    for name in ("CCL_ATL_TRANSPORT", "CCL_PROCESS_LAUNCHER"):
        monkeypatch.setenv(name, "")  # so that it is restored
        monkeypatch.delenv(name)
    loaded = load("cpu")
    assert (loaded.name, loaded.version) == ("oneCCL", (2022, 2, 0)) and len(loaded.unique_id()) == 4096
    assert not loaded.has("ncclGather") and loaded.has("ncclAlltoAll")
    assert (os.environ["CCL_WORKER_OFFLOAD"], os.environ["CCL_ATL_TRANSPORT"]) == ("1", "ofi")


def test_where_it_is_looked_for(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libccl.so.2").touch()
    assert ONECCL.candidates({"CCL_ROOT": str(tmp_path)})[-2:] == [str(tmp_path / "lib/libccl.so.2"), "libccl.so.2"]
    assert ONECCL.candidates({"OMB_PY_ONECCL": "/a/b.so"}) == ["/a/b.so"]


@pytest.mark.slow
def test_without_it_doctor_and_a_run_say_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(ONECCL.variable, "/nowhere/libccl.so.2")
    inspected = CAPABILITIES.here()
    assert not inspected.available and "no oneCCL library (OSError: /nowhere/" in inspected.inspection.reason
    assert inspected.inspection.fix.startswith("pip install --no-deps oneccl && pip install --no-deps oneccl-cpu")
    with pytest.raises(EnvironmentProblem, match=r"backend oneccl: no library for --device cpu .*pip install"):
        load("cpu")
    main(["doctor"])
    assert "oneccl" in capsys.readouterr().out


@needs_compiler
def test_a_plug_in_that_cannot_be_loaded_is_the_reason(tmp_path: Path) -> None:
    """The library itself loads, and its first call fails."""
    source, made = tmp_path / "none.c", tmp_path / "libccl.so.2"
    source.write_text(
        "int onecclGetVersion(int* v) { *v = 0; return 1; }\n"
        'const char* onecclGetLastError(void* c) { (void)c; return "no plugin:\\n  libfabric.so.1 is missing"; }\n'
    )
    from tests.support.c_library import shared_library

    shared_library(source, made)
    assert asked(str(made), ONECCL)["error"] == "OSError: no plugin: libfabric.so.1 is missing"


@pytest.mark.parametrize(
    ("benchmark", "why"),
    [
        *((name, "") for name in (*COLLECTIVES, "latency", "bw", "mbw_mr")),
        ("bibw", "oneCCL's sends and receives block on the host, so none goes both ways at once: use --backend mpi"),
        ("latency_mt", "oneCCL runs one thread a rank here: use --backend mpi"),
        ("iallreduce", "oneCCL has no iallreduce"),
        ("put_latency", "oneCCL has no"),
    ],
)
def test_what_it_cannot_do_is_said_before_anything_starts(benchmark: str, why: str) -> None:
    found = find(benchmark)
    said = CAPABILITIES.why_not(found, usual_cell(found))
    assert (why in said) if why else not said


@pytest.mark.parametrize(
    ("benchmark", "options", "why"),
    [
        ("allreduce", {"dtype": "float8e4m3"}, "has no type float8e4m3"),
        ("allreduce", {"op": "mulsum"}, "has no reduction mulsum"),
        ("alltoall", {"in_place": True}, "no in-place alltoall"),
        ("allreduce", {"in_place": True}, ""),
    ],
)
def test_options_that_it_lacks(benchmark: str, options: dict[str, Any], why: str) -> None:
    cell = make_cell(find(benchmark), "oneccl", "native", 64, **options)
    refused = CAPABILITIES.why_refused(find(benchmark), cell)
    assert (why in refused) if why else not refused


@pytest.mark.parametrize(("level", "kept"), [("", ["an error"]), ("warn", ["x |CCL_WARN| y", "an error"])])
def test_what_the_library_prints_is_kept_off_stdout(
    level: str, kept: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CCL_LOG_LEVEL", level)
    if not level:
        monkeypatch.delenv("CCL_LOG_LEVEL")
    with kept_from_stdout():
        ctypes.CDLL(None).puts(b"x |CCL_WARN| y")
        ctypes.CDLL(None).puts(b"an error")
    os.write(1, b"a table\n")
    told = capfd.readouterr()
    assert (told.out, told.err.splitlines()) == ("a table\n", kept)
