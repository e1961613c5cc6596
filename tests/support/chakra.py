"""Chakra traces written byte by byte after et_def.proto, apart from what reads them."""

from __future__ import annotations

import struct
from collections.abc import Iterable

TYPES = tuple(
    (
        "ALL_REDUCE REDUCE ALL_GATHER GATHER SCATTER BROADCAST ALL_TO_ALL REDUCE_SCATTER REDUCE_SCATTER_BLOCK BARRIER"
    ).split()
)
METADATA_NODE, COMP_NODE, SEND_NODE, RECV_NODE, COLL_NODE = 1, 4, 5, 6, 7


def varint(number: int) -> bytes:
    number, out = number % 2**64, []
    while number > 127:
        out.append(number % 128 + 128)
        number //= 128
    return bytes([*out, number])


def field(number: int, value: int | float | bytes | str) -> bytes:
    """An integer as a varint, a float in four bytes, a text or message after its length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def fixed(number: int, value: int, form: str) -> bytes:
    return varint(number << 3 | (5 if form[-1] in "iI" else 1)) + struct.pack(form, value)


def attribute(name: str, value: int | str | list[bool], number: int = 9) -> bytes:
    """AttributeProto since 0.0.4: int64_val, unless another field of the value is asked for."""
    if isinstance(value, list):
        return field(1, name) + field(28, field(1, bytes(value)))
    return field(1, name) + field(29 if isinstance(value, str) else number, value)


def node(
    id_: int,
    name: str,
    type_: int,
    *attributes: bytes,
    after: Iterable[int] = (),
    parents: Iterable[int] = (),
    values: str = "",
    shapes: str = "",
    types: str = "",
) -> bytes:
    """A Node since 0.0.4, written as proto3 writes: no field for a zero, numbers of a list in one."""
    out = (field(1, id_) if id_ else b"") + field(2, name) + (field(3, type_) if type_ else b"")
    for number, deps in ((4, parents), (5, after)):
        packed = b"".join(map(varint, deps))
        out += field(number, packed) if packed else b""
    if values or shapes or types:
        out += field(8, field(1, values) + field(2, shapes) + field(3, types))
    return out + b"".join(field(10, some) for some in attributes)


def collective(
    id_: int, type_: str | int, nbytes: int, *more: bytes, after: Iterable[int] = (), types: str = ""
) -> bytes:
    """As the generator of Chakra writes it."""
    number = TYPES.index(type_) if isinstance(type_, str) else type_
    said = field(1, "is_cpu_op") + field(27, 0), attribute("comm_type", number), attribute("comm_size", nbytes)
    return node(id_, f"COLL_{id_}", COLL_NODE, *said, *more, after=after, types=types)


def metadata(version: str = "0.0.4") -> bytes:
    """GlobalMetadata since 0.0.4."""
    return field(1, version)


def trace(*messages: bytes) -> bytes:
    """A file: each message after its length."""
    return b"".join(varint(len(message)) + message for message in messages)
