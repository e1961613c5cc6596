"""NCCL's calls from the native loop, against a stand-in library that really moves data between processes."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from omb_py.backends.nccl.calls import CALLS, OPS, TYPES, NcclResolver, handles
from omb_py.backends.nccl.capabilities import CAPABILITIES
from omb_py.backends.nccl.communicators import Communicators
from omb_py.backends.nccl.config import UNDEFINED, communicator_config
from omb_py.backends.nccl.family import NCCL, RCCL
from omb_py.backends.nccl.library import FUNCTIONS_SINCE, load, version_of
from omb_py.backends.nccl.lower import NEWER, lowered
from omb_py.backends.nccl.options import Settings
from omb_py.backends.nccl.session import NcclSession, shared_gpu
from omb_py.engine.measuring.async_timing import MODES
from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import World
from omb_py.engine.program.dtypes import FP8
from omb_py.engine.program.groups import groups_of
from omb_py.engine.program.language import Region, Step, walk
from omb_py.errors import EnvironmentProblem
from omb_py.options.table import make_cell
from omb_py.orchestrate.running.rank_process import arranged
from omb_py.suites.registry import BENCHMARKS, find
from tests.support.machines.mpi import ROOT, environment, run_command, run_omb_py
from tests.support.machines.standin import library, needs_compiler, report, start
from tests.support.patience import PATIENCE_S
from tests.support.patient import PATIENT
from tests.support.sessions.nccl_cells import MULTIPLIED

Cell = dict[str, Any]

COLLECTIVES = tuple(
    (
        "allreduce reduce bcast allgather reduce_scatter reduce_scatter_block alltoall gather scatter "
        "alltoallv allgatherv gatherv scatterv"
    ).split()
)
MADE = ("comm_dup", "comm_split", "comm_create")
"""Of these nothing can be checked but that they are done."""
NOT_IN_PLACE = ("alltoall", "alltoallv", "reduce_scatter")


def _cells(ranks: int) -> list[Cell]:
    found: list[Cell] = []
    for name in COLLECTIVES:
        takes = BENCHMARKS[name].options
        found.append({"benchmark": name, "size": 70_016})
        if ranks == 2 and "in_place" in takes and name not in NOT_IN_PLACE:
            found.append({"benchmark": name, "size": 4096, "in_place": True})
        if "root" in takes:
            found += [{"benchmark": name, "size": 64, "root": root} for root in (ranks - 1, -1)[: 4 - ranks or 1]]
        if "imbalance" in takes:
            found.append({"benchmark": name, "size": 4096, "imbalance": 0.5})
    if ranks == 2:
        kinds = [("int32", op) for op in OPS] + [("float16", op) for op in ("avg", "mulsum")]
        kinds += [(dtype, "sum") for dtype in TYPES if dtype not in (*FP8, "int32")]
        found += [{"benchmark": "allreduce", "size": 4104, "dtype": dtype, "op": op} for dtype, op in kinds]
    found += [{"benchmark": name} for name in MADE]
    if ranks > 2:  # what does not depend on how many there are was tried on two
        return [*found, {"benchmark": "sendrecv", "size": 4096, "timing": "pipelined", "batch": 4}]
    for mode in MODES:
        for name in ("allreduce", "alltoallv", "sendrecv"):
            found.append({"benchmark": name, "size": 4096, "timing": mode, "batch": 1 if mode in MODES[::3] else 4})
    found += [{"benchmark": "allreduce", "size": 4096, "timing": m, "batch": 4, "in_place": True} for m in MODES[1:3]]
    found += [{"benchmark": name, "size": 4096, "cache": "rotate"} for name in ("allreduce", "bcast")]
    found += [{"benchmark": "iallreduce", "size": 4096}, {"benchmark": "iallgather", "size": 64}]
    found += [{"benchmark": name, "size": 70_016, "window": 3} for name in ("latency", "bw", "bibw")]
    return [*found, MULTIPLIED, {"benchmark": "allreduce", "size": 64, "inject": "flip:1"}]


@cache
def _measured(ranks: int, old: bool) -> list[dict[str, Any]]:
    wanted = _cells(ranks) if not old else [cell for cell in _cells(ranks) if cell["benchmark"] in NEWER]
    found: list[dict[str, Any]] = report(
        "tests.support.sessions.nccl_cells",
        ranks,
        wanted,
        old=old,
        OMB_PY_SIM_DELAY_US="50",
        **({"STANDIN_VERSION": "22705"} if old else {}),
    )
    return found


@needs_compiler
@pytest.mark.mpi
@pytest.mark.parametrize(
    ("ranks", "old"), [(2, False), *(pytest.param(*more, marks=pytest.mark.slow) for more in ((2, True), (4, False)))]
)
def test_every_byte_is_right(ranks: int, old: bool) -> None:
    """What an older version lacks is grouped, and says so."""
    wanted = _cells(ranks) if not old else [cell for cell in _cells(ranks) if cell["benchmark"] in NEWER]
    wrong = [
        (cell, done)
        for cell, done in zip(wanted, _measured(ranks, old), strict=True)
        if done.get("wrong", -1) != expected(cell)
        or done["iterations"] != 3
        or done["busy"]
        or (cell["benchmark"] in NEWER and ("calls" in done["marks"]) != old)
    ]
    assert wrong == []


def expected(cell: Cell) -> int | None:
    """Wrong bytes: one in each of the two iterations of a check and in the timed loop where one is inverted."""
    return None if cell["benchmark"] in MADE else 3 * ("inject" in cell)


@needs_compiler
@pytest.mark.mpi
def test_a_wrong_byte_is_found() -> None:
    (done,) = report(
        "tests.support.sessions.nccl_cells", 2, [{"benchmark": "allreduce", "size": 64}], STANDIN_FAIL="wrong:2@1"
    )
    assert done["wrong"] > 0


def _cli(*words: str, store: str = "", program: str = "omb_py", **more: str) -> tuple[int, str]:
    where = ("--store", store) if store else ("--no-store",)
    done = run_command([sys.executable, "-m", program, *words, *where], cwd=ROOT, **more)
    return done.returncode, done.stdout + done.stderr


def fails(fault: str, *words: str, **more: str) -> tuple[int, str]:
    line = ("allreduce", "--backend", "nccl", "-d", "sim", "-n", "2", "-m", "64:64", "-i", "20", "-x", "0", *words)
    return _cli(*line, OMB_PY_NCCL=str(library()), STANDIN_FAIL=fault, **more)


@pytest.mark.slow
@needs_compiler
@pytest.mark.mpi
@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("init:0@1", "ncclCommInitRank failed: NCCL: invalid usage: stand-in: Duplicate GPU detected"),
        ("enqueue:7@1", "NCCL: unhandled cuda error: stand-in: out of memory"),
    ],
)
def test_errors_end_the_run_with_the_librarys_own_words(fault: str, says: str) -> None:
    code, text = fails(fault, "--timeout", f"{PATIENCE_S}s")
    assert (code, says in text) == (3, True), text
    assert "Traceback" not in text and "made progress" not in text


@needs_compiler
@pytest.mark.mpi
def test_graphs_are_destroyed_before_their_communicator() -> None:
    """The stand-in ends a process that destroys a communicator of which a graph has work; NCCL would not return."""
    cell = {"benchmark": "allreduce", "timing": "graph", "batch": 4}
    found = report("tests.support.sessions.nccl_cells", 2, [{**cell, "size": size} for size in (64, 4096)])
    assert [done["wrong"] for done in found] == [0, 0]


LEFT = """
from omb_py.backends.registry import find as backend
from omb_py.engine.measuring.measure import measure
from omb_py.options.table import make_cell
from omb_py.orchestrate.running.rank_process import arranged
from omb_py.suites.registry import find
from omb_py.backends.nccl.runner import NcclRunner

