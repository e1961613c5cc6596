"""Settings of NCCL's own: what reaches the library, what it refuses by its version, and what a row says of it."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest

from omb_py.backends.nccl.calls import check_algorithm, check_function, check_types
from omb_py.backends.nccl.communicators import SCRATCH, Communicators, allocates, check, peers_of, per_call
from omb_py.backends.nccl.config import UNDEFINED, Config217, Config227, Config230, communicator_config, selection
from omb_py.backends.nccl.family import NCCL, RCCL
from omb_py.backends.nccl.library import Library, built_for, check_cuda, load, loaded_file
from omb_py.backends.nccl.log import chosen, variables
from omb_py.backends.nccl.options import MOST, Settings, settings_of
from omb_py.engine.program import steps
from omb_py.engine.program.language import Region, Step
from omb_py.errors import EnvironmentProblem
from omb_py.testing import simulated_device
from tests.backends.nccl.test_nccl import Cell
from tests.support.machines.standin import library, needs_compiler, report

pytestmark = pytest.mark.calm
ALGORITHMS = (
    ("allreduce", "tree+ring", "TREE"),
    ("allreduce", "collnetdirect+collnetchain", "COLLNET_DIRECT"),
    ("allgather", "nvls", "NVLS"),
    ("reduce_scatter_block", "pat", "PAT"),
    ("bcast", "^tree+nvls", "RING"),
    ("allreduce", "^tree+ring+collnetdirect+collnetchain+nvls", "NVLSTREE"),
)
"""Benchmark, ``algorithm=``, and what the stand-in takes of the admitted ones."""
CELLS: tuple[Cell, ...] = (
    {"benchmark": "allreduce", "size": 4096, "settings": "log=tuning"},
    {"benchmark": "allreduce", "size": 4096, "settings": "registration=register"},
    {"benchmark": "gather", "size": 4096, "settings": "registration=window"},
    {"benchmark": "alltoallv", "size": 4096, "settings": "registration=window"},
    {"benchmark": "allgather", "size": 70_016, "settings": "registration=window,cta_policy=zero,min_ctas=2,max_ctas=7"},
    {"benchmark": "allreduce", "size": 4096, "settings": "algorithm=tree+ring,protocol=ll128"},
    {"benchmark": "bcast", "size": 4096, "settings": "max_ctas=3"},
    {"benchmark": "allreduce", "size": 4096, "settings": "communicators=3,registration=window"},
    {"benchmark": "allgather", "size": 4096, "settings": "communicators=2", "in_place": True},
    {"benchmark": "allreduce", "size": 4096, "settings": "aggregate=3"},
    *({"benchmark": name, "size": 4096, "settings": "unaligned=1"} for name in ("allreduce", "alltoallv", "bcast")),
    {"benchmark": "sendrecv", "size": 4096, "settings": "aggregate=3", "timing": "pipelined", "batch": 4},
    {"benchmark": "reduce", "size": 4096, "settings": "aggregate=2", "timing": "graph", "batch": 2},
    {"benchmark": "alltoallv", "size": 4096, "traffic": "0,3;1,0"},
    {"benchmark": "hypercube", "size": 4096},
    {"benchmark": "bcast", "size": 64, "settings": "min_ctas=3"},
    {"benchmark": "bcast", "size": 64, "settings": "registration=register", "timing": "spin-gated", "batch": 2},
    *(
        {"benchmark": name, "size": 4096, "dtype": dtype, "op": op}
        for dtype in ("float8e4m3", "float8e5m2")
        for name, op in (("allreduce", "sum"), ("allreduce", "prod"), ("reduce_scatter_block", "max"))
    ),
    {"benchmark": "allgather", "size": 4096, "settings": "algorithm=pat,protocol=simple"},  # no AllReduce: no barrier
    *({"benchmark": name, "size": 4096, "settings": f"algorithm={text}"} for name, text, _ in ALGORITHMS),
    {"benchmark": "alltoall", "size": 4096, "settings": "algorithm=ring"},
    {"benchmark": "allreduce", "size": 4096, "settings": "communicators=2,", "timing": "pipelined"},
)


@cache
def _measured(version: str) -> dict[str, Any]:
    found = report("tests.support.sessions.nccl_cells", 2, CELLS, OMB_PY_SIM_DELAY_US="50", STANDIN_VERSION=version)
    return {str(number): done for number, done in enumerate(found)}


@pytest.mark.slow
@needs_compiler
@pytest.mark.mpi
@pytest.mark.parametrize("version", [pytest.param("22803", marks=pytest.mark.slow), "23203"])
def test_every_byte_is_right_and_the_library_got_what_was_asked_for(version: str) -> None:
    found = _measured(version)
    done = [found[str(number)] for number in range(len(CELLS) - 2)]
    assert [(c, d) for c, d in zip(CELLS, done, strict=False) if d.get("wrong") != 0 or d["busy"]] == []
    marks = [one["marks"] for one in done]
    usual = {"algorithm_used": "RING", "protocol_used": "LL", "channels_used": "0..1", "nccl_log": "tuning"}
    assert usual.items() <= marks[0].items()
    assert marks[4]["channels_used"] == "0..6" and marks[4]["nccl_cta_policy"] == "zero"
    assert (marks[5]["algorithm_used"], marks[5]["protocol_used"]) == ("TREE", "LL128")
    assert marks[5]["algorithm_by"] == "NCCL_ALGO"  # a call's choice does not hold beside NCCL_PROTO
    by = "call" if version == "23203" else "NCCL_ALGO"
    said = [(one["algorithm_used"], one["algorithm_by"]) for one in marks[-len(ALGORITHMS) :]]
    assert said == [(used, by) for _, _, used in ALGORITHMS]
    refused = found[str(len(CELLS) - 2)]
    assert refused["refused"] == "NCCL has no choice of algorithms for alltoall: leave algorithm out of --nccl"
    assert refused["code"] == EnvironmentProblem.exit_code
    assert marks[6]["channels_used"] == "0..2" and "algorithm_by" not in marks[6]
    assert "communicators" in found[str(len(CELLS) - 1)]["refused"]  # beside pipelined


@pytest.mark.slow
@needs_compiler
@pytest.mark.mpi
def test_a_library_that_cannot_register_ends_the_run() -> None:
    cell = {"benchmark": "allreduce", "size": 64, "settings": "registration=window"}
    (done,) = report("tests.support.sessions.nccl_cells", 2, [cell], STANDIN_FAIL="register:0")
    assert "ncclCommWindowRegister failed: NCCL: unhandled system error: stand-in: cannot register" in done["refused"]


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The library in a version."""
    monkeypatch.setenv(NCCL.variable, str(library()))

    def of(version: str) -> Library:
        monkeypatch.setenv("STANDIN_VERSION", version)
        return load("sim")

    return of


