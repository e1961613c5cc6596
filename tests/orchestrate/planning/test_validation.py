"""Words of a request: nearest choices, and what is known but not to be had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omb_py.backends import registry
from omb_py.backends.capabilities import Backend, Capabilities, usable
from omb_py.backends.registry import capabilities_of
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.options.request import Request
from omb_py.orchestrate.planning import validation
from omb_py.orchestrate.planning.validation import check_choices

ONE_LINE = r"^[^\n]+$"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"backends": ("mpich",)}, "unknown backend 'mpich': did you mean mpi?"),
        ({"backends": ()}, "no backend given"),
        ({"backends": ("mpi", "mpi")}, "backend 'mpi' is given twice"),
        ({"bindings": ("mpi4pi",)}, "unknown binding 'mpi4pi' for backend mpi: did you mean mpi4py?"),
        ({"backends": ("mock",), "bindings": ("mpi4py",)}, "unknown binding 'mpi4py' for backend mock: valid: native"),
        ({"device": "cdua"}, "unknown device 'cdua': did you mean cuda?"),
        ({"buffer": "nunpy"}, "unknown buffer 'nunpy' for backend mpi: did you mean numpy?"),
        ({"op": "summ"}, "unknown operation 'summ': did you mean sum?"),
        ({"process_sync": "barier"}, "did you mean barrier?"),
        ({"thread_level": "multi"}, "did you mean multiple?"),
        ({"format": "jsn"}, "unknown format 'jsn': did you mean json?"),
        ({"launcher": "mpirun"}, "unknown launcher 'mpirun'"),
        ({"dtypes": ("flot32",)}, "unknown type 'flot32': did you mean float32?"),
    ],
)
def test_unknown_words(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=ONE_LINE) as caught:
        check_choices(Request("allreduce", **fields), capabilities_of())
    assert says in str(caught.value)


@pytest.mark.parametrize(("device", "maker"), [("cuda", "NVIDIA"), ("rocm", "AMD")])
def test_devices(device: str, maker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "gpu_here", lambda device: False)
    with pytest.raises(EnvironmentProblem, match=f"no {maker} GPU found here .* use --device cpu"):
        check_choices(Request("allreduce", device=device), capabilities_of())
    for elsewhere in ({"hosts": ("n1", "n2")}, {"launcher": "srun"}, {"launcher": "flux"}):  # a login node has no GPU
        check_choices(Request("allreduce", device=device, **elsewhere), capabilities_of())
    with monkeypatch.context() as job:
        job.setenv("SLURM_JOB_ID", "7")
        check_choices(Request("allreduce", device=device), capabilities_of())
    monkeypatch.setattr(validation, "gpu_here", lambda device: True)
    check_choices(Request("allreduce", device=device), capabilities_of())
    with pytest.raises(EnvironmentProblem, match=f"backend mock has no buffers on {device}: use --device cpu"):
        check_choices(Request("allreduce", backends=("mock",), device=device), capabilities_of())


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"timing": "event"}, "leave it out, or --backend nccl"),
        ({"backends": ("nccl",), "device": "sim", "timing": "evnt"}, "unknown timing 'evnt': did you mean event?"),
        ({"backends": ("nccl",), "device": "sim", "batch": 5}, "--batch is for --timing graph, pipelined, spin-gated"),
        ({"backends": ("nccl",), "device": "sim", "process_sync": "roundtime"}, "barrier or none"),
        ({"backends": ("nccl",), "device": "sim", "format": "nccl-tests", "timing": "event"}, "times pipelined"),
        ({"format": "nccl-tests"}, "--backend nccl, or table"),
        ({"share_device": True}, "--share-device is for ranks on devices"),
        ({"device": "sim", "buffer": "bytearray"}, "lies on the host"),
        ({"filler": "gpu"}, "-r gpu computes on a device: add --device"),
        ({"filler": "gpus", "device": "sim"}, "unknown filler 'gpus': did you mean gpu?"),
        ({"placement": "H D"}, "buffers H D are on a device: add --device"),
        ({"placement": "H D", "device": "sim"}, "allreduce has buffers of one kind on all ranks, not H D"),
        ({"placement": "M MX", "device": "sim"}, "unknown buffer place 'MX'"),
        ({"placement": "M M", "device": "sim", "buffer": "cupy"}, "are not of --buffer cupy"),
        ({"buffer": "cupy"}, "unknown buffer 'cupy' for backend mpi"),
        ({"staging": "nver", "device": "sim"}, "unknown staging 'nver': did you mean never?"),
    ],
)
def test_what_goes_with_a_device(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=ONE_LINE) as caught:
        check_choices(Request("allreduce", **fields), capabilities_of())
    assert says in str(caught.value)


def test_nccl_has_no_buffers_on_the_host() -> None:
    with pytest.raises(EnvironmentProblem, match="no buffers on cpu: use --device cuda or rocm"):
        check_choices(Request("allreduce", backends=("nccl",)), capabilities_of())


def test_a_gpu_is_seen_by_its_driver() -> None:
    assert validation.gpu_here("cuda", exists=lambda path: path == Path("/dev/nvidiactl"))
    assert not validation.gpu_here("cuda", exists=lambda path: path == Path("/dev/kfd"))
    assert validation.gpu_here("rocm", exists=lambda path: path == Path("/dev/kfd"))


def test_backends_of_installed_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    other = Backend(Capabilities("ucx", bindings=usable("ucxx")), lambda spec: pytest.fail())
    monkeypatch.setattr(registry, "backends", lambda: {**registry.ours(), "ucx": other})
    offers = capabilities_of(["ucx"])
    assert offers["ucx"] is other.capabilities
    check_choices(Request("allreduce", backends=("ucx",), bindings=("ucxx",)), offers)
    assert "ucx" not in capabilities_of(["mpi", "nccl"]), "known names need no look at installed packages"
