"""Gloo on CUDA tensors, as far as it shows without a GPU: who copies, and that every call is waited for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from omb_py.backends.gloo.capabilities import CAPABILITIES
from omb_py.engine.measuring.host_memory import HostMemory
from omb_py.engine.program.benchmark import World
from omb_py.engine.program.language import Lap, Program, Step, walk
from omb_py.errors import EnvironmentProblem
from omb_py.options.table import make_cell, usual_cell
from omb_py.suites.registry import BENCHMARKS
from tests.support.kinds import one_of_each
from tests.support.optional import needs_torch

pytestmark = needs_torch
HERE = [b for b in BENCHMARKS.values() if not (CAPABILITIES.lacks(b, usual_cell(b)) or b.once or b.ranks.over_nodes)]


COLLECTIVES = [b for b in HERE if b.family != "pt2pt" and b.name not in ("sendrecv", "hypercube")]


def program(name: str) -> Program:
    benchmark = BENCHMARKS[name]
    cell = make_cell(benchmark, "gloo", "torch", 64, window=3)
    return benchmark.program(World(0, 2), CAPABILITIES.fitted(benchmark, cell, usual_cell(benchmark)))


@pytest.mark.parametrize("name", one_of_each(b.name for b in HERE))
def test_pytorch_copies_for_collectives_on_its_own_devices(name: str) -> None:
    from omb_py.backends.gloo.devices import by_torch

    assert by_torch(program(name), "cuda") == (BENCHMARKS[name] in COLLECTIVES)
    assert not by_torch(program(name), "sim"), "omb-py copies"


@pytest.mark.parametrize("name", one_of_each(b.name for b in COLLECTIVES if b.name != "barrier"))
def test_no_time_ends_before_what_was_enqueued_is_done(name: str) -> None:
    from omb_py.backends.gloo.devices import waited

    for stage in waited(program(name)).stages:
        pending = requested = False
        for node, _ in walk(stage.variants[0]):
            if isinstance(node, Lap):
                assert not pending, node
            elif isinstance(node, Step) and node.op == "synchronise":
                pending = False
            elif isinstance(node, Step) and node.op in ("wait", "waitall"):
                pending, requested = True, False
            elif isinstance(node, Step) and node.op not in ("barrier", "compute", "test"):
                requested |= "request" in node.operands
                pending |= "request" not in node.operands
        assert not pending and not requested


def test_a_pytorch_that_sees_no_gpu_is_refused_with_what_to_install() -> None:
    import torch

    from omb_py.backends.gloo.devices import check_torch

    device: Any = type("Device", (), {"kind": "cuda", "index": 0, "stream": 0})()
    if torch.cuda.is_available():
        check_torch(device)
        return
    with pytest.raises(EnvironmentProblem, match="sees no such GPU: pip install torch=="):
        check_torch(device)
    device.kind = "sim"
    check_torch(device)


def test_gloo_is_given_host_memory_of_a_device_that_pytorch_does_not_know() -> None:
    from omb_py.backends.gloo.session import GlooSession

    facts = {
        "kind": "sim",
        "index": 0,
        "stream": 0,
        "name": "Simulated",
        "identity": lambda: "0",
        "clocks": dict,
        "cache_bytes": 0,
    }
    device: Any = SimpleNamespace(**facts)
    rank: Any = SimpleNamespace(rank=0, size=1, hosts=("n0",), gather=lambda value: [value], share=lambda value: value)
    buffers = GlooSession._make_device_buffers(rank, device, "")
    assert isinstance(buffers.seen, HostMemory) and buffers.seen is not buffers.memory
