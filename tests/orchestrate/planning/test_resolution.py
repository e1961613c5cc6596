"""Several backends in one command: who can does, and of the others it is said why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omb_py.backends import registry
from omb_py.backends.capabilities import Capabilities
from omb_py.backends.registry import capabilities_of
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.options.request import Request
from omb_py.orchestrate.planning.plan import LaunchPlan
from omb_py.orchestrate.planning.resolution import in_place_alone, resolve_alone
from omb_py.orchestrate.running import run as running
from omb_py.orchestrate.running.run import execute_run
from omb_py.results.skip import Skip
from tests.support.capabilities import with_methods
from tests.support.planning import check, narrow, plan

THERE = {**capabilities_of(), "gloo": with_methods(capabilities_of()["gloo"], missing=lambda self: "")}
"""Where PyTorch is installed."""


def request(benchmark: str, *backends: str, **more: Any) -> Request:
    return Request(benchmark, backends=backends, **more)


def narrowed(asked: Request, offers: Mapping[str, Capabilities]) -> tuple[Request, list[Skip]]:
    checked = narrow(asked, offers)
    return checked.request, list(checked.skips)


def test_one_backend_is_checked_as_ever() -> None:
    asked = request("put_latency", "mpi")
    assert narrowed(asked, THERE) == (asked, [])
    with pytest.raises(EnvironmentProblem, match="backend gloo cannot do put_latency: Gloo has no one-sided"):
        narrowed(request("put_latency", "gloo"), THERE)


def test_settings_of_a_backend_that_is_not_measured_are_refused() -> None:
    """Real ranks would be stored in place of simulated ones; beside another side they may stand."""
    noise = {"settings": {"mock": "noise=0.1"}}
    with pytest.raises(UsageError, match="--mock is for --backend mock: leave it out"):
        resolve_alone(request("allreduce", "mpi", **noise))
    assert resolve_alone(request("allreduce", "mpi", "mock", **noise)).request.backends == ("mpi", "mock")
    assert check(request("allreduce", "mpi", **noise)).request.backends == ("mpi",)


def test_what_cannot_run_is_left_out_with_its_reason() -> None:
    left, skips = narrowed(request("put_latency", "mpi", "nccl", "gloo"), THERE)
    assert left.backends == ("mpi",)
    assert [skip.what for skip in skips] == ["nccl", "gloo"]
    assert "has no buffers on cpu" in skips[0].reason and "no one-sided" in skips[1].reason


def test_a_missing_library_leaves_the_others() -> None:
    gone = {
        **capabilities_of(),
        "gloo": with_methods(capabilities_of()["gloo"], missing=lambda self: "no PyTorch: pip install it"),
    }
    left, skips = narrowed(request("allreduce", "gloo", "mock"), gone)
    assert (left.backends, skips) == (("mock",), [Skip("gloo", "no PyTorch: pip install it")])


def test_none_left_is_an_error_with_every_reason() -> None:
    with pytest.raises(EnvironmentProblem, match=r"no backend can run this here: nccl: .*; gloo: .*no one-sided"):
        narrowed(request("put_latency", "nccl", "gloo"), THERE)


def test_bad_words_stay_errors() -> None:
    for bad in (request("allreduce", "mpi", "glooo"), request("allreduce", "mpi", "gloo", op="summ")):
        with pytest.raises(UsageError):
            narrowed(bad, THERE)
    with pytest.raises(UsageError, match="unknown binding 'x' for backends mpi, gloo"):
        narrowed(request("allreduce", "mpi", "gloo", bindings=("x",)), THERE)


def test_each_backend_takes_the_bindings_that_it_has() -> None:
    asked = request("allreduce", "mpi", "gloo", bindings=("mpi4py", "native"), sizes="8:8")
    assert narrowed(asked, THERE) == (asked, [])
    sides = [(launch.backend, sorted({c.binding for c in launch.cells})) for launch in plan(asked, 2, THERE)]
    assert sides == [("mpi", ["mpi4py"]), ("mpi", ["native"]), ("gloo", ["torch"])]


def test_gloo_reduces_in_place_and_says_so_beside_mpi() -> None:
    asked = request("allreduce", "mpi", "gloo", sizes="8:8")
    assert {(launch.backend, c.options.in_place) for launch in plan(asked, 2, THERE) for c in launch.cells} == {
        ("mpi", False),
        ("gloo", True),
    }
    assert in_place_alone(check(asked, THERE)) == [
        "gloo does allreduce in place, the others do not: -l makes all of them do so"
    ]
    for quiet in (replace(asked, in_place=True), replace(asked, backends=("gloo",)), replace(asked, benchmark="bcast")):
        assert in_place_alone(check(quiet, THERE)) == []


def test_another_synchronisation_is_not_taken_for_in_place() -> None:
    asked = request("put_latency", "mpi", "nccl", device="cpu,sim", share_device=True, sizes="8:8")
    left = narrow(asked, THERE)
    syncs = {(launch.backend, c.options.sync) for launch in plan(left.request, 2, THERE) for c in launch.cells}
    assert syncs == {("mpi", "flush"), ("nccl", "pscw")}
    assert in_place_alone(left) == []


def test_several_devices_stand_in_one_table() -> None:
    asked = request("allreduce", "mpi", "gloo", "nccl", device="cpu,sim", share_device=True, sizes="8:8")
    left, skips = narrowed(asked, THERE)
    assert [skip.what for skip in skips] == ["nccl on cpu"] and "no buffers on cpu" in skips[0].reason
    needs = [(launch.backend, launch.needs.device, launch.needs.share_device) for launch in plan(left, 2, THERE)]
    assert needs == [
        ("mpi", "cpu", False),
        ("mpi", "sim", True),
        ("gloo", "cpu", False),
        ("gloo", "sim", True),
        ("nccl", "sim", True),
    ]
    assert {
        (c.device, c.options.staging) for launch in plan(left, 2, THERE) for c in launch.cells if c.backend == "mpi"
    } == {("cpu", ""), ("sim", "auto")}
    assert narrowed(replace(left), THERE) == (left, []), "what was left out is not told twice"


def test_a_device_that_nobody_has_is_left_out() -> None:
    left, skips = narrowed(request("put_latency", "mpi", "mock", device="cpu,sim", sizes="8:8"), THERE)
    assert left.sides == (("mpi", "cpu"), ("mpi", "sim"), ("mock", "cpu"))
    assert [skip.what for skip in skips] == ["mock on sim"]
    left, _ = narrowed(request("allreduce", "nccl", device="cpu,sim"), THERE)
    assert (left.device, left.left_out) == ("sim", ())
    with pytest.raises(EnvironmentProblem, match="neither backend nor device can run this here: mock on sim: "):
        narrowed(request("allreduce", "mock", device="sim,rocm"), {**THERE})
    with pytest.raises(UsageError, match="has one twice"):
        narrowed(request("allreduce", "mpi", device="cpu,cpu"), THERE)


def test_a_launch_that_cannot_start_leaves_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No mpiexec is found only when the ranks are to be started."""
    start = running.start

    def refuse(run: Any, launch: LaunchPlan) -> None:
        if launch.backend == "mpi":
            raise EnvironmentProblem("no mpiexec found")
        start(run, launch)

    there = with_methods(registry.ours()["mpi"].capabilities, inspect=lambda self: self)
    mpi = replace(registry.ours()["mpi"], capabilities=there)
    known = {**registry.ours(), "mpi": mpi}
    monkeypatch.setattr(registry, "ours", lambda: known)
    monkeypatch.setattr(running, "start", refuse)
    assert (
        execute_run(request("allreduce", "mpi", "mock", sizes="8:8", ranks=2, store=None, launches=2, quiet=True)).code
        == 0
    )
    told = capsys.readouterr()
    assert told.err.count("skipped: mpi: no mpiexec found") == 1
    assert told.out.count("8 B") == 2
    with pytest.raises(EnvironmentProblem, match="no mpiexec found"):
        execute_run(request("allreduce", "mpi", sizes="8:8", ranks=2, store=None))


def test_two_simulated_sides_stand_beside_each_other(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    """One table, sorted by size, with the fastest marked."""
    rows: list[Mapping[str, Any]] = [
        {
            "benchmark": "allreduce",
            "backend": b,
            "binding": "x",
            "dtype": "int32",
            "size_bytes": s,
            "value": v,
            "unit": "us",
            "window": None,
        }
        for b, s, v in (("mpi", 8, 1.0), ("mpi", 16, 9.0), ("gloo", 8, 5.0), ("gloo", 16, 6.0))
    ]
    from omb_py.printing.printers import AtEnd

    printer = AtEnd("table")
    for row in rows:
        printer.row(row)
    printer.close()
    out = capsys.readouterr().out
    body = [line.split() for line in out.splitlines() if line.split()[:1] in (["mpi"], ["gloo"])]
    assert [words[0] for words in body] == ["mpi", "gloo", "mpi", "gloo"]
    assert [words[-1] for words in body][:2] == ["◀", "-"] or body[0][-1] == "◀"
    assert body[3][-2:] == ["◀", "crossover"]
    assert out.rstrip().endswith("allreduce: mpi is fastest up to 8 B, gloo from 16 B")
