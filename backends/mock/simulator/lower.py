"""Lowers bodies of a program to flat lists of operations, with repeats unrolled, costs known and operands checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from omb_py.backends.mock.simulator.data import Bytes, RankMemory
from omb_py.backends.mock.simulator.network import Network
from omb_py.backends.mock.simulator.windows import COMPLETE_TAG, ENDS, POST_TAG, Access
from omb_py.engine.measuring.reductions import REDUCTIONS
from omb_py.engine.native.matmul import flop
from omb_py.engine.program.datatype_layouts import derived
from omb_py.engine.program.dtypes import DTYPES, check_reduction, parse_dtype
from omb_py.engine.program.groups import Group, group_of
from omb_py.engine.program.language import (
    Blocks,
    Body,
    Host,
    Lap,
    Node,
    Region,
    Repeat,
    Requests,
    RequestSlot,
    Result,
    Stamp,
    Step,
    count_steps,
    started,
)
from omb_py.engine.program.rma import EXPOSED, OPERATIONS
from omb_py.engine.program.steps import COLLECTIVES, COMMUNICATORS, MATMUL, NEIGHBORHOOD, PREFIXES, base
from omb_py.engine.session import StepFailed
from omb_py.errors import EnvironmentProblem, UsageError, nearest

_NOTHING: Final[Mapping[int, Step]] = MappingProxyType({})


class Code:
    """Kinds of operations. They are plain integers, since an enum's hash is too slow for the event loop."""

    LAP: Final = 0
    SEND: Final = 1
    RECV: Final = 2
    COLLECTIVE: Final = 3
    WAIT: Final = 4
    TEST: Final = 5
    COMPUTE: Final = 6
    FLIP: Final = 7
    HOST: Final = 8
    STAMP: Final = 9
    ACCESS: Final = 10
    """An operation on a window."""
    END: Final = 11
    """A synchronisation that completes operations on windows."""
    FENCE: Final = 12
    COMPLETE: Final = 13
    REDUCE: Final = 14
    """A reduction without communication."""
    NEXT: Final = 15
    """A receive from whichever rank comes first."""
    ANSWER: Final = 16
    """A send to the rank whose message came last so."""


_CODES: Final = {
    "send": Code.SEND,
    "recv": Code.RECV,
    "psend": Code.SEND,
    "precv": Code.RECV,
    "recv_next": Code.NEXT,
    "answer": Code.ANSWER,
    "parrived": Code.TEST,
    "wait": Code.WAIT,
    "waitall": Code.WAIT,
    "test": Code.TEST,
    "compute": Code.COMPUTE,
    MATMUL: Code.COMPUTE,
    "flip": Code.FLIP,
    "reduce_local": Code.REDUCE,
    **dict.fromkeys((*COLLECTIVES, *PREFIXES, *NEIGHBORHOOD, *COMMUNICATORS), Code.COLLECTIVE),
    **dict.fromkeys(OPERATIONS, Code.ACCESS),
    **dict.fromkeys(ENDS, Code.END),
    "win_fence": Code.FENCE,
    "win_complete": Code.COMPLETE,
    "win_post": Code.SEND,
    "win_start": Code.RECV,
    "win_wait": Code.RECV,
}
"""Blocking form of a step -> code."""
SINKS: Final = frozenset({"reduce", "gather", "gatherv"})
IRREGULAR: Final = frozenset({"allgatherv", "gatherv", "scatterv", "alltoallv", "alltoallw", *NEIGHBORHOOD})
"""Collectives whose data each rank describes for itself (:mod:`omb_py.backends.mock.simulator.matching`)."""
COMMUNICATION: Final = frozenset(
    {
        Code.SEND,
        Code.RECV,
        Code.COLLECTIVE,
        Code.WAIT,
        Code.TEST,
        Code.ACCESS,
        Code.END,
        Code.FENCE,
        Code.COMPLETE,
        Code.NEXT,
        Code.ANSWER,
    }
)
_SILENT: Final = frozenset({"free", "pready", EXPOSED, "win_lock", "win_lock_all"})
"""Steps that take no time and do nothing here."""


