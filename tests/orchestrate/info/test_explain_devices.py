"""explain --device: launch lines of two nodes with eight GPUs each, and the GPU of each rank with its reason."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from omb_py.cli import main
from omb_py.engine.devices import nvml
from omb_py.engine.devices.kind import choose_device
from omb_py.engine.rank.launcher_variables import local_rank
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.launchers.mpiexec_family import MPICH, OPEN_MPI
from omb_py.orchestrate.info.explain_devices import before_launch, count_here, of_rank
from omb_py.orchestrate.launching.launch_command import command_for
from tests.launchers.test_launchers import context
from tests.launchers.test_mpiexec import program
from tests.support.machines.gpu_launches import EACH, LAUNCHES, NODES, RANKS, GpuLaunch
from tests.support.machines.nvml import StandInNvml, joined_by_switches

WORDS = ["omb-py", "allreduce"]
OWN: Any = [
    ("mpiexec", OPEN_MPI, {}, "mpiexec -n 16 --bind-to none --host n1:8,n2:8 -x ", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("mpiexec", MPICH, {}, "mpiexec -n 16 -bind-to none -hosts n1:8,n2:8 omb-py", "MPI_LOCALRANKID"),
    ("srun", MPICH, {"SLURM_JOB_ID": "7"}, "srun -n 16 --kill-on-bad-exit=1 --export=ALL ", "SLURM_LOCALID"),
    (
        "flux",
        MPICH,
        {},
        "flux run -n 16 -N 2 --requires=host:n1,n2 -g1 -ocpu-affinity=off omb-py",
        "FLUX_TASK_LOCAL_ID",
    ),
]


@pytest.mark.parametrize("launch", LAUNCHES, ids=lambda launch: launch.name)
def test_what_is_explained_is_what_the_session_does(launch: GpuLaunch) -> None:
    """The device that :func:`omb_py.engine.devices.open_device` takes, from the same variables."""
    for rank, environ in enumerate(launch.environments()):
        line = of_rank(environ, "cuda", EACH)
        visible = len(environ.get("CUDA_VISIBLE_DEVICES", ",".join("01234567")).split(","))
        index = choose_device(local_rank(environ), visible, "cuda")
        assert line.startswith(f"rank {rank} of {RANKS}: local rank {rank % EACH} by ")
        assert f"→ cuda:{index}" in line


@pytest.mark.parametrize(("name", "vendor", "around", "beginning", "variable"), OWN)
def test_our_own_launch_lines(
    name: str, vendor: str, around: dict[str, str], beginning: str, variable: str, tmp_path: Path
) -> None:
    program(tmp_path / name, "")
    machine = context(tmp_path, vendor, **around)
    command = command_for(name, WORDS, RANKS, hosts=NODES, bind=False, gpus="own", machine=machine)
    line, by, *ranks, last = before_launch(command, NODES, RANKS, "cuda", EACH).splitlines()
    assert line.startswith(f"launch line   {beginning}") and by.startswith(f"local rank    by {variable} of ")
    assert ranks == [
        "ranks 0-7     on n1: cuda:0 to cuda:7, by local rank",
        "ranks 8-15    on n2: cuda:0 to cuda:7, by local rank",
    ]
    assert "UUIDs" in last


@pytest.mark.parametrize(
    ("gpus", "extra", "word"),
    [("own", (), "-g1"), ("shared", (), "-ogpu-affinity=off"), ("own", ("-g", "2"), ""), ("none", (), "")],
)
def test_flux_gives_gpus_to_those_alone_that_ask(gpus: Any, extra: tuple[str, ...], word: str, tmp_path: Path) -> None:
    program(tmp_path / "flux", "")
    command = command_for("flux", WORDS, 2, gpus=gpus, extra=extra, machine=context(tmp_path, MPICH))
    ours = [one for one in command.words if one in ("-g1", "-ogpu-affinity=off")]
    assert ours == ([word] if word else [])


def test_hosts_are_filled_one_after_the_other(tmp_path: Path) -> None:
    command = command_for("mpiexec", WORDS, 6, machine=context(tmp_path, MPICH))
    text = before_launch(command, ("a:4", "b:1", "c"), 6, "rocm", 2)
    assert "ranks 0-3     on a: rocm:0 to rocm:1, by local rank; they share 2 GPUs: exit 3 without --share" in text
    assert "rank 4        on b: rocm:0\n" in text and "rank 5        on c: rocm:0\n" in text
    with pytest.raises(UsageError, match="--hosts has room for 2 of 6 ranks"):
        before_launch(command, ("a:1", "b:1"), 6, "cuda", 2)


def test_a_rank_that_sees_no_gpu_or_has_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EnvironmentProblem, match="CUDA_VISIBLE_DEVICES=-1 hides all GPUs"):
        of_rank({"PMI_RANK": "1", "CUDA_VISIBLE_DEVICES": "-1"}, "cuda", 8)
    with pytest.raises(EnvironmentProblem, match="no GPU here"):
        of_rank({"PMI_RANK": "1"}, "cuda", 0)
    assert of_rank({"PMIX_RANK": "4"}, "cuda", 8) == (
        "rank 4: a PMIx launcher names no local rank, so 0; sees 8 GPUs → cuda:0"
    )
    uuid = {"PMI_RANK": "1", "MPI_LOCALRANKID": "1", "CUDA_VISIBLE_DEVICES": "5,GPU-12ab"}
    assert of_rank(uuid, "cuda", 8).endswith(
        "sees 2 GPUs (CUDA_VISIBLE_DEVICES=5,GPU-12ab) → cuda:1, named GPU-12ab there"
    )
    monkeypatch.setattr(nvml, "load", lambda: StandInNvml(joined_by_switches(4)))
    assert count_here("cuda", {}) == 4
    monkeypatch.setattr(nvml, "load", lambda: StandInNvml([], driver=False))
    assert count_here("cuda", {"CUDA_VISIBLE_DEVICES": "0"}) == 0
    with pytest.raises(EnvironmentProblem, match="say how many with --gpus N"):
        count_here("cuda", {})


def test_the_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("PMI", "OMPI", "SLURM", "MPI_", "FLUX", "PMIX"))]:
        monkeypatch.delenv(name)
    assert main("explain allreduce --backend nccl -d cuda -n 16 --hosts n1,n2 --gpus 8".split()) == 0
    out = capsys.readouterr().out
    assert "| allreduce 8 B int32 sum" in out and "ranks 8-15    on n2: cuda:0 to cuda:7, by local rank\n" in out
    assert main("explain allreduce --gpus 8".split()) == 2
    assert "add --device" in capsys.readouterr().err
    assert main("explain allreduce --backend mock -d cuda --gpus 8".split()) == 3
    assert "backend mock has no buffers on cuda" in capsys.readouterr().err
