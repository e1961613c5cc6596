"""Gloo on device buffers. Its messages always travel through the host; who copies is said in each row.

``staging=torch``: PyTorch takes CUDA tensors and copies by itself; its calls return when they are enqueued, so a
synchronise stands behind each. ``staging=staged``: omb-py copies, as for an MPI that takes no device buffers; so it is
where PyTorch has no such call (send and receive) or does not know the device (the simulated one).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import torch

from omb_py.backends.gloo.runner import POINT_TO_POINT, GlooRunner
from omb_py.engine.devices import Device, synchronise
from omb_py.engine.devices.buffers import DeviceBuffers, DeviceRenderer, OnDevice
from omb_py.engine.devices.memory import DeviceMemory, PlainArray
from omb_py.engine.devices.placement import on_device, spoiled
from omb_py.engine.devices.registry import find_kind
from omb_py.engine.program.benchmark import Cell, World
from omb_py.engine.program.language import Body, Node, Program, Repeat, Step, all_steps, each_body
from omb_py.engine.python_loop.loop import Render
from omb_py.errors import EnvironmentProblem

if TYPE_CHECKING:
    from omb_py.backends.gloo.session import GlooSession

_WITHOUT: Final = frozenset({"barrier", "test", "compute", "matmul", "flip", "spin", "synchronise"})
"""Steps behind which nothing is left on the stream."""


def check_torch(device: Device) -> None:
    """Let PyTorch use this device and stream. Raises EnvironmentProblem when its build does not know the GPU."""
    build = find_kind(device.kind).torch_version
    if not build:
        return
    built = getattr(torch.version, build)
    if not built or not torch.cuda.is_available():
        build = f"is built for {build.upper()} {built}" if built else "is not"
        raise EnvironmentProblem(
            f"--device {device.kind}: this PyTorch ({torch.__version__}, which {build}) sees no such GPU: pip install "
            f"torch=={torch.__version__.partition('+')[0]} with the GPU's libraries (pytorch.org says from where), or "
            "--device cpu"
        )
    torch.cuda.set_device(device.index)
    stream: Any = torch.cuda.ExternalStream
    torch.cuda.set_stream(stream(device.stream, device=device.index))


def by_torch(program: Program, kind: str) -> bool:
    """Whether PyTorch copies by itself for every step of a program, as it does in collectives alone."""
    ops = {step.op for step in all_steps(program)}
    return bool(find_kind(kind).torch_version) and not ops & POINT_TO_POINT


def waited(program: Program) -> Program:
    """The program with a synchronise behind each call that PyTorch enqueues and behind each wait."""
    return each_body(program, _add_waits)


def _add_waits(nodes: Body) -> Body:
    out: list[Node] = []
    for node in nodes:
        out.append(replace(node, body=_add_waits(node.body)) if isinstance(node, Repeat) else node)
        if not isinstance(node, Step) or node.op in _WITHOUT:
            continue
        if node.op in ("wait", "waitall"):
            out.append(synchronise("wait"))
        elif "request" not in node.operands:
            out.append(synchronise("lap"))
    return tuple(out)


class OnGpu:
    """Device memory as tensors, without a copy: the memory for a renderer of ``backends.gloo.bound``."""

    kind = "torch"

    def __init__(self, memory: DeviceMemory, nbytes: Mapping[str, int]) -> None:
        self.memory, self.nbytes = memory, nbytes

    def owner(self, name: str) -> torch.Tensor:
        """The tensor of a buffer's bytes."""
        content = PlainArray(self.memory.address(name), self.nbytes[name])
        return torch.as_tensor(content, device=f"cuda:{self.memory.device.index}")


class GlooDeviceRunner(OnDevice, GlooRunner):
    """A flat loop of torch.distributed calls on device buffers, or with copies around each call."""

    def __init__(self, session: GlooSession, program: Program, buffers: DeviceBuffers, cell: Cell) -> None:
        self.buffers = buffers
        if by_torch(program, buffers.device.kind):
            assert isinstance(buffers.memory, DeviceMemory)
            nbytes = {b.name: b.nbytes for b in program.buffers}
            self._marks = buffers.marks("torch", cell)
            super().__init__(
                session,
                on_device(spoiled(waited(program)), cell.options.get("filler", "cpu")),
                OnGpu(buffers.memory, nbytes),
            )
        else:
            self._marks = buffers.marks("staged", cell)
            world = World(session.rank, session.size, session.hosts)
            super().__init__(session, buffers.prepared(program, world, cell.options.get("filler", "cpu")), buffers.seen)

    def rendered(self, results: Mapping[tuple[str, str], float]) -> Render:
        return DeviceRenderer(self.buffers, self.renderer, results)
