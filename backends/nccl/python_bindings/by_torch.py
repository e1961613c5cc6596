"""Binding ``torch``: torch.distributed over its process group of NCCL.

On the simulated device, of which NCCL knows nothing, the process group is Gloo's: its functions and arguments are the
same, and data really moves.
"""

from __future__ import annotations

import ctypes
import gc
import os
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from omb_py.backends.gloo.errors import first_line
from omb_py.backends.gloo.rendezvous import WORKING, RankSite, opened
from omb_py.backends.gloo.runner import GlooRenderer, torch_dtype
from omb_py.backends.nccl.communicators import environment_of
from omb_py.backends.nccl.library import version_of
from omb_py.backends.nccl.options import changed
from omb_py.backends.nccl.python_bindings.bound import Binding, Statements
from omb_py.engine.devices.memory import PlainArray
from omb_py.engine.devices.registry import SIMULATED
from omb_py.engine.measuring.host_memory import HostMemory
from omb_py.engine.program.language import Blocks, Body, Node, Program, Region, Repeat, Stage, Step, walk
from omb_py.engine.python_loop.loop import Names
from omb_py.errors import EnvironmentProblem

if TYPE_CHECKING:
    from omb_py.backends.nccl.calls import NcclResolver
    from omb_py.backends.nccl.options import Settings
    from omb_py.backends.nccl.session import NcclSession

ONE_CALL = frozenset({"alltoall", "alltoallv", "gather", "scatter", "reduce_scatter"})
"""Steps that are one call of torch.distributed, whatever NCCL has."""


LIBRARIES = ("libtorch_cuda.so", "libtorch_hip.so")
"""PyTorch's libraries that call NCCL or RCCL: they call the one that they depend on."""


def loaded_version() -> str:
    """Version of the NCCL that PyTorch calls here. PyTorch itself gives that of its build, which may be another."""
    for name in LIBRARIES:
        number = ctypes.c_int()
        try:
            ctypes.CDLL(name, os.RTLD_NOLOAD).ncclGetVersion(ctypes.byref(number))
        except (OSError, AttributeError):  # not loaded, or NCCL is a hidden part of it
            continue
        return ".".join(map(str, version_of(number.value)))
    return ".".join(map(str, import_module("torch.cuda.nccl").version()))


def options(settings: Settings) -> dict[str, object]:
    """Arguments of ``init_process_group`` for settings of NCCL's own."""
    if not settings.min_ctas and not settings.max_ctas:
        return {}
    group_options = dist.ProcessGroupNCCL.Options()
    if settings.min_ctas:
        group_options.config.min_ctas = settings.min_ctas
    if settings.limit:
        group_options.config.max_ctas = settings.limit
    return {"pg_options": group_options}


class _Tensors(GlooRenderer):
    """The statements of the gloo backend, over tensors in device memory."""

    def __init__(self, session: NcclSession, program: Program) -> None:
        super().__init__(session.rank, session.size, HostMemory("torch"), program)
        self.session = session

    def _tensor(self, region: Region | Blocks, dtype: str) -> torch.Tensor:
        start = region.offset if isinstance(region, Region) else min(region.offsets, default=0)
        content = tensor_at(self.session.memory.address(region.buffer) + start, region.nbytes, self.session.device)
        return content.view(torch_dtype(dtype))


def tensor_at(address: int, nbytes: int, device: Any) -> torch.Tensor:
    """Bytes of a device's memory as a tensor of uint8, not copied."""
    if device.kind != SIMULATED:
        return torch.as_tensor(PlainArray(address, nbytes), device=torch.device("cuda", device.index))
    if not nbytes:
        return torch.empty(0, dtype=torch.uint8)
    return torch.frombuffer((ctypes.c_uint8 * nbytes).from_address(address), dtype=torch.uint8)


