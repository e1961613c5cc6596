"""Chakra execution traces: their messages in protobuf, and the calls that they record."""

from __future__ import annotations

import json
import re
from ast import literal_eval
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from heapq import heapify, heappop, heappush
from io import BytesIO
from typing import Any, Final, TypeAlias

from omb_py.distribution import pip_install
from omb_py.engine.program.dtypes import DTYPES
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.grammar.json_values import JsonValue
from omb_py.suites.workloads.traces.forms import ExecutionNode, ExecutionTrace, NodeAttribute, NodeInputs
from omb_py.suites.workloads.traces.replay import element_type

_SCHEMA: Final[Mapping[str, Mapping[str, str]]] = {
    "Raw": {},
    "Bools": {"values": "1 bool*"},
    "Tensors": {"values": "1 bytes", "shapes": "2 bytes", "types": "3 bytes"},
    "Attribute": {
        "name": "1 bytes",
        "int32_val": "7 int32",
        "int64_val": "9 int64",
        "uint32_val": "11 uint32",
        "uint64_val": "13 uint64",
        "sint32_val": "15 sint32",
        "sint64_val": "17 sint64",
        "fixed32_val": "19 fixed32",
        "fixed64_val": "21 fixed64",
        "sfixed32_val": "23 sfixed32",
        "sfixed64_val": "25 sfixed64",
        "bool_list": "28 Bools",
        "string_val": "29 bytes",
    },
    "Node": {
        "id": "1 uint64",
        "name": "2 bytes",
        "type": "3 uint64",
        "ctrl_deps": "4 uint64*",
        "data_deps": "5 uint64*",
        "inputs": "8 Tensors",
        "attr": "10 Attribute*",
    },
    "Attribute2023": {"name": "1 bytes", "type": "2 uint64"},
    "Node2023": {
        "id": "1 uint64",
        "name": "2 bytes",
        "parent": "4 uint64*",
        "input_types": "7 bytes",
        "attribute": "11 Attribute2023*",
    },
    "Node2022": {
        "id": "1 uint64",
        "name": "2 bytes",
        "parent": "4 uint64*",
        "comm_type": "13 uint64",
        "involved_dim": "14 bool*",
        "comm_size": "18 uint64",
    },
}
"""Message -> field -> number and type (* repeated) of the fields that are read; others are skipped."""
Message: TypeAlias = Any
"""A message of protobuf. Its class is made at run time from :data:`_SCHEMA`, which names its fields."""
_VARINT, _DELIMITED = 0, 2
"""Wire types (protobuf.dev, Encoding)."""
_LAST_TYPE_2023: Final = 7


@cache
def _classes() -> Mapping[str, type[Message]]:
    """Name of a message -> its class. Raises EnvironmentProblem if protobuf is missing."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
        from google.protobuf.proto import parse_length_prefixed  # noqa: F401  (releases before 5.29 lack it)
    except ImportError:
        raise EnvironmentProblem(f"a Chakra trace needs protobuf: {pip_install('chakra')}") from None
    proto = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="omb_py_chakra.proto", package="omb_py.chakra")
    for message_name, fields in _SCHEMA.items():
        message = file.message_type.add(name=message_name)
        for name, declaration in fields.items():
            number, kind = declaration.rstrip("*").split()
            field = message.field.add(name=name, number=int(number))
            field.label = proto.LABEL_REPEATED if declaration.endswith("*") else proto.LABEL_OPTIONAL
            field.type = proto.TYPE_MESSAGE if kind in _SCHEMA else getattr(proto, f"TYPE_{kind.upper()}")
            if kind in _SCHEMA:
                field.type_name = f".{file.package}.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.{name}")) for name in _SCHEMA
    }


def _read(data: bytes, kind: str, skip: int = 0) -> Iterator[Message]:
    """The messages of a file after the first `skip`. Raises UsageError at one that cannot be read."""
    classes = _classes()
    from google.protobuf.message import DecodeError
    from google.protobuf.proto import parse_length_prefixed

    stream, count = BytesIO(data), 0
    while True:
        start = stream.tell()
        try:
            message = parse_length_prefixed(classes["Raw" if count < skip else kind], stream)
            if message is None and stream.tell() > start:
                raise ValueError("the file ends within a length")
        except (DecodeError, OverflowError, ValueError):
            if start == 0:
                raise UsageError("neither JSON nor a Chakra trace") from None
            raise UsageError(f"cut off, or no Chakra trace: message {count + 1}, at byte {start}, is broken") from None
        if message is None:
            return
        if count >= skip:
            yield message
        count += 1


def _read_unnamed(message: Message) -> Iterator[tuple[int, int, int]]:
    """Number, wire type and value of the fields that a message's class does not name."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    for field in UnknownFieldSet(message):
        yield field.field_number, field.wire_type, field.data


