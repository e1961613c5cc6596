"""The step language: the actions of a benchmark on one rank, as data.

A :class:`Program` is an ordered list of :class:`Stage`; a stage has a setup, a body that is run once an
iteration, and a teardown.  A body is made of steps, laps (readings of the clock) and repeats.  The same program
is timed, validated, explained, hashed and simulated; bindings only translate it.

Pure data: this module imports nothing but the standard library, so that the command line can read programs
without loading NumPy.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from itertools import accumulate
from typing import Any, TypeAlias

from omb_py.digests import hex_digest


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory that a rank allocates for a cell: a name and its size in bytes."""

    name: str
    nbytes: int
    library: bool = False
    """It comes from the library, with the window (MPI_Win_allocate)."""


@dataclass(frozen=True, slots=True)
class Region:
    """Bytes of a buffer. In pass k of the innermost repeat it starts at ``offset + k * stride``."""

    buffer: str
    offset: int
    nbytes: int
    stride: int = 0
    turn: int = 0
    """In iteration i it starts ``stage.copy_at(i) * turn`` further on (:meth:`Stage.copy_at`)."""

    def at(self, k: int) -> Region:
        """The region in pass `k` of its repeat, as a plain one."""
        return Region(self.buffer, self.offset + k * self.stride, self.nbytes, turn=self.turn)

    def copy(self, number: int) -> Region:
        return replace(self, offset=self.offset + number * self.turn, turn=0)


@dataclass(frozen=True, slots=True)
class Blocks:
    """Bytes of a buffer for each peer: block j is ``sizes[j]`` bytes from ``offsets[j]`` on. For vector collectives."""

    buffer: str
    sizes: tuple[int, ...]
    offsets: tuple[int, ...]
    turn: int = 0
    """The same as that of a :class:`Region`."""

    @property
    def nbytes(self) -> int:
        return sum(self.sizes)

    def block(self, j: int) -> Region:
        return Region(self.buffer, self.offsets[j], self.sizes[j], turn=self.turn)

    def at(self, k: int) -> Blocks:
        """The same: blocks do not move with the passes of a repeat."""
        return self

    def copy(self, number: int) -> Blocks:
        return replace(self, offsets=tuple(at + number * self.turn for at in self.offsets), turn=0)

    @staticmethod
    def packed(buffer: str, sizes: tuple[int, ...]) -> Blocks:
        """Blocks one after the other."""
        return Blocks(buffer, sizes, tuple(accumulate(sizes, initial=0))[: len(sizes)])


@dataclass(frozen=True, slots=True)
class RequestSlot:
    """A slot for an MPI request. In pass k of the innermost repeat it is slot ``index + k * stride``."""

    index: int
    stride: int = 0


@dataclass(frozen=True, slots=True)
class Requests:
    """`count` request slots from `first` on."""

    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Result:
    """A number that an earlier stage measured on this rank: 1/`share` of the mean of a lap, in nanoseconds."""

    stage: str
    lap: str
    """Empty: all laps of the stage together."""
    share: float = 1

    def of(self, results: Mapping[tuple[str, str], float]) -> int:
        if not self.lap:
            return int(sum(ns for (stage, _), ns in results.items() if stage == self.stage) / self.share)
        return int(results[self.stage, self.lap] / self.share)


Operand: TypeAlias = "Region | Blocks | RequestSlot | Requests | Result | tuple[int, ...] | int | str"


Edges: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
"""Ranks with an edge to this one, ranks with an edge from it."""


@dataclass(frozen=True, slots=True)
class Step:
    """One operation. `op` and the operands are those of the constructors in :mod:`omb_py.engine.program.steps`."""

    op: str
    operands: Mapping[str, Operand] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        return self.operands[name]

    @property
    def edges(self) -> Edges | None:
        """(sources, targets) of a neighborhood collective."""
        return (self["sources"], self["targets"]) if "sources" in self.operands else None

    def peers(self, end: str, ranks: int) -> Sequence[int]:
        """The ranks at the ``sources`` or ``targets`` of a collective: those of its edges, or all."""
        return self[end] if end in self.operands else range(ranks)


@dataclass(frozen=True, slots=True)
class Lap:
    """Read the clock. With a name, add the time since the previous lap to that slot; without, start timing.

    Where the first lap of an iteration has a name, the previous one is the last of the iteration before.
    """

    name: str | None = None


@dataclass(frozen=True, slots=True)
class Stamp:
    """Read the clock into a slot as it is, not as a difference: for measuring clocks and skew."""

    name: str


@dataclass(frozen=True, slots=True)
class Until:
    """Wait for the moment in a buffer and start timing there; by how many ns it was missed goes to a slot.

    `start` is laid out as :data:`omb_py.engine.measuring.process_sync.START` says.
    """

    start: Region
    name: str = "late"


