"""The workload ``replay``: a step from PyTorch's Kineto or execution trace, a Chakra trace, or param's basic list.

A trace is of one rank; every rank makes its collectives over all ranks (docs/workloads/replay.md).
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final, TypeAlias

from omb_py.engine.program.dtypes import DTYPES, parse_dtype
from omb_py.errors import UsageError
from omb_py.grammar.json_values import JsonValue
from omb_py.suites.workloads.calls import MOST_CALLS, Call, padded
from omb_py.suites.workloads.settings import Values
from omb_py.suites.workloads.traces.forms import BasicCall, ExecutionNode, KinetoEvent

_OPS: Final = {
    "allreduce": "allreduce",
    "broadcast": "bcast",
    "bcast": "bcast",
    "reduce": "reduce",
    "barrier": "barrier",
    "allgather": "allgather",
    "allgatherbase": "allgather",
    "allgatherintotensor": "allgather",
    "allgatherintotensorcoalesced": "allgather",
    "allgathersingle": "allgather",
    "reducescatter": "reduce_scatter_block",
    "reducescatterbase": "reduce_scatter_block",
    "reducescattertensor": "reduce_scatter_block",
    "reducescattertensorcoalesced": "reduce_scatter_block",
    "reducescattersingle": "reduce_scatter_block",
    "reducescatterblock": "reduce_scatter_block",
    "alltoall": "alltoall",
    "alltoallbase": "alltoall",
    "alltoallsingle": "alltoall",
}
"""Name in a trace, without underscores -> op of a call."""
_NOT_CALLS: Final = frozenset({"wait", "init", "", "monitoredbarrier"})
_TYPES: Final = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "c10half": "float16",
    "c10bfloat16": "bfloat16",
    "long": "int64",
    "longint": "int64",
    "int": "int32",
    "byte": "uint8",
    "unsignedchar": "uint8",
    "char": "int8",
    "signedchar": "int8",
}
LoadedTrace: TypeAlias = Any
"""What a trace file holds, before it is known which of :mod:`.forms` it has."""
Entry = tuple[str, int, str, int]
"""Name (with ``@GROUP`` for a group of unknown ranks), elements of the input, their type, ranks of the group (0:
unknown)."""
_GZIP: Final = b"\x1f\x8b"
_MOST_UNPACKED: Final = 64 << 20
_MOST_RATIO: Final = 100
"""A packed trace unpacks to at most the larger of these: bytes, and times its size. JSON packs about thirty times."""
_MOST_DIGITS: Final = 15
_BINARY: Final = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
"""Bytes that no JSON contains (RFC 8259, section 7), but every node of a Chakra trace does."""


def _plain(word: str) -> str:
    return "".join(c for c in word.lower() if c.isalnum())


def op_of(name: str) -> str | None:
    """The op of a call that a trace names so; None if it cannot be replayed."""
    return _OPS.get(_plain(name))


def element_type(word: object) -> str:
    """The name of an element type, from its name in a trace. Raises UsageError for an unknown one."""
    plain = _plain(str(word).removeprefix("GenericList").replace("Tensor", ""))
    return _TYPES.get(plain) or parse_dtype(plain)


def _whole(value: JsonValue) -> int:
    """A count of a trace; null counts nothing. Raises UsageError for what is no whole number of at least 0."""
    if value is None or value == "":
        return 0
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        number = float(value)
        if number.is_integer() and 0 <= number < 10**_MOST_DIGITS:
            return int(value)
    raise UsageError(f"a count is {str(value)[:40]!r}: it should be a whole number")


def _instant(value: JsonValue) -> float:
    """A time in us. Raises UsageError for what is no number."""
    number = float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else math.nan
    if not math.isfinite(number):
        raise UsageError(f"a time is {str(value)[:40]!r}: it should be a number of us")
    return number


def _elements(shapes: JsonValue) -> int:
    """Elements of a tensor's shape, or of all the tensors of a list of shapes, at any depth."""
    if not isinstance(shapes, list):
        return 0
    if any(isinstance(shape, list) for shape in shapes):
        return sum(map(_elements, shapes))
    return math.prod(map(_whole, shapes))


_SCATTERED: Final = "reduce_scatter_block"
_OUTPUT_FIRST: Final = ("allgather", _SCATTERED, "alltoall")
"""Calls whose c10d operators list the output before the input."""
_UNEVEN: Final = "alltoallv"
_UNSIZED: Final = -1
"""Elements of a call whose tensors have no shapes in the trace."""


def _operator(name: str, shapes: Sequence[JsonValue], types: Sequence[JsonValue]) -> Entry:
    """The entry of a c10d operator, which traces of PyTorch have for every backend."""
    op = op_of(name)
    place = 1 if op in _OUTPUT_FIRST and len(shapes) > 1 else 0
    kinds = [t for t in types if isinstance(t, str) and t not in ("", "Scalar")]
    kind = kinds[min(place, len(kinds) - 1)] if kinds else "float"
    elements = _elements(shapes[place : place + 1])
    if op == "alltoall" and place and _elements(shapes[:1]) != elements:
        name = _UNEVEN
    if kind == "TensorList":  # of which older PyTorch has no shapes, [], and newer those of its tensors, [[2], [3]]
        return name, _UNSIZED if shapes[place] == [] else elements, "float", 0
    return name, elements, kind, 0


