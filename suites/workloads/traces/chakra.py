"""Chakra traces of MLCommons, converted to execution traces of PyTorch so that one reader serves both (replay.py)."""

from __future__ import annotations

import json
import re
from ast import literal_eval
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from heapq import heapify, heappop, heappush
from typing import Any, Final

from omb_py.engine.program.dtypes import DTYPES
from omb_py.errors import UsageError
from omb_py.suites.workloads.traces.chakra_messages import nodes_of, numbers
from omb_py.suites.workloads.traces.replay import element_type

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
    """The fields of a node of any layout that are used."""

    id: int
    name: str
    after: tuple[int, ...]
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


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _part(dimensions: Iterable[int]) -> str:
    flags = "".join(str(int(flag)) for flag in dimensions)
    return f"dimensions{flags}" if "0" in flags else ""


def _collective(number: Any, known: tuple[str, ...]) -> str:
    if number is None:
        return "no comm_type"
    return known[number] if isinstance(number, int) and 0 <= number < len(known) else f"comm_type {number}"


def _since_0_0_4(node: Any) -> _Node:
    call, inputs = "", node.inputs
    values: dict[str, Any] = {}
    if node.type in (_SEND, _RECEIVE, _COLLECTIVE) or node.type > _LAST:
        for attribute in node.attr:
            for field, value in attribute.ListFields():
                if field.name != "name":
                    values[_text(attribute.name)] = value
        words = {_SEND: "send", _RECEIVE: "recv", _COLLECTIVE: _collective(values.get("comm_type"), _TYPES)}
        call = words.get(node.type, f"node type {node.type}")
    dimensions = getattr(values.get("involved_dim"), "values", ())
    return _Node(
        node.id,
        _text(node.name),
        (*node.ctrl_deps, *node.data_deps),
        call,
        values.get("comm_size", values.get("tensor_size")),
        _text(values.get("pg_name", "")),
        _part(dimensions),
        _text(inputs.types),
        _text(inputs.shapes),
        _text(inputs.values),
    )


def _of_2023(node: Any) -> _Node:
    values = {_text(attribute.name): numbers(attribute) for attribute in node.attribute}
    first = {name: series[0] for name, series in values.items() if series}
    call, nbytes = "", first.get("comm_size")
    if "comm_type" in values:
        call = _collective(first.get("comm_type"), _TYPES_2023)
    elif nbytes is not None:
        call = "message"
    part = _part(values.get("involved_dim", ()))
    types = _text(node.input_types)
    return _Node(node.id, _text(node.name), tuple(node.parent), call, nbytes, part=part, types=types)


def _of_2022(node: Any) -> _Node:
    call = ""
    if node.comm_type:
        call = _collective(node.comm_type, _TYPES_2022)
    elif node.comm_size:
        call = "message"
    nbytes = node.comm_size if node.HasField("comm_size") else None
    return _Node(node.id, _text(node.name), tuple(node.parent), call, nbytes, part=_part(node.involved_dim))


_LAYOUTS: Final = {"Node": _since_0_0_4, "Node2023": _of_2023, "Node2022": _of_2022}


def _ordered(nodes: list[_Node]) -> Iterator[_Node]:
    """The nodes in the order of the file, but each after those that it waits for. Raises UsageError for a cycle."""
    place = {node.id: at for at, node in enumerate(nodes)}
    sorter = TopologicalSorter(
        {at: [place[id_] for id_ in node.after if place.get(id_, at) != at] for at, node in enumerate(nodes)}
    )
    try:
        sorter.prepare()
    except CycleError as error:
        names = " → ".join(nodes[at].name or str(nodes[at].id) for at in error.args[1][:4])
        raise UsageError(f"nodes wait for each other: {names}") from None
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


def _listed(text: str) -> list[Any]:
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


def execution_trace(data: bytes) -> dict[str, Any]:
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
    converted: list[dict[str, Any]] = []
    for place, node in enumerate(_ordered(nodes)):
        if node.call:
            ranks = sizes.get(node.group, 0)
            unknown = node.part or (node.group if several and not ranks else "")
            elements, dtype = _elements(_bytes(node), node.types)
            fields = {
                "collective_name": f"{node.call}@{unknown}" if unknown else node.call,
                "in_msg_nelems": elements,
                "dtype": dtype,
                "pg_size": ranks,
            }
            attributes = [{"name": name, "value": value} for name, value in fields.items()]
            converted.append({"id": place, "name": node.name, "attrs": attributes})
        elif not calls and node.name.startswith("c10d::"):
            tensors = {"shapes": _listed(node.shapes), "types": _listed(node.types)}
            converted.append({"id": place, "name": node.name, "inputs": tensors})
    return {"nodes": converted}