@dataclass(slots=True)
class Op:
    """One operation of a rank."""

    code: int
    """One of :class:`Code`."""
    number: int = -1
    """Number of the step in its stage (:func:`omb_py.engine.program.step_text.steps_of`)."""
    step: Step | None = None
    timed: bool = False
    """Whether it lies between the first and last reading of the clock in its body, or in a body without any."""
    entry: bool = False
    """Whether it is the first communication of the body, where injected faults strike."""
    slot: int = -1
    """Slot of a lap or stamp; -1 starts timing."""
    requests: tuple[int, ...] = ()
    """The request slot that it starts, or the slots that it completes; empty if it blocks."""
    nbytes: int = 0
    peer: int = -1
    tag: int = 0
    root: int = -1
    """Root of a bcast or scatter: no rank leaves before it has arrived."""
    sink: int = -1
    """Root of a reduce or gather: the only rank that receives."""
    cost: float = 0.0
    wire: float = 0.0
    """Time for which it keeps the sender's link busy, ns."""
    channel: float = 0.0
    """Time for which a collective keeps the memory channels of its ranks busy, ns."""
    nic: float = 0.0
    """Time for which a collective keeps the NICs of its ranks busy, ns."""
    send: Bytes | None = None
    recv: Bytes | None = None
    layout: str = ""
    """The derived type of its messages; empty: none."""
    dtype: np.dtype[Any] | None = None
    reduction: np.ufunc | None = None
    ns: int = 0
    source: Result | None = None
    """The result of an earlier stage that gives the time of a computation."""
    group: Group = ()
    """Ranks that take part in a collective; empty: all."""
    iteration: int = -1
    call: Callable[[object], None] | None = None
    access: Access | None = None
    choices: Mapping[int, Op] = field(default_factory=dict)
    """Rank -> the send or receive that it becomes when that rank is its peer."""

    @property
    def signature(self) -> tuple[object, ...]:
        """The properties of a collective call that must be equal on all ranks."""
        assert self.step is not None
        same = -1 if base(self.step.op) in IRREGULAR else self.nbytes
        return self.step.op, same, self.root, self.sink, self.dtype, self.reduction, self.group


@dataclass(frozen=True, slots=True)
class Site:
    """The rank for which a body is lowered: costs, and access to memory."""

    network: Network
    rank: int
    scale: float
    memory: RankMemory


def lower(
    nodes: Body, laps: Sequence[str] | None, first_number: int, site: Site, known: Mapping[int, Step] = _NOTHING
) -> list[Op]:
    """The operations of a body, with step numbers from `first_number`.

    Without `laps` the body is a setup or teardown: it reads no clock, and may call into Python. The start of a
    persistent request becomes the call that it starts, from `known`
    (:func:`omb_py.engine.program.language.templates`); making or freeing a request costs nothing, and the partitions of
    a message are sent with its start.

    Raises:
        StepFailed: an operand is wrong: a region outside its buffer, or a rank that does not exist.
        UsageError: an unknown reduction or type.
        EnvironmentProblem: a step that the simulation does not know.
        ValueError: a call into Python in a timed body.
    """
    flat: list[tuple[Node, int, int]] = []
    _flatten(nodes, first_number, 0, flat)
    clocks = [j for j, (node, _, _) in enumerate(flat) if isinstance(node, (Lap, Stamp))]
    if clocks:
        begins, ends = clocks[0], clocks[-1]
    else:  # a rank that reads no clock works inside the interval of one that does
        begins, ends = (-1, len(flat)) if laps is not None else (0, 0)
    ops: list[Op] = []
    entered = False
    for j, (node, k, number) in enumerate(flat):
        if isinstance(node, (Lap, Stamp)) and laps is None:
            continue
        if isinstance(node, Lap):
            assert laps is not None
            ops.append(Op(Code.LAP, slot=laps.index(node.name) if node.name is not None else -1))
        elif isinstance(node, Stamp):
            assert laps is not None
            ops.append(Op(Code.STAMP, slot=laps.index(node.name)))
        elif isinstance(node, Host):
            if laps is not None:
                raise ValueError(f"host step {node.name!r} in a timed body: host steps belong to setup and teardown")
            ops.append(Op(Code.HOST, number, call=node.call))
        else:
            assert isinstance(node, Step)
            if node.op in _SILENT or node.op.endswith("_init"):
                continue
            for step in started(node, known):
                op = _operation(step, k, number, site)
                if op.code == Code.COMPUTE and op.source is None and ops and ops[-1].step is step:
                    ops[-1].ns += op.ns  # repeated without anything between: no other rank can tell them apart
                    continue
                # a rank without a clock waits in a barrier outside the interval of the others
                op.timed = begins < j < ends and (bool(clocks) or base(step.op) != "barrier")
                for choice in op.choices.values():
                    choice.timed = op.timed
                op.entry = not entered and op.code in COMMUNICATION
                entered = entered or op.entry
                ops.append(op)
    return ops


