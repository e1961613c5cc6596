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
from typing import Any, Final

import numpy as np

from omb_py.engine.devices import gpu_counters, nvml
from omb_py.engine.devices.gpu_counters import GpuCounter, Reading
from omb_py.engine.devices.registry import is_gpu
from omb_py.engine.rank.system_info import throttle_count
from omb_py.engine.session import Session
from omb_py.errors import EnvironmentProblem

ENOUGH_S: Final = 1.0
"""A loop that is shorter is known roughly alone: NVML renews its counter about ten times a second."""
_FIX: Final = (
    "as root: chmod -R a+r /sys/class/powercap/intel-rapl:*; for GPUs nvidia-ml-py or amdsmi, or leave --energy out"
)


@dataclass(frozen=True, slots=True)
class Zone:
    """A counter of RAPL."""

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


class Meter:
    """Counters of this process's share of host and GPUs.

    Args:
        session: of all ranks; each calls every method of its meter together with the others.
        system: the mounted sys file system.

    Raises:
        EnvironmentProblem: on every rank alike, when no rank can read any counter.
    """

    def __init__(self, session: Session, system: Path = Path("/sys")) -> None:
        self._session, self._system = session, system
        first = any(session.hosts.index(session.hosts[rank]) == rank for rank in session.local)
        self._zones = zones(system) if first else []
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

    def start(self) -> None:
        """Read the counters; to be called right before the loop."""
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
        totals = self._session.total(np.array([host, gpu, events if self._zones else 0], np.float64))
        clock = self._gpu.clock_mhz() if self._gpu else None
        reasons = before.gpu.throttled_until(after.gpu)
        bits = [float(bool(reasons & bit)) for bit in nvml.THROTTLE]
        worst = self._session.maximum(np.array([after.at - before.at, -float(clock or np.inf), *bits]))
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
        """Give the packages back."""
        self._opened.close()

    def _open_gpu(self) -> tuple[GpuCounter | None, str]:
        """The counters of this rank's GPU, or None where another rank reads it; and why nobody can."""
        places = self._session.places
        own = [rank for rank in self._session.local if rank < len(places) and _first_of_its_gpu(places, rank)]
        if not own:
            return None, ""
        place = places[own[0]]
        try:
            counter = gpu_counters.opened(str(place["device"]), str(place["identity"]))
            return self._opened.enter_context(counter), ""
        except EnvironmentProblem as problem:
            return None, f"{place['device']} on {place['host']}: {problem}"

    def _read(self) -> _Reading:
        gpu = self._gpu.read() if self._gpu else Reading()
        counters = [int(zone.file.read_text()) for zone in self._zones]
        return _Reading(time.monotonic(), counters, gpu, throttle_count(self._system))


def uncounted(session: Session) -> str:
    """Why GPUs of a launch cannot be counted; empty where all are, or none is used. All ranks call it together.

    Raises EnvironmentProblem: as :class:`Meter`.
    """
    meter = Meter(session)
    meter.close()
    return meter.uncounted


def _first_of_its_gpu(places: Sequence[Any], rank: int) -> bool:
    place = places[rank]
    alike = [other["rank"] for other in places if all(other[key] == place[key] for key in ("host", "identity"))]
    return is_gpu(str(place["device"]).partition(":")[0]) and alike[0] == rank
