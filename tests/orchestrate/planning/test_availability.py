"""What this machine lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.backends import registry
from omb_py.backends.capabilities import Backend, Capabilities, usable
from omb_py.backends.registry import capabilities_of
from omb_py.errors import EnvironmentProblem
from omb_py.options.request import Request
from omb_py.orchestrate.planning import availability
from tests.support.planning import check


@pytest.mark.parametrize(("device", "maker"), [("cuda", "NVIDIA"), ("rocm", "AMD")])
def test_devices(device: str, maker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability, "gpu_here", lambda device: False)
    with pytest.raises(EnvironmentProblem, match=f"no {maker} GPU found here .* use --device cpu"):
        check(Request("allreduce", device=device))
    for elsewhere in ({"hosts": ("n1", "n2")}, {"launcher": "srun"}, {"launcher": "flux"}):  # a login node has no GPU
        check(Request("allreduce", device=device, **elsewhere))
    with monkeypatch.context() as job:
        job.setenv("SLURM_JOB_ID", "7")
        check(Request("allreduce", device=device))
    monkeypatch.setattr(availability, "gpu_here", lambda device: True)
    check(Request("allreduce", device=device))
    with pytest.raises(EnvironmentProblem, match=f"backend mock has no buffers on {device}: use --device cpu"):
        check(Request("allreduce", backends=("mock",), device=device))


def test_a_gpu_is_seen_by_its_driver() -> None:
    assert availability.gpu_here("cuda", exists=lambda path: path == Path("/dev/nvidiactl"))
    assert not availability.gpu_here("cuda", exists=lambda path: path == Path("/dev/kfd"))
    assert availability.gpu_here("rocm", exists=lambda path: path == Path("/dev/kfd"))


def test_backends_of_installed_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    other = Backend(Capabilities("ucx", bindings=usable("ucxx")), lambda spec: pytest.fail())
    monkeypatch.setattr(registry, "backends", lambda: {**registry.ours(), "ucx": other})
    offers = capabilities_of(["ucx"])
    assert offers["ucx"] is other.capabilities
    check(Request("allreduce", backends=("ucx",), bindings=("ucxx",)), offers)
    assert "ucx" not in capabilities_of(["mpi", "nccl"]), "known names need no look at installed packages"
