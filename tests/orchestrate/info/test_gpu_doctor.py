"""doctor --device cuda: each line in the order of checking, on machines that a stand-in for NVML describes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from omb_py.backends.capabilities import Capabilities, Check, Inspection, usable
from omb_py.cli import main
from omb_py.engine.devices import cuda, nvml
from omb_py.errors import EnvironmentProblem
from omb_py.orchestrate.info import catalogue, gpu_doctor
from omb_py.orchestrate.info.doctor import Finding
from tests.support.capabilities import with_methods
from tests.support.machines.nvml import StandInGpu, StandInNvml, joined_by_switches

NCCL = with_methods(
    Capabilities(
        "nccl",
        devices={"cpu": "NCCL moves device memory: --device cuda", "cuda": ""},
        asynchronous=True,
        inspection=Inspection(library="NCCL", version="2.28.9"),
    ),
    checks=lambda self: [Check("  rings", True, "as they should be", device="rocm")],
)
MPI = with_methods(
    Capabilities("mpi", devices=usable("cpu", "cuda"), inspection=Inspection(library="MPICH", version="5.0")),
    checks=lambda self: [Check("  MPI on cuda", False, "no device buffers", "another build", "cuda")],
)
MOCK = Capabilities("mock", simulated=True)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine with a driver, and CuPy on it; what it has else goes into the folder in place of /sys."""
    monkeypatch.setattr(gpu_doctor, "gpu_here", lambda device: True)
    monkeypatch.setattr(cuda.CudaKind, "problem", lambda kind: "")
    return tmp_path


def report(
    monkeypatch: pytest.MonkeyPatch,
    system: Path,
    gpus: Sequence[StandInGpu],
    known: Sequence[Capabilities] = (),
    **environ: str,
) -> tuple[dict[str, list[Finding]], bool]:
    monkeypatch.setattr(nvml, "load", lambda: StandInNvml(gpus))
    findings, ok = gpu_doctor.report(known, environ, system)
    lines: dict[str, list[Finding]] = {}
    for finding in findings:
        lines.setdefault(finding.subject, []).append(finding)
        assert finding.status == "ok" or finding.fix, finding
    return lines, ok