def run(self, stage, first, iterations):
    raise ArithmeticError

NcclRunner.run = run
session, benchmark = backend("nccl").connect({"device": "sim"}), arranged(find("allreduce"))
try:
    measure(session, benchmark, make_cell(benchmark, "nccl", "native", 64, device="sim", timing="graph", batch=4))
except ArithmeticError:
    session.close()
    print("closed")
"""


@pytest.mark.slow
@needs_compiler
@pytest.mark.mpi
def test_a_graph_that_a_failure_left_is_destroyed_when_the_session_is_closed() -> None:
    words = [sys.executable, "-c", LEFT]
    more = environment(OMB_PY_NCCL=str(library()))
    done = run_command(words, cwd=ROOT, env=more)
    assert done.stdout == "closed\n", done.stderr


@pytest.mark.slow
@needs_compiler
@pytest.mark.mpi
@pytest.mark.parametrize("words", [("--timing", "graph"), ("--nccl", "communicators=2"), ("--timing", "pipelined")])
def test_an_error_while_calls_are_enqueued_ends_the_run(words: tuple[str, ...]) -> None:
    """The stand-in ends a process that calls on after the abort, as NCCL would read memory that it has freed."""
    code, text = fails("async:30@0", *words, "--timeout", f"{PATIENCE_S}s")
    assert code == 3, text
    assert "NCCL: remote process exited or there was a network error: stand-in: the peer's socket was closed" in text
    assert "Traceback" not in text and "made progress" not in text


@pytest.mark.slow
@needs_compiler
@pytest.mark.mpi
@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("stall:46@1", "rank 1"),  # its call never returns: it is behind
        ("hang:47@1", "all ranks are at the same place"),  # its device does nothing: no host is behind
    ],
)
def test_a_rank_that_does_not_come_ends_the_run(fault: str, says: str) -> None:
    code, text = fails(fault, "-m", "32:64", "--timeout", "3s", program=PATIENT)
    assert re.search(r"^32 ", text, re.M), "the second cell does not come to its end"
    assert code == 3 and says in text and "progress" in text, text


@pytest.mark.slow
@needs_compiler
@pytest.mark.mpi
def test_the_map_of_devices_is_printed_and_stored(tmp_path: Path) -> None:
    line = ("allreduce", "--backend", "nccl", "-d", "sim", "-n", "2", "-m", "64:64", "-i", "4", "-c")
    store = tmp_path / "store"
    done = run_omb_py(*line, "--store", str(store), cwd=ROOT, OMB_PY_NCCL=str(library()))
    assert done.returncode == 0, done.stderr
    assert "\n# OSU NCCL-SIM Allreduce Latency Test v7.5\n# Size" in done.stdout
    assert "rank → device: 0 → " in done.stderr and "sim:1" in done.stderr
    import omb_py

    row = omb_py.load(store).iloc[0]
    assert (row.device, row.device_name, row.devices, row.backend) == ("sim", "simulated device", 2, "nccl")
    assert (row.library, row.library_version, row.buffer, row.timing) == ("NCCL", "2.28.3", "device", "local_max")
    assert {"enqueue", "synchronise", "end_to_end"} <= set(dict(row.metrics))
    assert dict(row.parameters)["timing_mode"] == "isolated"


def test_a_rank_has_no_core_of_its_own_which_its_threads_would_share() -> None:
    assert (CAPABILITIES.start.needs_mpi, CAPABILITIES.start.bound) == (False, False)


@pytest.mark.slow
@needs_compiler
@pytest.mark.mpi
def test_ranks_share_a_device_only_where_they_may() -> None:
    cell = {"benchmark": "allreduce", "size": 64}
    refused = start("tests.support.sessions.nccl_cells", 2, [cell], OMB_PY_SIM_DEVICES="1")
    assert any("--share-device" in err for _, _, err in refused)
    (done,) = report("tests.support.sessions.nccl_cells", 2, [{**cell, "share": True}], OMB_PY_SIM_DEVICES="1")
    assert (done["wrong"], done["marks"]["ranks_per_device"]) == (0, "2")


@needs_compiler
def test_a_split_is_given_colour_and_key_and_a_duplicate_is_one_of_one_colour() -> None:
    comms: Any = SimpleNamespace(memory=None, device=None, config=None, handle_of=lambda group: 77)
    resolver = NcclResolver(load_standin(), comms, World(3, 4), handles(1))
    split, duplicate, free = (resolver(step) for step in (steps.comm_split(2), steps.comm_dup(), steps.comm_free()))
    assert [arg.base for arg in split.args[:3]] == [77, 1, 3] and split.args[4].base == 0
    assert [arg.base for arg in duplicate.args[:3]] == [77, 0, 3] and duplicate.address == split.address
    assert (free.args[0].base, free.args[0].load) == (split.args[3].base, 8)


@needs_compiler
def test_a_shrink_is_given_who_leaves_and_runs_on_the_communicator_of_all() -> None:
    comms: Any = SimpleNamespace(memory=None, device=None, config=None, handle_of=lambda group: 88 if group else 77)
    for rank, calls in ((0, ["comm_shrink", "comm_free"]), (3, [])):
        program, _ = lowered(
            BENCHMARKS["comm_shrink"].program(World(rank, 4), make_cell("comm_shrink", "nccl", "native", 0)),
            World(rank, 4),
            lambda op: True,
        )
        nodes = [node for node, _ in walk(program.stages[0].variants[0]) if isinstance(node, Step)]
        assert [node.op for node in nodes if node.op in steps.COMMUNICATORS] == calls and groups_of(program) == []
        assert [node["excluded"] for node in nodes if node.op == "comm_shrink"] == [(3,)] * (rank == 0)
    resolver = NcclResolver(load_standin(), comms, World(0, 4), handles(1))
    shrink = resolver(Step("comm_shrink", {"excluded": (3,)}))
    assert [arg.base for arg in shrink.args[::2]] == [77, 1, 0] and shrink.args[5].base == 0
    assert ctypes.c_int.from_address(shrink.args[1].base).value == 3


class Growing:
    """A library that notes how it is asked to grow a communicator."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def grow_id(self, comm: int) -> bytes:
        self.asked.append(("id of", comm))
        return b"id"

    def grow(self, *words: Any) -> int:
        self.asked.append(words)
        return 99


