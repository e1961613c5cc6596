"""NCCL's calls from Python: cupy and nccl4py over stand-ins for them and libnccl, torch over its Gloo.

The stand-ins (tests/standin/python) have the names, operands, checks and exceptions of the packages; data really moves.
"""

from __future__ import annotations

import ctypes.util
import os
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from omb_py.backends.capabilities import Capabilities, Inspection
from omb_py.backends.nccl import capabilities
from omb_py.backends.nccl.calls import CALLS
from omb_py.backends.nccl.capabilities import BINDINGS, explain_missing, lacks_type
from omb_py.backends.nccl.options import Settings
from omb_py.backends.nccl.python_bindings.by_cupy import METHODS as CUPY_METHODS
from omb_py.backends.nccl.python_bindings.by_cupy import CupyBinding
from omb_py.backends.nccl.python_bindings.by_nccl4py import METHODS as NCCL4PY_METHODS
from omb_py.backends.registry import capabilities_of
from omb_py.engine.measuring.async_timing import MODES
from omb_py.engine.program.steps import COMMUNICATORS
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.options.request import Request
from omb_py.orchestrate.info import doctor
from omb_py.orchestrate.info.catalogue import list_targets
from omb_py.suites.registry import BENCHMARKS
from tests.backends.nccl.test_nccl import COLLECTIVES, NOT_IN_PLACE, Cell, fails, load_standin
from tests.support.capabilities import with_methods
from tests.support.machines.mpi import ROOT
from tests.support.machines.standin import needs_compiler, report
from tests.support.patience import PATIENCE_S
from tests.support.planning import plan

PYTHON = BINDINGS[1:]
PATH = os.pathsep.join((str(ROOT), str(ROOT / "tests" / "standin" / "python")))
pytestmark = pytest.mark.calm


SPOILED = ("allreduce", "alltoallv")


def _cells(binding: str) -> list[Cell]:
    found: list[Cell] = []
    for name in COLLECTIVES:
        takes = BENCHMARKS[name].options
        found.append({"benchmark": name, "size": 4096})
        if "in_place" in takes and name not in NOT_IN_PLACE:
            found.append({"benchmark": name, "size": 64, "in_place": True})
        if name in ("alltoallv", "allgatherv"):
            found.append({"benchmark": name, "size": 4096, "imbalance": 0.5})
    for mode in MODES:
        if (binding, mode) != ("torch", "graph"):
            batch = 1 if mode in ("isolated", "event") else 4
            found.append({"benchmark": "allreduce", "size": 4096, "timing": mode, "batch": batch})
    found.append({"benchmark": "sendrecv", "size": 4096, "timing": "pipelined", "batch": 4})
    # five parts of the memory in turn, four times
    found.append({"benchmark": "sendrecv", "size": 4 << 20, "timing": "pipelined", "batch": 20})
    found += [{"benchmark": "bcast", "size": 4096, "cache": "rotate"}, {"benchmark": "iallreduce", "size": 4096}]
    found += [{"benchmark": "reduce", "size": 64, "root": -1, "op": "max"}, {"benchmark": "hypercube", "size": 64}]
    found += [{"benchmark": name, "size": 70_016, "window": 3} for name in ("latency", "bw", "bibw")]
    types = ("float16", "int8", "int64", *(["bfloat16"] if binding != "nccl4py" else []))
    found += [{"benchmark": "allreduce", "size": 4096, "dtype": dtype} for dtype in types]
    found.append({"benchmark": "allreduce", "size": 4096, "dtype": "float32", "op": "avg"})
    found += [{"benchmark": name, "size": 4096, "inject": "flip:1"} for name in SPOILED]
    return [{**cell, "binding": binding} for cell in found]


@cache
def _measured(binding: str) -> list[tuple[Cell, dict[str, Any]]]:
    wanted = _cells(binding)
    found = report("tests.support.sessions.nccl_cells", 2, wanted, OMB_PY_SIM_DELAY_US="50", PYTHONPATH=PATH)
    return list(zip(wanted, found, strict=True))