def _annotations(events: Sequence[KinetoEvent]) -> dict[tuple[str | None, int], deque[str]]:
    """(op, elements) -> element types of the calls as Gloo's threads note them, in the order in which they ran.

    Several threads run the calls, so those of one kind may change places; calls of one size keep theirs.
    """
    types: dict[tuple[str | None, int], deque[str]] = defaultdict(deque)
    noted = (e for e in events if "ts" in e and str(e.get("name", "")).startswith("gloo:"))
    for event in sorted(noted, key=lambda e: _instant(e["ts"])):
        args = event.get("args") or {}
        if kinds := args.get("Input type"):
            elements = _elements((args.get("Input Dims") or [])[:1])
            types[op_of(event["name"].removeprefix("gloo:")), elements].append(str(kinds[0]))
    return types


def _kineto(events: Sequence[KinetoEvent]) -> Iterator[Entry]:
    """Entries of a Kineto trace. A c10d operator is dropped if its thread records the collective within it (NCCL)."""
    types = _annotations(events)
    entries: dict[int, Entry] = {}
    latest: dict[tuple[int | str | None, int | str | None], tuple[int, float]] = {}
    for at, event in enumerate(sorted((e for e in events if "ts" in e), key=lambda e: _instant(e["ts"]))):
        name, args, begin = str(event.get("name", "")), event.get("args") or {}, _instant(event["ts"])
        thread = event.get("pid"), event.get("tid")
        if name == "record_param_comms" and "Collective name" in args:
            around, end = latest.get(thread, (-1, begin - 1))
            if begin <= end:
                entries.pop(around, None)
            group = _whole(args.get("Group size"))
            elements = _whole(args.get("In msg nelems"))
            entries[at] = str(args["Collective name"]), elements, str(args.get("dtype")), group
        elif name.startswith("c10d::"):
            shapes, kinds = args.get("Input Dims") or [[]], args.get("Input type") or ["TensorList"]
            short, elements, kind, group = _operator(name[6:], shapes, kinds)
            op = op_of(short)
            # Gloo reduces and scatters by an all-reduce
            told = types.get((op, elements)) or types.get(("allreduce" if op == _SCATTERED else op, elements))
            # a list of tensors has no type of its own
            entries[at] = short, elements, told.popleft() if told else kind, group
            latest[thread] = at, begin + _instant(event.get("dur") or 0)
    for name, elements, kind, group in entries.values():
        if elements == _UNSIZED and op_of(name) not in (None, "barrier"):
            raise UsageError(f"{name} has no shapes: record it with record_shapes=True, and with a newer PyTorch")
        yield name, max(elements, 0), kind, group


def _execution(nodes: Sequence[ExecutionNode]) -> Iterator[Entry]:
    """Entries of an execution trace. A c10d operator is dropped where a node within it names its collective (NCCL)."""
    pairs = [(node, {a["name"]: a.get("value") for a in node.get("attrs") or [] if "name" in a}) for node in nodes]
    named = {node.get("ctrl_deps", node.get("parent")) for node, attrs in pairs if attrs.get("collective_name")}
    for node, attributes in sorted(pairs, key=lambda pair: int(pair[0].get("id", 0))):
        name = str(node.get("name", ""))
        if attributes.get("collective_name"):
            elements, group = _whole(attributes.get("in_msg_nelems")), _whole(attributes.get("pg_size"))
            yield str(attributes["collective_name"]), elements, str(attributes.get("dtype")), group
        elif name.startswith("c10d::") and node.get("id") not in named:
            inputs = node.get("inputs") or {}
            if not isinstance(inputs, dict):  # before 1.0.2-chakra
                inputs = {"shapes": node.get("input_shapes") or [], "types": node.get("input_types") or []}
            kinds = [str(t).partition("Tensor(")[2].strip(")]") for t in inputs.get("types") or []]
            yield _operator(name[6:], inputs.get("shapes") or [], kinds)


def _basic(items: Sequence[BasicCall]) -> Iterator[Entry]:
    for item in items:
        if "comms" in item:
            group = _whole(item.get("world_size"))
            yield str(item["comms"]), _whole(item.get("in_msg_size")), str(item.get("dtype", "float")), group


def entries_of(trace: LoadedTrace) -> list[Entry]:
    """The communication in a trace, in order. Raises UsageError for an unknown kind of trace."""
    if isinstance(trace, dict) and isinstance(trace.get("traceEvents"), list):
        return list(_kineto(trace["traceEvents"]))
    if isinstance(trace, dict) and isinstance(trace.get("nodes"), list):
        return list(_execution(trace["nodes"]))
    if isinstance(trace, list) and all(isinstance(item, dict) for item in trace):
        return list(_basic(trace))
    raise UsageError("neither a Kineto trace (traceEvents), an execution trace (nodes) nor a list of calls (comms)")


