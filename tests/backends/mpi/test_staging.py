"""MPI on device buffers, on the simulated device: staged through the host, and direct where the library is said to."""

from __future__ import annotations

import sys
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest

from omb_py.backends.gloo.capabilities import CAPABILITIES
from omb_py.backends.mpi import aware
from omb_py.backends.mpi.aware import Support, declared, fix_for
from omb_py.backends.mpi.devices import DeviceRunner
from omb_py.backends.mpi.session import MpiSession
from omb_py.engine.devices import FUNCTIONS, gpu, registry
from omb_py.engine.devices.placement import staged
from omb_py.engine.devices.registry import find_kind
from omb_py.engine.program.benchmark import World
from omb_py.engine.program.buffers import ON_DEVICE
from omb_py.engine.program.language import Region, Step, walk
from omb_py.engine.program.step_text import describe
from omb_py.errors import EnvironmentProblem
from omb_py.options.table import make_cell, usual_cell
from omb_py.suites.registry import find
from tests.support.machines.mpi import report, start, torchrun
from tests.support.optional import needs_torch
from tests.support.patience import PATIENCE_S
from tests.support.sessions.nccl_cells import MULTIPLIED, OURS

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
LATENCY: Cell = {"benchmark": "latency", "size": 70_000}
BESIDE: Cell = {"benchmark": "iallreduce", "size": 4096}
PLACED = [
    *({**LATENCY, "placement": placement} for placement in ("H D", "D H", "M D", "MD MH", "MH H")),
    {"benchmark": "allreduce", "size": 64, "placement": "M M"},
    {"benchmark": "bw", "size": 4096, "window": 4, "placement": "MD D"},
]
HELD = [{"benchmark": "allreduce", "size": 4096, "buffer": kind} for kind in ON_DEVICE]
MPI4PY: list[Cell] = [
    {**cell, "binding": "mpi4py"}
    for cell in (
        *({"benchmark": name, "size": 4096} for name in ("allreduce", "bcast", "gather", "scatter", "alltoall")),
        *({"benchmark": name, "size": 4096, "in_place": True} for name in ("allreduce", "scatter")),
        *({"benchmark": "allreduce", "size": 4096, "dtype": dtype} for dtype in ("char", "float64", "complex64")),
        *({"benchmark": name, "size": 4096, "imbalance": 0.5} for name in ("alltoallv", "scatterv")),
        *({"benchmark": name, "size": 4096} for name in ("reduce_scatter", "alltoallw", "iallreduce")),
        *({"benchmark": name, "size": 70_000, "window": 4} for name in ("latency", "bw", "bibw")),
        {"benchmark": "bcast", "size": 64, "cache": "rotate"},
        {"benchmark": "bcast", "size": 64, "cache": "rotate", "root": -1},
        {**LATENCY, "placement": "H D"},
        {**LATENCY, "placement": "MD MH"},
        MULTIPLIED,
        *HELD,
    )
]
"""What mpi4py is given is an array that it reads by its interface."""
SPOILED: list[Cell] = [
    {"benchmark": name, "size": 4096, "inject": "flip:1", "binding": binding}
    for name in ("allreduce", "gather", "bw")
    for binding in ("native", "mpi4py")
]
"""Rank 1 inverts a byte: of what it has received, or in gather of what it sends."""
FILLED = [{**BESIDE, "filler": filler} for filler in ("gpu", "both")]
SLOW: dict[str, Cell] = {
    "copied out": {"benchmark": "allreduce", "size": 64},
    "copied in": {"benchmark": "allreduce", "size": 64},
    "filler": FILLED[0],
}
FAULT: Cell = {"benchmark": "allreduce", "size": 64, "inject": "flip:1"}
SETTLED: dict[str, Cell] = {
    "settled": {**LATENCY, "size": 64, "placement": "MD MD"},
    "copied out": FAULT,
    "copied in": FAULT,
}
"""Seen where the library reads the memory itself. A byte that is to be inverted is copied out and in there, too."""
GLOO = [
    *CELLS,
    *({"benchmark": name, "size": 4096} for name in ("allgather", "reduce_scatter_block", "ialltoall")),
    {**SPOILED[0], "binding": "torch"},
    {"benchmark": "barrier"},
    {**LATENCY, "placement": "H D"},
    MULTIPLIED,
    FILLED[0],
]