def numbers(attribute: Message) -> list[int]:
    """The numbers of an attribute of 2023, the only varints: in that year they moved from field 5 to 7."""
    return [value for _, wire, value in _read_unnamed(attribute) if wire == _VARINT]


def _layout(data: bytes) -> tuple[str, int]:
    """The name of the nodes' message, from the first that shows it, and the number of messages before the nodes."""
    before = 0
    for place, message in enumerate(_read(data, "Raw")):
        fields = {(number, wire): value for number, wire, value in _read_unnamed(message)}
        if place == 0 and not any(wire == _VARINT for _, wire in fields):
            before = 1  # GlobalMetadata has texts and attributes; a node has a type, or an id
        elif (11, _DELIMITED) in fields and fields.get((3, _VARINT), 0) <= _LAST_TYPE_2023:
            return "Node2023", before  # in later ones field 11 is for types of nodes that 2023 did not have
        elif (13, _VARINT) in fields or (18, _VARINT) in fields:
            return "Node2022", before
        elif (10, _DELIMITED) in fields:
            return "Node", before
    return "Node", before


def nodes_of(data: bytes) -> tuple[str, list[Message]]:
    """The name of the nodes' message and the nodes, as they stand in the file.

    Raises:
        UsageError: the file is cut off, or no Chakra trace.
        EnvironmentProblem: protobuf is missing.
    """
    kind, before = _layout(data)
    return kind, list(_read(data, kind, before))


_SEND, _RECEIVE, _COLLECTIVE, _LAST = 5, 6, 7, 10
"""Node types since 0.0.4. The others up to `_LAST` are metadata, memory, computing and storage."""
_TYPES: Final = tuple(
    (
        "ALL_REDUCE REDUCE ALL_GATHER GATHER SCATTER BROADCAST ALL_TO_ALL REDUCE_SCATTER REDUCE_SCATTER_BLOCK BARRIER"
    ).split()
)
_TYPES_2023: Final = ("ALL_REDUCE", "ALL_TO_ALL", "ALL_GATHER", "REDUCE_SCATTER", "BROADCAST")
_TYPES_2022: Final = ("INVALID", "ALL_REDUCE", "ALL_TO_ALL", "ALL_GATHER", "REDUCE_SCATTER")


@dataclass(frozen=True, slots=True)
class _Node:
    id: int
    name: str
    after: tuple[int, ...]
    """The nodes that it waits for."""
    takes: tuple[int, ...]
    """Those of them whose data it takes; the others control it."""
    call: str = ""
    """Name of the collective or unknown type, ``send``, ``recv`` (``message`` before 0.0.4); or empty."""
    nbytes: int | None = None
    group: str = ""
    """Name of its process group."""
    part: str = ""
    """Name of the ranks of a call that spans only some dimensions of a machine (ASTRA-sim)."""
    types: str = ""
    shapes: str = ""
    values: str = ""


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _dimension_mask(dimensions: Iterable[int]) -> str:
    flags = "".join(str(int(flag)) for flag in dimensions)
    return f"dimensions{flags}" if "0" in flags else ""


def _collective(number: object, known: tuple[str, ...]) -> str:
    if number is None:
        return "no comm_type"
    return known[number] if isinstance(number, int) and 0 <= number < len(known) else f"comm_type {number}"


def _read_since_0_0_4(node: Message) -> _Node:
    call, inputs = "", node.inputs
    values: dict[str, Any] = {}
    if node.type in (_SEND, _RECEIVE, _COLLECTIVE) or node.type > _LAST:
        for attribute in node.attr:
            for field, value in attribute.ListFields():
                if field.name != "name":
                    values[_text(attribute.name)] = value
        words = {_SEND: "send", _RECEIVE: "recv", _COLLECTIVE: _collective(values.get("comm_type"), _TYPES)}
        call = words.get(node.type, f"node type {node.type}")
        if "comm_type" not in values and node.name.startswith(b"c10d::"):
            call = ""  # the operator around a collective
    dimensions = getattr(values.get("involved_dim"), "values", ())
    return _Node(
        node.id,
        _text(node.name),
        (*node.ctrl_deps, *node.data_deps),
        tuple(node.data_deps),
        call,
        values.get("comm_size", values.get("tensor_size")),
        _text(values.get("pg_name", "")),
        _dimension_mask(dimensions),
        _text(inputs.types),
        _text(inputs.shapes),
        _text(inputs.values),
    )


def _read_2023(node: Message) -> _Node:
    values = {_text(attribute.name): numbers(attribute) for attribute in node.attribute}
    first = {name: series[0] for name, series in values.items() if series}
    call, nbytes = "", first.get("comm_size")
    if "comm_type" in values:
        call = _collective(first.get("comm_type"), _TYPES_2023)
    elif nbytes is not None:
        call = "message"
    part = _dimension_mask(values.get("involved_dim", ()))
    types = _text(node.input_types)
    after = tuple(node.parent)
    return _Node(node.id, _text(node.name), after, after, call, nbytes, part=part, types=types)


