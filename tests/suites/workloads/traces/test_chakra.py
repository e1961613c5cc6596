"""Chakra traces become the calls that are in them, whatever layout they have; what is none is refused."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from omb_py.engine.program.dtypes import DTYPES
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.suites.workloads.families import parse_workload
from omb_py.suites.workloads.traces import chakra
from omb_py.suites.workloads.traces.chakra import execution_trace
from omb_py.suites.workloads.traces.replay import entries_of
from tests.support.chakra import (
    COLL_NODE,
    COMP_NODE,
    METADATA_NODE,
    RECV_NODE,
    SEND_NODE,
    TYPES,
    attribute,
    collective,
    field,
    fixed,
    metadata,
    node,
    trace,
)

REDUCED = ("allreduce", 1 << 20, "float32")
GENERATED = bytes.fromhex(
    "07 0a05302e302e34"  # GlobalMetadata(version="0.0.4")
    "40 0801 120a416c6c2d526564756365 1807"  # id 1, name All-Reduce, COMM_COLL_NODE
    "520e 0a0969735f6370755f6f70 d80100"  # is_cpu_op: bool_val false
    "520d 0a09636f6d6d5f74797065 4800"  # comm_type: int64_val ALL_REDUCE
    "520f 0a09636f6d6d5f73697a65 48808040"  # comm_size: int64_val 1 MiB
)
"""As mlcommons/chakra's protolib and protobuf write the one all-reduce of ASTRA-sim's example."""


def calls(tmp_path: Path, data: bytes, more: str = "", ranks: int = 2) -> list[tuple[str, int, str]]:
    file = tmp_path / str(len(list(tmp_path.iterdir())))  # known by what is in it; the same file is read once
    file.write_bytes(data)
    workload = parse_workload(f"replay:trace=@{file}{more}")
    assert str(tmp_path) not in workload.text and parse_workload(workload.text) == workload
    return [(call.op, call.nbytes, call.dtype) for call in workload.calls(0, ranks)]


@pytest.mark.parametrize("packed", [lambda data: data, gzip.compress])
def test_what_chakra_generates(tmp_path: Path, packed: Any) -> None:
    assert calls(tmp_path, packed(GENERATED)) == [REDUCED]
    first = node(
        1,
        "All-Reduce",
        COLL_NODE,
        field(1, "is_cpu_op") + field(27, 0),
        attribute("comm_type", 0),
        attribute("comm_size", 1 << 20),
    )
    assert trace(metadata(), first) == GENERATED


def test_every_collective_that_can_be_replayed(tmp_path: Path) -> None:
    data = trace(
        metadata(),
        *(collective(id_, type_, 64) for id_, type_ in enumerate(TYPES) if type_ not in ("GATHER", "SCATTER")),
    )
    assert calls(tmp_path, data) == [
        ("allreduce", 64, "float32"),
        ("reduce", 64, "float32"),
        ("allgather", 64, "float32"),
        ("bcast", 64, "float32"),
        ("alltoall", 64, "float32"),
        ("reduce_scatter_block", 64, "float32"),
        ("reduce_scatter_block", 64, "float32"),
        ("barrier", 0, "float32"),
    ]


@pytest.mark.parametrize(
    ("size", "written"),
    [
        (field(7, 8), 8),
        (field(11, 8), 8),
        (field(13, 8), 8),
        (field(15, 16), 8),
        (field(17, 16), 8),
        (fixed(19, 8, "<I"), 8),
        (fixed(21, 8, "<Q"), 8),
        (fixed(23, 8, "<i"), 8),
        (fixed(25, 2**40, "<q"), 2**40),
    ],
)
def test_numbers_of_every_kind(tmp_path: Path, size: bytes, written: int) -> None:
    data = trace(metadata(), node(3, "n", COLL_NODE, attribute("comm_type", 5, 11), field(1, "comm_size") + size))
    assert calls(tmp_path, data) == [("bcast", written, "float32")]


def test_the_type_is_that_of_the_first_tensor(tmp_path: Path) -> None:
    types = (
        "['GenericList[Tensor(c10::BFloat16)]', 'Int']",
        "['Tensor(long int)', 'Tensor(float)']",
        "['Tensor(c10::complex<float>)']",
        "['Int']",
        "['Tensor(double)']",
    )
    data = trace(
        metadata(),
        *(
            collective(i, "ALL_GATHER", n, types=t)
            for i, (n, t) in enumerate(zip((6, 16, 24, 3, 4), types, strict=True))
        ),
    )
    assert calls(tmp_path, data) == [
        ("allgather", 6, "bfloat16"),
        ("allgather", 16, "int64"),
        ("allgather", 24, "float32"),
        ("allgather", 3, "uint8"),
        ("allgather", 4, "float32"),
    ]


def test_calls_come_in_the_order_in_which_the_nodes_can_run(tmp_path: Path) -> None:
    data = trace(
        metadata(),
        collective(9, "BROADCAST", 4, after=[7]),
        collective(2, "ALL_REDUCE", 8),
        node(7, "compute", COMP_NODE, parents=[7, 2, 99]),
        collective(1, "REDUCE", 12, after=[1]),
    )
    assert calls(tmp_path, data) == [("allreduce", 8, "float32"), ("bcast", 4, "float32"), ("reduce", 12, "float32")]


def test_a_node_of_storage_is_not_taken_for_one_of_2023(tmp_path: Path) -> None:
    disk = node(1, "read", 8) + field(11, field(1, 1) + field(10, field(2, "data")))
    assert calls(tmp_path, trace(metadata(), disk, collective(2, "ALL_REDUCE", 1 << 20))) == [REDUCED]


def converted(*nodes: bytes, groups: str = "") -> bytes:
    """As Chakra's converter of PyTorch traces writes: metadata of attributes alone, calls under the kernels' names."""
    said = attribute("schema", "1.1.0-chakra.0.0.4"), field(1, "pid") + field(13, 12)
    init = node(3, "## process_group:init ##", METADATA_NODE, values=f"['{groups}']", shapes="[[]]", types="['String']")
    return trace(b"".join(field(2, some) for some in said), init, *nodes)


def kernel(id_: int, name: str, number: int, nbytes: int, group: str) -> bytes:
    given = (
        attribute("rf_id", id_),
        attribute("op_schema", ""),
        field(1, "is_cpu_op") + field(27, 0),
        attribute("stream", 7),
        attribute("comm_type", number),
        attribute("comm_size", nbytes),
        attribute("pg_name", group),
    )
    types = "['GenericList[Tensor(c10::Half)]', 'Int', 'String']"
    return node(
        id_,
        f"ncclDevKernel_{name}",
        COLL_NODE,
        *given,
        parents=[id_ - 1],
        after=[3],
        types=types,
        shapes="[[[512]], [], []]",
        values="[[[1, 2, 0, 512, 2, 'cuda:0']], 0, '0']",
    )


OPERATOR = node(
    10,
    "c10d::allreduce_",
    COMP_NODE,
    attribute("rf_id", 4),
    shapes="[[[512]], []]",
    types="['GenericList[Tensor(float)]', 'Int']",
)
GROUPS = (
    '[{"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "ranks": [], "group_size": 2}, '
    '{"pg_name": "4", "pg_desc": "tp", "ranks": [0, 3, 6]}]'
)


def test_what_chakra_converts_from_a_run_over_nccl(tmp_path: Path) -> None:
    nodes = OPERATOR, kernel(12, "AllReduce_Sum_f16", 0, 1024, "0"), kernel(14, "AllGather", 2, 64, "4")
    data = converted(*nodes, groups=GROUPS)
    with pytest.raises(UsageError, match=r"call allgather of 32 elements is among 3 ranks, not 2: use -n 3, or "):
        calls(tmp_path, data)
    assert calls(tmp_path, data, ",unknown=skip") == [("allreduce", 1024, "float16")]
    assert calls(tmp_path, data, ",unknown=skip", ranks=3) == [("allgather", 64, "float16")]


def test_an_operator_and_its_kernel_may_control_each_other(tmp_path: Path) -> None:
    """As in the converter's own example, where the operator has the type of a collective too."""
    operator = node(11, "c10d::allreduce_(0)", COLL_NODE, attribute("is_cpu_op", 1), parents=[12])
    data = converted(kernel(12, "AllReduce_Sum_f16", 0, 1024, "0"), operator)
    assert calls(tmp_path, data) == [("allreduce", 1024, "float16")]