@pytest.mark.parametrize(
    ("rank", "old", "asked"),
    [
        (0, (0, 1), [("id of", 77), (77, 3, b"id", -1)]),
        (1, (0, 1), [(77, 3, b"", -1)]),
        (2, (), [(0, 3, b"id", 2, None)]),
    ],
)
def test_the_root_alone_gives_the_id_and_who_joins_has_no_communicator(
    rank: int, old: tuple[int, ...], asked: list[Any]
) -> None:
    """As nccl.h has it of 2.32: of the old ranks the root passes the id, and all of them -1 as their rank."""
    comms = Communicators.__new__(Communicators)
    session: Any = SimpleNamespace(rank=rank, size=3, share=lambda text: b"id", limited=lambda settings: settings)
    comms._session, comms.settings, comms.peers, comms.groups = session, Settings(), 0, {(0, 1): 77}
    comms.library = library_that_grows = cast("Any", Growing())
    assert comms.grown(old) == 99 and library_that_grows.asked == asked


@needs_compiler
@pytest.mark.mpi
def test_communicators_shrink_and_grow_in_every_iteration() -> None:
    """The stand-in refuses a call of the rank that leaves, a second id before a grow, and an id of another grow."""
    cells: list[Cell] = [
        {"benchmark": "comm_shrink"},
        {"benchmark": "comm_grow"},
        {"benchmark": "allreduce", "size": 64},
    ]
    done = report("tests.support.sessions.nccl_cells", 3, cells, STANDIN_VERSION="22907")
    assert [cell["wrong"] for cell in done] == [None, None, 0]


