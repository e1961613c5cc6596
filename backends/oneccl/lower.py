"""A benchmark's program as calls of oneCCL on the host, which are done when they return.

A group of calls has no end there that one can wait for. So a step without a call of its own becomes another collective
or several, one after the other; a window of messages goes as blocking sends and receives, where all that a rank has in
flight go one way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from omb_py.backends.nccl.lower import Lowering, reduce_each
from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import World
from omb_py.engine.program.groups import group_of, on_group
from omb_py.engine.program.language import Blocks, Body, Node, Region, Step
from omb_py.errors import EnvironmentProblem

DIRECT: Final = frozenset({"alltoall", "alltoallv", "scatter"})
"""Calls of oneCCL that NCCL has not, or not in all versions."""
BROADCAST: Final = "bcast_from"
"""A broadcast that leaves what its root sends where it was."""
_OPPOSITE: Final = {"isend": frozenset({"irecv", "recv"}), "irecv": frozenset({"isend", "send"})}
_CALLS: Final = {"reduce_scatter": "onecclReduce for each rank", "allgatherv": "onecclBroadcast for each rank"}


class HostLowering(Lowering):
    """Translates bodies into calls that block."""

    title = "oneCCL"
    has_windows = False
    _posted = ""
    """The kind of message that is posted and not waited for yet."""

    def _synchronised(self, why: str) -> tuple[Node, ...]:
        return ()

    def _nodes(self, nodes: Body, grouped: bool) -> Body:
        return tuple(lowered for node in nodes for lowered in self._node(node, grouped))

    def _step(self, step: Step) -> Iterator[Node]:
        if step.op in _OPPOSITE.get(self._posted, ()):
            raise EnvironmentProblem(
                "oneCCL's sends and receives block on the host, so none goes both ways at once: use --backend mpi"
            )
        if step.op in _OPPOSITE:
            self._posted, self.calls = step.op, "blocking onecclSend and onecclRecv"
        elif step.op in ("wait", "waitall"):
            self._posted = ""
        yield from super()._step(step)

    def _split_call(self, step: Step, place: World) -> Iterator[Step]:
        self.calls = _CALLS.get(step.op, "onecclAllToAllV")
        if step.op == "reduce_scatter":
            calls = reduce_each(step, place)
        elif step.op == "allgatherv":
            calls = _broadcasts(step, place)
        else:
            calls = [_exchange(step, place)]
        yield from (on_group(call, group_of(step)) for call in calls)


def _exchange(step: Step, place: World) -> Step:
    """A gather or scatter as an exchange in which all but the root's blocks are empty."""
    gathers, root = step.op.startswith("gather"), step["root"]
    at_root, elsewhere = ("recv", "send") if gathers else ("send", "recv")
    own, whole = step[elsewhere], step[at_root]
    if not isinstance(whole, Blocks):
        equal = Blocks.packed(whole.buffer, (whole.nbytes // place.size,) * place.size)
        whole = replace(equal, offsets=tuple(whole.offset + at for at in equal.offsets), turn=whole.turn)
    sizes = tuple(own.nbytes if rank == root else 0 for rank in range(place.size))
    blocks = {at_root: whole, elsewhere: Blocks(own.buffer, sizes, (own.offset,) * place.size, own.turn)}
    return steps.alltoallv(blocks["send"], blocks["recv"], step["dtype"])


def _broadcasts(step: Step, place: World) -> list[Step]:
    calls, blocks = [], step["recv"]
    for rank in range(place.size):
        into: Region = blocks.block(rank)
        if into.nbytes:
            send = step["send"] if rank == place.rank else into
            calls.append(Step(BROADCAST, {"send": send, "recv": into, "root": rank, "dtype": step["dtype"]}))
    return calls
