"""MPI on device buffers, on the simulated device: staged through the host, and direct where the library is said to."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest

from omb_py.backends.mpi import aware
from omb_py.backends.mpi.aware import Support, confirmed, declared, fix_for
from omb_py.engine.benchmark import World
from omb_py.engine.devices.staging import staged
from omb_py.engine.program import Step, walk
from omb_py.errors import EnvironmentProblem
from omb_py.suites.registry import find
from tests.support.mpi import report

DELAY_US = 4000
Cell = dict[str, Any]
CELLS: list[Cell] = [
    *({"benchmark": name, "size": 4096} for name in ("allreduce", "bcast", "reduce", "gather", "scatter")),
    *({"benchmark": name, "size": 4096} for name in ("alltoall", "reduce_scatter", "sendrecv", "iallreduce")),
    *({"benchmark": name, "size": 4096, "in_place": True} for name in ("allreduce", "gather", "scatter", "alltoall")),
    *({"benchmark": name, "size": 4096, "imbalance": 0.5} for name in ("alltoallv", "allgatherv", "scatterv")),
    {"benchmark": "gather", "size": 64, "root": -1},
    {"benchmark": "allreduce", "size": 64, "cache": "rotate"},
    *({"benchmark": name, "size": 70_000, "window": 4} for name in ("latency", "bw", "bibw")),
]
SLOW: dict[str, Cell] = {
    "copied out": {"benchmark": "allreduce", "size": 64},
    "copied in": {"benchmark": "allreduce", "size": 64},
}


@cache
def _measured(aware: str) -> list[dict[str, Any]]:
    more = {"OMB_PY_GPU_AWARE": aware, "OMB_PY_SIM_DELAY_US": "50"}
    found: list[dict[str, Any]] = report("tests.support.mpi_device_cells", 2, 60, CELLS, **more)
    return found


@pytest.mark.mpi
@pytest.mark.parametrize(("aware", "way"), [("0", "staged"), ("1", "direct")])
def test_every_byte_is_right_and_the_way_is_said(aware: str, way: str) -> None:
    for cell, done in zip(CELLS, _measured(aware), strict=True):
        assert (done.get("wrong"), done["busy"], done["marks"]) == (0, False, {"staging": way}), (cell, done)


@pytest.mark.mpi
def test_a_synchronise_that_is_left_out_is_found_missing() -> None:
    cells = [*SLOW.values(), *({**cell, "without": why} for why, cell in SLOW.items())]
    found = report(
        "tests.support.mpi_device_cells", 2, 60, cells, OMB_PY_GPU_AWARE="0", OMB_PY_SIM_DELAY_US=str(DELAY_US)
    )  # fmt: skip
    bad = [done["wrong"] > 0 or done["busy"] for done in found]  # wrong data, or the sample ended before its copy
    assert bad == [False, False, True, True]


@pytest.mark.parametrize("name", ["allreduce_persistent", "put_latency", "partitioned_latency"])
def test_what_has_no_staged_form_is_refused(name: str) -> None:
    benchmark = find(name)
    with pytest.raises(EnvironmentProblem, match="staged form"):
        staged(benchmark.program(World(0, 2), benchmark.cell("mpi", "native", 64)), World(0, 2))


@pytest.mark.parametrize("name", ["allreduce", "reduce", "gather", "scatter", "bcast", "alltoallv"])
@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_copies_what_it_sends_and_what_it_gets(name: str, rank: int) -> None:
    benchmark, world = find(name), World(rank, 3)
    made = staged(benchmark.program(world, benchmark.cell("mpi", "native", 64)), world)
    ops = [node.op for node, _ in walk(made.stages[0].variants[0]) if isinstance(node, Step)]
    sends = name not in ("scatter", "bcast") or rank == 0
    gets = name not in ("reduce", "gather") or rank == 0
    gets = gets and (name != "bcast" or rank != 0)
    assert (ops.count("copy_out"), ops.count("copy_in")) == (sends, gets)


class TestProbe:
    def mpi(self, kinds: str = "mpi,system") -> Any:
        info = SimpleNamespace(Get=lambda key: kinds, Free=lambda: None)
        return SimpleNamespace(COMM_WORLD=SimpleNamespace(Get_info=lambda: info), Exception=RuntimeError, __file__=None)

    def test_the_user_decides_first(self) -> None:
        assert declared(self.mpi(), "MPICH", "cuda", {aware.VARIABLE: "1"}) == Support(True, aware.VARIABLE)
        assert not declared(self.mpi("cuda"), "MPICH", "cuda", {aware.VARIABLE: "0"}).aware

    def test_then_the_kinds_of_memory(self) -> None:
        assert declared(self.mpi("mpi,system,cuda:device"), "MPICH", "cuda", {}).how == "mpi_memory_alloc_kinds"

    def test_then_the_librarys_function_and_vendors_variables(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(aware, "_query", lambda mpi, device: None)
        assert declared(self.mpi(), "Intel MPI", "cuda", {"I_MPI_OFFLOAD": "1"}).how == "I_MPI_OFFLOAD"
        no = declared(self.mpi(), "Intel MPI", "cuda", {})
        assert not no.aware and "I_MPI_OFFLOAD=1" in no.fix
        monkeypatch.setattr(aware, "_query", lambda mpi, device: False)
        assert "query function says no" in declared(self.mpi(), "MPICH", "rocm", {"I_MPI_OFFLOAD": "1"}).reason

    @pytest.mark.parametrize(("vendor", "word"), [("Open MPI", "--with-cuda"), ("MPICH", "MPIR_CVAR_ENABLE_GPU=1")])
    def test_the_fix_names_the_flag(self, vendor: str, word: str) -> None:
        assert word in fix_for(vendor, "cuda")

    def test_a_yes_counts_only_when_a_child_process_passed_a_message(self, monkeypatch: pytest.MonkeyPatch) -> None:
        yes = Support(True, "MPICH_GPU_SUPPORT_ENABLED")
        monkeypatch.setattr(aware, "_child", lambda *words: {"error": "signal 11"})
        assert not confirmed("cuda", yes).aware and "signal 11" in confirmed("cuda", yes).reason
        monkeypatch.setattr(aware, "_child", lambda *words: {"moved": True})
        assert confirmed("cuda", yes) is yes

    @pytest.mark.mpi
    def test_the_child_passes_its_message(self) -> None:
        assert aware._child("sim", "message", 30) == {"moved": True}

    @pytest.mark.mpi
    def test_this_library_says_no_of_itself(self) -> None:
        """The MPI libraries of PyPI were built without CUDA; Intel's needs a variable."""
        found = aware.report("cuda")
        assert not found.aware and found.reason and found.fix