def test_what_chakra_converts_from_a_run_over_gloo(tmp_path: Path) -> None:
    assert calls(tmp_path, converted(OPERATOR)) == [("allreduce", 2048, "float32")]


def test_groups_without_ranks_are_refused_where_there_are_several(tmp_path: Path) -> None:
    one, other = kernel(12, "AllReduce", 0, 1024, "dp"), kernel(14, "AllReduce", 0, 64, "tp-1")
    assert calls(tmp_path, converted(one, kernel(13, "AllReduce", 0, 4, "dp"))) == [
        ("allreduce", 1024, "float16"),
        ("allreduce", 4, "float16"),
    ]
    with pytest.raises(UsageError, match=r"call allreduce of 512 elements is among the ranks of dp, which the"):
        calls(tmp_path, converted(one, other))
    part = collective(5, "ALL_REDUCE", 4, attribute("involved_dim", [True, False]))
    with pytest.raises(UsageError, match="among the ranks of dimensions10"):
        calls(tmp_path, trace(metadata(), part))
    every = collective(6, "ALL_REDUCE", 8, attribute("involved_dim", [True, True]))
    assert calls(tmp_path, trace(metadata(), part, every), ",unknown=skip") == [("allreduce", 8, "float32")]


def older(name: str, value: int | list[bool], number: int) -> bytes:
    """AttributeProto of 2023: a type, which nobody needs, and the value in a field of its own."""
    if isinstance(value, list):
        return field(1, name) + field(2, 5) + b"".join(field(9, int(flag)) for flag in value)
    return field(1, name) + field(2, 3) + field(number, value)


