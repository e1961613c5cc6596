"""Each line of the report: ok, warn or no, and what to do."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from omb_py.backends.capabilities import Capabilities, Check, Inspection
from omb_py.orchestrate.info import doctor
from omb_py.orchestrate.info.catalogue import RunTarget
from omb_py.orchestrate.info.doctor import Finding
from omb_py.orchestrate.planning import availability

OPEN_MPI = Capabilities(
    "mpi",
    bindings={"native": "", "mpi4py": "too old"},
    inspection=Inspection(library="Open MPI", version="5.0", facts={"mpiexec": "/x/mpiexec"}),
)
MOCK = Capabilities("mock", simulated=True, inspection=Inspection(library="mock", version="1.0"))
GONE = Capabilities("mpi", bindings={}, inspection=Inspection("no MPI library", "pip install mpich"))


def test_backends() -> None:
    first, fact, native, mpi4py = doctor.backend(OPEN_MPI)
    assert (first.status, first.text) == ("ok", "Open MPI 5.0")
    assert (fact.subject, fact.text) == ("  mpiexec", "/x/mpiexec")
    assert (native.status, mpi4py.status, mpi4py.text) == ("ok", "no", "too old")
    (gone,) = doctor.backend(GONE)
    assert (gone.status, gone.text, gone.fix) == ("no", "no MPI library", "pip install mpich")


def test_what_a_backend_checks_further() -> None:
    class Ucx(Capabilities):
        def checks(self) -> list[Check]:
            version = self.inspection.version
            return [Check("  fast path", version == "2", f"version {version}", "install version 2")]

    old, new = (Ucx("ucx", inspection=Inspection(library="UCX", version=version)) for version in "12")
    assert doctor.checks([old, new, replace(new, inspection=Inspection("gone"))]) == [
        Finding("  fast path", "no", "version 1", "install version 2"),
        Finding("  fast path", "ok", "version 2", "install version 2"),
    ]


def test_launchers() -> None:
    problems = {"auto": "", "mpiexec": "", "srun": "srun not found. What to do: module load slurm", "none": ""}
    mpiexec, srun = doctor.launchers(problems, "/x/mpiexec (MPICH 5.0)")
    assert (mpiexec.status, mpiexec.text) == ("ok", "/x/mpiexec (MPICH 5.0)")
    assert (srun.status, srun.text, srun.fix) == ("no", "srun not found", "module load slurm")


def test_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability, "gpu_here", lambda device: False)
    where = [RunTarget("ucx", "native", "cuda"), RunTarget("ucx", "native", "rocm", "no")]
    cuda, rocm = doctor.others(where, ["ucx"])
    assert (cuda.status, cuda.text) == ("ok", "for ucx")
    assert rocm.status == "no" and "no AMD GPU" in rocm.text


def test_root() -> None:
    both = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    (warned,) = doctor.root_variables([OPEN_MPI], 0, {"OMPI_ALLOW_RUN_AS_ROOT": "1"})
    assert warned.status == "warn" and "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1" in warned.fix
    assert "OMPI_ALLOW_RUN_AS_ROOT=1" not in warned.fix
    (told,) = doctor.root_variables([OPEN_MPI], 0, both)
    assert told.status == "ok"
    assert doctor.root_variables([OPEN_MPI], 1000, {}) == []
    assert doctor.root_variables([MOCK], 0, {}) == []


@pytest.mark.parametrize(
    ("usable", "online", "quota", "text", "status", "ranks"),
    [
        (2, 2, None, "2 usable", "ok", 2),
        (2, 8, "max 100000", "2 of 8 usable", "ok", 2),
        (8, 8, "250000 100000", "8 usable, limited to the time of 2.5 by the control group", "ok", 2),
        (1, 4, None, "1 of 4 usable", "warn", 1),
        (4, 4, "nonsense", "4 usable", "ok", 4),
    ],
)
def test_cores(usable: int, online: int, quota: str | None, text: str, status: str, ranks: int) -> None:
    cores, rule = doctor.cores(usable, online, quota)
    assert (cores.text, cores.status) == (text, status)
    assert bool(cores.fix) == (status == "warn")
    assert f"from {ranks + 1} ranks on" in rule.text


def test_memory() -> None:
    assert doctor.memory("MemTotal: 9 kB\nMemAvailable:   8388608 kB\n") == Finding("memory", "ok", "8 GiB available")
    assert doctor.memory("MemAvailable: 1024 kB").status == "warn"
    assert doctor.memory(None).text == "not visible here"


def test_shared_memory(tmp_path: Path) -> None:
    assert " free of " in doctor.shared_memory(tmp_path).text
    assert doctor.shared_memory(tmp_path / "none").status == "warn"


def test_code_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    from omb_py.engine.native import translate as native

    found = doctor.code_generation()
    assert found.status == "ok" and "llvmlite" in found.text

    def forbidden(shape: object, seconds: bool) -> int:
        raise OSError("cannot allocate executable memory")

    monkeypatch.setattr(native, "address_of_code", forbidden)
    refused = doctor.code_generation()
    assert refused.status == "no" and "executable memory" in refused.text and "mpi4py" in refused.fix


def test_store(tmp_path: Path) -> None:
    new = doctor.store_folder(tmp_path / "a" / "b")
    assert new.status == "ok" and "made by the first run" in new.text
    assert not (tmp_path / "a").exists(), "asking must not make anything"
    (tmp_path / "file").write_text("")
    assert doctor.store_folder(tmp_path / "file").status == "no"
    assert doctor.store_folder(tmp_path / "file" / "below").status == "no"


def test_text_and_json() -> None:
    findings = [Finding("a", "ok", "fine"), Finding("longer", "no", "bad", "do this")]
    assert doctor.as_text(findings) == "ok    a       fine\nno    longer  bad\n              → do this"
    long = doctor.as_text([Finding("a", "ok", "word " * 1000)])
    assert len(long) < 150 and long.endswith("…")
    data = json.loads(json.dumps(doctor.as_json(findings, False)))
    assert data["usable"] is False and data["findings"][1]["fix"] == "do this"


def test_amount() -> None:
    assert [doctor.amount(n) for n in (512, 1536, 3 << 20, 5 << 30, 1 << 50)] == [
        "512 B",
        "1.5 KiB",
        "3 MiB",
        "5 GiB",
        "1024 TiB",
    ]


@pytest.mark.slow
def test_report_covers_this_machine(tmp_path: Path) -> None:
    findings = doctor.report([OPEN_MPI, MOCK], [], tmp_path, {})
    subjects = [f.subject for f in findings]
    for wanted in (
        "Python",
        "omb-py",
        "backend mpi",
        "backend mock",
        "launcher mpiexec",
        "launcher srun",
        "launcher around",
        "cores",
        "oversubscription",
        "CPU governor",
        "memory",
        "/dev/shm",
        "code generation",
        "store",
    ):
        assert wanted in subjects
    assert all(
        f.text and (f.fix or f.status == "ok" or f.subject.startswith(("launcher", "  binding"))) for f in findings
    )
