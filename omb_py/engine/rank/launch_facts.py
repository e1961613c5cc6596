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


class RankFacts(TypedDict):
    """One rank, as :func:`omb_py.engine.rank.system_info.rank_facts` finds it."""

    rank: int
    local_rank: int
    host: str
    pid: int
    affinity: Sequence[int]


class GpuOfNode(TypedDict):
    """:class:`omb_py.engine.devices.nvml.GpuFacts` in a stored launch."""

    index: int
    name: str
    uuid: str
    pci: str
    pcie: str
    numa: int | None
    mig: str


class GpuPair(TypedDict):
    """:class:`omb_py.engine.devices.nvml.PairFacts` in a stored launch."""

    first: int
    second: int
    path: str
    no_peer: str


class GpuInventory(TypedDict, total=False):
    """The GPUs of a node; where nobody could ask, ``unknown`` alone says why."""

    driver: str
    cuda: str
    gpus: Sequence[GpuOfNode]
    pairs: Sequence[GpuPair]
    unknown: str


class PcieCard(TypedDict):
    """A card and its link: GT/s and lanes as they are, and the most that the card takes."""

    kind: str
    address: str
    names: Sequence[str]
    gts: float
    most_gts: float
    width: int
    most_width: int
    slot_width: int | None


class InfinibandPort(TypedDict):
    device: str
    port: str
    model: str | None
    firmware: str | None
    rate: str | None
    state: str | None


class NodeFacts(TypedDict, total=False):
    """One node, as :func:`omb_py.engine.rank.system_info.node_facts` finds it."""

    host: str
    cpu: Mapping[str, str]
    cores_online: int | None
    smt: str | None
    governor: str | None
    turbo_off: str | None
    numa_nodes: str | None
    isolated: str | None
    memory_kb: int | None
    kernel: str
    kernel_command_line: str | None
    machine: str
    os: str | None
    libc: str
    huge_pages: str | None
    aslr: str | None
    clocksource: str | None
    clocksources: str | None
    load_before: Sequence[float]
    uptime_s: float
    cgroup_cpu_max: str | None
    cgroup_memory_max: str | None
    network: Mapping[str, Mapping[str, str | None]]
    infiniband: Sequence[InfinibandPort]
    pcie: Sequence[PcieCard]
    gpus: GpuInventory


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
    rank_facts: Sequence[RankFacts]
    node_facts: Sequence[NodeFacts]
    software: JsonObject
    environment: Mapping[str, str]
    skew_us: float | None
    loaded_libraries: Sequence[Mapping[str, str | None]]
    device_memory: Mapping[str, int]
    """Bytes of a device that ``communicators``, ``buffers`` and ``calls`` took, of the rank that uses most.

    Where the library counts its own for its communicators, ``library`` is all of it: what it could give back while a
    communicator is suspended (``suspendable``), and the rest (``persistent``).
    """


class SideSettings(TypedDict, total=False):
    """What a comparison set on a side."""

    env: str
    pip: Sequence[str]
    modules: Sequence[str]
    set: Mapping[str, str]
    """Variables."""
    options: Sequence[str]
    side: str
    setting: str
    """Name of a candidate of a tuning."""


class AskedFacts(TypedDict, total=False):
    """What was asked for a launch beside its request."""

    config: SideSettings


class LaunchSection(AskedFacts, total=False):
    """How a launch was started and how it ended; launchers add facts of their own."""

    launch_id: str
    index: int
    started_at: str
    thread_level_asked: str
    elapsed_s: float
    busy_before: str
    """A sentence where other programs used much of the machine before the first launch."""
    other_cores: float | None