@pytest.mark.parametrize("head", [(), (field(1, older("schema", 0, 5)),)])
@pytest.mark.parametrize("number", [5, 7])
def test_the_layout_of_2023(tmp_path: Path, head: tuple[bytes, ...], number: int) -> None:
    def made(id_: int, type_: int, *attributes: bytes) -> bytes:
        texts = b"".join(field(place, "['Tensor(float)']") for place in range(5, 11))
        return field(1, id_) + field(2, "n") + field(3, type_) + texts + b"".join(field(11, a) for a in attributes)

    comp = made(0, 3, field(1, "runtime") + field(2, 1) + field(4, 1.5))
    moved = [
        made(
            id_,
            6,
            older("comm_type", id_ - 1, number),
            older("comm_size", 8, number),
            older("involved_dim", [True, True], number),
        )
        for id_ in range(1, 6)
    ]
    data = trace(*head, comp, *moved)
    ops = "allreduce", "alltoall", "allgather", "reduce_scatter_block", "bcast"
    assert calls(tmp_path, data) == [(op, 8, "float32") for op in ops]
    sent = made(9, 4, older("comm_size", 8, number), older("comm_dst", 1, number))
    with pytest.raises(UsageError, match="call message of 2 elements is unknown"):
        calls(tmp_path, trace(*head, sent))


def test_the_layout_of_2022(tmp_path: Path) -> None:
    def made(id_: int, *more: tuple[int, int]) -> bytes:
        return field(1, id_) + field(2, "n") + b"".join(field(number, value) for number, value in more)

    moved = [made(id_, (3, 6), (4, id_ - 1), (13, id_), (14, 1), (14, 1), (18, 8)) for id_ in range(1, 5)]
    data = trace(made(0, (3, 3), (7, 12)), *moved)
    ops = "allreduce", "alltoall", "allgather", "reduce_scatter_block"
    assert calls(tmp_path, data) == [(op, 8, "float32") for op in ops]
    with pytest.raises(UsageError, match="call message of 2 elements is unknown"):
        calls(tmp_path, trace(made(0, (3, 5), (16, 1), (18, 8))))