@needs_compiler
@pytest.mark.parametrize(
    ("text", "version", "says"),
    [
        ("registration=register", "21805", "2.18.5 has no ncclCommRegister, which came with 2.19"),
        ("registration=window", "22602", "2.26.2 has no ncclCommWindowRegister, which came with 2.27"),
        ("max_ctas=2", "21602", "2.16.2 has no minCTAs and maxCTAs, which came with 2.17"),
        ("cta_policy=zero", "22602", "2.26.2 has no CTAPolicy, which came with 2.27"),
        ("cta_policy=zero", "22707", "2.27.7 has no CTA policy zero, which came with 2.28"),
    ],
)
def test_what_a_version_lacks_is_refused(standin: Any, text: str, version: str, says: str) -> None:
    with pytest.raises(EnvironmentProblem, match=says):
        check(settings_of(text), standin(version))
    check(settings_of(text), standin("23203"))


@needs_compiler
@pytest.mark.parametrize(
    ("text", "variable"),
    [("min_ctas=2", "NCCL_MIN_CTAS"), ("max_ctas=2", "NCCL_MAX_CTAS"), ("cta_policy=zero", "NCCL_CTA_POLICY")],
)
def test_what_a_variable_would_undo_is_refused(
    standin: Any, text: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "1")
    with pytest.raises(EnvironmentProblem, match=f"{variable} is set, which NCCL puts above {text.split('=')[0]}"):
        check(settings_of(text), standin("23203"))
    check(Settings(), standin("23203"))