def _flatten(nodes: Body, number: int, k: int, into: list[tuple[Node, int, int]]) -> int:
    """Unroll repeats: (node, pass, step number). Returns the next step number."""
    for node in nodes:
        if isinstance(node, Repeat):
            for pass_ in range(node.times):
                _flatten(node.body, number, pass_, into)
            number += count_steps(node.body)
        else:
            into.append((node, k, number))
            number += isinstance(node, Step)
    return number


def _operation(step: Step, k: int, number: int, site: Site) -> Op:
    if base(step.op) not in _CODES:
        raise EnvironmentProblem(f"mock cannot simulate the step {step.op!r}: {nearest(step.op, _CODES)}")
    op = Op(_CODES[base(step.op)], number, step)
    operands: Mapping[str, Any] = step.operands
    for name in ("send", "recv", "buf"):
        if name in operands:
            region = operands[name].at(k)
            view = _view(step, number, region, site)
            op.nbytes = region.nbytes
            if name != "recv":
                op.send = view
            if name != "send":
                op.recv = view
    for name in ("request", "requests"):
        match operands.get(name):
            case RequestSlot(index, stride):
                op.requests = (index + k * stride,)
            case Requests(first, count):
                op.requests = tuple(range(first, first + count))
    kind = derived(str(operands.get("dtype", "")))
    share = kind.travels / kind.extent if kind else 1
    op.layout = operands["dtype"] if kind else ""
    if op.code in (Code.SEND, Code.RECV, Code.COMPLETE):
        op.peer = _rank(step, number, operands["peer"], site)
        op.tag = POST_TAG if step.op in ("win_post", "win_start") else operands.get("tag", COMPLETE_TAG)
        _price_message(op, op.nbytes * share, site)
    elif op.code in (Code.NEXT, Code.ANSWER):
        way = "recv" if op.code == Code.NEXT else f"{step.op.removesuffix('answer')}send"
        op.tag = operands["tag"]
        op.choices = {
            peer: _operation(Step(way, {**operands, "peer": peer}), k, number, site) for peer in operands["senders"]
        }
    elif op.code == Code.COLLECTIVE:
        _collective(op, step, number, site, share)
    elif op.code == Code.ACCESS:
        _access(op, step, k, number, site)
    elif op.code == Code.END:
        op.peer = operands.get("peer", -1)
    elif op.code == Code.FENCE:
        op.cost = site.network.collective("barrier", (), 0).time * site.scale
    elif step.op == MATMUL:
        op.ns = site.network.product(flop(step))
    elif op.code == Code.COMPUTE:
        ns = operands["ns"]
        op.ns, op.source = (ns, None) if isinstance(ns, int) else (0, ns)
    elif op.code == Code.FLIP:
        op.iteration = operands["iteration"]
    elif op.code == Code.REDUCE:
        _reduction(op, step)
        op.ns = max(1, site.network.product(op.nbytes // DTYPES[step["dtype"]].itemsize))
    return op


def _access(op: Op, step: Step, k: int, number: int, site: Site) -> None:
    op.peer = _rank(step, number, step["peer"], site)
    place: Region = step["window"].at(k)
    _check(step, number, place, site, op.peer)
    names = (name for name in ("send", "recv", "compare") if name in step.operands)
    parts = {name: _view(step, number, step[name].at(k), site) for name in names}
    op.access = Access(step, op.peer, {**parts, "window": site.memory.view(op.peer, place)})
    op.nbytes = place.nbytes
    _price_message(op, op.nbytes, site)


def _price_message(op: Op, nbytes: float, site: Site) -> None:
    cost, wire = site.network.message(site.rank, op.peer, nbytes)
    op.cost, op.wire = cost * site.scale, wire * site.scale


def _collective(op: Op, step: Step, number: int, site: Site, share: float) -> None:
    op.group = group_of(step)
    for rank in op.group:
        _check_rank(step, number, rank, site.network.ranks)
    operands, ranks = step.operands, len(op.group) or site.network.ranks
    kind = base(step.op)
    if "root" in operands:
        root = _rank(step, number, step["root"], site)
        if kind in SINKS:
            op.sink = root
        else:
            op.root = root
    if kind in IRREGULAR:
        op.nbytes = max(step["send"].nbytes, step["recv"].nbytes)
    elif "send" in operands:
        op.nbytes, needed = _volume(step, ranks)
        # only the root of a gather has room
        if step["recv"].nbytes < needed and (op.sink < 0 or step["recv"].nbytes > 0):
            text = f"{step.op}: room for {step['recv'].nbytes} B where {needed} B are received"
            raise StepFailed(number, 1, text)
    if "op" in operands:
        _reduction(op, step)
    edges, crossing = ranks, 0
    if "sources" in operands:
        neighbors = max(step["sources"], step["targets"], key=len)
        edges, crossing = len(neighbors), sum(site.network.topology.crosses(site.rank, peer) for peer in neighbors)
    # uneven blocks cost as many bytes as even ones of the same sum
    each = op.nbytes / max(1, edges) if kind in IRREGULAR else op.nbytes
    price = site.network.collective(kind, op.group, each * share, edges, crossing)
    op.cost, op.channel, op.nic = (ns * site.scale for ns in price)


def _reduction(op: Op, step: Step) -> None:
    """Fill in the operation and type of a reduction. Raises UsageError if one is unknown."""
    if step["op"] not in REDUCTIONS:
        raise UsageError(f"unknown reduction {step['op']!r}: {nearest(str(step['op']), REDUCTIONS)}")
    op.reduction = REDUCTIONS[step["op"]]
    op.dtype = np.dtype(DTYPES[parse_dtype(step["dtype"])].numpy)
    check_reduction(step["dtype"], step["op"])


def _volume(step: Step, ranks: int) -> tuple[int, int]:
    """(bytes that the cost model counts, bytes that a rank receives) of a collective with two buffers."""
    sent, received = step["send"].nbytes, step["recv"].nbytes
    match base(step.op):
        case "allgather" | "gather":
            return sent, sent * ranks
        case "alltoall":
            return sent // ranks, sent // ranks * ranks
        case "reduce_scatter_block":
            return sent, sent // ranks
        case "reduce_scatter":
            return sent, 0
        case "scatter":
            return received, received
    return sent, sent


def _view(step: Step, number: int, region: Region | Blocks, site: Site) -> Bytes | None:
    """The bytes of a region, or for blocks those of their whole buffer."""
    if isinstance(region, Blocks):
        for j in range(len(region.sizes)):
            _check(step, number, region.block(j), site)
        return site.memory.of(site.rank, region.buffer) if site.memory.moves else None
    _check(step, number, region, site)
    return site.memory.view(site.rank, region)


def _check(step: Step, number: int, region: Region, site: Site, rank: int | None = None) -> None:
    """Check that this rank has a region, or for a window another `rank`."""
    try:
        size = site.memory.size(site.rank if rank is None else rank, region.buffer)
    except KeyError:
        raise StepFailed(number, 1, f"{step.op}: there is no buffer {region.buffer!r}") from None
    if region.offset < 0 or region.nbytes < 0 or region.offset + region.nbytes > size:
        end = region.offset + region.nbytes
        raise StepFailed(number, 1, f"{step.op}: bytes {region.offset} to {end} of {region.buffer}, which has {size}")


def _rank(step: Step, number: int, rank: int, site: Site) -> int:
    _check_rank(step, number, rank, len(group_of(step)) or site.network.ranks)
    return rank


def _check_rank(step: Step, number: int, rank: int, ranks: int) -> None:
    if not 0 <= rank < ranks:
        raise StepFailed(number, 6, f"{step.op}: there is no rank {rank} among {ranks}")
