"""The frameworks that train, by name; and the workload that stands for each layout."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from omb_py.cli import main
from omb_py.errors import UsageError
from omb_py.plug_ins import PlugIns
from omb_py.suites.training import frameworks
from omb_py.suites.training.frameworks import OURS, Framework, find_framework
from omb_py.suites.training.settings import parse_training
from omb_py.suites.workloads.families import parse_workload


class Theirs(Framework):
    """A framework of somebody else."""

    name, layouts = "theirs", ("ring",)

    def workload(self, parallel: str, model: str) -> str:
        return f"{parallel}:model={model}"

    def spread(self, net: Any, batch: Any, training: Any, group: Any) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize("framework", OURS.values(), ids=lambda framework: framework.name)
@pytest.mark.parametrize("model", ["mlp", "gpt2-124m:layers=1"])
def test_each_layout_has_a_workload_of_the_same_model(framework: Framework, model: str) -> None:
    for layout in framework.layouts:
        name, _, more = model.partition(":")
        training = parse_training(f"{name}:framework={framework.name},parallel={layout},{more}")
        workload = parse_workload(training.workload)
        assert workload.calls(0, 2)
        assert workload.values["model"].parameters == {"mlp": 669_706, "gpt2-124m:layers=1": 46_473_216}[model]


def test_what_torch_trains_is_stored_as_before() -> None:
    assert parse_training("mlp:batch=4").shown == "mlp:parallel=ddp,batch=4"
    assert parse_training("mlp:framework=deepspeed").shown == "mlp:framework=deepspeed,parallel=zero1,batch=32"


def test_a_package_may_add_one(monkeypatch: pytest.MonkeyPatch) -> None:
    plug_ins = PlugIns({"theirs": Theirs()}, {"torn": "SyntaxError: x"})
    monkeypatch.setattr(frameworks, "load_plug_ins", lambda group, kind, ours: plug_ins)
    frameworks.frameworks.cache_clear()
    try:
        assert parse_training("mlp:framework=theirs").workload == "ring:model=mlp"
        with pytest.raises(UsageError, match=r"framework torn cannot be loaded \(SyntaxError: x\): repair or remove"):
            find_framework("torn")
        with pytest.raises(UsageError, match="did you mean theirs"):
            find_framework("their")
    finally:
        frameworks.frameworks.cache_clear()


def test_deepspeed_that_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from omb_py.backends.gloo import capabilities

    monkeypatch.setattr(capabilities, "_explain_missing_torch", lambda: "")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.delitem(sys.modules, "deepspeed", raising=False)
    assert main(["train", "mlp", "--framework", "deepspeed", "--no-store"]) == 3
    assert "DeepSpeed is not installed: DS_BUILD_OPS=0 pip install" in capsys.readouterr().err
