"""The command lines of train and replay: what they ask for, and what they refuse."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from omb_py.backends.gloo import capabilities
from omb_py.cli import main
from omb_py.distribution import pip_install
from omb_py.errors import UsageError
from omb_py.options.request import Request
from omb_py.suites import find, names
from omb_py.suites.workloads.traces import chakra as messages
from tests.support import chakra
from tests.support.planning import plan

Parse = Callable[[str], Request]
Refuse = Callable[[str], tuple[int, str]]
TRACE = [
    {"comms": "all_reduce", "in_msg_size": 1000, "dtype": "Float"},
    {"comms": "teleport", "in_msg_size": 3, "dtype": "Int"},
]


@pytest.fixture(autouse=True)
def torch_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capabilities, "_explain_missing_torch", lambda: "")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    file = tmp_path / "a trace, of a step.json"
    file.write_text(json.dumps(TRACE))
    return file


def test_train_is_a_command_and_not_in_the_lists_of_benchmarks() -> None:
    assert find("train").family == "training" and "train" not in names()


def test_what_is_asked_for(request_of: Parse, tmp_path: Path) -> None:
    request = request_of("train resnet50 -n 4 --batch 2 --image 64 -i 3 --steps 2 -x 1 --no-store --launches 2")
    assert request.options.workload == "resnet50:framework=torch,parallel=ddp,backend=gloo,batch=2,steps=2,image=64"
    assert (request.ranks, request.repetition.iterations, request.repetition.warmup, request.repetition.launches) == (
        4,
        "3",
        1,
        2,
    )
    assert (request.backends, request.printing.format, request.store) == (("gloo",), "horovod", None)
    assert request.launching.timeout == 600, "a step of a large model takes minutes, and shows no progress meanwhile"
    assert request_of("train mlp --timeout 5").launching.timeout == 5
    launches = plan(request, 4)
    (cell,) = launches[0].cells
    assert len(launches) == 2 and (cell.sampling.iterations, cell.sampling.warmup, cell.sampling.auto) == (3, 1, False)
    request = request_of(f"train gpt2-124m --parallel FSDP --trace {tmp_path}/a,b.json --backend nccl --format json")
    assert request.options.workload is not None and request.options.workload.startswith(
        "gpt2-124m:framework=torch,parallel=fsdp,backend=nccl,batch=1,"
    )
    assert request.options.workload.endswith(f",trace={tmp_path}/a%2Cb.json,seq=1024,layers=12")


def test_without_pytorch(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from omb_py.backends.gloo import capabilities

    monkeypatch.setattr(
        capabilities, "_explain_missing_torch", lambda: "Gloo comes with PyTorch, which is not installed"
    )
    assert main(["train", "mlp"]) == 3
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and f"which is not installed: {pip_install('gloo')}" in err


def test_replay_is_a_step_with_the_trace(captured: list[Request], trace: Path) -> None:
    assert main(["replay", str(trace), "--backend", "gloo", "-n", "2", "-c", "--skip-unknown", "--wait", "now"]) == 0
    (request,) = captured
    assert (request.benchmark, request.backends, request.ranks, request.validate) == ("step", ("gloo",), 2, True)
    assert (
        request.options.workload == "replay:trace=1*allreduce/1000/float32/0;1*teleport/3/int32/0,wait=now,unknown=skip"
    )
    assert len(plan(request, 2)[0].cells) == 1
    assert main(["replay", str(trace)]) == 0
    with pytest.raises(UsageError, match=r"call teleport of 3 elements is unknown: .*--skip-unknown\) to leave it out"):
        plan(captured[-1], 2)


def test_replay_of_a_chakra_trace(
    captured: list[Request], refusal: Refuse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "step.0.et"
    file.write_bytes(chakra.trace(chakra.metadata(), chakra.collective(1, "ALL_REDUCE", 4000)))
    assert main(["replay", str(file), "-n", "2"]) == 0
    assert captured.pop().options.workload == "replay:trace=1*allreduce/1000/float32/0"
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "google.protobuf", None)
        messages._classes.cache_clear()
        assert refusal(f"replay {file}") == (3, f"a Chakra trace needs protobuf: {pip_install('chakra')}")
    file.write_bytes(file.read_bytes()[:-1])
    text = f"trace {file}: cut off, or no Chakra trace: message 2, at byte 8, is broken"
    assert refusal(f"replay {file}") == (2, text)


def test_ranks_are_those_of_gloo_whatever_carries_the_gradients() -> None:
    with pytest.raises(UsageError, match="train starts its ranks over Gloo, not mock: use backend gloo"):
        plan(Request("train", backends=("mock",), workload="mlp"), 2)
    with pytest.raises(UsageError, match="which model"):
        plan(Request("train", backends=("gloo",)), 2)