@dataclass(frozen=True, slots=True)
class Repeat:
    """Run the steps `times` times; strided operands move on with each pass."""

    times: int
    body: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Host:
    """A Python call, in setup or teardown only: ``call(session)``."""

    name: str
    call: Callable[[Any], None] = field(compare=False)


Node: TypeAlias = "Step | Lap | Stamp | Until | Repeat | Host"
Body: TypeAlias = tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """Setup, body and teardown. With several variants, iteration i runs variant ``i % len(variants)``."""

    variants: tuple[Body, ...]
    name: str = "main"
    setup: Body = ()
    teardown: Body = ()
    threads: int = 1
    """Threads of this rank that run the body: thread t runs the iterations i with ``i % threads == t``, all at once.
    There are as many variants, or a multiple."""
    copies: int = 1
    """Copies of each buffer that iterations use in turn (:mod:`omb_py.engine.measuring.cache_rotation`)."""
    check: tuple[Body, Body] | None = None
    """For a body whose steps use each other's results: the steps whose inputs the check provides, and the steps whose
    outputs must be there afterwards. None: every step of the body is checked by itself."""
    slots: tuple[str, ...] = ()
    """Lap slots that come first and stay 0 where this rank has no such lap: every rank needs the same slots."""

    def copy_at(self, iteration: int) -> int:
        """Number of the copy that an iteration uses: each thread counts its own iterations, and takes all in turn."""
        return iteration // self.threads % self.copies

    @property
    def laps(self) -> tuple[str, ...]:
        """Names of the lap slots: `slots`, then others in order of first use."""
        names = dict.fromkeys(self.slots)
        for variant in self.variants:
            for node in each_node(variant):
                if isinstance(node, (Lap, Stamp, Until)) and node.name is not None:
                    names[node.name] = None
        return tuple(names)


@dataclass(frozen=True, slots=True)
class Window:
    """A buffer that peers write and read: made by all ranks together when the program is loaded."""

    kind: str
    """One of :data:`omb_py.engine.program.rma.WINDOWS`."""
    buffer: str


@dataclass(frozen=True, slots=True)
class Program:
    """The actions of one rank for one cell."""

    buffers: tuple[Buffer, ...]
    stages: tuple[Stage, ...]
    window: Window | None = None


def body(*nodes: Node) -> tuple[Body, ...]:
    """The variants of a stage that has one body."""
    return (tuple(nodes),)


def each_body(program: Program, change: Callable[[Body], Body]) -> Program:
    """The program with every variant of its stages changed; setups and teardowns stay."""
    stages = (replace(stage, variants=tuple(map(change, stage.variants))) for stage in program.stages)
    return replace(program, stages=tuple(stages))


def each_step(program: Program, change: Callable[[Step], Step]) -> Program:
    """The program with every step changed, those of setups and teardowns too."""

    def changed(nodes: Body) -> Body:
        return steps_changed(nodes, change)

    stages = each_body(program, changed).stages
    around = (replace(stage, setup=changed(stage.setup), teardown=changed(stage.teardown)) for stage in stages)
    return replace(program, stages=tuple(around))


def steps_changed(nodes: Body, change: Callable[[Step], Step]) -> Body:
    """A body with every step changed, those inside a repeat too; laps and host calls stay."""
    return tuple(
        replace(node, body=steps_changed(node.body, change))
        if isinstance(node, Repeat)
        else change(node)
        if isinstance(node, Step)
        else node
        for node in nodes
    )


def walk(nodes: Body, k: int = 0) -> Iterator[tuple[Node, int]]:
    """Every step and lap in order, repeats unrolled, with the pass of its innermost repeat."""
    for node in nodes:
        if isinstance(node, Repeat):
            for pass_ in range(node.times):
                yield from walk(node.body, pass_)
        else:
            yield node, k


def each_node(nodes: Body) -> Iterator[Node]:
    """Every step, lap and host call in order, those inside a repeat once."""
    for node in nodes:
        if isinstance(node, Repeat):
            yield from each_node(node.body)
        else:
            yield node


def parts(stage: Stage) -> tuple[Body, ...]:
    """The bodies of a stage in the order of their step numbers: variants, setup, teardown."""
    return (*stage.variants, stage.setup, stage.teardown)


def steps_of(stage: Stage) -> tuple[Step, ...]:
    """The steps of a stage by number.

    Numbers start at 0 and run through the variants of the body, as the bindings number them; then through setup
    and teardown. A step inside a repeat has one number for all passes; laps and host calls have none.
    """
    return tuple(node for part in parts(stage) for node in each_node(part) if isinstance(node, Step))


