"""A benchmark's program in NCCL's terms: a step without a call of its own becomes a group of sends and receives.

NCCL's calls return when they are enqueued.  So a synchronise is put before every lap that ends a timing, before
whatever waits, and at the end of a body; except before the lap ``enqueue``, which is about the call alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from omb_py.engine.devices import FUNCTIONS, synchronise
from omb_py.engine.measuring.async_timing import ENQUEUE, LANES
from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import World
from omb_py.engine.program.dtypes import DTYPES
from omb_py.engine.program.groups import group_of, on_group, place_in
from omb_py.engine.program.language import Blocks, Body, Lap, Node, Program, Region, Repeat, Stage, Step
from omb_py.engine.program.rma import EXPOSED, OPERATIONS, SYNCHRONISATIONS
from omb_py.errors import EnvironmentProblem

_START, _END = Step("group_start", {}), Step("group_end", {})
_DIRECT = frozenset({"allreduce", "reduce", "bcast", "allgather", "reduce_scatter_block"})
NEWER = frozenset({"alltoall", "gather", "scatter"})
"""Steps with a call of their own since 2.28."""
_MAYBE = frozenset({*NEWER, "alltoallv", "reduce_scatter"})
_POSTS = frozenset({"isend", "irecv"})
_WAITS = frozenset({"wait", "waitall"})
_ONE_SIDED = frozenset({EXPOSED, *OPERATIONS, *SYNCHRONISATIONS})
_OWN = frozenset({*FUNCTIONS, "compute", "flip", "group_start", "group_end"})
_OTHERWISE = frozenset({"begin_capture", "end_capture", "instantiate", "spin", "matmul"})
"""Steps of the device that leave nothing on the stream of the calls."""

Has = Callable[[str], bool]
"""Whether a binding has one call for a step: alltoall, gather, scatter; in torch also alltoallv, reduce_scatter."""


class Lowering:
    """Translates bodies; remembers whether anything is enqueued that nobody has waited for."""

    title = "NCCL"
    has_windows = True
    """Whether the library writes into memory of other ranks."""

    def __init__(self, world: World, has: Has) -> None:
        self.world, self.has = world, has
        self.calls = ""
        """The calls that something became although it has one call elsewhere."""
        self._pending = False
        """Something is enqueued that nobody has waited for."""
        self._lanes = 1
        """Streams on which the same is done at once."""
        self._blocking = False
        """The enqueued work stands for a blocking call: a lap must not end before it is done."""
        self._times = 1
        """How often what is translated now is done."""
        self._awaited = 0
        """Writes of the peer, each with its signal, that nobody has waited for."""

    def body(self, nodes: Body) -> Body:
        """A body, which ends synchronised."""
        lowered_nodes = self._nodes(nodes, grouped=False)
        return (*lowered_nodes, *self._synchronised("body"))

    def _synchronised(self, why: str) -> tuple[Node, ...]:
        pending = self._pending
        self._pending = self._blocking = False
        return self._wait_on_all(synchronise(why)) if pending else ()

    def _wait_on_all(self, wait: Step) -> tuple[Node, ...]:
        if self._lanes == 1:
            return (wait,)
        return (Repeat(self._lanes, (Step(wait.op, {**wait.operands, LANES: self._lanes}),)),)

    def _nodes(self, nodes: Body, grouped: bool) -> Body:
        out: list[Node] = []
        opened = False
        for node in nodes:
            posts = _does_post_only(node)
            if posts and not opened and not grouped:
                out.append(_START)
                opened = True
            elif opened and not posts:
                out.append(_END)
                opened = False
            out += self._node(node, grouped or opened)
        return (*out, _END) if opened else tuple(out)

    def _node(self, node: Node, grouped: bool) -> Iterator[Node]:
        if isinstance(node, Repeat):
            self._times *= node.times
            body = self._nodes(node.body, grouped)
            self._times //= node.times
            if body:
                yield replace(node, body=body)
        elif isinstance(node, Lap):
            if self._blocking and node.name is not None and node.name != ENQUEUE:
                yield from self._synchronised("lap")
            yield node
        elif isinstance(node, Step):
            yield from self._step(node)
        else:
            yield node

    def _step(self, step: Step) -> Iterator[Node]:
        op = steps.base(step.op) if step.op.startswith("i") and "request" in step.operands else step.op
        if op == "synchronise":
            if "stream" in step.operands:  # another stream's is no wait for what was enqueued here
                yield step
                return
            self._pending = self._blocking = False
            yield from self._wait_on_all(step)
        elif op == "enqueued":
            return
        elif op in _WAITS:
            yield from self._synchronised("wait")
        elif op == "barrier":
            yield on_group(Step("barrier", {}), group_of(step))
            self._pending = True
            yield from self._synchronised("barrier")
        elif op in steps.COMMUNICATORS:  # these return when they are done, and nothing is enqueued when they are called
            yield from self._synchronised("lap")
            yield self._communicator(step)
        elif op in _ONE_SIDED:
            yield from self._lower_one_sided(step)
        elif op in _OWN:
            self._pending |= op in FUNCTIONS and op not in _OTHERWISE
            yield step
        else:
            self._pending = True
            self._blocking |= "request" not in step.operands
            yield from self._communication(Step(op, step.operands))

    def _communicator(self, step: Step) -> Step:
        """The call on the communicator of all ranks, which a shrink is told whom to leave out of; a grow on the old."""
        if step.op == "comm_grow":
            old: tuple[int, ...] = step["old"]
            return on_group(step, old if self.world.rank in old else ())
        if group := group_of(step):
            excluded = tuple(rank for rank in range(self.world.size) if rank not in group)
            return Step(step.op, {"excluded": excluded} if step.op == "comm_shrink" else {})
        return step

    def _lower_one_sided(self, step: Step) -> Iterator[Step]:
        """Writes with signals: MPI's post is a signal, and its start and wait are waits for signals.

        All signals of a peer count together, so a wait may be over by a post that has overtaken a write. The wait that
        follows is over when both are there, and no rank writes or looks between the two.
        """
        if step.op in ("put", "win_post", "win_start", "win_complete", "win_wait"):
            self._pending = self._blocking = True
            signals = 1
            if step.op == "win_wait":
                signals, self._awaited = self._awaited, 0
            if step.op in ("win_start", "win_wait"):
                yield Step(step.op, {**step.operands, "signals": signals})
            elif step.op != "win_complete":  # what it waits for, the end of the writes here, is the stream's
                yield step
        elif step.op == EXPOSED and step["call"] == "put":
            self._awaited += self._times
        else:
            op = step["call"] if step.op == EXPOSED else step.op
            raise EnvironmentProblem(f"{self.title} has no {op}: put_latency, put_bw or put_bibw with -s pscw")

    def _communication(self, step: Step) -> Iterator[Step]:
        op = step.op
        self._check(step)
        self._lanes = max(self._lanes, step[LANES] if LANES in step.operands else 1)
        if op == "reduce_scatter" and len(set(step["counts"])) == 1:
            yield Step("reduce_scatter_block", {k: v for k, v in step.operands.items() if k != "counts"})
        elif op in _DIRECT or op in ("send", "recv") or (op in _MAYBE and self.has(op)):
            yield step
        elif op in _GROUPS and LANES in step.operands:
            raise EnvironmentProblem(f"{op} is a group of calls here: leave communicators out of --nccl")
        elif op in _GROUPS:
            yield from self._split_call(step, place_in(step, self.world))
        else:
            available = sorted({*_DIRECT, *NEWER, *_GROUPS, "send", "recv"})
            raise EnvironmentProblem(f"{self.title} has no {op}: it has {', '.join(available)}")

    def _split_call(self, step: Step, place: World) -> Iterator[Step]:
        """The calls of a step that has none of its own, for a rank at a place of its communicator."""
        self.calls = "grouped ncclSend and ncclRecv"
        yield from (_START, *(on_group(call, group_of(step)) for call in _GROUPS[step.op](step, place)), _END)

    def _check(self, step: Step) -> None:
        """Raises EnvironmentProblem for what the library does not do, although it has the call."""
        uneven = step.op == "reduce_scatter" and len(set(step["counts"])) > 1
        if "in_place" in step.operands and (uneven or step.op in ("alltoall", "alltoallv")):
            what = f"{step.op} with blocks of different sizes" if uneven else step.op
            raise EnvironmentProblem(
                f"{self.title} has no in-place {what}: leave out -l, or use reduce_scatter_block for -l"
            )


def _does_post_only(node: Node) -> bool:
    if isinstance(node, Repeat):
        return bool(node.body) and all(_does_post_only(inner) for inner in node.body)
    return isinstance(node, Step) and node.op in _POSTS


def _blocks(where: Region | Blocks, ranks: int) -> list[Region]:
    """The block of each rank, empty ones too."""
    if isinstance(where, Blocks):
        return [where.block(rank) for rank in range(ranks)]
    size = where.nbytes // ranks
    return [replace(where, offset=where.offset + rank * size, nbytes=size) for rank in range(ranks)]


def _sends(parts: list[Region], step: Step) -> list[Step]:
    return [steps.send(part, rank, step["dtype"]) for rank, part in enumerate(parts)]


def _receives(parts: list[Region], step: Step) -> list[Step]:
    return [steps.recv(part, rank, step["dtype"]) for rank, part in enumerate(parts)]


def _exchange(step: Step, world: World) -> list[Step]:
    return [*_sends(_blocks(step["send"], world.size), step), *_receives(_blocks(step["recv"], world.size), step)]


def _to_root(step: Step, world: World) -> list[Step]:
    in_place = "in_place" in step.operands
    out = [] if in_place else [steps.send(step["send"], step["root"], step["dtype"])]
    back = _receives(_blocks(step["recv"], world.size), step) if world.rank == step["root"] else []
    return [*out, *(part for part in back if not (in_place and part["peer"] == world.rank))]


def _from_root(step: Step, world: World) -> list[Step]:
    in_place = "in_place" in step.operands
    out = _sends(_blocks(step["send"], world.size), step) if world.rank == step["root"] else []
    back = [] if in_place else [steps.recv(step["recv"], step["root"], step["dtype"])]
    return [*(part for part in out if not (in_place and part["peer"] == world.rank)), *back]


def _to_all(step: Step, world: World) -> list[Step]:
    in_place = "in_place" in step.operands
    both = [*_sends([step["send"]] * world.size, step), *_receives(_blocks(step["recv"], world.size), step)]
    return [part for part in both if not (in_place and part["peer"] == world.rank)]


def reduce_each(step: Step, world: World) -> list[Step]:
    """Blocks that differ in size: one reduce to each rank."""
    item, out, at = DTYPES[step["dtype"]].itemsize, [], step["send"].offset
    for rank, count in enumerate(step["counts"]):
        part = replace(step["send"], offset=at, nbytes=count * item)
        out.append(steps.reduce(part, replace(step["recv"], nbytes=part.nbytes), rank, step["dtype"], step["op"]))
        at += part.nbytes
    return [part for part in out if part["send"].nbytes]


_GROUPS: dict[str, Callable[[Step, World], list[Step]]] = {
    "alltoall": _exchange,
    "alltoallv": _exchange,
    "gather": _to_root,
    "gatherv": _to_root,
    "scatter": _from_root,
    "scatterv": _from_root,
    "allgatherv": _to_all,
    "reduce_scatter": reduce_each,
}
"""Steps -> the sends and receives of a rank."""


def lowered(program: Program, world: World, has: Has, translation: type[Lowering] = Lowering) -> tuple[Program, str]:
    """The program in NCCL's terms, and the calls that something became although it is one call elsewhere.

    Args:
        program: of this rank.
        world: this rank, and how many there are.
        has: whether a step has one call.
        translation: how a library does steps that it has no call for.

    Raises:
        EnvironmentProblem: the library has no such operation, type or reduction.
    """
    work = translation(world, has)
    if program.window is not None and not work.has_windows:
        raise EnvironmentProblem(f"{work.title} has no one-sided operations: --backend mpi")
    stages: list[Stage] = []
    for stage in program.stages:
        if stage.threads > 1:
            raise EnvironmentProblem(f"{work.title} runs one thread a rank here: use --backend mpi")
        stages.append(
            replace(
                stage,
                setup=work.body(stage.setup),
                variants=tuple(work.body(body) for body in stage.variants),
                teardown=work.body(stage.teardown),
            )
        )
    return Program(program.buffers, tuple(stages), program.window), work.calls
