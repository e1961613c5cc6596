"""The GPU of a rank that trains with NCCL, by what its launcher shows it; and a PyTorch that was built with MPI."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from omb_py.errors import EnvironmentProblem
from omb_py.suites.training.settings import parse_training
from tests.support.optional import needs_torch

pytestmark = needs_torch


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The device of local rank 1 where it sees so many GPUs, and both ranks' identities are these."""
    import torch

    from omb_py.suites.training import loop

    def device(gpus: int, uuids: list[str]) -> str:
        def gather(into: list[Any], own: Any) -> None:
            assert bytes(own.tolist()).decode().strip() == uuids[1]
            for place, uuid in zip(into, uuids, strict=True):
                place.copy_(torch.tensor(list(uuid.encode().ljust(own.numel())), dtype=torch.uint8))

        monkeypatch.setenv("LOCAL_RANK", "1")
        monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
        monkeypatch.setattr(torch.cuda, "set_device", lambda index: None)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: SimpleNamespace(uuid=uuids[1]))
        monkeypatch.setattr(loop.dist, "is_nccl_available", lambda: True)
        monkeypatch.setattr(loop.dist, "get_world_size", lambda: 2)
        monkeypatch.setattr(loop.dist, "get_backend", lambda: "gloo")
        monkeypatch.setattr(loop.dist, "all_gather", gather)
        return str(loop.device_of(parse_training("mlp:backend=nccl")))

    return device


def test_a_rank_takes_its_own_gpu_or_the_only_one_that_it_is_shown(seen: Any) -> None:
    assert seen(2, ["GPU-a", "GPU-b"]) == "cuda:1"
    assert seen(1, ["GPU-a", "GPU-b"]) == "cuda:0"


@pytest.mark.parametrize("gpus", [0, 1])
def test_ranks_without_a_gpu_of_their_own_are_refused(seen: Any, gpus: int) -> None:
    with pytest.raises(EnvironmentProblem, match=f"sees {gpus} here, not one for each: use --backend gloo"):
        seen(gpus, ["GPU-a", "GPU-a"])


def test_a_torch_with_mpi_reduces_through_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for such a build: the group is asked of MPI, lies on the CPU, and the row names it."""
    import torch

    from omb_py.suites.training import loop

    asked: list[str] = []
    monkeypatch.setattr(loop.dist, "is_mpi_available", lambda: True)
    monkeypatch.setattr(loop.dist, "new_group", lambda backend: asked.append(backend) or "a group of MPI")
    training = parse_training("mlp:backend=mpi")
    assert loop.group_of(training) == "a group of MPI" and asked == ["mpi"]
    assert str(loop.device_of(training)) == "cpu"
    assert loop.library_of(training) == {"library": "torch mpi", "library_version": str(torch.__version__)}


def test_a_torch_without_mpi_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from omb_py.suites.training import loop

    monkeypatch.setattr(loop.dist, "is_mpi_available", lambda: False)
    with pytest.raises(
        EnvironmentProblem, match=r"needs a PyTorch built with MPI, which torch .* is not: use --backend"
    ):
        loop.group_of(parse_training("mlp:backend=mpi"))
