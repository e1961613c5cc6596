"""Counters of one GPU, NVIDIA's and AMD's, on machines that stand-ins describe; what has none says why."""

from __future__ import annotations

import json

import pytest

from omb_py.engine.devices import gpu_counters, nvml
from omb_py.engine.devices.gpu_counters import Reading, opened
from omb_py.errors import EnvironmentProblem
from tests.support.machines.amd_smi import FUNCTIONS, RECORD, RESOLUTION_UJ, StandInAmdGpu, StandInAmdSmi, own
from tests.support.machines.nvml import StandInGpu, StandInNvml

SERIAL = "a1b2c3d4e5f60718"
IDENTITY = SERIAL.encode().hex()
"""HIP's UUID is the text of the serial number."""


def test_the_stand_in_has_the_signatures_and_keys_of_the_real_package() -> None:
    record = json.loads(RECORD.read_text())
    assert {name: operands for name, (operands, _) in record.items()} == own() and {*record} == {*FUNCTIONS}
    assert {*gpu_counters._AMD_EVENTS} <= {*record["amdsmi_get_violation_status"][1]}
    made = {
        "amdsmi_get_energy_count": {"energy_accumulator", "counter_resolution"},
        "amdsmi_get_gpu_asic_info": {"asic_serial"},
        "amdsmi_get_clock_info": {"clk"},
    }
    assert all(keys <= {*record[name][1]} for name, keys in made.items())


@pytest.mark.parametrize("identity", [IDENTITY, "0000:C1:00.0"])
def test_an_amd_gpu_counts_units_and_what_slowed_it_down(identity: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = StandInAmdGpu(SERIAL, counter=100, violations={"acc_ppt_pwr": 5, "acc_hbm_thrm": 7, "acc_vr_thrm": "N/A"})
    machine = StandInAmdSmi([StandInAmdGpu("0", "0000:01:00.0", counter=9), gpu])
    monkeypatch.setattr(gpu_counters, "load_amd", lambda: machine)
    with opened("rocm:1", identity) as counter:
        before = counter.read()
        gpu.counter = 140
        assert before.throttled_until(counter.read()) == 0
        gpu.violations = {"acc_ppt_pwr": 5, "acc_hbm_thrm": 9, "acc_vr_thrm": "N/A"}
        after = counter.read()
        assert counter.clock_mhz() == 2100
    assert machine.users == 0
    assert (before.energy_uj, after.energy_uj) == (100 * RESOLUTION_UJ, 140 * RESOLUTION_UJ)
    assert before.throttled_until(after) == 0x20


def test_a_gpu_that_says_little_is_not_throttled(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = StandInAmdSmi([StandInAmdGpu(SERIAL, counter=1, clock_mhz="N/A")])
    monkeypatch.setattr(gpu_counters, "load_amd", lambda: machine)
    with opened("rocm:0", IDENTITY) as counter:
        assert counter.clock_mhz() is None and counter.read() == Reading(RESOLUTION_UJ)


@pytest.mark.parametrize(
    ("machine", "says"),
    [
        (StandInAmdSmi([], driver=False), "AMD's driver does not answer (AMDSMI_STATUS_DRIVER_NOT_LOADED): check it"),
        (StandInAmdSmi([StandInAmdGpu("0")]), f"amdsmi does not know the GPU {SERIAL}: compare with amd-smi list"),
        (StandInAmdSmi([StandInAmdGpu(SERIAL, counter=None)]), "no energy counter: Volta or later, MI200 or later"),
    ],
)
def test_an_amd_gpu_that_cannot_be_counted_says_why(
    machine: StandInAmdSmi, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_counters, "load_amd", lambda: machine)
    with pytest.raises(EnvironmentProblem) as refused, opened("rocm:0", IDENTITY):
        pass
    assert says in str(refused.value) and machine.users == 0


@pytest.mark.parametrize("error", [ImportError("No module named 'amdsmi'"), KeyError("libamd_smi.so")])
def test_a_package_that_cannot_be_loaded_is_named(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(name: str) -> None:
        print("looking for my library")
        raise error

    monkeypatch.setattr(gpu_counters, "import_module", fail)
    with pytest.raises(EnvironmentProblem, match=r"amdsmi .*: install the package amdsmi of your ROCm"):
        gpu_counters.load_amd()
    assert capsys.readouterr().out == "", "stdout is the table's"


def test_a_gpu_that_nvml_does_not_know_is_no_mig_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "load", lambda: StandInNvml([StandInGpu(16)]))
    with pytest.raises(EnvironmentProblem, match=r"does not know GPU-.*: compare with nvidia-smi -L"):
        opened("cuda:0", f"{99:032x}").__enter__()