@needs_compiler
def test_algorithms_are_chosen_call_by_call_where_the_version_has_that(
    standin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = settings_of("algorithm=tree")
    assert per_call(tree, standin("23203")) and not per_call(tree, standin("22803"))
    assert not per_call(Settings(), standin("23203"))
    monkeypatch.setenv("NCCL_PROTO", "Simple")  # beside which NCCL leaves out what a call says
    assert not per_call(tree, standin("23203"))


def test_what_a_call_may_use_is_said_as_its_configuration_has_it() -> None:
    assert selection("collnetdirect+nvls+nvlstree") == "collnet_direct,nvls_,nvlstree"
    assert selection("^ring+collnetchain") == "^ring+^collnet_chain"
    check_algorithm("barrier", ["barrier"], by_call=False)
    for ops, by_call in (({"barrier"}, True), ({"send", "recv"}, False), ({"alltoall", "barrier"}, False)):
        with pytest.raises(EnvironmentProblem, match="no choice of algorithms for this"):
            check_algorithm("this", ops, by_call)


@needs_compiler
def test_a_library_without_the_function_of_an_operation_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NCCL.variable, str(library("NO_P2P")))
    monkeypatch.setenv("STANDIN_VERSION", "2604")
    found, region = load("sim"), Region("send", 0, 64)
    check_function(steps.allreduce(region, region, "int8", "sum"), found)
    check_function(Step("synchronise", {}), found)  # none of NCCL's
    with pytest.raises(EnvironmentProblem, match=r"NCCL 2\.6\.4 has no ncclSend: use a newer version"):
        check_function(steps.send(region, 1, "int8"), found)


class _Gpu:
    """A device, as far as types ask for it."""

    name = "GPU of the test"

    def __init__(self, capability: tuple[int, int] | None) -> None:
        self.capability = capability


@needs_compiler
def test_fp8_is_refused_where_the_version_or_the_gpu_lacks_it(standin: Any) -> None:
    region = Region("send", 0, 64)
    add = steps.allreduce(region, region, "float8e4m3", "sum")
    copy = steps.allgather(region, region, "float8e5m2")
    hopper: Any = _Gpu((9, 0))
    ampere: Any = _Gpu((8, 0))
    check_types(add, standin("22403"), hopper)
    check_types(copy, standin("22403"), ampere)  # only sums need the GPU's own arithmetic
    with pytest.raises(
        EnvironmentProblem, match=r"GPU of the test has compute capability 8\.0, and NCCL reduces float8"
    ):
        check_types(add, standin("22403"), ampere)
    with pytest.raises(EnvironmentProblem, match=r"2\.23\.4 has no type float8e4m3 \(it came with 2\.24\)"):
        check_types(add, standin("22304"), hopper)


def test_configurations_are_laid_out_as_the_library_expects() -> None:
    assert communicator_config(Settings()) is None
    old, new = communicator_config(settings_of("max_ctas=4")), communicator_config(settings_of("cta_policy=zero"))
    assert isinstance(old, Config217) and (old.version, old.maxCTAs, old.minCTAs) == (21700, 4, UNDEFINED)
    assert isinstance(new, Config227) and (new.version, new.CTAPolicy, new.maxCTAs) == (22700, 2, UNDEFINED)
    assert (old.size, new.size) == (48, 72) and new.magic == 0xCAFEBEEF and new.blocking == UNDEFINED


@pytest.mark.parametrize("text", ["min_ctas=2", "min_ctas=64"])
def test_a_least_number_of_ctas_alone_brings_the_greatest(text: str) -> None:
    config = communicator_config(settings_of(text))
    assert isinstance(config, Config217) and 0 < config.minCTAs <= config.maxCTAs == MOST
    assert settings_of(text).max_ctas == 0  # the row says what was asked for


