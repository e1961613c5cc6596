"""Energy of the timed loop: counters that are read, added over the ranks and divided; what has none says so."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omb_py.engine.devices import nvml
from omb_py.engine.measuring.measure import measure
from omb_py.engine.observers import registry
from omb_py.engine.observers.energy import Energy, energy_text, used, zones
from omb_py.errors import EnvironmentProblem
from omb_py.options.table import make_cell
from omb_py.printing.export import to_csv
from omb_py.printing.tables import results_table
from omb_py.suites import find
from tests.support.machines.nvml import StandInGpu, StandInNvml


class Ranks:
    """A session as a meter sees it: this rank, and what the others add."""

    def __init__(
        self, rank: int = 0, hosts: tuple[str, ...] = ("n1", "n1"), places: Any = (), others: Any = 0.0
    ) -> None:
        self.local, self.hosts, self.places, self._others = (rank,), hosts, places, others

    def gather(self, value: Any) -> list[Any]:
        return [value]

    def share(self, value: Any) -> Any:
        return value

    def total(self, values: Any) -> Any:
        return values + self._others

    def maximum(self, values: Any) -> Any:
        return values


def package(system: Path, name: str, microjoules: int, folder: str, wraps_at: int = 1000) -> Path:
    zone = system / "class/powercap" / folder
    zone.mkdir(parents=True, exist_ok=True)
    (zone / "name").write_text(f"{name}\n")
    (zone / "max_energy_range_uj").write_text(f"{wraps_at}\n")
    (zone / "energy_uj").write_text(f"{microjoules}\n")
    return zone / "energy_uj"


def on_gpus(*buses: int) -> list[dict[str, Any]]:
    return [
        {"rank": rank, "host": "n1", "device": "cuda:0", "identity": f"{bus:032x}"} for rank, bus in enumerate(buses)
    ]


def test_packages_and_memory_count_once(tmp_path: Path) -> None:
    package(tmp_path, "package-0", 5, "intel-rapl:0")
    package(tmp_path, "core", 3, "intel-rapl:0:0")
    package(tmp_path, "dram", 7, "intel-rapl:0:1")
    package(tmp_path, "psys", 99, "intel-rapl:1")
    package(tmp_path, "package-0", 5, "intel-rapl-mmio:0")
    (tmp_path / "class/powercap/intel-rapl:2").mkdir()  # without a counter, as one that root alone may read
    assert [zone.file.parent.name for zone in zones(tmp_path)] == ["intel-rapl:0", "intel-rapl:0:1"]
    assert zones(tmp_path / "nowhere") == [] and used(90, 10, 100) == 20


def test_host_energy_is_divided_by_the_operations(tmp_path: Path) -> None:
    count = tmp_path / "devices/system/cpu/cpu0/thermal_throttle/core_throttle_count"
    count.parent.mkdir(parents=True)
    count.write_text("4\n")
    counter = package(tmp_path, "package-0", 900, "intel-rapl:0")
    meter = Energy(Ranks(), system=tmp_path)  # type: ignore[arg-type]
    counter.write_text("990\n")
    meter.start()
    counter.write_text("30\n")  # it began again at 1000
    count.write_text("6\n")
    figures = meter.stop(8)
    assert (figures["energy_host_uj"], figures["energy_hosts"], figures["host_throttled"]) == (5.0, 1.0, 2.0)
    assert 0 <= figures["energy_loop_s"] < 60 and "energy_gpu_uj" not in figures


def test_a_rank_that_is_not_the_first_of_its_host_counts_nothing(tmp_path: Path) -> None:
    counter = package(tmp_path, "package-0", 0, "intel-rapl:0")
    meter = Energy(Ranks(1, others=np.array([1.0, 0.0])), system=tmp_path)  # type: ignore[arg-type]
    meter.session._others = np.array([600.0, 0.0, 0.0])  # type: ignore[attr-defined]
    counter.write_text("500\n")
    assert meter.stop(2)["energy_host_uj"] == 300


def test_gpus_clocks_and_why_they_are_low(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = [StandInGpu(16, energy_mj=70, clock_mhz=1410), StandInGpu(17, energy_mj=10)]
    machine = StandInNvml(gpus)
    monkeypatch.setattr(nvml, "load", lambda: machine)
    meter = Energy(Ranks(1, places=on_gpus(17, 16)), system=tmp_path)  # type: ignore[arg-type]
    meter.start()
    gpus[0].energy_mj = 72
    gpus[0].throttle = 0x4 | 0x40 | 0x1  # power cap, heat; idle is none
    figures = meter.stop(10)
    meter.close()
    assert machine.users == 0
    assert (figures["energy_gpu_uj"], figures["energy_gpus"], figures["gpu_clock_mhz"]) == (200, 1, 1410)
    assert figures["gpu_throttle"] == 0x44 and "energy_host_uj" not in figures
    figures |= {"energy_loop_s": 0.2}
    (row,) = [{"size_bytes": 8, "value": 1.0, "unit": "us", "metrics": figures}]
    (line,) = csv.DictReader(io.StringIO(to_csv([row])))
    assert line["throttled"] == "GPU: power cap, GPU: heat"
    columns = {str(column.header): next(iter(column.cells)) for column in results_table([row]).columns}
    assert (str(columns["energy/op"]), str(columns["throttled"])) == ("~200 µJ", "GPU: power cap, GPU: heat")
    short = {"metrics": {**figures, "energy_loop_s": 0.011}}
    assert energy_text(short) == "- (loop under 0.2 s)"
    assert energy_text({"metrics": {"energy_host_uj": 20.0, "energy_loop_s": 0.011}}) == "~20 µJ"
    cool = {"size_bytes": 8, "value": 1.0, "unit": "us", "metrics": {**figures, "gpu_throttle": 0, "energy_loop_s": 2}}
    assert next(csv.DictReader(io.StringIO(to_csv([cool]))))["throttled"] == ""
    heads = [str(column.header) for column in results_table([cool]).columns]
    assert "throttled" not in heads and "energy/op" in heads
    assert "energy/op" not in [str(column.header) for column in results_table([{**row, "metrics": {}}]).columns]


def test_ranks_of_one_gpu_count_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "load", lambda: pytest.fail("rank 0 reads it"))
    others = np.array([0.0, 1.0])
    meter = Energy(Ranks(1, places=on_gpus(16, 16), others=others), system=tmp_path)  # type: ignore[arg-type]
    assert meter._gpu is None


def test_what_is_not_counted_is_said_once_and_in_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = StandInNvml([StandInGpu(16, mig=(1, 1), instances=2)])
    monkeypatch.setattr(nvml, "load", lambda: machine)
    with nvml.opened() as library:
        identity = library.nvmlDeviceGetUUID((machine.gpus[0], 1)).removeprefix("MIG-").replace("-", "")
    place = {"rank": 0, "host": "n1", "device": "cuda:0", "identity": identity}
    others = np.array([1.0, 0.0])
    monkeypatch.setattr("omb_py.engine.observers.energy.zones", lambda system: [])
    why = "cuda:0 on n1: a MIG instance has no energy counter of its own: measure on a whole GPU"
    missing = Energy.explain_missing(Ranks(places=[place], others=others), "")  # type: ignore[arg-type]
    assert missing == f"--energy counts no energy of {why}"
    figures = {"energy_loop_s": 2.0, "energy_host_uj": 5.0, "energy_hosts": 1.0}
    row = {"size_bytes": 8, "value": 1.0, "unit": "us", "nodes": 2, "device": "cuda", "devices": 1, "metrics": figures}
    columns = {str(column.header): next(iter(column.cells)) for column in results_table([row]).columns}
    assert str(columns["energy/op"]) == "5 µJ (1 of 2 hosts, 0 of 1 GPUs)"


@pytest.mark.parametrize("energy_mj", [None, 5])
def test_without_any_counter_every_rank_refuses(
    energy_mj: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = StandInNvml([StandInGpu(16, energy_mj=energy_mj)])
    monkeypatch.setattr(nvml, "load", lambda: machine)
    bus = 16 if energy_mj is None else 99  # a GPU too old to count; one that NVML does not know
    with pytest.raises(EnvironmentProblem, match=r"--energy: no rank can read .* chmod"):
        Energy(Ranks(places=on_gpus(bus)), system=tmp_path)  # type: ignore[arg-type]
    assert machine.users == 0


def test_the_loop_is_between_the_readings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from omb_py.backends.mock import BACKEND

    events: list[Any] = []

    class Recorded:
        def __init__(self, session: Any, text: str) -> None:
            events.append("opened")

        def start(self) -> None:
            events.append("start")

        def stop(self, operations: int) -> dict[str, float]:
            events.append(operations)
            return {"energy_host_uj": 3.0}

        def close(self) -> None:
            events.append("closed")

    monkeypatch.setattr(registry, "find", lambda name: Recorded)
    session = BACKEND.connect({"ranks": 2, "settings": None})
    counts = {"iterations": 20, "warmup": 5, "auto": False}
    latency = find("latency")
    done = measure(session, latency, make_cell(latency, "mock", "native", 8, energy=True, **counts))
    assert events == ["opened", "start", 2 * 25, "closed"] and done.extra["energy_host_uj"] == 3.0
    events.clear()
    allreduce = find("iallreduce")  # the pure call first, then the call with computing beside it
    measure(session, allreduce, make_cell(allreduce, "mock", "native", 8, energy=True, **counts))
    assert events == ["opened", "start", 25, "start", 25, "closed"]
    events.clear()
    measure(session, latency, make_cell(latency, "mock", "native", 8, **counts))
    assert events == []
