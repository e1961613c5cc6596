"""A cell of the gloo backend, ready to run as a flat Python loop of torch.distributed calls."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from omb_py.backends.gloo.errors import first_line, peers_speak_first
from omb_py.engine.native.matmul import Products
from omb_py.engine.program.benchmark import World
from omb_py.engine.program.dtypes import DTYPES
from omb_py.engine.program.groups import Group, group_of, place_in
from omb_py.engine.program.language import Blocks, Program, Region, Requests, RequestSlot, Step, request_count
from omb_py.engine.program.steps import MATMUL, base
from omb_py.engine.python_loop.loop import CompiledLoop, Names, Objects, flip_in, index_of
from omb_py.engine.python_loop.runners import FlatRunner
from omb_py.engine.session import StepFailed
from omb_py.errors import EnvironmentProblem

if TYPE_CHECKING:
    from omb_py.backends.gloo.session import GlooSession

POINT_TO_POINT: Final = frozenset({"send", "recv", "isend", "irecv"})
_OPS: Final = {
    "sum": dist.ReduceOp.SUM,
    "prod": dist.ReduceOp.PRODUCT,
    "min": dist.ReduceOp.MIN,
    "max": dist.ReduceOp.MAX,
    "band": dist.ReduceOp.BAND,
    "bor": dist.ReduceOp.BOR,
    "bxor": dist.ReduceOp.BXOR,
    "avg": dist.ReduceOp.AVG,
}
_FUNCTIONS: Final[dict[str, tuple[str, ...]]] = {
    "barrier": ("barrier",),
    "bcast": ("broadcast",),
    "reduce": ("reduce",),
    "allreduce": ("all_reduce",),
    "reduce_scatter": ("reduce_scatter",),
    "reduce_scatter_block": ("reduce_scatter_single", "reduce_scatter_tensor"),
    "gather": ("gather",),
    "scatter": ("scatter",),
    "allgather": ("all_gather_single", "all_gather_into_tensor"),
    "alltoall": ("all_to_all_single",),
    "alltoallv": ("all_to_all_single",),
}
"""Blocking form -> the function, and what older releases call it."""


def torch_dtype(name: str) -> torch.dtype:
    """The element type of a tensor; a char is an int8."""
    dtype: torch.dtype = getattr(torch, "int8" if name == "char" else name)
    return dtype


def function_of(op: str) -> object:
    """The function of torch.distributed that does a blocking step. Raises EnvironmentProblem when it is missing."""
    for name in _FUNCTIONS[op]:
        if hasattr(dist, name):
            return getattr(dist, name)
    raise EnvironmentProblem(f"torch {torch.__version__} has no distributed.{_FUNCTIONS[op][0]}: use a newer PyTorch")


class GlooRenderer:
    """Renders the steps of one cell as Python statements."""

    def __init__(
        self,
        rank: int,
        size: int,
        memory: Any,
        program: Program,
        groups: Mapping[Group, dist.ProcessGroup] | None = None,
    ) -> None:
        self.world, self.memory, self.groups = World(rank, size), memory, groups or {}
        self.nbytes = {buffer.name: buffer.nbytes for buffer in program.buffers}
        self.copies = max(stage.copies for stage in program.stages)
        self.requests: list[dist.Work | None] = [None] * request_count(program)
        self._objects = Objects(self.nbytes, self.copies)
        self._products = Products(memory, torch=True)

    def __call__(self, step: Step, names: Names, k: str) -> str:
        """One statement for a step (:data:`omb_py.engine.python_loop.loop.Render`)."""
        if step.op == "flip":
            return flip_in(step, names, self.memory.view(step["recv"].buffer, self.nbytes[step["recv"].buffer]))
        if step.op == "wait":
            return f"{self.slot(step['request'], names, k)}.wait()"
        if step.op == "test":
            return f"{self.slot(step['request'], names, k)}.is_completed()"
        if step.op == "waitall":
            group: Requests = step["requests"]
            part = "" if group == Requests(0, len(self.requests)) else f"[{group.first}:{group.first + group.count}]"
            return f"for w in {names.bind(self.requests, 'q')}{part}: w.wait()"
        if step.op in POINT_TO_POINT:
            words = [self.tensor(step, "send" if step.op.endswith("send") else "recv", names, k)]
            words += [str(step["peer"]), "None", str(step["tag"])]
            call = f"{names.bind(getattr(dist, step.op), step.op)}({', '.join(words)})"
            return f"{self.slot(step['request'], names, k)} = {call}" if "request" in step.operands else call
        if step.op == MATMUL:
            return self._products.text(step, names)
        op = base(step.op)
        if op not in _FUNCTIONS:
            raise EnvironmentProblem(f"Gloo has no {op}: use --backend mpi")
        words, before = self.arguments(step, op, names, k)
        name, ranks = names.bind(function_of(op), op), group_of(step)
        if ranks or "request" in step.operands:
            words += ["None"] * (2 if op == "alltoall" else 0)  # the splits, which it has none of
            words.append(names.bind(self.groups[ranks], "g") if ranks else "None")
        if "request" in step.operands:
            return f"{before}{self.slot(step['request'], names, k)} = {name}({', '.join([*words, 'True'])})"
        return f"{before}{name}({', '.join(words)})"

    def arguments(self, step: Step, op: str, names: Names, k: str) -> tuple[list[str], str]:
        """Positional arguments up to the group; and the copy before a call that has its in-place form alone."""
        root: int = step.operands.get("root", -1)  # type: ignore[assignment]
        group = group_of(step)
        if group and root >= 0:
            root = group[root]  # torch.distributed names roots by their rank in the world
        reduction = [names.bind(_OPS[step["op"]], "op")] if "op" in step.operands else []
        if op == "barrier":
            return [], ""
        if op == "bcast":
            return [self.tensor(step, "buf", names, k), str(root)], ""
        if op in ("allreduce", "reduce"):
            operand = "recv" if op == "allreduce" or root == self.world.rank else "send"
            tensor, before = self.tensor(step, operand, names, k), ""
            if operand == "recv" and "in_place" not in step.operands:
                before = f"{tensor}.copy_({self.tensor(step, 'send', names, k)}); "
            return [tensor, *([str(root)] if op == "reduce" else []), *reduction], before
        send, recv = self.tensor(step, "send", names, k), self.tensor(step, "recv", names, k)
        if op == "gather":
            return [send, self.blocks(step, "recv", names, k) if root == self.world.rank else "None", str(root)], ""
        if op == "scatter":
            return [recv, self.blocks(step, "send", names, k) if root == self.world.rank else "None", str(root)], ""
        if op == "reduce_scatter":
            return [recv, self.blocks(step, "send", names, k), *reduction], ""
        splits = []
        if op == "alltoallv":
            item = DTYPES[step["dtype"]].itemsize
            splits = [names.bind([n // item for n in step[end].sizes], "n") for end in ("recv", "send")]
        return [recv, send, *splits, *reduction], ""

    def slot(self, request: RequestSlot, names: Names, k: str) -> str:
        """The element of the request list."""
        return f"{names.bind(self.requests, 'q')}[{index_of(request, k)}]"

    def tensor(self, step: Step, word: str, names: Names, k: str) -> str:
        """The tensor of a region: the same object every time, one for each pass or copy where it moves."""
        region: Region | Blocks = step[word]
        return self._objects.text(region, (region, step["dtype"]), names, k, lambda at: self._tensor(at, step["dtype"]))

    def blocks(self, step: Step, word: str, names: Names, k: str) -> str:
        """The list of tensors, one for each rank, that a region consists of."""
        region: Region = step[word]
        ranks, item = place_in(step, self.world).size, DTYPES[step["dtype"]].itemsize
        even = (region.nbytes // item // ranks,) * ranks
        counts: tuple[int, ...] = step["counts"] if "counts" in step.operands else even
        return self._objects.text(
            region, (region, step["dtype"], counts), names, k, lambda at: self._blocks(at, step["dtype"], counts)
        )

    def _tensor(self, region: Region | Blocks, dtype: str) -> torch.Tensor:
        start = region.offset if isinstance(region, Region) else min(region.offsets, default=0)
        if self.memory.kind == "torch":
            buffer = self.memory.owner(region.buffer)
        else:
            buffer = torch.from_numpy(self.memory.view(region.buffer, self.nbytes[region.buffer]))
        part: torch.Tensor = buffer[start : start + region.nbytes].view(torch_dtype(dtype))
        return part

    def _blocks(self, region: Region, dtype: str, counts: tuple[int, ...]) -> list[torch.Tensor]:
        item = DTYPES[dtype].itemsize
        ends = accumulate((n * item for n in counts), initial=region.offset)
        return [self._tensor(Region(region.buffer, a, b - a), dtype) for a, b in pairwise(ends)]


class GlooRunner(FlatRunner):
    """Implements :class:`omb_py.engine.session.Runner`."""

    session: GlooSession

    def __init__(self, session: GlooSession, program: Program, memory: Any) -> None:
        if program.window is not None:
            raise EnvironmentProblem("Gloo has no one-sided operations: use --backend mpi")
        super().__init__(session, program, memory)

    def begin(self) -> None:
        session = self.session
        self.renderer = GlooRenderer(session.rank, session.size, self.memory_, self.program, session.groups)

    def execute(self, loop: CompiledLoop, first: int, iterations: int) -> NDArray[np.int64]:
        try:
            with peers_speak_first():
                return loop.run(first, iterations)
        except (RuntimeError, ValueError) as error:
            raise StepFailed(loop.failed_step(error), 0, first_line(error)) from error
