"""A round of pairs, simulated at once: all pairs do the same, so a time is a vector with a number for each pair.

Every number is that of :mod:`omb_py.backends.mock.simulator.simulate`. There the rank that is furthest behind goes
first; here an end goes on until it must wait. The order changes nothing where no rank asks who comes first, the pairs
share no port, and the messages of an end leave in the order of its sends (:meth:`PairSimulation.is_simple`).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from omb_py.backends.mock.config import Config
from omb_py.backends.mock.simulator.data import RankMemory
from omb_py.backends.mock.simulator.lower import Code, Op, Site, lower
from omb_py.backends.mock.simulator.network import Network
from omb_py.backends.mock.simulator.timing import Noise, Slowness
from omb_py.engine.program.language import count_steps, parts, templates
from omb_py.engine.program.pair_programs import PairPrograms

Times = NDArray[np.int64]
"""ns, a number for each pair."""
Costs = NDArray[np.float64]
_CODES = frozenset({Code.LAP, Code.SEND, Code.RECV, Code.WAIT})


class PairsUnlike(Exception):
    """The pairs do what only the general simulation can do, or name as a fault."""


@dataclass(slots=True, eq=False)
class PairCall:
    """A send or a receive, of all pairs."""

    op: Op
    began: Times
    transit: Times | None = None
    """Of a send: time from its start to its arrival."""
    wire: Times | None = None
    """Of a send: time on its sender's link."""
    arrival: Times | None = None
    done: Times | None = None


@dataclass(slots=True, eq=False)
class PairEnd:
    """One end of all pairs, and how far it is."""

    ranks: NDArray[np.intp]
    variants: Sequence[Sequence[Op]]
    costs: dict[int, tuple[Costs, Costs]]
    """id of a send -> cost and time on the link of each pair, without noise."""
    clock: Times
    link: Times
    """Until when the link of each sender is busy."""
    laps: Times
    """Shape (iterations, slots, pairs)."""
    lap: Times
    """When the lap began."""
    index: int = 0
    """Index of the iteration in its loop."""
    pc: int = 0
    drawn: int = 0
    """Factors of noise that each rank has used."""
    waits: list[PairCall] = field(default_factory=list)
    requests: dict[int, PairCall] = field(default_factory=dict)
    sent: dict[int, deque[PairCall]] = field(default_factory=lambda: defaultdict(deque))
    """Tag -> sends that no receive has matched."""
    posted: dict[int, deque[PairCall]] = field(default_factory=lambda: defaultdict(deque))
    """Tag -> receives that no send has matched."""


