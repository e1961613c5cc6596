"""The protobuf messages of a Chakra trace, read by descriptors that are built here, without a compiler or its output.

Numbers and types of the fields are those of et_def.proto of github.com/mlcommons/chakra: schema/protobuf/ since 0.0.4
(``Node``; later versions keep its numbers), et_def/ in 2023 (``Node2023``, whose attributes name their type) and before
(``Node2022``, without attributes). A file is a GlobalMetadata, which the oldest lack, then the nodes, each after
its length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from io import BytesIO
from typing import Any, Final

from omb_py.distribution import pip_install
from omb_py.errors import EnvironmentProblem, UsageError

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
_VARINT, _DELIMITED = 0, 2
"""Wire types (protobuf.dev, Encoding)."""
_LAST_TYPE_2023: Final = 7


@cache
def _classes() -> Mapping[str, Any]:
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


def _read(data: bytes, kind: str, skip: int = 0) -> Iterator[Any]:
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


def _unnamed(message: Any) -> Iterator[tuple[int, int, Any]]:
    """Number, wire type and value of the fields that a message's class does not name."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    for field in UnknownFieldSet(message):
        yield field.field_number, field.wire_type, field.data


def numbers(attribute: Any) -> list[int]:
    """The numbers of an attribute of 2023, the only varints: in that year they moved from field 5 to 7."""
    return [value for _, wire, value in _unnamed(attribute) if wire == _VARINT]


def _layout(data: bytes) -> tuple[str, int]:
    """The name of the nodes' message, from the first that shows it, and the number of messages before the nodes."""
    before = 0
    for place, message in enumerate(_read(data, "Raw")):
        fields = {(number, wire): value for number, wire, value in _unnamed(message)}
        if place == 0 and not any(wire == _VARINT for _, wire in fields):
            before = 1  # GlobalMetadata has texts and attributes; a node has a type, or an id
        elif (11, _DELIMITED) in fields and fields.get((3, _VARINT), 0) <= _LAST_TYPE_2023:
            return "Node2023", before  # in later ones field 11 is for types of nodes that 2023 did not have
        elif (13, _VARINT) in fields or (18, _VARINT) in fields:
            return "Node2022", before
        elif (10, _DELIMITED) in fields:
            return "Node", before
    return "Node", before


def nodes_of(data: bytes) -> tuple[str, list[Any]]:
    """The name of the nodes' message and the nodes, as they stand in the file.

    Raises:
        UsageError: the file is cut off, or no Chakra trace.
        EnvironmentProblem: protobuf is missing.
    """
    kind, before = _layout(data)
    return kind, list(_read(data, kind, before))