ALL = [*CELLS, *PLACED, *HELD, *MPI4PY, *SPOILED, MULTIPLIED, *FILLED]


@cache
def _measured(aware: str) -> list[list[dict[str, Any]]]:
    more = {"OMB_PY_GPU_AWARE": aware, "OMB_PY_SIM_DELAY_US": "50"}
    found: list[list[dict[str, Any]]] = report("tests.support.sessions.device_cells", 2, ALL, "mpi", **more)
    return found


@cache
def _over_gloo() -> list[list[dict[str, Any]]]:
    cells = [cell for cell in GLOO if not refused_by_gloo(cell)]
    found: list[list[dict[str, Any]]] = report(
        "tests.support.sessions.device_cells", 2, cells, "gloo", by=torchrun(2), OMB_PY_SIM_DELAY_US="50"
    )
    return found


def refused_by_gloo(cell: Cell) -> str:
    """Why Gloo does not do a cell; empty where it does."""
    kind = find(cell["benchmark"])
    made = make_cell(kind, "gloo", "torch", cell.get("size", 0), **{n: v for n, v in cell.items() if n not in OURS})
    return CAPABILITIES.lacks(kind, usual_cell(kind)) or CAPABILITIES.refuses(kind, made)


def right(done: dict[str, Any], way: str, cell: Cell) -> bool:
    """Every byte is right, nothing is left over, and the row says how it was done."""
    marks = {"staging": way} | {name: cell[name] for name in ("placement", "filler") if name in cell}
    marks["ranks_per_device"] = "1"
    # one byte in each of the three iterations of a check, and once more where the timed loop can be checked, too
    wrong = ((3, 4) if cell["benchmark"] != "gather" else (3,)) if "inject" in cell else (0, None)
    return done.get("wrong", -1) in wrong and (done["busy"], done["marks"]) == (False, marks)


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.parametrize(("aware", "way"), [("0", "staged"), pytest.param("1", "direct", marks=pytest.mark.slow)])
def test_every_byte_is_right_and_the_way_is_said(aware: str, way: str) -> None:
    for cell, both in zip(ALL, _measured(aware), strict=True):
        assert all(right(done, way, cell) and done["wrong"] is not None for done in both), (cell, both)


@pytest.mark.slow
@pytest.mark.mpi
def test_managed_memory_is_where_its_word_says() -> None:
    seen = [[done["resides"] for done in both] for both in _measured("1")[len(CELLS) :]]
    (h_d, _, m_d, md_mh, mh_h, *_) = seen
    assert h_d == [[], []], "no managed memory on either end"
    assert m_d == [[0], []] and md_mh == [[0], [-1]] and mh_h == [[-1], []]


@pytest.mark.slow
@pytest.mark.mpi
def test_the_device_computes_as_long_as_the_call_took() -> None:
    for cell, both in zip(FILLED, _measured("0")[-len(FILLED) :], strict=True):
        means = both[0]["means"]
        assert means["overlap.compute"] >= 0.9 * means["pure.time"], (cell, means)


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.calm
@needs_torch
def test_gloo_under_torchrun_is_staged_on_a_device_that_pytorch_does_not_know() -> None:
    cells = [cell for cell in GLOO if not refused_by_gloo(cell)]
    assert len(cells) >= 20
    for cell, both in zip(cells, _over_gloo(), strict=True):
        assert all(right(done, "staged", cell) for done in both), (cell, both)


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.parametrize(("aware", "slow"), [("0", SLOW), ("1", SETTLED)])
def test_a_synchronise_that_is_left_out_is_found_missing(aware: str, slow: dict[str, Cell]) -> None:
    cells = [*slow.values(), *({**cell, "without": why} for why, cell in slow.items())]
    found = report(
        "tests.support.sessions.device_cells",
        2,
        cells,
        "mpi",
        OMB_PY_GPU_AWARE=aware,
        OMB_PY_SIM_DELAY_US="inf",  # what nobody waits for has not begun, however busy the machine is
    )
    bad = []
    for cell, (done, _) in zip(cells, found, strict=True):
        wanted = (3, 4) if "inject" in cell else (0,)
        bad.append(done["wrong"] not in wanted or done["busy"])
    assert bad == [False] * len(slow) + [True] * len(slow)


