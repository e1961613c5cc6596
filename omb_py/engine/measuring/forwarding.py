"""What buffers hold after a body whose steps pass on what others have left: messages sent on, parts summed up.

The payload of one step says nothing of such a body. So the steps of all ranks are followed here, on memory of this
process, from known contents: what they leave is what a backend must leave. Bytes that are written before they are read
are wrong beforehand, so that a message that never comes is noticed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from omb_py.engine.measuring.payload import Bytes, contribution, from_numbers, pattern, to_numbers
from omb_py.engine.measuring.reductions import REDUCTIONS, work_type
from omb_py.engine.program.dtypes import DTYPES
from omb_py.engine.program.groups import group_of
from omb_py.engine.program.language import Body, Program, Region, RequestSlot, Step, each_node, started, walk
from omb_py.errors import UsageError

_FOLLOWED = frozenset(
    "send recv isend irecv sendrecv sendrecv_replace wait waitall test reduce_local barrier compute matmul".split()
)
_WAITS = ("recv", "wait", "waitall")
Mask = NDArray[np.bool_]
_Key = tuple[int, int, int]
"""Sender, receiver and tag of messages that arrive in the order in which they were sent."""


def can_follow(program: Program, number: int) -> bool:
    """Whether the steps of a stage can be followed: messages and local reductions, on buffers of their own."""
    stage = program.stages[number]
    if stage.check or stage.threads > 1 or stage.copies > 1 or program.window:
        return False
    steps = (node for nodes in stage.variants for node in each_node(nodes) if isinstance(node, Step))
    return all(
        step.op in _FOLLOWED and not group_of(step) and str(step.operands.get("dtype", "char")) in DTYPES
        for step in steps
    )


def passes_on(nodes: Body) -> bool:
    """Whether a message or a local reduction reads bytes that an earlier step of the body has received or reduced."""
    left: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for node, k in walk(nodes):
        for step in started(node, {}) if isinstance(node, Step) and node.op in _FOLLOWED else ():
            for region in _read(step, k):
                end = region.offset + region.nbytes
                if any(region.offset < last and first < end for first, last in left[region.buffer]):
                    return True
            if "recv" in step.operands:
                region = step["recv"].at(k)
                left[region.buffer].add((region.offset, region.offset + region.nbytes))
    return False


def _steps(nodes: Body) -> Iterator[tuple[Step, int]]:
    for node, k in walk(nodes):
        if isinstance(node, Step):
            for step in started(node, {}):
                yield step, k


def _read(step: Step, k: int) -> Iterator[Region]:
    names = ("send", "recv") if step.op == "reduce_local" else ("send",)
    return (step[name].at(k) for name in names if name in step.operands)


@dataclass(slots=True)
class _Memory:
    """The buffers of one rank, and which of their bytes were written, or read before they were written."""

    buffers: dict[str, Bytes]
    written: dict[str, Mask]
    read_first: dict[str, Mask]

    def read(self, region: Region) -> Bytes:
        at = slice(region.offset, region.offset + region.nbytes)
        self.read_first[region.buffer][at] |= ~self.written[region.buffer][at]
        return self.buffers[region.buffer][at]

    def write(self, region: Region, content: Bytes) -> None:
        at = slice(region.offset, region.offset + region.nbytes)
        self.buffers[region.buffer][at] = content
        self.written[region.buffer][at] = True


@dataclass(slots=True)
class _Messages:
    """Messages between the ranks. A receive takes its number when it is posted, as MPI matches them."""

    sent: dict[_Key, list[Bytes]] = field(default_factory=lambda: defaultdict(list))
    posted: dict[_Key, int] = field(default_factory=lambda: defaultdict(int))

    def post(self, key: _Key) -> int:
        self.posted[key] += 1
        return self.posted[key] - 1


@dataclass(frozen=True, slots=True)
class BufferContents:
    """What the buffers of a rank hold: buffer -> bytes to put there before a body, those after it, and which count."""

    before: Mapping[str, Bytes]
    after: Mapping[str, Bytes]
    written: Mapping[str, Mask]


def follow(programs: Mapping[int, Program], stage: int, iteration: int) -> dict[int, BufferContents]:
    """BufferContents of the buffers of every rank before and after an iteration of a stage.

    Raises:
        UsageError: the steps never end, because a receive has no send.
    """
    bodies = {}
    for rank, program in programs.items():
        variants = program.stages[stage].variants or ((),)
        bodies[rank] = variants[iteration % len(variants)]
    reducing = next((s for nodes in bodies.values() for s, _ in _steps(nodes) if s.op == "reduce_local"), None)
    memories = {rank: _memory(program, rank, len(programs), iteration, reducing) for rank, program in programs.items()}
    starts = {rank: {name: data.copy() for name, data in m.buffers.items()} for rank, m in memories.items()}
    messages = _Messages()
    running = {rank: _run(rank, bodies[rank], memories[rank], messages) for rank in programs}
    while running:
        before = dict(running)
        moved = False
        for rank, steps in before.items():
            for can_go_on in steps:
                if not can_go_on:
                    break
                moved = True
            else:
                moved = True
                del running[rank]
        if not moved:
            raise UsageError(f"ranks {sorted(running)} wait for messages that no step sends: correct the benchmark")
    return {rank: _contents(memory, starts[rank]) for rank, memory in memories.items()}


def _contents(memory: _Memory, start: Mapping[str, Bytes]) -> BufferContents:
    spoiled = {name: memory.written[name] & ~memory.read_first[name] for name in start}
    before = {name: np.where(spoiled[name], ~memory.buffers[name], content) for name, content in start.items()}
    return BufferContents(before, memory.buffers, memory.written)


def _memory(program: Program, rank: int, ranks: int, iteration: int, reducing: Step | None) -> _Memory:
    buffers: dict[str, Bytes] = {}
    for number, buffer in enumerate(program.buffers):
        if reducing is None:
            buffers[buffer.name] = pattern(buffer.nbytes, iteration, rank, number)
            continue
        item = DTYPES[reducing["dtype"]].itemsize
        content = contribution(
            -(-buffer.nbytes // item), reducing["dtype"], reducing["op"], ranks, rank, iteration, number
        )
        buffers[buffer.name] = content[: buffer.nbytes].copy()
    none = {name: np.zeros(data.size, bool) for name, data in buffers.items()}
    return _Memory(buffers, none, {name: mask.copy() for name, mask in none.items()})


def _run(rank: int, nodes: Body, memory: _Memory, messages: _Messages) -> Iterator[bool]:
    """Do the steps of a rank. Yields False while the rank waits for a message, and True after each step."""
    open_receives: dict[int, tuple[_Key, int, Region]] = {}
    for step, k in _steps(nodes):
        if step.op in ("send", "isend"):
            content = memory.read(step["send"].at(k)).copy()
            messages.sent[rank, step["peer"], step["tag"]].append(content)
        elif step.op == "reduce_local":
            _reduce(step, k, memory)
        elif step.op in ("recv", "irecv"):
            key = (step["peer"], rank, step["tag"])
            slot = _slot(step["request"], k) if step.op == "irecv" else -1
            open_receives[slot] = (key, messages.post(key), step["recv"].at(k))
        for slot in _list_awaited(step, k) if step.op in _WAITS else ():
            if slot not in open_receives:
                continue
            key, number, region = open_receives.pop(slot)
            while len(messages.sent[key]) <= number:
                yield False
            memory.write(region, messages.sent[key][number])
        yield True


def _list_awaited(step: Step, k: int) -> range:
    if step.op == "waitall":
        return range(step["requests"].first, step["requests"].first + step["requests"].count)
    slot = -1 if step.op == "recv" else _slot(step["request"], k)
    return range(slot, slot + 1)


def _slot(request: RequestSlot, k: int) -> int:
    return request.index + k * request.stride


def _reduce(step: Step, k: int, memory: _Memory) -> None:
    kind, reduction = np.dtype(DTYPES[step["dtype"]].numpy), REDUCTIONS[step["op"]]
    first, second = (to_numbers(memory.read(step[name].at(k)).view(kind), step["dtype"]) for name in ("send", "recv"))
    with np.errstate(over="ignore", invalid="ignore"):
        result = reduction(first, second, dtype=work_type(reduction, first.dtype))
    content = np.ascontiguousarray(from_numbers(result, step["dtype"])).view(np.uint8)
    memory.write(step["recv"].at(k), content)
