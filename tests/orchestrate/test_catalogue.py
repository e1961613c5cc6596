"""What can run where, with the reason for each gap."""

from __future__ import annotations

import json

import pytest

from omb_py.backends import registry
from omb_py.engine.session import Probe
from omb_py.orchestrate import catalogue, choices
from omb_py.orchestrate.catalogue import Place, as_json, as_table, places
from omb_py.suites import BENCHMARKS

MPI = Probe("mpi", True, bindings={"native": "", "mpi4py": "mpi4py is too old"}, devices={"cpu": ""})
MOCK = Probe("mock", True, bindings={"native": ""}, devices={"cpu": ""})
BENCHES = list(BENCHMARKS.values())


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choices, "gpu_here", lambda device: False)


def place(where: list[Place], backend: str, binding: str, device: str) -> Place:
    (found,) = (p for p in where if (p.backend, p.binding, p.device) == (backend, binding, device))
    return found


def test_places() -> None:
    where = places([MPI, MOCK])
    assert place(where, "mpi", "native", "cpu").available
    assert place(where, "mpi", "mpi4py", "cpu").reason == "mpi4py is too old"
    assert "no NVIDIA GPU" in place(where, "mpi", "native", "cuda").reason
    assert "not in this version" in place(where, "gloo", "", "cuda").reason
    assert place(where, "gloo", "", "cpu").fix == "use --backend mpi"


def test_an_unavailable_backend_says_why_everywhere() -> None:
    where = places([Probe("mpi", False, "no MPI library", "pip install mpich")])
    mine = [p for p in where if p.backend == "mpi"]
    assert len(mine) == 3
    assert {(p.reason, p.fix) for p in mine} == {("no MPI library", "pip install mpich")}
    silent = places([Probe("mpi", False)])
    assert not any(p.available for p in silent if p.backend == "mpi")


def test_a_backend_with_device_buffers_is_believed() -> None:
    able = Probe("ucx", True, bindings={"native": ""}, devices={"cpu": "", "cuda": "", "rocm": "no ROCm here"})
    where = places([able])
    assert place(where, "ucx", "native", "cuda").available
    assert place(where, "ucx", "native", "rocm").reason == "no ROCm here"


def test_a_backend_that_appears_is_no_longer_of_a_later_version() -> None:
    where = places([Probe("nccl", True, bindings={"cupy": ""}, devices={"cpu": "", "cuda": ""})])
    assert place(where, "nccl", "cupy", "cuda").available
    assert not any("not in this version of" in p.reason for p in where if p.backend == "nccl" and p.device == "cuda")


def test_json_has_every_combination() -> None:
    where = places([MPI, MOCK])
    data = json.loads(json.dumps(as_json(catalogue.catalogue(BENCHES, where), {"x": "broken"})))
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


def test_table() -> None:
    text = as_table(BENCHES, places([MPI, MOCK]), {"odd": "ImportError: no"})
    head, devices, *rest = text.splitlines()
    assert head.split() == ["benchmark", "mpi/native", "mpi/mpi4py", "mock/native", "gloo"]
    assert devices.split() == ["cpu", "cuda", "rocm"] * 4
    rows = {line.split()[0]: line.split()[1:] for line in rest[: len(BENCHES)]}
    assert set(rows) == set(BENCHMARKS)
    assert rows["bw"][:4] == ["yes", "[1]", "[2]", "[3]"]
    notes = {line.partition(" ")[0]: line for line in rest if line.startswith("[")}
    assert notes["[3]"] == "[3] mpi4py is too old"
    for marks in rows.values():
        assert all(mark == "yes" or mark in notes for mark in marks)
    assert rest[-1] == "benchmark odd of an installed package cannot be loaded: ImportError: no"


def test_a_probe_that_fails_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Bad:
        def probe(self) -> Probe:
            raise RuntimeError("boom")

    class Good:
        def probe(self) -> Probe:
            return MOCK

    monkeypatch.setattr(registry, "backends", lambda: {"bad": Bad(), "mock": Good()})
    bad, good = catalogue.probes()
    assert not bad.available and "RuntimeError: boom" in bad.reason
    assert good is MOCK
