"""The library of this machine: what doctor says of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from omb_py.backends.capabilities import Inspection
from omb_py.backends.nccl import library
from omb_py.backends.nccl.calls import check_types
from omb_py.backends.nccl.capabilities import CAPABILITIES
from omb_py.backends.nccl.family import NCCL, RCCL
from omb_py.backends.nccl.python_bindings import by_cupy
from omb_py.backends.nccl.session import kept_from_stdout, note_of_cores
from omb_py.engine.program.language import Step
from omb_py.errors import EnvironmentProblem
from tests.backends.nccl.test_nccl import load_standin, needs_compiler


@pytest.mark.parametrize(
    ("driver", "passed", "text"),
    [(13000, True, "built for CUDA 13"), (12080, False, "CUDA 12.8 at most"), (0, None, "")],
)
def test_doctor_compares_the_library_with_the_driver(
    driver: int, passed: bool | None, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "libnccl.so.2"
    file.write_bytes(b"\0NCCL version 2.28.9+cuda13.0\0")
    monkeypatch.setattr(library, "driver_version", lambda: driver)
    lines = library.driver_check(replace(CAPABILITIES, inspection=Inspection(facts={"library for cuda": str(file)})))
    assert [(line.passed, text in line.text, line.device) for line in lines] == (
        [(passed, True, "cuda")] if driver else []
    )
    assert not library.driver_check(CAPABILITIES)


@pytest.mark.parametrize(
    ("path", "version", "since"),
    [("librccl.so.1", (2, 20, 5), ""), ("librccl.so.1", (2, 18, 6), "2.20"), ("libnccl.so.2", (2, 22, 3), "2.24")],
)
def test_rccl_had_fp8_before_nccl(path: str, version: tuple[int, int, int], since: str) -> None:
    known = library.Library.__new__(library.Library)
    known.family, known.version = RCCL if "rccl" in path else NCCL, version
    move = Step("allgather", {"dtype": "float8e4m3"})
    device = SimpleNamespace(name="a GPU", capability=None)
    if not since:
        check_types(move, known, device)  # type: ignore[arg-type]
        return
    with pytest.raises(EnvironmentProblem, match=rf"has no type float8e4m3 \(it came with {since}\)"):
        check_types(move, known, device)  # type: ignore[arg-type]


def test_a_function_under_the_name_of_rccl_is_not_lacking() -> None:
    every = [name for name in library.OPTIONAL if name != "ncclAlltoAll"]
    assert library.lacking([*every, "ncclAllToAll"]) == []
    assert library.lacking(every) == ["ncclAlltoAll"]


@pytest.mark.parametrize(("op", "checked"), [("sum", True), ("max", True), ("prod", False), ("mulsum", False)])
def test_products_of_fp8_are_not_checked_where_the_gpu_may_have_another_bias(op: str, checked: bool) -> None:
    rccl = library.Library.__new__(library.Library)
    rccl.family, rccl.version = RCCL, (2, 27, 7)
    step = Step("allreduce", {"dtype": "float8e4m3", "op": op})
    device: Any = SimpleNamespace(name="a GPU", capability=None)
    if checked:
        return check_types(step, rccl, device)
    with pytest.raises(EnvironmentProblem, match=f"RCCL counts float8e4m3 with another bias .* so {op} cannot"):
        check_types(step, rccl, device)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (
            ImportError("libnccl.so.2: cannot open"),
            "CuPy finds no NCCL (libnccl.so.2: cannot open): pip install nvidia",
        ),
        (None, "this CuPy was built without NCCL"),
    ],
)
def test_cupy_s_own_reason_is_passed_on(error: Exception | None, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str) -> None:
        if error:
            raise error

    monkeypatch.setattr(by_cupy, "import_module", load)
    assert by_cupy.why_unavailable().startswith(says)


@pytest.mark.parametrize(
    ("environ", "added"),
    [
        ({"NCCL_DEBUG": "INFO"}, {"NCCL_DEBUG_FILE": "/dev/stderr"}),
        ({"NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": "mine"}, {}),
        ({}, {}),
    ],
)
def test_the_library_s_own_lines_are_kept_from_stdout(environ: dict[str, str], added: dict[str, str]) -> None:
    assert kept_from_stdout(environ) == added


@pytest.mark.parametrize(("cores", "says"), [(1, "bind to several, or none"), (2, ""), (64, "")])
def test_a_rank_on_one_core_is_told_that_the_proxy_shares_it(cores: int, says: str) -> None:
    assert (says in note_of_cores(cores)) if says else not note_of_cores(cores)


@needs_compiler
@pytest.mark.parametrize(
    ("environment", "counted"),
    [
        ({"STANDIN_VERSION": "22906"}, {}),
        ({"STANDIN_VERSION": "22907", "STANDIN_NO_STATS": "1"}, {}),
        ({"STANDIN_VERSION": "22907"}, {"suspendable": 1 << 20, "persistent": 2 << 20, "library": 3 << 20}),
    ],
)
def test_memory_of_a_communicator_is_counted_from_2_29_7_on(
    environment: dict[str, str], counted: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in environment.items():
        monkeypatch.setenv(name, text)
    found = load_standin()
    comm = found.init_rank(1, found.unique_id(), 0)
    assert found.memory_of(comm) == counted
    found.destroy(comm)