def test_the_order_is_that_of_checking(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    for name in ("nvidia_peermem", "gdrdrv"):
        (here / "module" / name).mkdir(parents=True)
    port = here / "class/infiniband/mlx5_0/ports/1"
    port.mkdir(parents=True)
    (port / "rate").write_text("400 Gb/sec (4X NDR)\n")
    (port / "state").write_text("4: ACTIVE\n")
    lines, ok = report(monkeypatch, here, joined_by_switches(8), (MPI, NCCL, MOCK))
    order = "driver,GPU 0,GPU 1,GPU 2,GPU 3,GPU 4,GPU 5,GPU 6,GPU 7,visible to ranks,compute mode,MIG,NVLink and PCIe"
    order += ",NUMA nodes,peer access,CuPy,backend nccl,  binding native,backend mpi,  MPI on cuda,InfiniBand"
    assert list(lines) == [*order.split(","), "nvidia_peermem", "gdrdrv"] and ok
    assert lines["driver"][0].text == "570.86.10, takes programs of CUDA 12.8 and older"
    assert "GPU-00000000-0000-0000-0000-000000000010, 0000:10:00.0, gen 5 x16" in lines["GPU 0"][0].text
    assert lines["NVLink and PCIe"][0].text == "NV18 between each of the 28 pairs"
    assert lines["backend nccl"][0].text == "NCCL 2.28.9"
    assert lines["InfiniBand"][0].text == "mlx5_0 port 1: 4: ACTIVE, 400 Gb/sec (4X NDR)"
    assert [lines[name][0].status for name in ("  MPI on cuda", "nvidia_peermem", "gdrdrv")] == ["no", "ok", "ok"]


def test_what_a_machine_lacks_is_said_with_its_fix(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    (here / "class/infiniband/mlx5_0/ports/1").mkdir(parents=True)
    gpus = [StandInGpu(16, [17] * 4, compute_mode=3), StandInGpu(17, [16] * 4, mig=(1, 1)), StandInGpu(18, root=1)]
    machine = StandInNvml(gpus, peers=False)
    monkeypatch.setattr(nvml, "load", lambda: machine)
    findings, ok = gpu_doctor.report([NCCL], {}, here)
    lines = {finding.subject: finding for finding in findings}
    assert ok, "what is slow or forbidden to some is no reason against a run"
    modes = [finding for finding in findings if finding.subject == "compute mode"]
    assert [(line.status, line.text.partition(":")[0]) for line in modes] == [
        ("warn", "exclusive process"),
        ("ok", "default"),
    ]
    assert modes[0].fix == "nvidia-smi -i 0 -c DEFAULT, as root" and modes[1].text == "default: GPUs 1-2"
    assert (lines["MIG"].status, lines["MIG"].text) == ("no", "GPU 1 on, 0 instances")
    paths = [finding.text for finding in findings if finding.subject == "NVLink and PCIe"]
    assert paths == ["GPU 0: NV4 to GPU 1; SYS to GPU 2", "GPU 1: NV4 to GPU 0; SYS to GPU 2", "GPU 2: SYS to GPUs 0-1"]
    assert lines["NUMA nodes"].status == "warn"
    assert lines["peer access"].text == (
        "3 of 3 pairs go through host memory, first GPU 0 and 1: the chipset does not support it"
    )
    assert lines["InfiniBand"].status == "no" and "state unknown" in lines["InfiniBand"].text
    assert lines["gdrdrv"].fix.startswith("install GDRCopy")


def test_a_gpu_that_nobody_may_use_is_none(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    lines, ok = report(monkeypatch, here, [StandInGpu(16, compute_mode=2)], [NCCL])
    assert (lines["compute mode"][0].status, ok) == ("no", False)
    lines, ok = report(monkeypatch, here, [StandInGpu(16, compute_mode=2), StandInGpu(17)], [NCCL])
    assert ok
    assert report(monkeypatch, here, [StandInGpu(16)], [MOCK])[1] is False, "no backend has buffers there"
    lines, ok = report(monkeypatch, here, [])
    assert (lines["GPUs"][0].status, lines["peer access"][0].fix) == ("no", "mend GPUs first")


@pytest.mark.parametrize(
    ("value", "status", "text"),
    [
        ("1,0", "ok", "2 of 2: CUDA_VISIBLE_DEVICES=1,0"),
        ("GPU-00000000-0000-0000-0000-000000000011", "ok", "1 of 2: "),
        ("0,7,1", "warn", "CUDA_VISIBLE_DEVICES=0,7,1 leaves 1: '7' is no GPU here"),
        ("", "no", "CUDA_VISIBLE_DEVICES= leaves none: '' is no GPU here"),
        ("GPU-0000", "no", "leaves none: 'GPU-0000' is no GPU here"),
    ],
)
def test_what_ranks_see(monkeypatch: pytest.MonkeyPatch, here: Path, value: str, status: str, text: str) -> None:
    lines, _ = report(monkeypatch, here, joined_by_switches(2), CUDA_VISIBLE_DEVICES=value)
    (line,) = lines["visible to ranks"]
    assert line.status == status and text in line.text


def test_numa_nodes_and_mig_instances(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    folder = here / "bus/pci/devices/0000:10:00.0"
    folder.mkdir(parents=True)
    (folder / "numa_node").write_text("1\n")
    gpus = [StandInGpu(16, mig=(1, 1), instances=2), StandInGpu(17, mig=(0, 0))]
    lines, _ = report(monkeypatch, here, gpus, CUDA_VISIBLE_DEVICES="MIG-00000000-0000-0000-0000-000000000001")
    assert lines["NUMA nodes"][0].text == "1: GPU 0; unknown: GPU 1"
    assert (lines["MIG"][0].status, lines["MIG"][0].text) == ("warn", "GPU 0 on, 2 instances")
    assert lines["visible to ranks"][0].status == "ok"


@pytest.mark.parametrize("missing", ["driver", "nvidia-ml-py"])
def test_on_a_machine_without_it_every_line_says_what_to_mend(
    missing: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def gone() -> None:
        raise EnvironmentProblem("nvidia-ml-py is not installed: pip install nvidia-ml-py (the extra nvml)")

    monkeypatch.setattr(nvml, "load", gone)
    monkeypatch.setattr(gpu_doctor, "gpu_here", lambda device: missing != "driver")
    monkeypatch.setattr(catalogue, "inspected", lambda: [MPI])
    no_cupy = "--device cuda needs CuPy (no module): pip install cupy-cuda13x (or cupy-cuda12x)"
    monkeypatch.setattr(cuda.CudaKind, "problem", lambda kind: no_cupy)
    assert main("doctor --device cuda --format json".split()) == 3
    shown = json.loads(capsys.readouterr().out)
    lines = {line["subject"]: line for line in shown["findings"]}
    assert not shown["usable"] and lines[missing]["status"] == "no" and "install" in lines[missing]["fix"]
    for subject in ("GPUs", "compute mode", "MIG", "NVLink and PCIe", "NUMA nodes", "peer access"):
        assert (lines[subject]["status"], lines[subject]["fix"]) == ("no", f"mend {missing} first")
    assert lines["CuPy"]["fix"] == "pip install cupy-cuda13x (or cupy-cuda12x)"


def test_another_device_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("doctor --device coda".split()) == 2
    assert "did you mean cuda?" in capsys.readouterr().err