def all_steps(program: Program) -> Iterator[Step]:
    """The steps of all stages, each once."""
    return (step for stage in program.stages for step in steps_of(stage))


def count_steps(nodes: Body) -> int:
    """Number of step numbers that a body takes."""
    return sum(isinstance(node, Step) for node in each_node(nodes))


def request_count(program: Program) -> int:
    """Number of request slots that a program needs."""
    needed = 0
    for stage in program.stages:
        for part in parts(stage):
            for node, k in walk(part):
                if not isinstance(node, Step):
                    continue
                for operand in node.operands.values():
                    if isinstance(operand, RequestSlot):
                        needed = max(needed, operand.index + k * operand.stride + 1)
                    elif isinstance(operand, Requests):
                        needed = max(needed, operand.first + operand.count)
    return needed


def edges_of(program: Program) -> Edges | None:
    """The graph that a program's neighborhood collectives run over."""
    for stage in program.stages:
        for variant in stage.variants:
            for node in each_node(variant):
                if isinstance(node, Step) and node.edges is not None:
                    return node.edges
    return None


def templates(stage: Stage) -> dict[int, Step]:
    """Request slot -> the non-blocking step that starting it performs, from the ``…_init`` steps of the setup."""
    steps: dict[int, Step] = {}
    for node, k in walk(stage.setup):
        if isinstance(node, Step) and node.op.endswith("_init"):
            operands = {
                name: value.at(k) if isinstance(value, Region) else value for name, value in node.operands.items()
            }
            request = node["request"]
            slot = request.index + k * request.stride
            steps[slot] = Step(f"i{node.op.removesuffix('_init')}", {**operands, "request": RequestSlot(slot)})
    return steps


def started(step: Step, persistent: Mapping[int, Step]) -> tuple[Step, ...]:
    """The step itself, or the operations that it stands for.

    ``start`` and ``startall`` begin operations of :func:`templates`. A receive from any rank is one from the rank that
    sends, and a ``sendrecv`` is a receive and a send at once.
    """
    if step.op.endswith("recv_any"):
        return (Step(step.op.removesuffix("_any"), step.operands),)
    if step.op.startswith("sendrecv"):
        return _split_both_ways(step)
    if step.op == "start":
        return (persistent[step["request"].index],)
    if step.op == "startall":
        first, count = step["requests"].first, step["requests"].count
        return tuple(persistent[slot] for slot in range(first, first + count))
    return (step,)


def _split_both_ways(step: Step) -> tuple[Step, ...]:
    """The send first: what a ``sendrecv_replace`` sends is read before it is overwritten."""
    requests: Requests = step["requests"]
    common: dict[str, Operand] = {"dtype": step["dtype"], "tag": step["tag"]}
    if "replaced" in step.operands:
        out, back = {"send": step["replaced"], "in_place": 1}, step["replaced"]
    else:
        out, back = {"send": step["send"]}, step["recv"]
    return (
        Step("isend", {**out, **common, "peer": step["target"], "request": RequestSlot(requests.first)}),
        Step("irecv", {"recv": back, **common, "peer": step["source"], "request": RequestSlot(requests.first + 1)}),
        Step("waitall", {"requests": requests}),
    )


_HASHED_NAMES: Mapping[type, str] = {RequestSlot: "Request"}
"""Type -> its name in hashes, where stored rows have another one than that of the class."""


def canonical(value: object) -> object:
    """A JSON form of a program that depends only on the program's actions.

    Fields that hold their default are left out: a new field changes the hash of the programs that use it only.
    """
    if isinstance(value, Host):
        return {"Host": value.name}
    if is_dataclass(value) and not isinstance(value, type):
        values = {f.name: getattr(value, f.name) for f in fields(value)}
        defaults = {f.name: f.default for f in fields(value) if f.default is not MISSING}
        return {
            _HASHED_NAMES.get(type(value), type(value).__name__): {
                name: canonical(item) for name, item in values.items() if name not in defaults or item != defaults[name]
            }
        }
    if isinstance(value, Mapping):
        return {str(key): canonical(item) for key, item in sorted(value.items())}
    if isinstance(value, (tuple, list)):
        return [canonical(item) for item in value]
    return value


def program_hash(*programs: Program) -> str:
    """Sixteen hex digits that change with the actions of a benchmark: its version."""
    text = json.dumps([canonical(program) for program in programs], separators=(",", ":"), sort_keys=True)
    return hex_digest(text)[:16]


@dataclass(frozen=True, slots=True)
class Message:
    """Bytes to or from a rank of the world. Both ends name the same tag."""

    peer: int
    nbytes: int
    tag: int = 1
    answer: bool = False
    """To be received: the sender answers whoever comes first, all with the same bytes."""
