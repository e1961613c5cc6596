"""A step in words, for ``explain``, the watchdog and errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from omb_py.engine.program.benchmark import Cell
from omb_py.engine.program.language import Blocks, Region, Requests, RequestSlot, Result, Step
from omb_py.engine.program.rma import EXPOSED, OPERATIONS, SYNCHRONISATIONS
from omb_py.engine.program.steps import base


def describe(step: Step) -> str:
    """The text of a step, in a few words.

    >>> from omb_py.engine.program import steps
    >>> describe(steps.recv(Region("recv", 0, 8), 0, "char"))
    'recv 8 B from 0'
    """
    words = _WORDS.get(step.op)
    if words:
        text = words(step)
    elif base(step.op) in _WORDS and "request" in step.operands:
        text = f"{_WORDS[base(step.op)](step)}, {_operand(step['request'])}"
    else:
        return _plain(step)
    text = f"{text}, in place" if "in_place" in step.operands else text
    return f"{text}, among ranks {among(step['group'])}" if "group" in step.operands else text


def among(group: Sequence[int]) -> str:
    """Some ranks in a few words: ``0, 1, 2, 3``, or ``0, 4, 8, … 28`` where they are many."""
    if len(group) <= 4:
        return ", ".join(map(str, group))
    return f"{', '.join(map(str, group[:3]))}, … {group[-1]}"


def describe_cell(cell: Cell) -> str:
    """Name of a cell in messages: ``allreduce 8 B``, or ``barrier`` where there is no size."""
    return f"{cell.benchmark} {cell.size} B" if cell.size else cell.benchmark


def _time(nanoseconds: int) -> str:
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.6g} {unit}"
    return f"{nanoseconds} ns"


def _operand(value: object) -> str:
    match value:
        case Region() | Blocks():
            return f"{value.nbytes} B of {value.buffer}"
        case RequestSlot(index, 0):
            return f"request {index}"
        case RequestSlot(index, stride):
            return f"request {index}+{stride}k" if stride != 1 else f"request {index}+k"
        case Requests(first, 1):
            return f"request {first}"
        case Requests(first, count):
            return f"requests {first} to {first + count - 1}" if count else "no requests"
        case Result(stage, lap, share):
            part = "" if share == 1 else f"1/{share:.4g} "
            return f"{part}as long as {f'lap {lap} of ' if lap else ''}stage {stage} took"
        case _:
            return str(value)


def _plain(step: Step) -> str:
    return " ".join([step.op, *(f"{name}={_operand(value)}" for name, value in step.operands.items())])


def _to(step: Step) -> str:
    return f"{step.op} {step['send'].nbytes} B to {step['peer']}"


def _from(step: Step) -> str:
    return f"{step.op} {step['recv'].nbytes} B from {step['peer']}"


def _describe_both_ways(step: Step) -> str:
    sent = step.operands.get("send", step.operands.get("replaced"))
    return f"{step.op} {_operand(sent)} to {step['target']}, from {step['source']}"


def _reduction(step: Step) -> str:
    return f"{step.op} {step['send'].nbytes} B {step['dtype']} {step['op']}"


def _exchange(step: Step) -> str:
    return f"{step.op} {step['send'].nbytes} B from each rank"


def _blocks(step: Step) -> str:
    return f"{step.op} {step['send'].nbytes} B out, {step['recv'].nbytes} B in"


def _edges(step: Step) -> str:
    targets, sources = len(step["targets"]), len(step["sources"])
    return f"{step.op} {step['send'].nbytes} B to {targets}, {step['recv'].nbytes} B from {sources} neighbors"


def _compute(step: Step) -> str:
    return f"compute {_time(step['ns']) if isinstance(step['ns'], int) else _operand(step['ns'])}"


def _flip(step: Step) -> str:
    when = f" in iteration {step['iteration']}" if step["iteration"] >= 0 else ""
    return f"flip a byte of {step['recv'].buffer}{when}"


def _describe_one_sided(step: Step) -> str:
    op = f" {step['op']}" if "op" in step.operands else ""
    way = "from" if step.op in ("get", "rget") else "into"
    return f"{step.op} {step['window'].nbytes} B{op} {way} the window of {step['peer']}"


def _describe_exposed(step: Step) -> str:
    return f"(rank {step['peer']}: {step['call']} {step['window'].nbytes} B of this window)"


def _synchronise(step: Step) -> str:
    text = f"{step.op} {step['peer']}" if "peer" in step.operands else step.op
    return f"{text}, exclusive" if "exclusive" in step.operands else text


_WORDS: dict[str, Callable[[Step], str]] = {
    "send": _to,
    "recv": _from,
    "recv_any": lambda step: f"recv {step['recv'].nbytes} B from any rank",
    "recv_next": lambda step: f"recv {step['recv'].nbytes} B from the first of {among(step['senders'])} to come",
    "answer": lambda step: f"answer {step['send'].nbytes} B to the rank that came last",
    "sendrecv": _describe_both_ways,
    "sendrecv_replace": _describe_both_ways,
    "psend": lambda step: f"{_to(step)} in {step['partitions']} partitions",
    "precv": lambda step: f"{_from(step)} in {step['partitions']} partitions",
    "pready": lambda step: f"declare partition {step['partition']} of {_operand(step['request'])} ready",
    "parrived": lambda step: f"ask for partition {step['partition']} of {_operand(step['request'])}",
    "wait": lambda step: f"wait for {_operand(step['request'])}",
    "waitall": lambda step: f"wait for {_operand(step['requests'])}",
    "test": lambda step: f"test {_operand(step['request'])}",
    "start": lambda step: f"start {_operand(step['request'])}",
    "startall": lambda step: f"start {_operand(step['requests'])}",
    "free": lambda step: f"free {_operand(step['request'])}",
    "barrier": lambda step: step.op,
    "bcast": lambda step: f"{step.op} {step['buf'].nbytes} B from root {step['root']}",
    "allreduce": _reduction,
    "scan": _reduction,
    "exscan": _reduction,
    "reduce_local": _reduction,
    "allgather": _exchange,
    "alltoall": _exchange,
    "reduce": lambda step: f"{_reduction(step)} to root {step['root']}",
    "reduce_scatter_block": _reduction,
    "reduce_scatter": _reduction,
    "gather": lambda step: f"{step.op} {step['send'].nbytes} B from each rank to root {step['root']}",
    "scatter": lambda step: f"{step.op} {step['recv'].nbytes} B to each rank from root {step['root']}",
    "gatherv": lambda step: f"{step.op} {step['send'].nbytes} B of this rank to root {step['root']}",
    "scatterv": lambda step: f"{step.op} {step['recv'].nbytes} B to this rank from root {step['root']}",
    "allgatherv": lambda step: f"{step.op} {step['send'].nbytes} B of {step['recv'].nbytes} B",
    "alltoallv": _blocks,
    "alltoallw": _blocks,
    "neighbor_allgather": _edges,
    "neighbor_allgatherv": _edges,
    "neighbor_alltoall": _edges,
    "neighbor_alltoallv": _edges,
    "neighbor_alltoallw": _edges,
    "comm_dup": lambda step: "comm_dup",
    "comm_split": lambda step: f"comm_split into {step['parts']}",
    "comm_create": lambda step: "comm_create of all ranks",
    "comm_shrink": lambda step: "comm_shrink",
    "comm_grow": lambda step: f"comm_grow from ranks {among(step['old'])}",
    "comm_free": lambda step: "comm_free",
    **dict.fromkeys(OPERATIONS, _describe_one_sided),
    **dict.fromkeys(SYNCHRONISATIONS, _synchronise),
    EXPOSED: _describe_exposed,
    "compute": _compute,
    "matmul": lambda step: f"matmul {step['rows']} × {step['side']} by {step['side']} × {step['side']}",
    "zero": lambda step: f"zero {_operand(step['send'])}",
    "flip": _flip,
}
