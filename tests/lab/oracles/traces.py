"""Traces: each call that was read has its number of elements in the trace; a packed one is the same or refused."""

from __future__ import annotations

import gzip
import json
import math
import random
import re
import tempfile
from itertools import pairwise
from pathlib import Path

from omb_py.engine.program.dtypes import DTYPES
from omb_py.suites.workloads.traces.replay import read_calls, travelling
from tests.lab.oracles.inputs import Judge, changed
from tests.suites.workloads.traces.test_replay import BASIC, CHAKRA, KINETO
from tests.support.chakra import collective, metadata, trace

JSON = [json.dumps(each, indent=1).encode() for each in (BASIC, KINETO, CHAKRA)]
WORDS = (
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b'"',
        b"null",
        b"true",
        b"-1",
        b"1.5",
        b"1e999",
        b"NaN",
        b"9" * 30,
        b"9" * 5000,
    ),
    *(
        b"[" * 3000,
        b"\n",
        b"\xff",
        b"\0",
        b'"ts": 3, ',
        b'"name": "c10d::allreduce", ',
        b'"Input Dims": [[3, 4]], ',
        b"\\u0000",
    ),
)
PROTOBUF = [
    trace(metadata(), collective(1, "ALL_REDUCE", 4096), collective(2, "ALL_GATHER", 1 << 20, after=(1,))),
    trace(metadata(), *(collective(n, "BROADCAST", 12 * n, types="['Tensor(float)']") for n in range(1, 6))),
]
BYTES = (*(bytes([n]) for n in (0, 1, 7, 8, 10, 0x12, 0x18, 0x7F, 0x80, 0xFF)), b"\xff" * 9 + b"\1", b"\x80" * 12)
PACKED = [gzip.compress(data, mtime=0) for data in JSON]


def read(data: bytes) -> list[tuple[str, int, str]]:
    """Name, elements and type of each call. Raises OmbError."""
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(data)
        return [entry[:3] for _, entry in read_calls(travelling(f"@{file.name}"))]


def of_json(rng: random.Random) -> tuple[int, list[str]]:
    """Each count is a number of the text, or the product of some that follow each other."""
    data = changed(rng, JSON, WORDS, b'0123456789abce_=,.":-+[]{}\n ')
    calls = read(data)
    words = [float(word) for word in re.findall(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?", data) if len(word) < 300]
    lists = re.findall(rb"\[([-\d.eE,\s]*)\]", data)
    known = {
        0.0,
        *words,
        *(math.prod(float(n) for n in re.findall(rb"[-\d.eE]+", each)) for each in lists if each.strip()),
    }
    text = re.sub(r"\\u[0-9a-fA-F]{4}|\\[bfnrt]", " ", data.decode(errors="replace"))  # letters in names are plain
    letters = re.sub(r"[^a-z0-9]", "", text.lower())
    wrong = [f"{name} of {count} elements" for name, count, _ in calls if count not in known]
    wrong += [f"no {name} in the text" for name, _, _ in calls if name.partition("@")[0] not in letters]
    return len(calls), wrong


def of_packed(rng: random.Random) -> tuple[int, list[str]]:
    """A packed trace has a checksum: the calls are those of a trace that was packed."""
    calls = read(changed(rng, PACKED, BYTES, bytes(range(256))))
    return len(calls), [] if calls in KNOWN else [f"calls that nobody packed: {calls[:3]}"]


KNOWN = [read(data) for data in JSON]
"""The calls of each trace in JSON. Read at once: a test that exchanges ``read`` must not be the first to ask."""


def varints(data: bytes) -> set[int]:
    """Every number that begins at some byte."""
    found, ends = {0}, [-1, *(at for at, byte in enumerate(data) if byte < 0x80)]
    for before, end in pairwise(ends):
        for begin in range(max(before + 1, end - 9), end + 1):
            found.add(sum((byte & 0x7F) << 7 * place for place, byte in enumerate(data[begin : end + 1])) % 2**64)
    return found


def of_protobuf(rng: random.Random) -> tuple[int, list[str]]:
    """The bytes of each call stand in the trace as a number of protobuf, or as one of fixed width."""
    data = changed(rng, PROTOBUF, BYTES, bytes(range(256)))
    calls = read(data)
    known = varints(data) | {
        int.from_bytes(data[at : at + width], "little") for width in (4, 8) for at in range(len(data))
    }
    zigzag = {number >> 1 for number in known}  # sint64_val
    sizes = [(name, count * DTYPES[kind].itemsize) for name, count, kind in calls]
    return len(calls), [f"{name} of {size} B" for name, size in sizes if size not in known and size not in zigzag]


JUDGES: dict[str, Judge] = {"JSON traces": of_json, "packed traces": of_packed, "Chakra traces": of_protobuf}