@pytest.mark.slow
@needs_compiler
@pytest.mark.mpi
@pytest.mark.parametrize(
    "binding", [*(pytest.param(binding, marks=pytest.mark.slow) for binding in PYTHON if binding != "cupy"), "cupy"]
)
def test_every_byte_is_right(binding: str) -> None:
    mine = _measured(binding)
    assert len(mine) > 30
    wrong = [both for both in mine if both[1].get("wrong") != 0 or both[1]["iterations"] != 3 or both[1]["busy"]]
    assert [cell["benchmark"] for cell, _ in wrong] == list(SPOILED), wrong
    assert not any(done["native"] for _, done in mine), "a communicator was made that nobody uses"
    assert all(done["wrong"] > 0 and not done["busy"] for _, done in wrong), "a wrong byte on the device was not found"


@pytest.mark.slow
@needs_compiler
@pytest.mark.mpi
def test_a_row_says_by_which_package_and_which_nccl_it_was_measured() -> None:
    measured = [both for binding in PYTHON for both in _measured(binding)]
    said = {cell["binding"]: done["marks"] for cell, done in measured}
    assert said["cupy"]["binding_version"] == "cupy 14.2.0" and said["cupy"]["library_version"] == "2.28.3"
    assert said["nccl4py"]["binding_version"] == "nccl4py 0.6.0" and said["nccl4py"]["library_version"] == "2.28.3"
    assert said["torch"]["binding_version"].startswith("torch 2.")
    # what is one call there is no group, and what is a group says so
    grouped = {
        (c["binding"], c["benchmark"])
        for binding in PYTHON
        for c, done in _measured(binding)
        if "calls" in done["marks"]
    }
    assert ("cupy", "alltoall") in grouped and ("nccl4py", "alltoall") not in grouped
    assert ("torch", "alltoallv") not in grouped and ("nccl4py", "alltoallv") in grouped


@pytest.mark.slow
@needs_compiler
@pytest.mark.mpi
@pytest.mark.parametrize(
    ("binding", "fault", "says"),
    [
        ("cupy", "enqueue:7@1", "cupy 14.2.0: NCCL_ERROR_UNHANDLED_CUDA_ERROR: unhandled cuda error"),
        ("nccl4py", "async:7@0", "remote process exited or there was a network error: stand-in: the peer's socket was"),
    ],
)
def test_errors_end_the_run_with_the_librarys_own_words(binding: str, fault: str, says: str) -> None:
    code, text = fails(fault, "--timeout", f"{PATIENCE_S}s", "--binding", binding, PYTHONPATH=PATH)
    assert (code, says in text) == (3, True), text
    assert "Traceback" not in text and "made progress" not in text


def test_every_call_has_its_method() -> None:
    native = {"group_start", "group_end", *COMMUNICATORS, "put", "win_post", "win_start", "win_wait"}
    assert set(NCCL4PY_METHODS) == set(CALLS) - native
    assert set(CALLS) - set(CUPY_METHODS) - native == {"alltoall", "gather", "scatter"}


@pytest.mark.slow
@needs_compiler
@pytest.mark.mpi
def test_a_binding_takes_the_settings_that_its_package_knows() -> None:
    """What reached the library is in its log: channels of nccl4py's own configuration, the others by variables."""
    by_variable = "algorithm=tree,protocol=ll128,log=tuning"
    cells: list[Cell] = [
        {"binding": "cupy", "settings": by_variable},
        {"binding": "cupy", "settings": "aggregate=3,log=tuning"},
        {"binding": "nccl4py", "settings": f"{by_variable},max_ctas=5,cta_policy=zero"},
        {"binding": "nccl4py", "settings": "max_ctas=3,log=tuning"},
        {"binding": "nccl4py", "settings": "aggregate=2,log=tuning"},
        {"binding": "cupy", "settings": "max_ctas=3"},
        {"binding": "cupy", "benchmark": "comm_split", "size": 0, "timing": "isolated"},
    ]
    cells = [{"benchmark": "allreduce", "size": 4096, **cell} for cell in cells]
    *done, ctas, split = report("tests.support.sessions.nccl_cells", 2, cells, PYTHONPATH=PATH)
    assert [one.get("wrong") for one in done] == [0] * len(done), done
    said = [tuple(one["marks"][f"{what}_used"] for what in ("algorithm", "protocol", "channels")) for one in done]
    assert said == [
        ("TREE", "LL128", "0..1"),
        ("RING", "LL", "0..1"),
        ("TREE", "LL128", "0..4"),
        ("RING", "LL", "0..2"),
        ("RING", "LL", "0..1"),
    ]
    assert done[0]["marks"]["algorithm_by"] == done[2]["marks"]["algorithm_by"] == "NCCL_ALGO"
    assert done[2]["marks"]["nccl_cta_policy"] == "zero"
    assert ctas["refused"] == "binding cupy takes no --nccl max_ctas: --binding native or torch or nccl4py"
    assert split["refused"] == "binding cupy makes no communicators in a loop here: --binding native"


