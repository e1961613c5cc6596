"""The forms of recorded steps, as their files have them: a reader checks each value that it uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from omb_py.grammar.json_values import JsonValue

CallArguments = TypedDict(
    "CallArguments",
    {
        "Collective name": str,
        "In msg nelems": JsonValue,
        "Group size": JsonValue,
        "dtype": JsonValue,
        "Input Dims": Sequence[JsonValue],
        "Input type": Sequence[JsonValue],
    },
    total=False,
)


class KinetoEvent(TypedDict, total=False):
    """An event of a Kineto trace; times are in us."""

    ph: str
    cat: str
    name: str
    ts: float
    dur: float | None
    pid: int | str
    tid: int | str
    args: CallArguments | None


class NodeAttribute(TypedDict):
    name: str
    value: JsonValue


class NodeInputs(TypedDict, total=False):
    shapes: Sequence[JsonValue]
    types: Sequence[JsonValue]


class ExecutionNode(TypedDict, total=False):
    """A node of an execution trace; the file may name the node around it ``ctrl_deps`` or ``parent``."""

    id: int
    name: str
    ctrl_deps: int
    parent: int
    attrs: Sequence[NodeAttribute]
    inputs: NodeInputs | Sequence[JsonValue]
    input_shapes: Sequence[JsonValue]
    input_types: Sequence[JsonValue]


class ExecutionTrace(TypedDict):
    nodes: list[ExecutionNode]


class BasicCall(TypedDict, total=False):
    """An entry of param's basic list."""

    comms: str
    world_size: JsonValue
    in_msg_size: JsonValue
    dtype: str
