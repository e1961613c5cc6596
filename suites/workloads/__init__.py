"""What a training or inference step asks of the network, as declared lists of calls (docs/workloads)."""

from __future__ import annotations

from omb_py.suites.workloads.calls import Call, Message
from omb_py.suites.workloads.families import FAMILIES, Family, Workload, parse_workload

__all__ = ["FAMILIES", "Call", "Family", "Message", "Workload", "parse_workload"]