def test_torch_is_given_the_counts_of_ctas(monkeypatch: pytest.MonkeyPatch) -> None:
    by_torch = pytest.importorskip("omb_py.backends.nccl.python_bindings.by_torch")
    made = SimpleNamespace(config=SimpleNamespace(min_ctas=None, max_ctas=None))
    nccl = SimpleNamespace(Options=lambda: made)
    monkeypatch.setattr(by_torch.dist, "ProcessGroupNCCL", nccl, raising=False)
    assert by_torch.options(Settings()) == {}
    assert by_torch.options(Settings(max_ctas=4)) == {"pg_options": made}
    assert (made.config.min_ctas, made.config.max_ctas) == (None, 4)
    simulated: Any = SimpleNamespace(device=SimpleNamespace(kind="sim"))
    with pytest.raises(EnvironmentProblem, match="binding torch is Gloo on the simulated device, which takes no proto"):
        by_torch.TorchBinding(simulated, Settings(protocol="ll"))


@needs_compiler
def test_torchs_version_of_nccl_is_that_of_the_library_it_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    by_torch = pytest.importorskip("omb_py.backends.nccl.python_bindings.by_torch")
    monkeypatch.setenv("STANDIN_VERSION", "23203")
    built = SimpleNamespace(version=lambda: (2, 27, 5))
    monkeypatch.setattr(by_torch, "import_module", {"torch.cuda.nccl": built}.__getitem__)
    monkeypatch.setattr(by_torch, "LIBRARIES", ("libnobody-has.so", ctypes.util.find_library("c")))
    assert by_torch.loaded_version() == "2.27.5"
    loaded = load_standin()
    monkeypatch.setattr(by_torch, "LIBRARIES", ("libnobody-has.so", loaded.path))
    assert by_torch.loaded_version() == loaded.version_text == "2.32.3"


@pytest.mark.parametrize(
    ("binding", "text", "says"),
    [
        ("cupy", "cta_policy=zero", "binding cupy takes no --nccl cta_policy: --binding native or nccl4py"),
        ("torch", "aggregate=2", "binding torch takes no --nccl aggregate: --binding native or cupy or nccl4py"),
        ("nccl4py", "registration=window", "binding nccl4py takes no --nccl registration: --binding native"),
    ],
)
def test_a_setting_that_a_binding_lacks_is_refused_with_those_that_have_it(binding: str, text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        plan(
            Request("allreduce", ("nccl",), (binding,), device="sim", settings={"nccl": text}),
            2,
            {**capabilities_of(), "nccl": _here()},
        )


def test_what_is_missing_is_said_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capabilities, "find_spec", lambda name: None)
    assert explain_missing("native", "cuda") == ""
    for binding, package in (("cupy", "cupy-cuda13x"), ("nccl4py", "nccl4py[cu13]"), ("torch", "torch==")):
        assert f"binding {binding} needs" in explain_missing(binding, "cuda") and package in explain_missing(
            binding, "cuda"
        )
        with pytest.raises(EnvironmentProblem, match=f"binding {binding} needs .* not installed: pip install"):
            plan(Request("allreduce", ("nccl",), (binding,), device="sim"), 2, capabilities_of())