@pytest.mark.parametrize("name", ["allreduce_persistent", "put_latency", "partitioned_latency"])
def test_what_has_no_staged_form_is_refused(name: str) -> None:
    benchmark = find(name)
    with pytest.raises(EnvironmentProblem, match="staged form"):
        staged(benchmark.program(World(0, 2), make_cell(benchmark, "mpi", "native", 64)), World(0, 2))


@pytest.mark.parametrize(
    ("name", "rank"),
    [("allreduce", 1), ("alltoallv", 0), *((name, rank) for name in ("reduce", "scatter", "bcast") for rank in (0, 1))],
)
def test_a_rank_copies_what_it_sends_and_what_it_gets(name: str, rank: int) -> None:
    benchmark, world = find(name), World(rank, 3)
    made = staged(benchmark.program(world, make_cell(benchmark, "mpi", "native", 64)), world)
    ops = [node.op for node, _ in walk(made.stages[0].variants[0]) if isinstance(node, Step)]
    sends = name not in ("scatter", "bcast") or rank == 0
    gets = (name != "reduce" or rank == 0) and (name != "bcast" or rank != 0)
    assert (ops.count("copy_out"), ops.count("copy_in")) == (sends, gets)


@pytest.mark.parametrize("name", ["bw", "bibw", "sendrecv", "iallreduce", "multi_lat"])
def test_what_arrives_is_copied_in_after_the_wait_for_it(name: str) -> None:
    benchmark = find(name)
    for rank in (0, 1):
        program = benchmark.program(World(rank, 2), make_cell(benchmark, "mpi", "native", 64, window=3, iterations=1))
        for stage in staged(program, World(rank, 2)).stages:
            receiving: set[int] = set()
            copied = awaited = 0
            for node, k in walk(stage.variants[0]):
                if not isinstance(node, Step):
                    continue
                if node.op in ("irecv", "iallreduce"):
                    receiving.add(node["request"].index + k * node["request"].stride)
                elif node.op == "waitall":
                    waited = range(node["requests"].first, node["requests"].first + node["requests"].count)
                    awaited += len(receiving & set(waited))
                elif node.op == "wait":
                    awaited += node["request"].index in receiving
                elif node.op == "recv":
                    awaited += 1
                elif node.op == "copy_in":
                    copied += 1
                    assert copied <= awaited, f"rank {rank} copies in what has not come"
            assert copied == awaited


