"""The simulation: every rank runs its own operations, and the rank whose clock is furthest behind goes first.

So what a rank sees never depends on something that happens later. A rank that must wait leaves the queue and
comes back with the time at which its last request completes. If the queue is empty and a rank is not done,
no rank can ever go on: that is a deadlock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

from omb_py.backends.mock.config import Config
from omb_py.backends.mock.faults import Flipper, RankDied, RankHangs, RankLost
from omb_py.backends.mock.simulator.data import Bytes, combine, copy_into
from omb_py.backends.mock.simulator.lower import Code, Op
from omb_py.backends.mock.simulator.matching import CollectiveCall, Handle, Matcher, Posted, UnmatchedSend
from omb_py.backends.mock.simulator.timing import Ports, Timing
from omb_py.backends.mock.simulator.windows import PendingOperations
from omb_py.engine.measuring.payload import mask
from omb_py.engine.program.groups import Group
from omb_py.engine.program.step_text import describe
from omb_py.engine.session import StepFailed


@dataclass(frozen=True, slots=True)
class Loop:
    """The operations to run: iterations of a body on every rank, or one setup or teardown."""

    variants: Sequence[Sequence[Sequence[Op]]]
    """Operations by rank and variant."""
    first: int
    count: int
    slots: Sequence[int]
    """Lap slots of each rank."""
    is_body: bool


class Events:
    """Simulates all ranks of a cell, event by event."""

    def __init__(
        self,
        config: Config,
        timing: Timing,
        flipper: Flipper,
        hosts: Sequence[str],
        cell: str,
        size: int,
        session: object,
    ) -> None:
        ranks = len(hosts)
        self._config, self._timing, self._flipper, self._session = config, timing, flipper, session
        self._hosts, self._cell, self._size = hosts, cell, size
        self._faults = [(RankHangs, f) for f in config.hang] + [(RankDied, f) for f in config.die]
        self._doomed = {fault.rank for _, fault in self._faults}
        self._matcher = Matcher()
        self._links = [0] * ranks
        self.ports = Ports(None)
        """The ports that ranks share; none at first."""
        self._joined: list[dict[Group, int]] = [{} for _ in range(ranks)]
        self._calls: dict[tuple[Group, int], CollectiveCall] = {}
        self._requests: list[dict[int, Handle]] = [{} for _ in range(ranks)]
        self._heap: list[tuple[int, int]] = []
        self._clock = [0] * ranks
        self._pc = [0] * ranks
        self._iteration = [0] * ranks
        self._lap = [0] * ranks
        self._missing = [0] * ranks
        self._resume = [0] * ranks
        self._latest = [0] * ranks
        """The rank whose message each rank took last from whoever came first."""
        self._ops: list[Sequence[Op]] = [()] * ranks
        self._hung: int | None = None
        self._windows = PendingOperations(ranks, self._put)
        self.named = 0
        """The rank of the last position or error."""
        self._act: Mapping[int, Callable[[int, Op], bool]] = {
            Code.SEND: self._send,
            Code.RECV: self._receive,
            Code.COLLECTIVE: self._collective,
            Code.WAIT: self._wait,
            Code.TEST: self._test,
            Code.COMPUTE: self._compute,
            Code.FLIP: self._flip,
            Code.REDUCE: self._reduce,
            Code.HOST: self._host,
            Code.ACCESS: self._access,
            Code.END: self._end,
            Code.FENCE: self._fence,
            Code.COMPLETE: self._complete_access,
            Code.NEXT: self._next,
            Code.ANSWER: self._answer,
        }

    def run(self, loop: Loop, clocks: Sequence[int]) -> tuple[list[int], list[list[int]]]:
        """Run a loop from the given clocks.

        Returns:
            The clocks at the end, and for each rank nanoseconds by iteration and lap slot, flat.

        Raises:
            RankHangs: no rank can go on.
            RankDied: an injected fault ended a rank.
            StepFailed: a call is wrong: truncation, a request in use, ranks in different collectives.
        """
        self._loop, self._clock = loop, list(clocks)
        self._out = [[0] * (loop.count * slots) for slots in loop.slots]
        self._left = len(self._clock)
        self._hung = None
        for rank in range(self._left):
            self._begin(rank, 0)
        self._heap = [(clock, rank) for rank, clock in enumerate(self._clock)]
        heapify(self._heap)
        while self._heap:
            self._advance(heappop(self._heap)[1])
        if self._left:
            raise self._deadlock()
        return self._clock, self._out

    @property
    def position(self) -> tuple[int, int]:
        """(iteration, step) of the rank that is furthest behind."""
        iteration, step, self.named = min((self._iteration[r], self._number(r), r) for r in range(len(self._clock)))
        return iteration, step

    def _begin(self, rank: int, index: int) -> bool:
        """Start an iteration, by its index in the loop. Returns False if none is left."""
        loop = self._loop
        self._pc[rank] = 0
        self._iteration[rank] = loop.first + index
        if index >= loop.count:
            self._ops[rank] = ()
            return False
        variants = loop.variants[rank]
        self._ops[rank] = variants[(loop.first + index) % len(variants)] if variants else ()
        self._lap[rank] = self._clock[rank]
        return True

    def _advance(self, rank: int) -> None:
        """Run a rank until it must wait, is done, or another rank is behind it."""
        heap, clock, act, counter = self._heap, self._clock, self._act, self._pc
        first, slots, out = self._loop.first, self._loop.slots[rank], self._out[rank]
        ops = self._ops[rank]
        while True:
            pc = counter[rank]
            if pc == len(ops):
                if not self._begin(rank, self._iteration[rank] - first + 1):
                    self._left -= 1
                    return
                ops = self._ops[rank]
                continue
            op = ops[pc]
            counter[rank] = pc + 1
            if op.code == Code.LAP:
                now = clock[rank]
                if op.slot >= 0:
                    out[(self._iteration[rank] - first) * slots + op.slot] += now - self._lap[rank]
                self._lap[rank] = now
                continue
            if op.code == Code.STAMP:
                out[(self._iteration[rank] - first) * slots + op.slot] = clock[rank]
                continue
            if op.entry and self._doomed and self._strike(rank, op):
                return
            if not act[op.code](rank, op):
                return
            if heap and heap[0][0] < clock[rank]:
                heappush(heap, (clock[rank], rank))
                return

    # -- waiting -----------------------------------------------------------------------------------------------

    def _await(self, rank: int, handles: Sequence[Handle]) -> bool:
        """Wait for requests. Returns whether the rank can go on at once."""
        time, missing = self._clock[rank], 0
        for handle in handles:
            if handle.done is None:
                handle.waited = True
                missing += 1
            elif handle.done > time:
                time = handle.done
        if missing:
            self._missing[rank], self._resume[rank] = missing, time
            return False
        self._clock[rank] = time
        return True

    def _complete(self, handle: Handle, time: int) -> None:
        """Complete a request at `time`, which is not in the past."""
        handle.done = time
        if not handle.waited:
            return
        handle.waited = False
        rank = handle.owner
        self._resume[rank] = max(self._resume[rank], time)
        self._missing[rank] -= 1
        if not self._missing[rank]:
            self._clock[rank] = self._resume[rank]
            heappush(self._heap, (self._resume[rank], rank))

    def _start(self, rank: int, op: Op) -> Handle:
        """The request of an operation, which is kept if it does not block."""
        handle = Handle(rank)
        if op.requests:
            slot = op.requests[0]
            if slot in self._requests[rank]:
                self.named = rank
                raise StepFailed(op.number, 7, f"rank {rank}: request {slot} is still in use")
            self._requests[rank][slot] = handle
        return handle

    def _finish(self, rank: int, op: Op, handle: Handle) -> bool:
        return bool(op.requests) or self._await(rank, (handle,))

    def _wait(self, rank: int, op: Op) -> bool:
        active = self._requests[rank]
        return self._await(rank, [active.pop(slot) for slot in op.requests if slot in active])

    def _test(self, rank: int, op: Op) -> bool:
        slot = op.requests[0]
        handle = self._requests[rank].get(slot)
        if handle and handle.done is not None and handle.done <= self._clock[rank]:
            del self._requests[rank][slot]
        return True

    # -- messages ----------------------------------------------------------------------------------------------

    def _send(self, rank: int, op: Op) -> bool:
        handle, now = self._start(rank, op), self._clock[rank]
        transit, wire = self._timing.message(rank, op, self._iteration[rank])
        payload = op.send
        if payload is not None and op.step is not None and "in_place" in op.step.operands:
            payload = payload.copy()  # its region is received into while the message waits
        message = UnmatchedSend(handle, op.nbytes, payload, now, transit, wire, None)
        key = (rank, op.peer, op.tag)
        posted = self._matcher.receive_for(key)
        if op.nbytes <= self._config.eager:
            self._transmit(rank, op.peer, message, now)
            if posted is None and message.payload is not None:
                message.payload = message.payload.copy()
        if posted is None:
            self._matcher.keep_message(key, message)
        else:
            self._pair(rank, op.peer, message, posted)
        return self._finish(rank, op, handle)

    def _receive(self, rank: int, op: Op) -> bool:
        handle = self._start(rank, op)
        posted = self._describe_posted(rank, op, handle)
        key = (op.peer, rank, op.tag)
        message = self._matcher.message_for(key)
        if message is None:
            self._matcher.keep_receive(key, posted)
        else:
            self._pair(op.peer, rank, message, posted)
        return self._finish(rank, op, handle)

    def _describe_posted(self, rank: int, op: Op, handle: Handle, anyone: bool = False) -> Posted:
        now, iteration, where = self._clock[rank], self._iteration[rank], mask(op.layout, op.nbytes)
        return Posted(handle, op.recv, op.nbytes, now, iteration, op.number, where, anyone)

    def _next(self, rank: int, op: Op) -> bool:
        source = self._matcher.earliest(op.choices, rank, op.tag)
        if source is not None:
            self._latest[rank] = source
            return self._receive(rank, op.choices[source])
        handle = Handle(rank)
        self._matcher.keep_for_anyone(rank, op.tag, self._describe_posted(rank, op, handle, anyone=True))
        return self._await(rank, (handle,))

    def _answer(self, rank: int, op: Op) -> bool:
        return self._send(rank, op.choices[self._latest[rank]])

    def _transmit(self, source: int, destination: int, message: UnmatchedSend, earliest: int) -> None:
        """Put a message on the link of its sender; the send is complete when its last byte has left."""
        ready = max(earliest, self._links[source])
        start, message.arrival = self.ports.message(source, destination, ready, message.transit, message.wire)
        self._links[source] = start + message.wire
        self._complete(message.handle, start + message.wire)

    def _pair(self, source: int, destination: int, message: UnmatchedSend, posted: Posted) -> None:
        if posted.anyone:
            self._latest[destination] = source
        if message.nbytes > posted.nbytes:
            self.named = destination
            text = f"rank {destination}: message of {message.nbytes} B truncated to {posted.nbytes} B"
            raise StepFailed(posted.number, 15, text)
        if message.arrival is None:
            self._transmit(source, destination, message, max(message.sent, posted.posted))
        assert message.arrival is not None
        if message.payload is not None and posted.room is not None:
            self._put(destination, posted.room, message.payload, posted.iteration, posted.where)
        self._complete(posted.handle, max(posted.posted, message.arrival))

    def _put(
        self, rank: int, room: Bytes, payload: Bytes, iteration: int, where: NDArray[np.bool_] | None = None
    ) -> None:
        copy_into(room[: payload.size], payload, where)
        self._flipper.deliver(rank, room[: payload.size], iteration)

    # -- collectives -------------------------------------------------------------------------------------------

    def _collective(self, rank: int, op: Op) -> bool:
        handle, group = self._start(rank, op), op.group
        number = self._joined[rank].get(group, 0)
        self._joined[rank][group] = number + 1
        call = self._calls.get((group, number))
        if call is None:
            call = self._calls[group, number] = CollectiveCall(op, len(group or self._hosts))
        place = group.index(rank) if group else rank
        self.named = rank
        call.check(rank, op)
        iteration = self._iteration[rank]
        duration = self._timing.collective(rank, op, iteration)

        def begin(opened: int) -> int:
            return self.ports.collective(group or range(len(self._hosts)), opened, op.channel, op.nic)

        leaving = call.join(place, op, self._clock[rank], duration, iteration, handle, begin)
        for participant in leaving:
            for room, data in call.received(participant):
                receiver = group[participant.rank] if group else participant.rank
                self._put(receiver, room, data, participant.iteration, mask(participant.op.layout, data.size))
            self._complete(participant.handle, participant.leaves)
        if call.over:
            del self._calls[group, number]
        return self._finish(rank, op, handle)

    # -- windows -----------------------------------------------------------------------------------------------

    def _access(self, rank: int, op: Op) -> bool:
        assert op.access is not None
        handle, iteration = self._start(rank, op), self._iteration[rank]
        transit, wire = self._timing.message(rank, op, iteration)
        ready = max(self._clock[rank], self._links[rank])
        start, arrival = self.ports.message(rank, op.peer, ready, transit, wire)
        self._links[rank] = start + wire
        self._windows.begin(rank, op.access, arrival, iteration)
        self._complete(handle, arrival)
        return True

    def _end(self, rank: int, op: Op) -> bool:
        self._clock[rank] = self._windows.complete(rank, op.peer, self._clock[rank])
        return True

    def _fence(self, rank: int, op: Op) -> bool:
        self._clock[rank] = self._windows.complete(rank, -1, self._clock[rank])
        return self._collective(rank, op)

    def _complete_access(self, rank: int, op: Op) -> bool:
        self._clock[rank] = self._windows.complete(rank, op.peer, self._clock[rank])
        return self._send(rank, op)

    # -- local operations --------------------------------------------------------------------------------------

    def _compute(self, rank: int, op: Op) -> bool:
        self._clock[rank] += op.ns
        return True

    def _flip(self, rank: int, op: Op) -> bool:
        if op.recv is not None and op.recv.size and op.iteration in (-1, self._iteration[rank]):
            np.bitwise_xor(op.recv[:1], 0xFF, out=op.recv[:1])
        return True

    def _reduce(self, rank: int, op: Op) -> bool:
        assert op.step is not None
        combine(op.step, op.send, op.recv, op.dtype, op.reduction)
        self._clock[rank] += op.ns
        return True

    def _host(self, rank: int, op: Op) -> bool:
        assert op.call is not None
        op.call(self._session)
        return True

    # -- ranks that are lost -----------------------------------------------------------------------------------

    def _strike(self, rank: int, op: Op) -> bool:
        """Whether an injected fault makes the rank hang here. Raises RankDied."""
        if not self._loop.is_body:
            return False
        for kind, fault in self._faults:
            if fault.rank == rank and fault.strikes(self._size, self._iteration[rank]):
                if kind is RankDied:
                    raise self._describe_loss(RankDied, rank)
                self._hung = rank
                return True
        return False

    def _deadlock(self) -> RankLost:
        """The error of a deadlock, which names the rank with an injected fault, else the one furthest behind."""
        if self._hung is not None:
            return self._describe_loss(RankHangs, self._hung)
        waiting = [r for r in range(len(self._clock)) if self._iteration[r] < self._loop.first + self._loop.count]
        return self._describe_loss(RankHangs, min(waiting, key=lambda r: (self._iteration[r], self._number(r), r)))

    def _describe_loss(self, kind: type[RankLost], rank: int) -> RankLost:
        op = self._ops[rank][self._pc[rank] - 1]
        assert op.step is not None
        iteration = self._iteration[rank] if self._loop.is_body else None
        return kind(rank, self._hosts[rank], op.number, describe(op.step), iteration, self._cell)

    def _number(self, rank: int) -> int:
        ops, pc = self._ops[rank], self._pc[rank]
        return ops[pc - 1].number if 0 < pc <= len(ops) else 0