def test_a_pytorch_without_gpus_is_refused_on_gpus_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capabilities, "find_spec", lambda name: object())
    for here, refused in (("2.13.0+cpu", True), ("2.13.0", False)):
        monkeypatch.setattr("importlib.metadata.version", lambda name, here=here: here)
        assert bool(explain_missing("torch", "cuda")) == refused
        assert explain_missing("torch", "sim") == ""


def test_types_that_a_binding_lacks_are_refused() -> None:
    assert lacks_type("torch", "uint32") and lacks_type("cupy", "float8e4m3") and lacks_type("nccl4py", "bfloat16")
    assert not any(lacks_type("native", dtype) for dtype in ("uint32", "float8e5m2", "bfloat16"))
    with pytest.raises(EnvironmentProblem, match="binding cupy has no type float8e4m3: --binding native"):
        offers = {**capabilities_of(), "nccl": _here()}
        plan(Request("allgather", ("nccl",), ("cupy",), device="sim", dtypes=("float8e4m3",)), 2, offers)


def test_torch_reduces_in_place_alone_also_in_the_text_of_nccl_tests() -> None:
    offers = {**capabilities_of(), "nccl": _here()}
    request = Request("allreduce", ("nccl",), ("native", "torch"), device="sim", sizes="8:8")
    cells = [cell for launch in plan(request, 2, offers) for cell in launch.cells]
    assert [(cell.binding, cell.options.in_place) for cell in cells] == [("native", False), ("torch", True)]
    (launch,) = plan(replace(request, bindings=("torch",), format="nccl-tests"), 2, offers)
    assert [(cell.size, cell.options.in_place) for cell in launch.cells] == [(8, True)]


def test_text_of_nccl_tests_implies_their_memory_where_a_binding_has_it() -> None:
    offers = {**capabilities_of(), "nccl": _here()}
    request = Request("sendrecv", ("nccl",), ("native", "nccl4py"), device="sim", sizes="8:8", format="nccl-tests")
    settings = {cell.binding: cell.settings for launch in plan(request, 2, offers) for cell in launch.cells}
    assert settings == {"native": "method=nccl-tests", "nccl4py": ""}
    table = replace(request, format="table", settings={"nccl": "max_ctas=4"})
    assert {cell.settings for launch in plan(table, 2, offers) for cell in launch.cells} == {"max_ctas=4"}


def _here() -> Any:
    return with_methods(capabilities_of()["nccl"], unbound=lambda self, binding, device: "")


def test_the_stand_ins_are_on_no_path_but_that_of_their_ranks() -> None:
    assert (Path(PATH.split(os.pathsep)[1]) / "cupy" / "__init__.py").exists()
    assert PATH.split(os.pathsep)[1] not in os.environ.get("PYTHONPATH", "").split(os.pathsep)


def test_list_and_doctor_say_which_package_is_missing() -> None:
    needs = "binding cupy needs CuPy, which is not installed: pip install cupy"
    found = Capabilities(
        "nccl", bindings={"native": "no library", "cupy": needs}, inspection=Inspection("no library", "install it")
    )
    by_binding = {place.binding: place for place in list_targets([found]) if place.device == "cuda"}
    assert (by_binding["cupy"].reason, by_binding["native"].reason) == (needs, "no library")
    assert [finding.text for finding in doctor.backend(found)] == ["no library", needs]


@pytest.mark.parametrize(("code", "answer"), [(7, None), (6, (6, "cupy: text of 6"))])
def test_cupy_has_no_name_for_newer_codes_and_only_progress_is_no_error(code: int, answer: Any) -> None:
    def unnamed() -> None:
        raise KeyError(code)

    binding = object.__new__(CupyBinding)
    binding.comm, binding.version = SimpleNamespace(check_async_error=unnamed), "cupy"
    binding._library = SimpleNamespace(error_text=lambda number: f"text of {number}")
    assert binding.async_error() == answer
