"""What Gloo says it lacks, without PyTorch and without a rank."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from omb_py.backends.gloo import capabilities
from omb_py.backends.gloo.errors import first_line, is_lost_peer, peers_speak_first
from omb_py.backends.registry import capabilities_of, find
from omb_py.distribution import pip_install
from omb_py.engine.program.benchmark import Cell
from omb_py.errors import EnvironmentProblem
from omb_py.options.request import Request
from omb_py.options.table import make_cell, usual_cell
from omb_py.suites.registry import BENCHMARKS
from tests.support.planning import plan

HAS = {
    "latency",
    "bw",
    "bibw",
    "multi_lat",
    "mbw_mr",
    "bw_fan_in",
    "bw_fan_out",
    "sendrecv",
    "hypercube",
    *"pingping exchange uniband biband unirandom birandom corandom stencil2d stencil3d".split(),
    "init",
    "hello",
    *(
        form + name
        for form in ("", "i")
        for name in tuple(
            (
                "barrier bcast reduce allreduce allgather gather scatter reduce_scatter reduce_scatter_block "
                "alltoall alltoallv"
            ).split()
        )
    ),
    "step",
    "noise",
}


def test_the_page_names_each_of_them() -> None:
    page = (Path(__file__).parents[3] / "docs" / "gloo.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert set(re.findall(r"`(\w+)`", " ".join(row.split("|")[1] for row in rows))) == HAS
    assert ", ".join(name for name in capabilities.TYPES if name != "char") in page


def test_what_it_has() -> None:
    assert {
        name for name, kind in BENCHMARKS.items() if not capabilities.CAPABILITIES.lacks(kind, usual_cell(kind))
    } == HAS


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("put_latency", "no one-sided operations"),
        ("latency_persistent", "no persistent operations"),
        ("bcast_persistent", "no persistent operations"),
        ("partitioned_latency", "no persistent operations"),
        ("neighbor_allgather", "no neighborhood collectives"),
        ("ineighbor_alltoall", "no neighborhood collectives"),
        ("gatherv", "gather takes blocks of one size only"),
        ("iscatterv", "scatter takes blocks of one size only"),
        ("alltoallw", "no datatypes for each block"),
        ("latency_mt", "one thread"),
        ("latency_mp", "must not fork"),
        ("comm_split", "no communicators"),
    ],
)
def test_why_it_has_not_the_others(name: str, why: str) -> None:
    lack = capabilities.CAPABILITIES.lacks(BENCHMARKS[name], usual_cell(BENCHMARKS[name]))
    assert why in lack and lack.endswith(": use --backend mpi")


def cell(name: str, **more: object) -> Cell:
    return make_cell(BENCHMARKS[name], "gloo", "torch", 64, **more)


@pytest.mark.parametrize(
    ("name", "more", "why"),
    [
        ("bcast", {"dtype": "int16"}, "no type int16"),
        ("bcast", {"dtype": "complex64"}, "no type complex64"),
        ("allreduce", {"op": "lxor"}, "no reduction lxor"),
        ("allgather", {"ddt": "cont"}, "no derived datatypes"),
        ("ialltoallv", {"in_place": True}, "not defined in place"),
        ("bcast", {"process_sync": "roundtime"}, "needs the clocks of the mpi backend"),
    ],
)
def test_options_that_it_refuses(name: str, more: dict[str, object], why: str) -> None:
    assert why in capabilities.CAPABILITIES.why_refused(BENCHMARKS[name], cell(name, **more))
    assert capabilities.CAPABILITIES.refuses(BENCHMARKS[name], cell(name)) == ""


def test_allreduce_and_reduce_are_in_place() -> None:
    for name in ("allreduce", "iallreduce", "reduce", "ireduce"):
        assert capabilities.CAPABILITIES.fitted(
            BENCHMARKS[name], cell(name), usual_cell(BENCHMARKS[name])
        ).options.in_place, name
    for name in ("bcast", "allgather", "reduce_scatter"):
        assert capabilities.CAPABILITIES.fitted(BENCHMARKS[name], cell(name), usual_cell(BENCHMARKS[name])) == cell(
            name
        ), name


def test_a_missing_torch_is_said_with_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capabilities, "find_spec", lambda name: None)
    probe = find("gloo").capabilities.here()
    assert not probe.available and "PyTorch, which is not installed" in probe.inspection.reason
    assert probe.inspection.fix.startswith(pip_install("gloo"))
    with pytest.raises(
        EnvironmentProblem, match="^backend gloo: Gloo comes with PyTorch.*: " + re.escape(pip_install("gloo"))
    ):
        plan(Request("allreduce", backends=("gloo",)), 2, capabilities_of())


def test_errors_of_a_lost_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    lost = RuntimeError("[/src/gloo/pair.cc:553] Connection closed by peer [127.0.0.1]:5\nmore")
    assert is_lost_peer(lost) and first_line(lost) == "Connection closed by peer [127.0.0.1]:5"
    for error, waits in ((lost, 1), (RuntimeError("Invalid scalar type"), 0)):
        slept.clear()
        with pytest.raises(RuntimeError), peers_speak_first():
            raise error
        assert len(slept) == waits