def test_the_log_is_read() -> None:
    line = "h:1:2 [0] NCCL INFO {}: {} Bytes -> Algo {} proto {} channel{{Lo..Hi}}={{0..{}}} comm 0x1\n"
    barrier = line.format("AllReduce", 1, "TREE", "LL", 0)
    assert chosen("nothing of that kind\n") == {}
    assert chosen(barrier) == {} and chosen(barrier, barriers=True)["algorithm_used"] == "TREE"
    text = (
        barrier * 9
        + line.format("AllGather", 64, "RING", "SIMPLE", 7) * 2
        + line.format("AllGather", 64, "PAT", "LL", 1)
    )
    assert chosen(text) == {
        "algorithm_used": "RING",
        "protocol_used": "SIMPLE",
        "channels_used": "0..7",
        "algorithms_seen": "2",
    }
    copies = "h:1:2 [0] NCCL INFO AllGather [Copy Engine]: 64 Bytes -> cudaMemcpy; CE synchronization with NVLS\n"
    assert chosen(barrier * 9 + copies) == {"algorithm_used": "Copy Engine: cudaMemcpy"}
    far = "h:1:2 [0] NCCL INFO AllGather [Hierarchical CE]: 64 Bytes -> RMA proxy + CE\n"
    rail = far.replace("-> RMA", "-> Rail 3 RMA")  # 2.32
    assert chosen(barrier + rail) == {"algorithm_used": "Hierarchical CE: Rail 3 RMA proxy + CE"}
    assert chosen(barrier + far) == {"algorithm_used": "Hierarchical CE: RMA proxy + CE"}
    symmetric = "h:1:2 [0] NCCL INFO AllReduce [Symmetric]: 4096 Bytes -> Kernel AllReduce_RSxLDMC nchannels 16 "
    assert chosen(barrier * 9 + symmetric + "nthreads 512 nWorks 1\n") == {
        "algorithm_used": "Symmetric AllReduce_RSxLDMC",
        "channels_used": "0..15",
    }
    assert {"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE"} == set(variables(__import__("pathlib").Path("x")))


def test_a_library_for_a_later_cuda_than_the_driver_takes_is_refused(tmp_path: Any) -> None:
    file = tmp_path / "libnccl.so.2"
    file.write_bytes(b"\0\0NCCL version 2.28.3+cuda13.0\0")
    assert built_for(str(file)) == (13, 0) and built_for(str(tmp_path / "none")) is None
    check_cuda((12, 9), 13000, "libnccl.so.2")
    check_cuda((12, 9), 12020, "libnccl.so.2")
    check_cuda((13, 0), 0, "libnccl.so.2")
    with pytest.raises(
        EnvironmentProblem, match=r"built for CUDA 13, and this driver takes CUDA 12\.8 at most: pip install .*cu12"
    ):
        check_cuda((13, 0), 12080, "libnccl.so.2")
    maps = tmp_path / "maps"
    maps.write_text(f"7f0-7f1 r-xp 0 0:0 1 {file}\n7f2-7f3 rw-p 0 0:0 0 [heap]\n")
    assert loaded_file("libnccl.so.2", maps) == str(file) and loaded_file("/a/b.so", maps) == "/a/b.so"
    assert os.path.basename(loaded_file("librccl.so.1", maps)) == "librccl.so.1"


def test_a_communicator_of_few_peers_says_nothing_else() -> None:
    config = communicator_config(settings_of("method=nccl-tests"), peers=2)
    assert isinstance(config, Config230) and config.maxP2pPeers == 2
    said = {name for name, kind in Config230._fields_ if kind is ctypes.c_int and getattr(config, name) != UNDEFINED}
    assert (said, config.version, config.size) == ({"maxP2pPeers"}, 23000, ctypes.sizeof(Config230))
    both = communicator_config(settings_of("cta_policy=efficiency,max_ctas=4"), peers=2)
    assert isinstance(both, Config230) and (both.CTAPolicy, both.maxCTAs, both.maxP2pPeers) == (1, 4, 2)