@pytest.mark.parametrize(
    ("some", "said"),
    [
        (collective(1, 10, 4), "call commtype10 of 1 elements is unknown: write unknown=skip"),
        (collective(1, "GATHER", 4), "call gather of 1 elements is unknown"),
        (node(1, "n", SEND_NODE, attribute("comm_size", 40), attribute("comm_dst", 1, 7)), "call send of 10 elem"),
        (node(1, "n", RECV_NODE, attribute("tensor_size", 40, 13)), "call recv of 10 elements is unknown"),
        (node(1, "n", 11), "call nodetype11 of 0 elements is unknown"),
        (node(1, "n", COLL_NODE, attribute("comm_size", 4)), "call nocommtype of 1 elements is unknown"),
    ],
)
def test_calls_that_are_unknown_are_named_or_left_out(tmp_path: Path, some: bytes, said: str) -> None:
    data = trace(metadata(), some, collective(2, "ALL_REDUCE", 1 << 20))
    with pytest.raises(UsageError, match=said):
        calls(tmp_path, data)
    assert calls(tmp_path, data, ",unknown=skip") == [REDUCED]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (GENERATED + b"\x80", "cut off, or no Chakra trace: message 3, at byte 73, is broken"),
        (GENERATED[:-1], "cut off, or no Chakra trace: message 2, at byte 8, is broken"),
        (b"\x7fELF\x02\x01\x01" + bytes(9), "neither JSON nor a Chakra trace"),
        (b"\x00\x01\x02", "message 2, at byte 1, is broken"),
        (gzip.compress(GENERATED)[:-9], "cut off, or no gzip"),
        (trace(metadata(), node(1, "n", COMP_NODE, attribute("num_ops", 3))), "has no communication"),
        (
            trace(metadata(), node(8, "n", COLL_NODE, attribute("comm_type", 0))),
            r"node 8 \(n, ALL_REDUCE\) has no comm_",
        ),
        (trace(metadata(), collective(8, 0, -4)), r"node 8 \(COLL_8\): comm_size is no number of bytes"),
        (
            trace(metadata(), collective(1, 0, 4, after=[2]), collective(2, 0, 4, after=[1])),
            r"nodes wait for each other: COLL_\d → COLL_\d → COLL_\d",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",  # gzip writes the time of day into the bytes
)
def test_what_is_no_chakra_trace(tmp_path: Path, data: bytes, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        calls(tmp_path, data)


WORDS = {
    "float32": "float",
    "float64": "double",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "int64": "long int",
    "int32": "int",
    "uint8": "unsigned char",
    "int8": "signed char",
}
CALLS = st.lists(
    st.tuples(st.sampled_from(TYPES), st.integers(0, 2**40), st.sampled_from(sorted(WORDS)), st.integers(2, 2**20)),
    max_size=9,
)


@given(CALLS, st.booleans(), st.sampled_from(["0.0.4", ""]))
def test_what_is_written_is_read(some: list[tuple[str, int, str, int]], backwards: bool, version: str) -> None:
    """Whatever the order in the file: the nodes wait for each other."""
    groups = ", ".join(f'{{"pg_name": "{place}", "group_size": {call[3]}}}' for place, call in enumerate(some))
    nodes = [
        collective(
            place + 1,
            op,
            elements * DTYPES[dtype].itemsize,
            attribute("pg_name", str(place)),
            after=[place] if place else [],
            types=f"['Tensor({WORDS[dtype]})']",
        )
        for place, (op, elements, dtype, _) in enumerate(some)
    ]
    init = node(0, "## process_group:init ##", METADATA_NODE, values=f"['[{groups}]']")
    data = trace(metadata(version) if version else b"", init, *(reversed(nodes) if backwards else nodes))
    assert entries_of(execution_trace(data)) == [
        (op, 0 if op == "BARRIER" else elements, dtype, ranks) for op, elements, dtype, ranks in some
    ]


@given(
    st.one_of(
        st.binary(max_size=200),
        st.tuples(st.integers(0, len(GENERATED)), st.integers(0, 255)).map(
            lambda change: GENERATED[: change[0]] + bytes([change[1]]) + GENERATED[change[0] + 1 :]
        ),
    )
)
@example(b"")
def test_any_other_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        found = entries_of(execution_trace(data))
    except UsageError:
        return
    assert all(elements >= 0 for _, elements, _, _ in found)


def test_without_protobuf(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    chakra._classes.cache_clear()
    with pytest.raises(
        EnvironmentProblem, match=r"a Chakra trace needs protobuf: pip install -e '.\[chakra\]'"
    ) as told:
        calls(tmp_path, GENERATED)
    assert told.value.exit_code == 3
    assert calls(tmp_path, b'[{"comms": "all_reduce", "in_msg_size": 5, "dtype": "int"}]') == [
        ("allreduce", 20, "int32")
    ]
