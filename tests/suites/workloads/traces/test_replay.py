"""Traces become the calls that were recorded."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omb_py.errors import UsageError
from omb_py.suites.workloads.families import parse_workload

BASIC = [
    {"comms": "init", "world_size": 2},
    {"comms": "all_reduce", "in_msg_size": 1000, "dtype": "Float", "req": 0},
    {"comms": "all_reduce", "in_msg_size": 1000, "dtype": "Float", "req": 1},
    {"comms": "wait", "req": 1},
    {"comms": "all_gather_base", "in_msg_size": 10, "out_msg_size": 20, "dtype": "BFloat16"},
]
KINETO = {
    "traceEvents": [
        {
            "ts": 2,
            "name": "record_param_comms",
            "args": {
                "Collective name": "_reduce_scatter_base",
                "In msg nelems": 8,
                "dtype": "BFloat16",
                "Group size": 2,
            },
        },
        {
            "ts": 1,
            "name": "record_param_comms",
            "args": {"Collective name": "allreduce", "In msg nelems": 5, "dtype": "Float", "Group size": 2},
        },
        {"ts": 3, "name": "aten::mm", "args": {}},
    ]
}
CHAKRA = {
    "nodes": [
        {
            "id": 2,
            "name": "record_param_comms",
            "attrs": [
                {"name": "collective_name", "value": "broadcast"},
                {"name": "in_msg_nelems", "value": 7},
                {"name": "dtype", "value": "Double"},
                {"name": "pg_size", "value": 2},
            ],
        },
        {
            "id": 1,
            "name": "record_param_comms",
            "attrs": [
                {"name": "collective_name", "value": "all_to_all"},
                {"name": "in_msg_nelems", "value": 4},
                {"name": "dtype", "value": "Int"},
            ],
        },
    ]
}


def calls(tmp_path: Path, trace: Any, more: str = "", pack: bool = False) -> list[tuple[str, int, str]]:
    file = tmp_path / f"{len(list(tmp_path.iterdir()))}.json"  # the same file is read once
    text = json.dumps(trace).encode()
    file.write_bytes(gzip.compress(text) if pack else text)
    workload = parse_workload(f"replay:trace=@{file}{more}")
    assert str(tmp_path) not in workload.text and parse_workload(workload.text) == workload
    return [(call.op, call.nbytes, call.dtype) for call in workload.calls(0, 2)]


def test_params_list(tmp_path: Path) -> None:
    reduced = ("allreduce", 4000, "float32")
    assert calls(tmp_path, BASIC) == [reduced, reduced, ("allgather", 20, "bfloat16")]


def test_kineto(tmp_path: Path) -> None:
    expected = [("allreduce", 20, "float32"), ("reduce_scatter_block", 16, "bfloat16")]
    assert calls(tmp_path, KINETO) == calls(tmp_path, KINETO, pack=True) == expected


def test_an_execution_trace(tmp_path: Path) -> None:
    assert calls(tmp_path, CHAKRA) == [("alltoall", 16, "int32"), ("bcast", 56, "float64")]


def test_an_execution_trace_of_the_first_version(tmp_path: Path) -> None:
    node = {"id": 1, "name": "c10d::allreduce_", "parent": 0, "inputs": [[1, 2, 0, 5, 4, "cuda:0"]]}
    node |= {"input_shapes": [[[5]], []], "input_types": ["GenericList[Tensor(float)]", "Int"]}
    assert calls(tmp_path, {"nodes": [node]}) == [("allreduce", 20, "float32")]


def operator(name: str, **args: Any) -> dict[str, Any]:
    return {"traceEvents": [{"ts": 1, "name": f"c10d::{name}", "args": args}]}


def test_an_operator_that_nccl_tells_more_of_counts_once(tmp_path: Path) -> None:
    told = {"Collective name": "allreduce", "In msg nelems": 5, "dtype": "Float", "Group size": 2}
    around = {"name": "c10d::allreduce_", "args": {"Input Dims": [[5]], "Input type": ["float"]}, "pid": 1}
    kineto = [
        {**around, "ts": 10, "dur": 9, "tid": 1},
        {"ts": 12, "dur": 2, "pid": 1, "tid": 1, "name": "record_param_comms", "args": told},
        {**around, "ts": 11, "dur": 9, "tid": 2},  # Gloo's, beside it
        {**around, "ts": 30, "dur": 9, "tid": 1},  # Gloo's, after it
    ]
    assert calls(tmp_path, {"traceEvents": kineto}) == [("allreduce", 20, "float32")] * 3
    inputs = {"shapes": [[[5]]], "types": ["GenericList[Tensor(float)]"]}
    attrs = [
        {"name": name, "value": value}
        for name, value in (("collective_name", "allreduce"), ("in_msg_nelems", 5), ("dtype", "Float"), ("pg_size", 2))
    ]
    nodes = [
        {"id": 4, "name": "c10d::allreduce_", "inputs": inputs},
        {"id": 5, "name": "record_param_comms", "ctrl_deps": 4, "attrs": attrs},
        {"id": 6, "name": "c10d::allreduce_", "inputs": inputs},
    ]
    assert calls(tmp_path, {"nodes": nodes}) == [("allreduce", 20, "float32")] * 2


def test_a_list_of_tensors_has_the_type_that_its_own_call_notes(tmp_path: Path) -> None:
    """DDP's broadcasts of buffers, as torch 2.13 records them: two threads of Gloo, which may change places."""

    def call(at: int, name: str, shape: list[Any], kind: str) -> dict[str, Any]:
        args = {"Input Dims": shape, "Input type": [kind]}
        return {"ts": at, "dur": 1, "pid": 1, "tid": int(kind != "TensorList"), "name": name, "args": args}

    events = [
        call(1, "c10d::broadcast_", [[[336]]], "TensorList"),
        call(2, "c10d::broadcast_", [[[2]]], "TensorList"),
        call(3, "gloo:broadcast", [[2]], "long int"),
        call(4, "gloo:broadcast", [[336]], "float"),
        call(5, "c10d::broadcast_", [[[2]]], "TensorList"),
        call(6, "gloo:broadcast", [[2]], "double"),
    ]
    expected = [("bcast", 1344, "float32"), ("bcast", 16, "int64"), ("bcast", 16, "float64")]
    assert calls(tmp_path, {"traceEvents": events}) == expected


