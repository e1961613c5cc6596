"""Hosts on one machine: each a network namespace on a bridge, with its own host name and shared memory.

Launchers start a process on a host through an agent instead of ssh; the libraries then talk TCP, since nothing else
reaches from one host to another. Needs ``ip`` (and ``tc`` for a slow link), ``unshare``, ``mount`` and ``hostname``,
and the right to make namespaces.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

PROGRAMS: Final = ("ip", "tc", "unshare", "hostname", "mount")
OVER_TCP: Final[Mapping[str, str]] = {"UCX_TLS": "tcp,self"}
"""What MPICH needs to be told, lest it tries shared memory."""
_AGENT: Final = """#!/bin/sh
# called by a launcher as: agent [OPTION...] HOST COMMAND...
while [ "${{1#-}}" != "$1" ]; do shift; done
case $1 in {addresses} esac
shift
exec ip netns exec {prefix}$host unshare -m -u sh -c "hostname {called} && mount -t tmpfs tmpfs /dev/shm || exit 1; $*"
"""


def missing_program(path: str | None = None) -> str:
    """The program that is missing for hosts, with what to install; empty where none is. `path` replaces PATH."""
    program = next((name for name in PROGRAMS if shutil.which(name, path=path) is None), None)
    return f"{program} is not installed (Debian: iproute2, util-linux, hostname)" if program else ""


class EmulatedHosts:
    """Hosts called node0, node1, … with addresses of one network."""

    def __init__(self, count: int, number: int) -> None:
        """Choose names; `number`, up to 0xFFFF, keeps those of several processes apart."""
        self.prefix, self.bridge = f"omb{number:x}-", f"ombr{number:x}"
        self._subnet = f"10.{64 + (number >> 8) % 128}.{number & 0xFF}"
        self.network = f"{self._subnet}.0/24"
        self.names = tuple(f"node{k}" for k in range(count))
        self.wires = tuple(f"ombw{number:x}.{k}" for k in range(count))
        self.undo = contextlib.ExitStack()

    def make(self) -> None:
        """Make bridge, hosts and cables. Raises OSError where that cannot be."""
        do("ip", "link", "add", self.bridge, "type", "bridge")
        do("ip", "addr", "add", f"{self._subnet}.254/24", "dev", self.bridge)
        do("ip", "link", "set", self.bridge, "up")
        for k, (name, wire) in enumerate(zip(self.names, self.wires, strict=True)):
            space = self.prefix + name
            do("ip", "netns", "add", space)
            do("ip", "link", "add", wire, "type", "veth", "peer", "name", "eth0", "netns", space)
            do("ip", "link", "set", wire, "master", self.bridge, "up")
            do("ip", "-n", space, "addr", "add", f"{self.address(k)}/24", "dev", "eth0")
            do("ip", "-n", space, "link", "set", "lo", "up")
            do("ip", "-n", space, "link", "set", "eth0", "up")

    def remove(self) -> None:
        """Remove what :meth:`make` has made."""
        self.undo.close()
        # The wires by themselves: with their namespaces they go some time later, under the hands of a launcher that
        # looks at the interfaces (Open MPI then says that its listener thread failed to start).
        for wire in (*self.wires, self.bridge):
            subprocess.run(["ip", "link", "del", wire], capture_output=True, timeout=20, check=False)
        for name in self.names:
            subprocess.run(["ip", "netns", "del", self.prefix + name], capture_output=True, timeout=20, check=False)

    def address(self, k: int) -> str:
        """Of host number `k`."""
        return f"{self._subnet}.{k + 1}"

    def agent(self, folder: Path, is_open_mpi: bool, host_name: str = "$host") -> list[str]:
        """The launcher's words for starting processes on the hosts; the agent is written into `folder`.

        Hosts are started by name or address. With `host_name` all of them have that one.
        """
        addresses = " ".join(f"{self.address(k)}) host={name};;" for k, name in enumerate(self.names))
        agent = folder / "agent"
        agent.write_text(_AGENT.format(prefix=self.prefix, addresses=f"{addresses} *) host=$1;;", called=host_name))
        agent.chmod(0o755)
        if is_open_mpi:
            settings = {"plm_ssh_agent": str(agent), "plm_ssh_no_tree_spawn": "1", "oob_tcp_if_include": self.network}
            words = [word for name, value in settings.items() for word in ("--prtemca", name, value)]
            return [*words, "--bind-to", "none", "--mca", "btl", "tcp,self", "--mca", "pml", "ob1"]
        return ["-launcher", "ssh", "-launcher-exec", str(agent), "-iface", self.bridge, "-bind-to", "none"]

    def limit(self, a: int, b: int, rate: str) -> None:
        """Let what goes between two hosts go at a rate, as ``1gbit``, in each direction. Raises OSError."""
        for source, target in ((a, b), (b, a)):
            self.add_class(target, source, rate)
            self.take_packets(target, source)

    def add_class(self, target: int, source: int, rate: str) -> None:
        """A class of this rate on the wire of `target` for what comes from `source`."""
        for wire in self.wires:
            _queue(wire)
        _add_class(self.wires[target], f"1:{source + 16:x}", rate, "128k")

    def take_packets(self, target: int, source: int, share: float = 1.0) -> None:
        """Send this share of the packets from `source` through its class on the wire of `target`."""
        words = ("filter", "add", "dev", self.wires[target], "parent", "1:", "protocol", "all", "bpf", "bytecode")
        do("tc", *words, _bytecode(self.address(source), share), "classid", f"1:{source + 16:x}")


def do(*words: str) -> None:
    """Run a program. Raises OSError with what it said."""
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=20, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")


def _queue(wire: str) -> None:
    """Give a wire the queue that can hold classes, which costs time: every wire has it, or its host were slower."""
    words = ["tc", "qdisc", "show", "dev", wire]
    if " htb " not in subprocess.run(words, capture_output=True, text=True, timeout=20, check=False).stdout:
        do("tc", "qdisc", "add", "dev", wire, "root", "handle", "1:", "htb", "default", "1")
        _add_class(wire, "1:1", "100gbit", "32m")


def _add_class(wire: str, name: str, rate: str, burst: str) -> None:
    words = f"tc class add dev {wire} parent 1: classid {name} htb rate {rate} burst {burst} quantum 60000"
    do(*words.split())


def _bytecode(source: str, share: float) -> str:
    """Classic BPF that takes this share of the IPv4 packets from an address, for ``tc filter … bpf bytecode``."""
    address = int.from_bytes(socket.inet_aton(source))
    lines: Sequence[str] = ("40 0 0 12", "21 0 {end} 2048", "32 0 0 26", f"21 0 {{end}} {address}")
    if share < 1:
        # a random number: SKF_AD_OFF + SKF_AD_RANDOM
        lines = [*lines, f"32 0 0 {0xFFFFF000 + 56}", f"53 {{end}} 0 {int(share * 2**32)}"]
    lines = [*lines, f"6 0 0 {0xFFFFFFFF}", "6 0 0 0"]
    last = len(lines) - 1
    return ",".join([str(len(lines)), *(line.format(end=last - k - 1) for k, line in enumerate(lines))])