def _read_2022(node: Message) -> _Node:
    call = ""
    if node.comm_type:
        call = _collective(node.comm_type, _TYPES_2022)
    elif node.comm_size:
        call = "message"
    nbytes, after = node.comm_size if node.HasField("comm_size") else None, tuple(node.parent)
    return _Node(node.id, _text(node.name), after, after, call, nbytes, part=_dimension_mask(node.involved_dim))


_LAYOUTS: Final = {"Node": _read_since_0_0_4, "Node2023": _read_2023, "Node2022": _read_2022}


def _order(nodes: list[_Node]) -> Iterator[_Node]:
    """The nodes in the order of the file, but each after those that it waits for. Raises UsageError for a cycle.

    In a converted trace an operator and its kernels may control each other; then data alone gives the order.
    """
    place = {node.id: at for at, node in enumerate(nodes)}
    for waits in ([node.after for node in nodes], [node.takes for node in nodes]):
        sorter = TopologicalSorter(
            {at: [place[id_] for id_ in after if place.get(id_, at) != at] for at, after in enumerate(waits)}
        )
        try:
            sorter.prepare()
            break
        except CycleError as error:
            names = " → ".join(nodes[at].name or str(nodes[at].id) for at in error.args[1][:4])
    else:
        raise UsageError(f"nodes wait for each other: {names}")
    ready = list(sorter.get_ready())
    heapify(ready)
    while ready:
        at = heappop(ready)
        yield nodes[at]
        sorter.done(at)
        for freed in sorter.get_ready():
            heappush(ready, freed)


def _sizes(nodes: list[_Node]) -> dict[str, int]:
    """Name of each process group -> its number of ranks, from the node in which PyTorch records them."""
    sizes = {}
    values = (node.values for node in nodes if "process_group:init" in node.name)
    for text in (text for value in values for text in re.findall(r"\{[^{}]*\}", value)):
        try:
            group = json.loads(text)
            sizes[str(group["pg_name"])] = max(0, int(group.get("group_size") or len(group["ranks"])))
        except (KeyError, TypeError, ValueError):
            continue  # an unknown form, so the size of the group stays unknown
    return sizes


def _parse_list(text: str) -> list[JsonValue]:
    """The list that Python printed as `text`; empty if it is no list."""
    try:
        value = literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return []
    return value if isinstance(value, list) else []


def _bytes(node: _Node) -> int:
    if node.call == "BARRIER":
        return 0
    if node.nbytes is None and node.call in _TYPES:
        raise UsageError(f"node {node.id} ({node.name}, {node.call}) has no comm_size")
    nbytes = node.nbytes or 0
    if not isinstance(nbytes, int) or nbytes < 0:
        raise UsageError(f"node {node.id} ({node.name}): comm_size is no number of bytes")
    return nbytes


def _elements(nbytes: int, types: str) -> tuple[int, str]:
    """Elements and their type: that of the first input tensor, else float32, else uint8, as the bytes divide."""
    for word in (*re.findall(r"Tensor\(([^()]*)\)", types)[:1], "float32"):
        try:
            dtype = element_type(word)
        except UsageError:
            continue
        if nbytes % DTYPES[dtype].itemsize == 0:
            return nbytes // DTYPES[dtype].itemsize, dtype
    return nbytes, "uint8"


def execution_trace(data: bytes) -> ExecutionTrace:
    """The collectives and messages of a Chakra trace, in an order in which its nodes can run.

    A trace without any, as one converted from a run over Gloo, gives its operators ``c10d::…`` instead.

    Raises:
        UsageError: the file is cut off or no trace, nodes wait for each other, or a collective has no size.
        EnvironmentProblem: protobuf is missing.
    """
    kind, messages = nodes_of(data)
    nodes = [_LAYOUTS[kind](message) for message in messages]
    sizes, calls = _sizes(nodes), [node for node in nodes if node.call]
    several = len({node.group for node in calls}) > 1
    converted: list[ExecutionNode] = []
    for place, node in enumerate(_order(nodes)):
        if node.call:
            ranks = sizes.get(node.group, 0)
            unknown = node.part or (node.group if several and not ranks else "")
            elements, dtype = _elements(_bytes(node), node.types)
            fields: dict[str, JsonValue] = {
                "collective_name": f"{node.call}@{unknown}" if unknown else node.call,
                "in_msg_nelems": elements,
                "dtype": dtype,
                "pg_size": ranks,
            }
            attributes: list[NodeAttribute] = [{"name": name, "value": value} for name, value in fields.items()]
            converted.append({"id": place, "name": node.name, "attrs": attributes})
        elif not calls and node.name.startswith("c10d::"):
            tensors: NodeInputs = {"shapes": _parse_list(node.shapes), "types": _parse_list(node.types)}
            converted.append({"id": place, "name": node.name, "inputs": tensors})
    return {"nodes": converted}