@needs_compiler
@pytest.mark.mpi
@pytest.mark.parametrize(("name", "version", "since"), [("Shrink", "22605", "2.27"), ("Grow", "22803", "2.29")])
def test_an_older_library_has_none_that_shrinks_or_grows(name: str, version: str, since: str) -> None:
    words = f"comm_{name.lower()} --backend nccl -d sim -n 2".split()
    code, text = _cli(*words, OMB_PY_NCCL=str(library()), STANDIN_VERSION=version)
    assert code == 3 and f"has no ncclComm{name}, which came with {since}: use a newer version" in text


@needs_compiler
def test_a_call_is_given_what_follows_the_elements_that_are_left_out() -> None:
    memory = SimpleNamespace(address=lambda name: 1 << 20)
    comms: Any = SimpleNamespace(memory=memory, device=None, config=None)
    call = steps.allreduce(Region("send", 8, 64), Region("recv", 0, 64), "float32", "sum")
    resolver = NcclResolver(load_standin(), comms, World(3, 4), handles(1), shift=4)
    assert [resolver.operand(word, call).base - (1 << 20) for word in ("send", "recv")] == [12, 4]


@needs_compiler
def test_every_call_is_a_symbol_of_the_library_with_so_many_operands() -> None:
    found = load_standin()
    for function, _ in CALLS.values():
        assert function in FUNCTIONS_SINCE or found.address_of(function)
    with pytest.raises(EnvironmentProblem, match=r"2\.28\.3 has no ncclBogus"):
        found.address_of("ncclBogus")


