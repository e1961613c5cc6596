"""A step in words, for ``explain``, the watchdog and errors; and how steps are numbered."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from omb_py.engine.benchmark import Cell
from omb_py.engine.program import Body, Region, Repeat, Request, Requests, Result, Stage, Step


def describe(step: Step) -> str:
    """What a step does, in a few words.

    >>> from omb_py.engine import steps
    >>> describe(steps.recv(Region("recv", 0, 8), 0, "char"))
    'recv 8 B from 0'
    """
    words = _WORDS.get(step.op)
    return words(step) if words else _plain(step)


def describe_cell(cell: Cell) -> str:
    """What a cell is called in messages: ``allreduce 8 B``, or ``barrier`` where there is no size."""
    return f"{cell.benchmark} {cell.size} B" if cell.size else cell.benchmark


def steps_of(stage: Stage) -> tuple[Step, ...]:
    """The steps of a stage by number.

    Numbers start at 0 and run through the variants of the body, as the bindings number them; then through setup
    and teardown. A step inside a repeat has one number for all passes; laps and host calls have none.
    """
    return tuple(step for part in parts(stage) for step in _steps(part))


def parts(stage: Stage) -> tuple[Body, ...]:
    """The bodies of a stage in the order of their step numbers: variants, setup, teardown."""
    return (*stage.variants, stage.setup, stage.teardown)


def count_steps(nodes: Body) -> int:
    """How many step numbers a body takes."""
    return sum(1 for _ in _steps(nodes))


def _steps(nodes: Body) -> Iterator[Step]:
    for node in nodes:
        if isinstance(node, Repeat):
            yield from _steps(node.body)
        elif isinstance(node, Step):
            yield node


def _time(nanoseconds: int) -> str:
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.6g} {unit}"
    return f"{nanoseconds} ns"


def _operand(value: object) -> str:
    """An operand as written in a step's text."""
    match value:
        case Region():
            return f"{value.nbytes} B of {value.buffer}"
        case Request(index, 0):
            return f"request {index}"
        case Request(index, stride):
            return f"request {index}+{stride}k" if stride != 1 else f"request {index}+k"
        case Requests(first, 1):
            return f"request {first}"
        case Requests(first, count):
            return f"requests {first} to {first + count - 1}" if count else "no requests"
        case Result(stage, lap):
            return f"as long as lap {lap} of stage {stage} took"
        case _:
            return str(value)


def _plain(step: Step) -> str:
    """The text of a step that this module does not know: its name and operands."""
    return " ".join([step.op, *(f"{name}={_operand(value)}" for name, value in step.operands.items())])


def _to(step: Step) -> str:
    return f"{step.op} {step['send'].nbytes} B to {step['peer']}"


def _from(step: Step) -> str:
    return f"{step.op} {step['recv'].nbytes} B from {step['peer']}"


def _reduction(step: Step) -> str:
    return f"{step.op} {step['send'].nbytes} B {step['dtype']} {step['op']}"


def _exchange(step: Step) -> str:
    return f"{step.op} {step['send'].nbytes} B from each rank"


def _compute(step: Step) -> str:
    return f"compute {_time(step['ns']) if isinstance(step['ns'], int) else _operand(step['ns'])}"


def _flip(step: Step) -> str:
    when = f" in iteration {step['iteration']}" if step["iteration"] >= 0 else ""
    return f"flip a byte of {step['recv'].buffer}{when}"


def _requested(words: Callable[[Step], str]) -> Callable[[Step], str]:
    return lambda step: f"{words(step)}, {_operand(step['request'])}"


_WORDS: dict[str, Callable[[Step], str]] = {
    "send": _to,
    "recv": _from,
    "isend": _requested(_to),
    "irecv": _requested(_from),
    "wait": lambda step: f"wait for {_operand(step['request'])}",
    "waitall": lambda step: f"wait for {_operand(step['requests'])}",
    "test": lambda step: f"test {_operand(step['request'])}",
    "barrier": lambda step: "barrier",
    "ibarrier": _requested(lambda step: "ibarrier"),
    "bcast": lambda step: f"bcast {step['buf'].nbytes} B from root {step['root']}",
    "allreduce": _reduction,
    "iallreduce": _requested(_reduction),
    "allgather": _exchange,
    "alltoall": _exchange,
    "reduce": lambda step: f"{_reduction(step)} to root {step['root']}",
    "reduce_scatter_block": _reduction,
    "gather": lambda step: f"gather {step['send'].nbytes} B from each rank to root {step['root']}",
    "scatter": lambda step: f"scatter {step['recv'].nbytes} B to each rank from root {step['root']}",
    "compute": _compute,
    "flip": _flip,
}