@needs_compiler
def test_the_method_of_nccl_tests_is_that_of_their_version(standin: Any) -> None:
    alike = settings_of("method=nccl-tests")
    assert [allocates(alike, standin(version)) for version in ("21805", "21903")] == [False, True]
    assert [peers_of("sendrecv", alike, standin(version)) for version in ("22907", "23007")] == [0, 2]
    newest = standin("23007")
    assert (peers_of("allreduce", alike, newest), peers_of("sendrecv", Settings(), newest)) == (0, 0)
    assert not allocates(Settings(), newest)
    check(alike, standin("21805"))  # an old library is measured as nccl-tests measure it


@needs_compiler
@pytest.mark.parametrize(("text", "times"), [("method=nccl-tests", 1), ("", 0)])
def test_buffers_of_that_method_come_from_the_library(
    standin: Any, text: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    nccl, device = standin("23007"), simulated_device.SimulatedDevice(0)
    addresses: list[int] = []
    allocate = nccl.mem_alloc
    monkeypatch.setattr(nccl, "mem_alloc", lambda nbytes: addresses.append(allocate(nbytes)) or addresses[-1])
    try:
        comms = Communicators(SimpleNamespace(nccl=nccl, device=device), settings_of(text))  # type: ignore[arg-type]
        assert [comms.memory.address(SCRATCH)] * times == addresses
        comms.memory.close()
    finally:
        device.close()


@pytest.mark.slow
@needs_compiler
@pytest.mark.mpi
def test_rows_say_how_nccl_tests_would_have_measured() -> None:
    cells = [
        {"benchmark": "sendrecv", "size": 4096, "settings": "method=nccl-tests", "timing": "pipelined", "batch": 2}
    ]
    few = report("tests.support.sessions.nccl_cells", 2, cells, STANDIN_VERSION="23007", STANDIN_PEERS="2")
    old = report("tests.support.sessions.nccl_cells", 2, cells, STANDIN_VERSION="21805", STANDIN_PEERS="2")
    marks = [(cell["wrong"], cell["marks"]["allocated_by"], cell["marks"]["max_p2p_peers"]) for cell in (*few, *old)]
    assert marks == [(0, "ncclMemAlloc", "2"), (0, "device", "all")]
    assert few[0]["marks"]["nccl_method"] == "nccl-tests"


@needs_compiler
@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize(("variables", "says"), [({}, "symmetric"), ({"STANDIN_NO_WINDOW": "1"}, "none")])
def test_a_window_that_was_not_made_is_said(variables: dict[str, str], says: str) -> None:
    cell = {"benchmark": "allreduce", "size": 64, "settings": "registration=window"}
    (done,) = report("tests.support.sessions.nccl_cells", 2, [cell], **variables)
    assert (done["wrong"], done["marks"]["windows"]) == (0, says)


@needs_compiler
def test_a_function_of_another_name_in_rccl_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NCCL.variable, str(library("ncclAlltoAll=ncclAllToAll")))
    older = load("sim")
    assert not older.has("ncclAlltoAll")  # other libraries have that name with other operands
    older.family = RCCL
    assert not hasattr(older.handle, "ncclAlltoAll") and older.has("ncclAlltoAll")
    assert older.address_of("ncclAlltoAll") == older.address_of("ncclAllToAll") != 0
    assert not older.has("ncclNothing")


@needs_compiler
@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize(("define", "calls"), [("RCCL", None), ("PLAIN", "grouped ncclSend and ncclRecv")])
def test_alltoallv_is_one_call_where_the_library_has_it(define: str, calls: str | None) -> None:
    cells = [{"benchmark": "alltoallv", "size": 4096, **more} for more in ({}, {"traffic": "0,3;1,0"})]
    done = report("tests.support.sessions.nccl_cells", 2, cells, OMB_PY_NCCL=str(library(define)))
    assert [(one["wrong"], one["marks"].get("calls")) for one in done] == [(0, calls)] * 2


@needs_compiler
def test_communicators_that_are_not_waited_for_are_refused(standin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_COMM_BLOCKING", "0")
    with pytest.raises(EnvironmentProblem, match=r"^NCCL_COMM_BLOCKING is 0: unset it"):
        check(Settings(), standin("23203"))
    monkeypatch.setenv("NCCL_COMM_BLOCKING", "1")
    check(Settings(), standin("23203"))