def load_standin() -> Any:
    os.environ[NCCL.variable] = str(library())
    try:
        return load("sim")
    finally:
        del os.environ[NCCL.variable]


@pytest.mark.parametrize(("code", "version"), [(2708, (2, 7, 8)), (21005, (2, 10, 5)), (23207, (2, 32, 7))])
def test_version_numbers(code: int, version: tuple[int, int, int]) -> None:
    assert version_of(code) == version


def test_a_gpu_is_shared_by_the_switch_or_by_names_of_machines() -> None:
    assert shared_gpu((2, 30, 3), 1)["NCCL_MULTI_RANK_GPU_ENABLE"] == "1"
    assert shared_gpu((2, 30, 3), 1)["NCCL_NVLS_ENABLE"] == "0"
    assert shared_gpu((2, 29, 7), 1)["NCCL_MNNVL_ENABLE"] == "0"
    assert shared_gpu((2, 29, 7), 1) != shared_gpu((2, 29, 7), 0) and "NCCL_HOSTID" in shared_gpu((2, 29, 7), 0)


def test_ctas_on_a_shared_gpu_are_the_communicators_own_where_it_takes_a_configuration() -> None:
    """NCCL puts NCCL_MAX_CTAS above what a communicator is given, so it may not stand beside that."""
    one, cupy = {"binding": "native", "settings": "max_ctas=1"}, {"binding": "cupy", "settings": ""}
    new = (2, 30, 3)
    assert "NCCL_MAX_CTAS" not in shared_gpu(new, 0, [one, {"binding": "nccl4py"}, {"binding": "torch"}])
    assert shared_gpu(new, 0, [cupy, {"binding": "native"}])["NCCL_MAX_CTAS"] == "2"
    with pytest.raises(EnvironmentProblem, match="binding cupy on a shared GPU needs NCCL_MAX_CTAS"):
        shared_gpu(new, 0, [cupy, one])
    gpu, library = SimpleNamespace(kind="cuda"), SimpleNamespace(version=new)
    session = cast("NcclSession", SimpleNamespace(device=gpu, nccl=library, ranks_per_device=2))
    counts = (Settings(), Settings(max_ctas=1), Settings(min_ctas=5))
    given = [communicator_config(NcclSession.limited(session, settings)) for settings in counts]
    assert [(made.minCTAs, made.maxCTAs) for made in given if made] == [(UNDEFINED, 2), (UNDEFINED, 1), (5, 5)]
    session.ranks_per_device = 1
    assert NcclSession.limited(session, Settings()) == Settings()