YES: dict[str, Any] = {"support": {"aware": True, "how": "I_MPI_OFFLOAD", "reason": "", "fix": ""}}
ALONE = YES | {"moved": True, "several": True}


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

    @pytest.mark.parametrize(
        ("alone", "pair", "is_aware", "says"),
        [
            ({"error": "it hung"}, {}, False, "it could not be asked (it hung)"),
            (YES | {"error": "signal 11"}, {}, False, "failed in a child process (signal 11)"),
            (YES | {"moved": False, "several": True}, {}, False, "failed in a child process (it did not arrive)"),
            (ALONE, {"begun": True, "error": "signal 6"}, False, "failed between two child processes (signal 6)"),
            (ALONE, {"begun": True, "moved": False}, False, "between two child processes (it did not arrive)"),
            (ALONE, {"begun": True, "moved": True}, True, ""),
            (ALONE, {"error": "OSError"}, True, ""),  # no launcher starts two ranks here
            (YES | {"moved": True, "several": False}, {"begun": True, "moved": False}, True, ""),  # not asked
        ],
    )
    def test_a_yes_counts_only_when_messages_have_arrived_in_child_processes(
        self, alone: Cell, pair: Cell, is_aware: bool, says: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(aware, "_child", lambda device, question, *rest: {"alone": alone, "pair": pair}[question])
        support = aware.probe("cuda")
        assert support.aware == is_aware and says in support.reason and bool(support.fix) != is_aware

    def test_a_device_that_takes_one_process_at_a_time_is_told_by_its_compute_mode(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for mode, several in ((0, True), (3, False)):
            runtime = SimpleNamespace(
                deviceGetAttribute=lambda number, index, mode=mode: mode if number == 20 else None
            )
            cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))
            monkeypatch.setattr(gpu, "import_module", lambda name, cupy=cupy: cupy)
            assert find_kind("cuda").takes_several(0) is several

    @pytest.mark.parametrize(("local", "order"), [("0", ["probe cuda", "open cuda 0"]), ("1", ["open cuda 1"])])
    def test_the_library_is_asked_before_the_device_is_taken(
        self, local: str, order: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        done: list[str] = []
        monkeypatch.setenv("MPI_LOCALRANKID", local)
        monkeypatch.setenv("PMI_RANK", local)
        monkeypatch.setenv("PMI_SIZE", "2")
        monkeypatch.delenv(aware.VARIABLE, raising=False)
        monkeypatch.setattr(aware, "probe", lambda kind: done.append(f"probe {kind}"))
        monkeypatch.setattr(registry, "open_device", lambda kind, rank: done.append(f"open {kind} {rank}"))

        def begin(level: str) -> None:
            raise InterruptedError

        monkeypatch.setattr("omb_py.backends.mpi.session.initialise", begin)
        with pytest.raises(InterruptedError):
            MpiSession({"device": "cuda"})
        assert done == order

    @pytest.mark.each_library
    @pytest.mark.mpi
    def test_two_children_pass_their_messages(self) -> None:
        assert aware._child("sim", "pair", 0, PATIENCE_S) == {"begun": True, "moved": True, "several": True}

    @pytest.mark.each_library
    @pytest.mark.mpi
    def test_a_child_passes_messages_to_itself(self) -> None:
        code = (
            "from omb_py.backends.mpi import aware, start; from omb_py.engine.devices.registry import open_device; "
            "mpi, _ = start.initialise('single'); print(aware._message(mpi, open_device('sim', 0)))"
        )
        assert start([sys.executable, "-c", code], 1).stdout.split() == ["True"]

    @pytest.mark.each_library
    @pytest.mark.mpi
    def test_this_library_says_no_of_itself(self) -> None:
        """The MPI libraries of PyPI were built without CUDA; Intel's needs a variable."""
        found = aware.probe("cuda")
        assert not found.aware and found.reason and found.fix


@pytest.mark.parametrize(
    ("label", "says"),
    [
        ("copy_out region=8 B of send", "a GPU: copy_out failed: CUDA's text of 2"),
        ("synchronise why=copied out", "a GPU: synchronise failed: CUDA's text of 2"),
        ("allreduce 8 B int32 sum", "MPI's text of 2"),
    ],
)
def test_a_code_is_told_by_the_library_that_returned_it(label: str, says: str) -> None:
    runner = DeviceRunner.__new__(DeviceRunner)
    device = SimpleNamespace(name="a GPU", error_text=lambda code, function: f"CUDA's text of {code}")
    runner.buffers = SimpleNamespace(device=device)  # type: ignore[assignment]
    runner.session = SimpleNamespace(mpi=SimpleNamespace(Get_error_string=lambda code: f"MPI's text of {code}"))  # type: ignore[assignment]
    assert runner.error_text(2, label) == says


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_text_of_a_step_of_the_device_begins_with_its_function(function: str) -> None:
    region, numbers = Region("send", 0, 8), {"ns": 1000, "rows": 4, "side": 4, "value": 1}
    operands = {word: numbers.get(word, region) for word in FUNCTIONS[function].split() if word != "stream"}
    assert describe(Step(function, {**operands, "region": region})).partition(" ")[0] == function