@pytest.mark.parametrize(
    ("trace", "said"),
    [
        (
            [{"comms": "teleport", "in_msg_size": 3, "dtype": "int"}],
            r"call teleport of 3 elements is unknown: write unk",
        ),
        ([{"comms": "allreduce", "in_msg_size": 3, "dtype": "int", "world_size": 8}], r"is among 8 ranks, not 2"),
        ([{"comms": "allreduce", "in_msg_size": 3, "world_size": 1}], r"is among 1 ranks, not 2: write unknown=skip"),
        (operator("allreduce_"), r"allreduce_ has no shapes: record it with record_shapes=True"),
        (
            operator("allreduce_", **{"Input Dims": [[], []], "Input type": ["TensorList", "Scalar"]}),
            r"allreduce_ has no shapes: record it",
        ),
        (
            operator("alltoall_base_", **{"Input Dims": [[768], [3392]], "Input type": ["int", "int"]}),
            r"call alltoallv of 3392 elements is unknown",
        ),
        ([], r"has no communication"),
        ({"a": 1}, r"neither a Kineto trace"),
        ([{"comms": "allreduce", "in_msg_size": 3, "dtype": "quux"}], r"quux"),
    ],
)
def test_what_cannot_be_replayed(tmp_path: Path, trace: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        calls(tmp_path, trace)


def test_unknown_calls_are_left_out_when_asked(tmp_path: Path) -> None:
    assert len(calls(tmp_path, [*BASIC, {"comms": "teleport", "in_msg_size": 1, "dtype": "int"}], ",unknown=skip")) == 3


def test_a_file_that_is_no_json(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("{")
    (tmp_path / "latin").write_bytes(b'["\xe4"]')
    with pytest.raises(UsageError, match=r"trace .*/latin: not a text file"):
        parse_workload(f"replay:trace=@{tmp_path / 'latin'}")
    with pytest.raises(UsageError, match="line 1: no JSON"):
        parse_workload(f"replay:trace=@{tmp_path / 't'}")
    (tmp_path / "empty.et").write_bytes(b"")
    with pytest.raises(UsageError, match="the file is empty"):
        parse_workload(f"replay:trace=@{tmp_path / 'empty.et'}")
    with pytest.raises(UsageError, match="No such file"):
        parse_workload("replay:trace=@/nowhere")


@pytest.fixture
def group() -> Iterator[Any]:
    dist = pytest.importorskip("torch.distributed", reason="PyTorch is an extra")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist
    dist.destroy_process_group()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_what_torch_records_replays_with_the_same_calls_and_bytes(group: Any, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is an extra")
    from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile

    kineto, execution = tmp_path / "kineto.json", tmp_path / "execution.json"
    observer = ExecutionTraceObserver()
    observer.register_callback(str(execution))
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, execution_trace_observer=observer) as recorded:
        group.all_reduce(torch.ones(10, 100))
        group.broadcast(torch.ones(5), 0)
        group.all_reduce(torch.ones(7))
    recorded.export_chrome_trace(str(kineto))
    expected = [("allreduce", 4000, "float32"), ("bcast", 20, "float32"), ("allreduce", 28, "float32")]
    for file in (kineto, execution):
        assert calls(tmp_path, json.loads(file.read_text())) == expected
