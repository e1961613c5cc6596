"""What can run where, with the reason for each gap."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from omb_py.backends import registry
from omb_py.backends.capabilities import Backend, Capabilities, Inspection
from omb_py.cli.app import FAMILIES as TITLES
from omb_py.orchestrate.info import catalogue
from omb_py.orchestrate.info.catalogue import RunTarget, as_json, as_text, list_targets
from omb_py.orchestrate.planning import availability
from omb_py.suites import BENCHMARKS
from tests.support.capabilities import with_methods

MPI = Capabilities("mpi", bindings={"native": "", "mpi4py": "mpi4py is too old"}, devices={"cpu": ""})
MOCK = Capabilities("mock")
BENCHES = list(BENCHMARKS.values())


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability, "gpu_here", lambda device: False)


def place(where: list[RunTarget], backend: str, binding: str, device: str) -> RunTarget:
    (found,) = (p for p in where if (p.backend, p.binding, p.device) == (backend, binding, device))
    return found


def test_places() -> None:
    where = list_targets([MPI, MOCK])
    assert place(where, "mpi", "native", "cpu").available
    assert place(where, "mpi", "mpi4py", "cpu").reason == "mpi4py is too old"
    assert "no NVIDIA GPU" in place(where, "mpi", "native", "cuda").reason


def test_an_unavailable_backend_says_why_everywhere() -> None:
    where = list_targets([Capabilities("mpi", inspection=Inspection("no MPI library", "pip install mpich"))])
    mine = [p for p in where if p.backend == "mpi"]
    assert len(mine) == 3
    assert {(p.reason, p.fix) for p in mine} == {("no MPI library", "pip install mpich")}


def test_a_backend_with_device_buffers_is_believed() -> None:
    able = Capabilities("ucx", devices={"cpu": "", "cuda": "", "rocm": "no driver: install it"})
    where = list_targets([able])
    assert place(where, "ucx", "native", "cuda").available
    (rocm, fix) = (place(where, "ucx", "native", "rocm").reason, place(where, "ucx", "native", "rocm").fix)
    assert (rocm, fix) == ("no driver: install it", "")  # what to do is said once


def test_a_benchmark_of_a_package_that_fails_breaks_nothing_else() -> None:
    theirs = replace(BENCHMARKS["bcast"], name="theirs", program=lambda world, cell: 1 / 0)
    where = [RunTarget("gloo", "torch", "cpu")]
    text = as_text([theirs, BENCHMARKS["bcast"]], where, {}, TITLES)
    assert "theirs [1]" in text and "[1] not on gloo: its program failed (ZeroDivisionError" in text


def test_json_has_every_combination() -> None:
    where = list_targets([MPI, MOCK])
    data = json.loads(json.dumps(as_json(BENCHES, where, {"x": "broken"})))
    assert len(data["entries"]) == len(BENCHES) * len(where)
    assert data["broken_benchmarks"] == {"x": "broken"}
    first = data["entries"][0]
    assert (first["benchmark"], first["backend"], first["binding"], first["device"]) == (
        "latency",
        "mpi",
        "native",
        "cpu",
    )
    assert first["available"] is True


def test_what_a_backend_lacks_is_said_for_each_benchmark() -> None:
    gloo = Capabilities("gloo", bindings={"torch": ""})
    where = [p for p in list_targets([MPI, gloo]) if p.device == "cpu"]
    entries = json.loads(json.dumps(as_json(BENCHES, where, {})))["entries"]
    found = {(e["benchmark"], e["backend"], e["binding"]): e for e in entries}
    assert found["allreduce", "gloo", "torch"]["available"] and found["put_latency", "mpi", "native"]["available"]
    lacks = found["put_latency", "gloo", "torch"]
    assert (lacks["available"], lacks["reason"], lacks["fix"]) == (
        False,
        "Gloo has no one-sided operations",
        "use --backend mpi",
    )
    lines = as_text(BENCHES, where, {}, TITLES).splitlines()
    mark = next(line.split()[1] for line in lines if line.startswith("  put_latency"))
    assert next(line for line in lines if line.startswith(mark)) == (
        f"{mark} not on gloo: {lacks['reason']}: {lacks['fix']}"
    )


def test_an_inspection_that_fails_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(declared: Capabilities) -> Capabilities:
        raise RuntimeError("boom")

    both = (with_methods(Capabilities("bad"), inspect=broken), MOCK)
    known = {one.name: Backend(one, lambda spec: pytest.fail()) for one in both}
    monkeypatch.setattr(registry, "backends", lambda: known)
    bad, good = catalogue.inspected()
    assert not bad.available and "RuntimeError: boom" in bad.inspection.reason
    assert good is MOCK