def test_the_library_is_looked_for_where_the_variable_says(tmp_path: Path) -> None:
    assert NCCL.candidates({NCCL.variable: "/a/b.so"}) == ["/a/b.so"]
    assert set(RCCL.files) <= set(RCCL.candidates({}))
    broken = tmp_path / "libnccl.so"
    broken.write_text("no library")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(NCCL.variable, str(broken))
        with pytest.raises(EnvironmentProblem, match="no library for --device cuda"):
            load("cuda")


def test_the_probe_says_what_is_missing() -> None:
    found = CAPABILITIES.here()
    if not found.available:
        assert found.inspection.reason and found.inspection.fix
    assert set(found.devices) == {"cpu", "cuda", "rocm"}


@pytest.mark.parametrize("name", ["allreduce_persistent", "get_latency", "neighbor_alltoall", "alltoallw"])
def test_what_nccl_lacks_is_refused(name: str) -> None:
    benchmark, world = arranged(find(name)), World(0, 2)
    cell = make_cell(benchmark, "nccl", "native", 64, timing="isolated", device="sim")
    with pytest.raises(EnvironmentProblem, match="NCCL has no"):
        lowered(benchmark.program(world, cell), world, lambda function: True)


@pytest.mark.parametrize("name", COLLECTIVES)
def test_groups_are_opened_and_closed(name: str) -> None:
    benchmark, world = arranged(find(name)), World(0, 3)
    cell = make_cell(benchmark, "nccl", "native", 64, timing="isolated", device="sim")
    made, _ = lowered(benchmark.program(world, cell), world, lambda function: False)
    depth = 0
    for node, _ in walk(made.stages[0].variants[0]):
        if isinstance(node, Step):
            depth += {"group_start": 1, "group_end": -1}.get(node.op, 0)
            assert depth in (0, 1)
            assert depth == 1 or node.op not in ("send", "recv"), "an exchange outside a group would not end"
    assert depth == 0


@pytest.mark.slow
@needs_compiler
@pytest.mark.mpi
@pytest.mark.parametrize("name", ["reduce_scatter", pytest.param("bcast", marks=pytest.mark.slow)])
def test_the_form_of_nccl_tests_asks_for_nothing_more(name: str, tmp_path: Path) -> None:
    """Both halves without -l, floats without -T, 32 MiB without -m (here less, for time), a root for broadcast.

    The stored rows are exported with the same text.
    """
    store = str(tmp_path / "store")
    words = (name, "--backend", "nccl", "-d", "sim", "-n", "2", "-m", "4K:4K", "-c", "--format", "nccl-tests")
    root = ("-k", "fixed:1") if name == "bcast" else ()
    code, text = _cli(*words, *root, store=store, OMB_PY_NCCL=str(library()))
    assert code == 0, text
    code, exported = _cli("results", "export", "all", "--format", "nccl-tests", store=store)
    assert code == 0 and exported[exported.index("# Collective") :].rstrip() in text
    collective = {"bcast": "broadcast"}.get(name, name)
    assert f"# Collective test starting: {collective}_perf\n#\n# Using devices\n#  Rank  0 Group  0 Pid " in text
    assert "\n#  Rank  1 Group  0 Pid " in text and " device  1 [?] " in text
    assert f"# Collective test concluded: {collective}_perf\n" in text
    (found,) = (line.split() for line in text.splitlines() if line.split()[:1] == ["4096"])
    if name == "bcast":
        assert found[:5] == ["4096", "1024", "float", "none", "1"] and found[12] == "0"
    else:
        assert found[:5] == ["4096", "512", "float", "sum", "-1"] and (found[8], found[12]) == ("0", "0")
