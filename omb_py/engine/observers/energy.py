"""Energy of the timed loop, clocks and throttling (``--energy``): read before and after it, so nothing of it is timed.

Host: the counters of RAPL in ``/sys/class/powercap``, in µJ, of packages and memory, by the first rank of each host.
GPUs: the counters of :mod:`omb_py.engine.devices.gpu_counters`, by the first rank of each GPU. What is counted is the
whole machine: ranks that wait, barriers between the iterations, and whatever else runs there.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from omb_py.engine.devices import gpu_counters, nvml
from omb_py.engine.devices.gpu_counters import GpuCounter, Reading
from omb_py.engine.devices.registry import GPU_KINDS, is_gpu
from omb_py.engine.observers.observer import Observer, StoredRow, leads_its_host, metrics_of, number_of
from omb_py.engine.rank.launch_facts import DevicePlace
from omb_py.engine.rank.system_info import throttle_count
from omb_py.errors import EnvironmentProblem
from omb_py.grammar.values import four_digits

if TYPE_CHECKING:
    from omb_py.engine.session import Session

ENOUGH_S: Final = 1.0
"""A loop that is shorter is known roughly alone: NVML renews its counter about ten times a second."""
RENEWED_S: Final = 0.2
"""In a loop that is shorter the counter of a GPU may stand still, or count what was used long before."""
_FIX: Final = (
    "as root: chmod -R a+r /sys/class/powercap/intel-rapl:*; for GPUs nvidia-ml-py or amdsmi, or leave --energy out"
)


@dataclass(frozen=True, slots=True)
class Zone:
    """One counter of energy of a processor package or its memory."""

    file: Path
    wraps_at: int
    """µJ after which it begins again: a quarter of an hour or more of full load."""


def zones(system: Path) -> list[Zone]:
    """The readable counters of packages and memory; those of cores are a part of their package's.

    The same packages stand under ``intel-rapl-mmio`` again, and a platform's counter (psys) contains them.
    """
    counters = []
    for folder in sorted(system.glob("class/powercap/intel-rapl:*")):
        try:
            name = (folder / "name").read_text().strip()
            if name.startswith("package") or name == "dram":
                int((folder / "energy_uj").read_text())
                wraps_at = int((folder / "max_energy_range_uj").read_text())
                counters.append(Zone(folder / "energy_uj", wraps_at))
        except (OSError, ValueError):  # since 2020 root alone may read them
            continue
    return counters


def used(before: int, after: int, wraps_at: int) -> int:
    """µJ between two readings of a counter that begins again at most once.

    >>> used(90, 10, 100)
    20
    """
    return (after - before) % wraps_at if wraps_at else after - before


@dataclass(slots=True)
class _Reading:
    at: float
    zones: list[int]
    gpu: Reading
    throttled: int | None
    """Throttling events of the processors so far."""


def energy_text(row: StoredRow) -> str:
    """Joule an operation of all that was counted; ``~`` where the loop was too short for more than a rough number,
    none where GPUs were counted in a loop shorter than their counters' steps.

    In parentheses how many hosts or GPUs were counted, where that was not all: ``3 J (0 of 8 GPUs)``.
    """
    metrics = metrics_of(row)
    counted = [metrics[name] for name in ("energy_host_uj", "energy_gpu_uj") if name in metrics]
    if not counted:
        return "-"
    loop_s = metrics.get("energy_loop_s", 0.0)
    if loop_s < RENEWED_S and "energy_gpu_uj" in metrics:
        return f"- (loop under {RENEWED_S:g} s)"
    rough = "~" if loop_s < ENOUGH_S else ""
    gpus = row.get("devices") if row.get("device") in GPU_KINDS else 0
    few = [
        f"{metrics.get(name, 0):.0f} of {int(number_of(total))} {noun}"
        for name, total, noun in (("energy_hosts", row.get("nodes"), "hosts"), ("energy_gpus", gpus, "GPUs"))
        if number_of(total) > metrics.get(name, 0)
    ]
    return f"{rough}{joule_text(sum(counted))}" + (f" ({', '.join(few)})" if few else "")


def joule_text(microjoules: float) -> str:
    """An energy in µJ with the unit that suits its size.

    >>> joule_text(1234.5)
    '1.234 mJ'
    """
    steps = ((1e6, "J"), (1e3, "mJ"))
    divisor, unit = next((step for step in steps if abs(microjoules) >= step[0]), (1.0, "µJ"))
    return f"{four_digits(microjoules / divisor)} {unit}"


def throttled_text(row: StoredRow) -> str:
    """Why processors or GPUs were slowed down; empty where nothing was throttled, or nobody looked.

    >>> throttled_text({"metrics": {"gpu_throttle": 0x44, "host_throttled": 2}})
    'GPU: power cap, GPU: heat, CPU: heat'
    """
    metrics = metrics_of(row)
    bits = int(metrics.get("gpu_throttle") or 0)
    reasons = [f"GPU: {reason}" for bit, reason in nvml.THROTTLE.items() if bits & bit]
    reasons += ["CPU: heat"] if (metrics.get("host_throttled") or 0) > 0 else []
    return ", ".join(dict.fromkeys(reasons))


class Energy(Observer):
    """Counters of this process's share of host and GPUs.

    Raises:
        EnvironmentProblem: on every rank alike, when no rank can read any counter.
    """

    name, option = "energy", "--energy"
    columns = (("energy/op", energy_text),)
    warnings = (("throttled", throttled_text),)

    def __init__(self, session: Session, text: str = "", system: Path = Path("/sys")) -> None:
        super().__init__(session, text)
        self._system = system
        self._zones = zones(system) if leads_its_host(session) else []
        self._opened = ExitStack()
        self._gpu, why = self._open_gpu()
        reasons = dict.fromkeys(text for text in session.share(session.gather(why)) if text)
        self.uncounted = "; ".join(reasons)
        """Why GPUs of this launch are not counted, the same on every rank; empty where all are."""
        self._before = self._read()
        self._counts = session.total(np.array([float(bool(self._zones)), float(self._gpu is not None)]))
        if not self._counts.any():
            self.close()
            more = f" ({self.uncounted})" if self.uncounted else ""
            raise EnvironmentProblem(f"--energy: no rank can read an energy counter of its host or GPU{more}: {_FIX}")

    @classmethod
    def explain_missing(cls, session: Session, text: str) -> str:
        energy = cls(session, text)
        energy.close()
        return f"--energy counts no energy of {energy.uncounted}" if energy.uncounted else ""

    def start(self) -> None:
        self._before = self._read()

    def stop(self, operations: int) -> dict[str, float]:
        """Read the counters again and put those of all ranks together.

        Args:
            operations: that the loop did, warm-ups among them.

        Returns:
            ``energy_host_uj`` and ``energy_gpu_uj``: µJ an operation, of all hosts and all GPUs together, where there
            are counters; ``energy_hosts``, ``energy_gpus``: how many were counted; ``energy_loop_s``: how long the loop
            took; ``gpu_clock_mhz``: the lowest of the GPUs after it; ``gpu_throttle``: NVML's bits of all GPUs;
            ``host_throttled``: throttling events of the processors.
        """
        before, after = self._before, self._read()
        pairs = zip(self._zones, before.zones, after.zones, strict=True)
        host = sum(used(start, end, zone.wraps_at) for zone, start, end in pairs)
        gpu = (after.gpu.energy_uj or 0.0) - (before.gpu.energy_uj or 0.0)
        events = 0 if before.throttled is None or after.throttled is None else after.throttled - before.throttled
        totals = self.session.total(np.array([host, gpu, events if self._zones else 0], np.float64))
        clock = self._gpu.clock_mhz() if self._gpu else None
        reasons = before.gpu.throttled_until(after.gpu)
        bits = [float(bool(reasons & bit)) for bit in nvml.THROTTLE]
        worst = self.session.maximum(np.array([after.at - before.at, -float(clock or np.inf), *bits]))
        hosts, gpus = (int(count) for count in self._counts)
        figures = {"energy_loop_s": float(worst[0])}
        if hosts:
            figures |= {"energy_host_uj": totals[0] / operations, "energy_hosts": hosts, "host_throttled": totals[2]}
        if gpus:
            lowest = -float(worst[1])
            figures |= {"energy_gpu_uj": totals[1] / operations, "energy_gpus": gpus}
            figures |= {"gpu_clock_mhz": lowest} if np.isfinite(lowest) else {}
            figures["gpu_throttle"] = sum(bit for bit, set_ in zip(nvml.THROTTLE, worst[2:], strict=True) if set_)
        return {name: float(value) for name, value in figures.items()}

    def close(self) -> None:
        self._opened.close()

    def _open_gpu(self) -> tuple[GpuCounter | None, str]:
        """The counters of this rank's GPU, or None where another rank reads it; and why nobody can."""
        places = self.session.places
        own = [rank for rank in self.session.local if rank < len(places) and _first_of_its_gpu(places, rank)]
        if not own:
            return None, ""
        place = places[own[0]]
        try:
            counter = gpu_counters.opened(place["device"], place["identity"])
            return self._opened.enter_context(counter), ""
        except EnvironmentProblem as problem:
            return None, f"{place['device']} on {place['host']}: {problem}"

    def _read(self) -> _Reading:
        gpu = self._gpu.read() if self._gpu else Reading()
        counters = [int(zone.file.read_text()) for zone in self._zones]
        return _Reading(time.monotonic(), counters, gpu, throttle_count(self._system))


def _first_of_its_gpu(places: Sequence[DevicePlace], rank: int) -> bool:
    place = places[rank]
    users = [p["rank"] for p in places if (p["host"], p["identity"]) == (place["host"], place["identity"])]
    return is_gpu(place["device"].partition(":")[0]) and users[0] == rank
