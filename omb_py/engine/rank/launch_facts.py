"""Types of what a launch says of itself: its library, its devices, its nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from omb_py.grammar.json_values import JsonObject


class DevicePlace(TypedDict):
    rank: int
    host: str
    device: str
    """``cuda:0``: kind and number, as the rank sees it."""
    identity: str
    """The same for all ranks of a host that use one device."""
    name: str
    clocks_khz: Mapping[str, int]


class LaunchFacts(TypedDict, total=False):
    """What rank 0 says of a launch before its first cell."""

    ranks: int
    hosts: Sequence[str]
    """Host of each rank."""
    library: str
    library_version: str
    library_string: str
    standard: str
    binding_version: str
    thread_level: str
    device_name: str
    devices: Sequence[DevicePlace]
    """Empty where buffers are on the host."""
    rank_facts: Sequence[JsonObject]
    node_facts: Sequence[JsonObject]
    software: JsonObject
    environment: Mapping[str, str]
    skew_us: float | None
    loaded_libraries: Sequence[Mapping[str, str | None]]
