"""The native binding's UCC calls: a collective is initialised, posted, awaited and finalised.

So do UCC's own programs (ucc.h, *Collective Operations*). A persistent operation is initialised once and then posted.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from typing import Final

from omb_py.backends.ucc.library import Teams, UccLibrary
from omb_py.backends.ucc.structures import (
    COLLECTIVES,
    HAS_FLAGS,
    IN_PLACE,
    IN_PROGRESS,
    OPS,
    PERSISTENT,
    WIDE_COUNTS,
    BlocksInfo,
    BufferInfo,
    CollectiveArguments,
    datatype,
)
from omb_py.engine.measuring.host_memory import ProgramMemory
from omb_py.engine.native import opcodes
from omb_py.engine.native.translate import Arg, NativeCall
from omb_py.engine.program.datatype_layouts import itemsize
from omb_py.engine.program.groups import group_of
from omb_py.engine.program.language import Blocks, Program, Region, RequestSlot, Step, request_count, templates
from omb_py.engine.program.steps import MATMUL, base
from omb_py.engine.samples import address_of_array
from omb_py.errors import EnvironmentProblem

_HANDLE: Final = 8
"""Bytes of a ucc_coll_req_h, whose first word is the status of the operation."""
_BYTES: Final = ctypes.sizeof(CollectiveArguments)


class UccResolver:
    """Turns steps of one cell into C calls.

    Args:
        memory: where the buffers lie.
        program: of this rank; it says how many requests there are, and which are persistent.
    """

    def __init__(self, library: UccLibrary, teams: Teams, memory: ProgramMemory, program: Program) -> None:
        self.library, self.teams, self.memory = library, teams, memory
        self._nbytes = {buffer.name: buffer.nbytes for buffer in program.buffers}
        self._copies = max(stage.copies for stage in program.stages)
        self._own = request_count(program)
        """The slot of a call that blocks, after those of the program."""
        self._requests = array("q", [0]) * (self._own + 1)
        self._persistent = {slot for stage in program.stages for slot in templates(stage)}
        self._kept: list[object] = []
        """What calls are given the addresses of."""

    def __call__(self, step: Step) -> NativeCall | Sequence[NativeCall]:
        """The C calls of a step. Raises EnvironmentProblem when the library lacks it."""
        op = step.op
        if op == MATMUL:
            from omb_py.engine.native import matmul  # with NumPy

            return matmul.call(step, self.memory)
        if op in ("wait", "start", "free"):
            return self._call_request(op, step["request"])
        if op in ("waitall", "startall"):
            slots = range(step["requests"].first, step["requests"].first + step["requests"].count)
            return [call for slot in slots for call in self._call_request(op.removesuffix("all"), RequestSlot(slot))]
        if op == "test":
            return self._call("ucc_context_progress", Arg(self.teams.context.value or 0))
        blocking = op if "request" not in step.operands else base(op)
        if blocking not in COLLECTIVES:
            raise EnvironmentProblem(f"backend ucc cannot do {op}")
        request = step["request"] if "request" in step.operands else RequestSlot(self._own)
        persistent = op.endswith("_init")
        where = self._request(request)
        begin = self._call(
            "ucc_collective_init",
            self._arguments(step, blocking, persistent),
            Arg(where.base, where.stride),
            Arg(self.teams.handle_of(group_of(step))),
        )
        if persistent:
            return begin
        calls = [begin, self._call("ucc_collective_post", where)]
        return calls if "request" in step.operands else [*calls, *self._call_request("wait", request)]

    def byte(self, step: Step) -> int:
        """Address of the byte that a ``flip`` step inverts."""
        region: Region = step["recv"]
        return self.memory.address(region.buffer) + region.offset

    def _call(self, function: str, *args: Arg) -> NativeCall:
        return NativeCall(self.library.address_of(function), args)

    def _request(self, slot: RequestSlot) -> Arg:
        """A request by value: it is known only when the step runs."""
        start = address_of_array(self._requests) + slot.index * _HANDLE
        return Arg(start, slot.stride * _HANDLE, load=_HANDLE)

    def _call_request(self, op: str, slot: RequestSlot) -> tuple[NativeCall, ...]:
        request = self._request(slot)
        if op == "start":
            return (self._call("ucc_collective_post", request),)
        finalise = self._call("ucc_collective_finalize", request)
        if op == "free":
            return (finalise,)
        address = self.library.address_of("ucc_context_progress")
        context = Arg(self.teams.context.value or 0)
        poll = NativeCall(address, (context, request, Arg(IN_PROGRESS)), opcodes.POLL)
        return (poll,) if slot.index in self._persistent else (poll, finalise)

    def _arguments(self, step: Step, op: str, persistent: bool) -> Arg:
        """The address of what a call is about: one structure for each pass and copy in which its regions move."""
        regions = [where for where in step.operands.values() if isinstance(where, (Region, Blocks))]
        strides = [where for where in regions if isinstance(where, Region) and where.stride]
        turns = max((where.turn for where in regions), default=0)
        passes = min(map(self._passes, strides), default=1)
        flags = (PERSISTENT if persistent else 0) | (IN_PLACE if "in_place" in step.operands else 0) | WIDE_COUNTS
        given = (CollectiveArguments * (passes * (self._copies if turns else 1)))()
        for number, arguments in enumerate(given):
            arguments.mask, arguments.flags = HAS_FLAGS, flags
            arguments.coll_type = 1 << COLLECTIVES[op]
            if "root" in step.operands:
                arguments.root = step["root"]
            if "op" in step.operands:
                arguments.op = OPS[step["op"]]
            self._fill(arguments, step, op, *divmod(number, passes))
        self._kept.append(given)
        return Arg(ctypes.addressof(given), _BYTES if strides else 0, turn=_BYTES * passes if turns else 0)

    def _passes(self, region: Region) -> int:
        """How often a region may move on within its buffer."""
        room = self._nbytes[region.buffer] - (self._copies - 1) * region.turn - region.offset - region.nbytes
        return int(room // region.stride) + 1

    def _fill(self, arguments: CollectiveArguments, step: Step, op: str, copy: int, number: int) -> None:
        scatters = op.startswith("reduce_scatter")
        for end, word in (("src", "send"), ("src", "buf"), ("dst", "recv")):
            if scatters and end == "dst" and "in_place" in step.operands:
                word = "send"  # the whole vector, in which each rank's block is replaced
            if word not in step.operands:
                continue
            where: Region | Blocks = step[word].at(number).copy(copy)
            item, start = itemsize(step["dtype"]), self.memory.address(where.buffer)
            info = getattr(arguments, end)
            if isinstance(where, Blocks):
                info.info_v = self._blocks(start, where.sizes, where.offsets, step["dtype"])
            elif op == "reduce_scatter" and end == "dst":
                sizes = tuple(count * item for count in step["counts"])
                info.info_v = self._blocks(start + where.offset, sizes, Blocks.packed("", sizes).offsets, step["dtype"])
            else:
                info.info = BufferInfo(start + where.offset, where.nbytes // item, datatype(step["dtype"]))

    def _blocks(self, start: int, sizes: Sequence[int], offsets: Sequence[int], dtype: str) -> BlocksInfo:
        item = itemsize(dtype)
        numbers = [array("Q", [nbytes // item for nbytes in values]) for values in (sizes, offsets)]
        self._kept += numbers
        return BlocksInfo(start, *map(address_of_array, numbers), datatype(dtype))