def _unpack(data: bytes) -> bytes:
    import gzip
    import io
    import zlib

    most = max(_MOST_UNPACKED, _MOST_RATIO * len(data))
    try:
        unpacked = gzip.GzipFile(fileobj=io.BytesIO(data)).read(most + 1)
    except (EOFError, OSError, zlib.error):
        raise UsageError("cut off, or no gzip") from None
    if len(unpacked) > most:
        raise UsageError(f"it unpacks to more than {most >> 20} MiB, as no trace does: unpack it yourself if it is one")
    return unpacked


def load_trace(path: Path) -> LoadedTrace:
    """The trace in a file, which gzip may have packed; a Chakra trace as an execution trace.

    Raises UsageError, and EnvironmentProblem if a package to read a Chakra trace is missing.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(error.strerror or str(error)) from None
    if data.startswith(_GZIP):
        data = _unpack(data)
    if not data.strip():
        raise UsageError("the file is empty")
    if _BINARY.search(data):
        from omb_py.suites.workloads.traces.chakra import execution_trace  # only here: it needs protobuf

        return execution_trace(data)
    try:
        return json.loads(data.decode())
    except UnicodeDecodeError:
        raise UsageError("not a text file") from None
    except json.JSONDecodeError as error:
        raise UsageError(f"line {error.lineno}: no JSON: {error.msg}") from None
    except RecursionError:
        raise UsageError("its lists are nested too deeply for a trace") from None
    except ValueError:  # a number of thousands of digits
        raise UsageError("a number in it is too long") from None


def _word(name: str) -> str:
    call, at, group = name.partition("@")
    return f"{_plain(call)}{at}{_plain(group)}"


def inline_file(text: str) -> str:
    """`text` itself, or the calls of a trace file ``@FILE`` as ``COUNT*OP/ELEMENTS/TYPE/RANKS;…``.

    Raises:
        UsageError: the file cannot be read, is no trace or has no communication.
        EnvironmentProblem: it is a Chakra trace, and protobuf is missing.
    """
    if not text.startswith("@"):
        return text
    path = Path(text[1:])
    try:
        entries = [entry for entry in entries_of(load_trace(path)) if _plain(entry[0]) not in _NOT_CALLS]
        words = [f"{_word(name)}/{elements}/{element_type(kind)}/{group}" for name, elements, kind, group in entries]
    except UsageError as error:
        raise UsageError(f"trace {path}: {error}") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise UsageError(f"trace {path}: an entry is not as it should be: {str(error)[:200]}") from None
    if not words:
        raise UsageError(f"trace {path} has no communication")
    return ";".join(f"{len(list(run))}*{word}" for word, run in groupby(words))


def _short(word: str) -> bool:
    return word.isdecimal() and word.isascii() and len(word) <= _MOST_DIGITS


def read_calls(text: str) -> tuple[tuple[int, Entry], ...]:
    """(count, entry) of each run of equal calls in a text of :func:`inline_file`. Raises UsageError."""
    calls = []
    for part in filter(None, text.split(";")):
        count, star, rest = part.partition("*")
        words = rest.split("/")
        if not star or len(words) != 4 or not all(map(_short, (count, words[1], words[3]))):
            raise UsageError(f"{part!r}: write @FILE, or COUNT*OP/ELEMENTS/TYPE/RANKS")
        calls.append((int(count), (words[0], int(words[1]), parse_dtype(words[2]), int(words[3]))))
    if not calls:
        raise UsageError("which trace? write trace=@FILE")
    total = sum(count for count, _ in calls)
    if total > MOST_CALLS:
        raise UsageError(f"a trace has at most {MOST_CALLS:,} calls, not {total:,}: replay a part of it")
    return tuple(calls)


def replay(v: Values, rank: int, ranks: int) -> list[Call]:
    """The recorded calls; with ``wait=end`` each runs beside the rest. Raises UsageError for an unknown call."""
    calls: list[Call] = []
    until = None if v["wait"] == "end" else 0
    for count, (name, elements, dtype, group) in v["trace"]:
        known, _, part = name.partition("@")
        op = _OPS.get(known)
        why = "is unknown: " if op is None else ""
        if op is not None and part:
            why = f"is among the ranks of {part}, which the trace does not say: "
        elif op is not None and group not in (0, ranks):
            why = f"is among {group} ranks, not {ranks}: {f'use -n {group}, or ' if group > 1 else ''}"
        if why:
            if v["unknown"] == "skip":
                continue
            problem = f"call {known} of {elements} elements {why}"
            raise UsageError(f"{problem}write unknown=skip (replay: --skip-unknown) to leave it out")
        assert op is not None
        nbytes = elements * DTYPES[dtype].itemsize
        if op in ("reduce_scatter_block", "alltoall"):
            nbytes = padded(nbytes, ranks, dtype)
        calls += [Call(op, nbytes, dtype, name, until=until)] * count
    return calls