class TorchStatements(Statements):
    """``all_reduce(tensor, SUM)``; a group of sends and receives is a ``batch_isend_irecv``."""

    def __init__(self, session: NcclSession, program: Program, resolver: NcclResolver, binding: TorchBinding) -> None:
        super().__init__(session, program, resolver, binding)
        self.tensors = _Tensors(session, program)
        self._groups: list[list[Step]] = []

    def prepared(self, stage: Stage) -> Stage:
        """Each group of sends and receives as one step, which knows all of them."""
        return replace(stage, variants=tuple(self._collect_groups(body) for body in stage.variants))

    def _collect_groups(self, nodes: Body) -> Body:
        out: list[Node] = []
        group: list[Node] | None = None
        for node in nodes:
            if isinstance(node, Step) and node.op == "group_start":
                group = []
            elif isinstance(node, Step) and node.op == "group_end" and group is not None:
                messages = [_select_pass(step, k) for step, k in walk(tuple(group)) if isinstance(step, Step)]
                self._groups.append(messages)
                out.append(Step("exchange", {"group": len(self._groups) - 1, "messages": len(messages)}))
                group = None
            elif group is not None:
                group.append(node)
            elif isinstance(node, Repeat) and any(isinstance(n, Step) and n.op == "group_start" for n in node.body):
                for k in range(node.times):  # each pass with messages of its own
                    out += self._collect_groups(
                        tuple(_select_pass(n, k) if isinstance(n, Step) else n for n in node.body)
                    )
            elif isinstance(node, Repeat):  # groups deeper down move on with the repeat next to them alone
                out.append(Repeat(node.times, self._collect_groups(node.body)))
            else:
                out.append(node)
        return tuple(out)

    def communication(self, step: Step, names: Names, k: str) -> str:
        if step.op == "exchange":
            return self._exchange(self._groups[step["group"]], names)
        # a call that waits is enqueued on our stream: what stands for the wait is a synchronise of it
        plain = {name: value for name, value in step.operands.items() if name != "request"}
        return self.tensors(Step(step.op, plain), names, k)

    def _exchange(self, messages: list[Step], names: Names) -> str:
        """A batch. A rank copies its messages to itself, which torch refuses; empty messages are left out."""
        me = self.session.rank
        copies = self.tensors.copies
        lists: list[list[object]] = []
        for number in range(copies):
            parts: dict[bool, list[torch.Tensor]] = {True: [], False: []}
            batch = []
            for step in messages:
                sends = step.op == "send"
                region: Region = step["send" if sends else "recv"]
                if not region.nbytes:
                    continue
                tensor = self.tensors._tensor(region.copy(number), str(step["dtype"]))
                if step["peer"] == me:
                    parts[sends].append(tensor)
                else:
                    batch.append(dist.P2POp(dist.isend if sends else dist.irecv, tensor, step["peer"]))
            lists.append([batch, list(zip(parts[False], parts[True], strict=True))])
        arguments = names.bind(lists, "g") + ("[c]" if copies > 1 else "[0]")
        return f"{names.bind(exchange, 'exchange')}(*{arguments})"


def exchange(batch: list[Any], own: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
    """Send and receive, and wait as our stream does."""
    for into, out in own:
        into.copy_(out)
    if batch:
        for work in dist.batch_isend_irecv(batch):
            work.wait()


def _select_pass(step: Step, k: int) -> Step:
    return Step(step.op, {n: v.at(k) if isinstance(v, Region) else v for n, v in step.operands.items()})


class TorchBinding(Binding):
    """The default process group, made together with all other ranks. Raises EnvironmentProblem."""

    name, statements = "torch", TorchStatements

    def __init__(self, session: NcclSession, settings: Settings) -> None:
        simulated = session.device.kind == SIMULATED
        if simulated and (settings_changed := changed(settings)):
            raise EnvironmentProblem(
                f"binding torch is Gloo on the simulated device, which takes no {', '.join(settings_changed)}"
            )
        if not simulated and not dist.is_nccl_available():
            raise EnvironmentProblem("binding torch: this PyTorch was built without NCCL: --binding native")
        meeting = opened(
            session.rank,
            RankSite(len(set(session.hosts)) == 1, session.hosts[0]),
            lambda point: session.share(point or {}),
        )
        more: dict[str, Any] = {}
        if not simulated:
            torch.cuda.set_device(session.device.index)
            cuda: Any = torch.cuda  # of which parts have no types
            cuda.set_stream(cuda.ExternalStream(session.device.stream))  # what runs here runs on our stream
            more |= {"device_id": torch.device("cuda", session.device.index), **options(settings)}
        try:
            with environment_of(settings):  # with a device_id the communicator is made here and now
                dist.init_process_group(
                    "gloo" if simulated else "nccl",
                    rank=session.rank,
                    world_size=session.size,
                    store=meeting,
                    timeout=WORKING,
                    **more,
                )
        except (RuntimeError, ValueError) as error:
            raise EnvironmentProblem(
                f"init_process_group failed: {first_line(error)}: NCCL_DEBUG=WARN says more"
            ) from None
        self.version = f"torch {torch.__version__}"
        self.library_version = "none: Gloo on the simulated device" if simulated else loaded_version()

    def has(self, op: str) -> bool:
        """torch.distributed has these as functions; what they are made of is its own."""
        return op in ONE_CALL

    def abort(self) -> None:
        """torch's own watchdog ends its process group, and the process with it."""

    def destroy(self) -> None:
        """Leave the process group, to which nothing may refer any more."""
        dist.destroy_process_group()
        gc.collect()
