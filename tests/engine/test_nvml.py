"""GPUs and the paths between them, as NVML tells them: on machines that a stand-in describes."""

from __future__ import annotations

import json
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from omb_py.engine.devices import nvml
from omb_py.errors import EnvironmentProblem
from tests.support.machines.nvml import (
    RECORD,
    NVMLError,
    StandInGpu,
    StandInNvml,
    functions,
    joined_by_switches,
    recorded,
)


def inventory(monkeypatch: pytest.MonkeyPatch, machine: StandInNvml, system: Path = Path("/sys")) -> nvml.Inventory:
    monkeypatch.setattr(nvml, "load", lambda: machine)
    seen = nvml.inventory(system)
    assert machine.users == 0, "NVML is shut down as often as it is initialised"
    return seen


def test_the_stand_in_has_the_signatures_of_the_real_package() -> None:
    assert json.loads(RECORD.read_text())["functions"] == functions()


@pytest.mark.skipif(not find_spec("pynvml"), reason="nvidia-ml-py is optional: the extra nvml")
def test_the_record_is_what_the_installed_package_has() -> None:
    assert json.loads(RECORD.read_text()) == json.loads(json.dumps(recorded(import_module("pynvml"))))


def test_a_machine_with_switches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for bus, node in ((16, "0"), (17, "0"), (18, "1"), (19, "-1")):
        folder = tmp_path / f"bus/pci/devices/0000:{bus:02x}:00.0"
        folder.mkdir(parents=True)
        (folder / "numa_node").write_text(f"{node}\n")
    seen = inventory(monkeypatch, StandInNvml(joined_by_switches(4)), tmp_path)
    assert (seen.driver, seen.cuda) == ("570.86.10", "12.8")
    assert [gpu.numa for gpu in seen.gpus] == [0, 0, 1, None]
    first = seen.gpus[0]
    assert (first.pci, first.pcie, first.uuid[:4]) == ("0000:10:00.0", "gen 5 x16", "GPU-")
    assert (first.compute_mode, first.mig, first.instances) == ("default", "", ())
    assert len(seen.pairs) == 6 and {(pair.path, pair.no_peer) for pair in seen.pairs} == {("NV18", "")}


def test_direct_links_and_none(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = [StandInGpu(16, [17] * 4 + [18] * 2), StandInGpu(17, [16] * 4), StandInGpu(18, [16] * 2, root=1)]
    seen = inventory(monkeypatch, StandInNvml(gpus, peers=False))
    assert {(pair.first, pair.second): pair.path for pair in seen.pairs} == {
        (0, 1): "NV4",
        (0, 2): "NV2",
        (1, 2): "SYS",
    }
    assert {pair.no_peer for pair in seen.pairs} == {"the chipset does not support it"}


def test_a_switch_is_told_by_its_kind_and_only_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = frozenset({"nvmlDeviceGetNvLinkRemoteDeviceType", "nvmlDeviceGetCurrPcieLinkGeneration"})
    gpus = [StandInGpu(16, ["switch"], lacks=silent), StandInGpu(17, ["switch"], lacks=silent)]
    seen = inventory(monkeypatch, StandInNvml(gpus))
    assert [pair.path for pair in seen.pairs] == ["NODE"], "an old driver does not say what is at the other end"
    assert seen.gpus[0].pcie == ""


@pytest.mark.parametrize(
    ("now", "after", "word", "instances"),
    [(1, 1, "on", 2), (0, 1, "on after a reset", 0), (1, 0, "off after a reset", 2), (0, 0, "off", 0)],
)
def test_mig(monkeypatch: pytest.MonkeyPatch, now: int, after: int, word: str, instances: int) -> None:
    (gpu,) = inventory(monkeypatch, StandInNvml([StandInGpu(16, mig=(now, after), instances=2)])).gpus
    assert gpu.mig == word and len(set(gpu.instances)) == instances
    assert all(uuid.startswith("MIG-") for uuid in gpu.instances)


def test_what_is_missing_is_said_with_one_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "import_module", lambda name: import_module("no_such_package_as_this"))
    with pytest.raises(EnvironmentProblem, match=r"nvidia-ml-py is not installed .*pip install nvidia-ml-py"):
        nvml.inventory()
    assert "pip install nvidia-ml-py" in nvml.facts()["unknown"]
    monkeypatch.setattr(nvml, "load", lambda: StandInNvml([], driver=False))
    with pytest.raises(EnvironmentProblem, match=r"does not answer \(Driver Not Loaded\): install NVIDIA's driver"):
        nvml.inventory()


def test_an_initialised_library_is_shut_down_whatever_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = StandInNvml(joined_by_switches(2))

    def fail() -> int:
        raise NVMLError(15)

    monkeypatch.setattr(machine, "nvmlDeviceGetCount", fail)
    monkeypatch.setattr(nvml, "load", lambda: machine)
    with pytest.raises(EnvironmentProblem, match="does not list its GPUs"):
        nvml.inventory()
    assert machine.users == 0


def test_facts_are_plain_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "load", lambda: StandInNvml(joined_by_switches(2)))
    stored = json.loads(json.dumps(nvml.facts()))
    assert stored["pairs"] == [{"first": 0, "second": 1, "path": "NV18", "no_peer": ""}]
