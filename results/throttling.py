"""Whether processors or GPUs were slowed down while a row was measured, in words (``--energy``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omb_py.engine.devices.nvml import THROTTLE

Row = Mapping[str, Any]


def throttled_text(row: Row) -> str:
    """The reasons for one cell of a table; empty where nothing was throttled, or nobody looked.

    >>> throttled_text({"metrics": {"gpu_throttle": 0x44, "host_throttled": 2}})
    'GPU: power cap, GPU: heat, CPU: heat'
    """
    metrics = dict(row.get("metrics") or {})
    bits = int(metrics.get("gpu_throttle") or 0)
    words = [f"GPU: {word}" for bit, word in THROTTLE.items() if bits & bit]
    words += ["CPU: heat"] if (metrics.get("host_throttled") or 0) > 0 else []
    return ", ".join(dict.fromkeys(words))
