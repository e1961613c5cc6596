"""Limits of the clock rates of this machine: launches under other limits do not compare programs.

Limits are what somebody sets (``cpupower``, ``nvidia-smi``, a batch system before a job). The rate itself varies with
load, and is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from omb_py.engine.devices import nvml
from omb_py.errors import EnvironmentProblem

_CPU = Path("devices/system/cpu")
_BOOST = ((_CPU / "cpufreq/boost", "1"), (_CPU / "intel_pstate/no_turbo", "0"))
"""Files that say whether processors may exceed their base rate, with what they hold where these may."""
_DRIVER = Path("/dev/nvidiactl")


def clock_limits(system: Path = Path("/sys"), driver: Path = _DRIVER) -> dict[str, str]:
    """The limits in words, by what they limit: ``processors``, ``boost``, ``GPU 0``. What cannot be read is left out.

    Those of GPUs are the application clock and the power limit, by NVML. They were not read on a GPU yet.
    """
    limits = {}
    if policies := sorted(set(_policies(system))):
        limits["processors"] = "; ".join(policies)
    for path, on in _BOOST:
        with suppress(OSError):
            limits["boost"] = "on" if (system / path).read_text().strip() == on else "off"
    if driver.exists():
        with suppress(EnvironmentProblem), nvml.opened() as library:
            limits |= {f"GPU {gpu}": text for gpu, text in nvml.limits(library)}
    return limits


def _policies(system: Path) -> Iterator[str]:
    for policy in (system / _CPU / "cpufreq").glob("policy*"):
        with suppress(OSError, ValueError):
            most = int((policy / "scaling_max_freq").read_text()) / 1e6
            yield f"governor {(policy / 'scaling_governor').read_text().strip()}, at most {most:g} GHz"


def why_other_limits(first: Mapping[str, str], second: Mapping[str, str]) -> str:
    """What was limited otherwise in two launches; empty where nothing was, as far as both could be read."""
    for what in first.keys() & second.keys():
        if first[what] != second[what]:
            return f"clock limits of {what}: {first[what]}, then {second[what]}"
    return ""