class PairSimulation:
    """The pairs of a round.

    Args:
        programs: what they run.
        scale: factor of all costs of this launch.

    Raises:
        StepFailed, UsageError, EnvironmentProblem: a program is wrong (``lower``).
    """

    def __init__(self, config: Config, network: Network, scale: float, noise: Noise, programs: PairPrograms) -> None:
        self._config, self._noise = config, noise
        self._ranks = np.array(programs.pairs, np.intp).T
        self._stages = [end.stages[0] for end in programs.ends]
        self._simple = all(len(end.stages) == 1 for end in programs.ends) and not (
            config.series or config.hang or config.die or network.topology.shared
        )
        node_of = np.array(network.topology.node_of)
        crosses = node_of[self._ranks[0]] != node_of[self._ranks[1]]
        self._slower = Slowness(config, network.ranks).of_messages(self._ranks)
        self._variants: list[list[list[Op]]] = []
        """By end: the operations of each variant of the first kind of pairs (below)."""
        self._costs: list[dict[int, tuple[Costs, Costs]]] = [{}, {}]
        kinds = np.unique(crosses)  # within a node, between nodes
        examples = [tuple(map(int, self._ranks[:, np.flatnonzero(crosses == kind)[0]])) for kind in kinds]
        for end in (0, 1):
            of_kinds = [self._lowered(programs, end, (pair[0], pair[1]), network, scale) for pair in examples]
            self._variants.append(of_kinds[0])
            for variants in zip(*of_kinds, strict=True):
                for same in zip(*variants, strict=True):
                    if same[0].code == Code.SEND:
                        self._costs[end][id(same[0])] = (
                            np.where(crosses, same[-1].cost, same[0].cost) * self._slower,
                            np.where(crosses, same[-1].wire, same[0].wire) * self._slower,
                        )

    def is_simple(self) -> bool:
        """Whether the numbers here are those of the general simulation."""
        return self._simple and all(map(self._leaves_in_order, self._variants))

    def _leaves_in_order(self, variants: Sequence[Sequence[Op]]) -> bool:
        """Whether an end does what is known here, and its messages leave in the order of its sends.

        An eager message leaves when it is sent; one that waits leaves with its receive, so those need the same tag.
        """
        ops = [op for body in variants for op in body]
        sends = [op for op in ops if op.code == Code.SEND]
        waiting = {op.tag for op in sends if op.nbytes > self._config.eager}
        in_order = not waiting or (len(waiting) == 1 and all(op.nbytes > self._config.eager for op in sends))
        return in_order and all(op.code in _CODES for op in ops)

    def _lowered(
        self, programs: PairPrograms, end: int, pair: tuple[int, int], network: Network, scale: float
    ) -> list[list[Op]]:
        of_pair = PairPrograms(programs.ends, [pair]).of_ranks(pair)
        stage = of_pair[pair[end]].stages[0]
        site = Site(network, pair[end], scale, RankMemory(of_pair, "numpy", moves=False))
        bodies, number = [], 0
        for body, nodes in enumerate(parts(stage)):
            laps = stage.laps if body < len(stage.variants) else None
            ops = lower(nodes, laps, number, site, templates(stage))
            number += count_steps(nodes)
            if laps is not None:
                bodies.append(ops)
            elif ops:
                self._simple = False  # a setup or teardown that takes time
        return bodies

    def run(self, first: int, iterations: int, clocks: Times) -> dict[int, Times]:
        """Run iterations from the given clocks of all ranks, which are set to the end.

        Returns:
            For each rank of a pair nanoseconds, shape (iterations, laps).

        Raises:
            PairsUnlike: no end can go on, or a call is wrong; the clocks are as before.
        """
        ends = [self._begin(end, iterations, clocks) for end in (0, 1)]
        while True:
            steps = [self._advance(ends[me], ends[1 - me], first, iterations) for me in (0, 1)]
            if all(end.index == iterations for end in ends):
                break
            if not any(steps):
                raise PairsUnlike
        for end in ends:
            clocks[end.ranks] = end.clock
        return {int(rank): end.laps[:, :, place] for end in ends for place, rank in enumerate(end.ranks)}

    def _begin(self, end: int, iterations: int, clocks: Times) -> PairEnd:
        ranks = self._ranks[end]
        slots = len(self._stages[end].laps)
        laps = np.zeros((iterations, slots, len(ranks)), np.int64)
        start = clocks[ranks]
        return PairEnd(ranks, self._variants[end], self._costs[end], start, np.zeros_like(start), laps, start)

    def _advance(self, me: PairEnd, other: PairEnd, first: int, iterations: int) -> bool:
        """Run an end until it must wait, or is done. Returns whether it did anything."""
        moved = False
        while me.index < iterations:
            if me.waits:
                done = [call.done for call in me.waits if call.done is not None]
                if len(done) < len(me.waits):
                    break
                me.clock, me.waits = np.maximum.reduce([me.clock, *done]), []
            moved = True
            ops = me.variants[(first + me.index) % len(me.variants)]
            if me.pc == len(ops):
                me.index, me.pc, me.lap = me.index + 1, 0, me.clock
                continue
            op = ops[me.pc]
            me.pc += 1
            self._act(me, other, op)
        return moved

    def _act(self, me: PairEnd, other: PairEnd, op: Op) -> None:
        match op.code:
            case Code.LAP:
                if op.slot >= 0:
                    me.laps[me.index, op.slot] += me.clock - me.lap
                me.lap = me.clock
            case Code.WAIT:
                me.waits = [me.requests.pop(slot) for slot in op.requests if slot in me.requests]
            case Code.SEND:
                self._send(me, other, op)
            case _:
                call = _start_call(me, op)
                if queue := other.sent[op.tag]:
                    _pair(other, queue.popleft(), call)
                else:
                    me.posted[op.tag].append(call)

    def _send(self, me: PairEnd, other: PairEnd, op: Op) -> None:
        call = _start_call(me, op)
        cost, wire = me.costs[id(op)]
        if self._noise.active:
            factor = self._noise.row(me.drawn)[me.ranks]
            me.drawn += 1
            cost, wire = cost * factor, wire * factor
        call.transit, call.wire = np.rint(cost).astype(np.int64), np.rint(wire).astype(np.int64)
        if op.nbytes <= self._config.eager:
            _transmit(me, call, call.began)
        if queue := other.posted[op.tag]:
            _pair(me, call, queue.popleft())
        else:
            me.sent[op.tag].append(call)


def _start_call(me: PairEnd, op: Op) -> PairCall:
    call = PairCall(op, me.clock)
    if not op.requests:
        me.waits = [call]
    elif op.requests[0] in me.requests:
        raise PairsUnlike
    else:
        me.requests[op.requests[0]] = call
    return call


def _transmit(sender: PairEnd, call: PairCall, earliest: Times) -> None:
    """Put a message on the link of its sender; the send is complete when its last byte has left."""
    assert call.transit is not None and call.wire is not None
    start = np.maximum(earliest, sender.link)
    call.arrival = start + call.transit
    call.done = sender.link = start + call.wire


def _pair(sender: PairEnd, call: PairCall, posted: PairCall) -> None:
    if call.op.nbytes > posted.op.nbytes:
        raise PairsUnlike
    if call.arrival is None:
        _transmit(sender, call, np.maximum(call.began, posted.began))
    assert call.arrival is not None
    posted.done = np.maximum(posted.began, call.arrival)
