"""Several hosts on one machine: each a network namespace on a bridge, with its own host name and shared memory.

Launchers start a process on a host through an agent instead of ssh; the libraries then talk TCP, since nothing else
reaches from one host to another.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from tests.support.machines.mpi import ROOT, mpiexec, run_command

_AGENT = """#!/bin/sh
# called by a launcher as: agent [OPTION...] HOST COMMAND...
while [ "${{1#-}}" != "$1" ]; do shift; done
case $1 in {addresses} esac
shift
exec ip netns exec {prefix}$host unshare -m -u sh -c "hostname {called} && mount -t tmpfs tmpfs /dev/shm || exit 1; $*"
"""
_MADE = itertools.count()
OVER_TCP = {"UCX_TLS": "tcp,self"}
"""What MPICH needs to be told, lest it tries shared memory."""


def _do(*words: str) -> None:
    done = run_command(words, timeout=20)
    if done.returncode:
        raise OSError(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")


@cache
def why_not() -> str:
    """Why there can be no hosts here; empty when there can."""
    for program in ("ip", "tc", "unshare", "hostname", "mount"):
        if shutil.which(program) is None:
            return f"{program} is not installed (Debian: iproute2, util-linux, hostname)"
    try:
        with hosts(1):
            return ""
    except OSError as error:
        return f"this machine allows no namespaces: {error}"


class Hosts:
    """Hosts that :func:`hosts` has made."""

    def __init__(self, names: tuple[str, ...], prefix: str, bridge: str, network: str, wires: Sequence[str]) -> None:
        self.names, self.prefix, self.bridge, self.network, self.wires = names, prefix, bridge, network, wires
        self.undo = contextlib.ExitStack()

    def address(self, k: int) -> str:
        """Of host number `k`."""
        return f"{self.network.rsplit('.', 1)[0]}.{k + 1}"

    def agent(self, folder: Path, host_name: str = "$host") -> list[str]:
        """The launcher's words for starting processes on the hosts; the agent is written into `folder`.

        Hosts are started by name or address. With `host_name` all of them have that one.
        """
        addresses = " ".join(f"{self.address(k)}) host={name};;" for k, name in enumerate(self.names))
        agent = folder / "agent"
        agent.write_text(_AGENT.format(prefix=self.prefix, addresses=f"{addresses} *) host=$1;;", called=host_name))
        agent.chmod(0o755)
        told = run_command([mpiexec()[0], "--version"], timeout=30, check=True)
        if "Open MPI" in told.stdout:
            return [
                "--prtemca",
                "plm_ssh_agent",
                str(agent),
                "--prtemca",
                "plm_ssh_no_tree_spawn",
                "1",
                "--prtemca",
                "oob_tcp_if_include",
                self.network,
                "--bind-to",
                "none",
                "--mca",
                "btl",
                "tcp,self",
                "--mca",
                "pml",
                "ob1",
            ]
        return ["-launcher", "ssh", "-launcher-exec", str(agent), "-iface", self.bridge, "-bind-to", "none"]

    def launcher(self, folder: Path, ranks_per_host: int) -> list[str]:
        """The words that start ranks on all hosts; the agent is written into `folder`."""
        words, ranks = self.agent(folder), len(self.names) * ranks_per_host
        if "--host" in words or "--prtemca" in words:
            slots = ",".join(f"{name}:{ranks_per_host}" for name in self.names)
            return [mpiexec()[0], *words, "--host", slots, "-n", str(ranks)]
        hosts = ",".join(self.names)
        return [mpiexec()[0], *words, "-hosts", hosts, "-n", str(ranks), "-ppn", str(ranks_per_host)]

    def limit(self, a: int, b: int, rate: str) -> None:
        """Let what goes between two hosts go at a rate, as ``1gbit``, in each direction."""
        for source, target in ((a, b), (b, a)):
            self._class(target, source, rate)
            _do(
                "tc",
                "filter",
                "add",
                "dev",
                self.wires[target],
                "parent",
                "1:",
                "protocol",
                "all",
                "bpf",
                "bytecode",
                _bytecode(self.address(source)),
                "classid",
                f"1:{source + 16:x}",
            )

    def lose(self, a: int, b: int, share: float) -> None:
        """Lose this share of the packets between two hosts, in each direction: the bridge drops them by lot."""
        for source, target in ((a, b), (b, a)):
            self._class(target, source, "1mbit")
            # a queue that has room for nothing
            _do("tc", "qdisc", "add", "dev", self.wires[target], "parent", f"1:{source + 16:x}", "bfifo", "limit", "1")
            _do(
                "tc",
                "filter",
                "add",
                "dev",
                self.wires[target],
                "parent",
                "1:",
                "protocol",
                "all",
                "bpf",
                "bytecode",
                _bytecode(self.address(source), share),
                "classid",
                f"1:{source + 16:x}",
            )

    def _class(self, target: int, source: int, rate: str) -> None:
        for wire in self.wires:
            self._queue(wire)
        self._add_class(self.wires[target], f"1:{source + 16:x}", rate, "128k")

    def _queue(self, wire: str) -> None:
        """Give a wire the queue that can hold classes, which costs time: every wire has it, or its host were slower."""
        shaped = run_command(["tc", "qdisc", "show", "dev", wire], timeout=20)
        if " htb " not in shaped.stdout:
            _do("tc", "qdisc", "add", "dev", wire, "root", "handle", "1:", "htb", "default", "1")
            self._add_class(wire, "1:1", "100gbit", "32m")

    @staticmethod
    def _add_class(wire: str, name: str, rate: str, burst: str) -> None:
        words = f"tc class add dev {wire} parent 1: classid {name} htb rate {rate} burst {burst} quantum 60000"
        _do(*words.split())

    def delay(self, k: int, us: float) -> None:
        """Let every packet to and from a host come so much later, through a process that holds it back."""
        space, taps = self.prefix + self.names[k], (f"{self.wires[k]}a", f"{self.wires[k]}b")
        shaper = subprocess.Popen(
            [sys.executable, "-m", "tests.support.machines.shaper", *taps, str(us)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        self.undo.callback(_end, shaper)
        assert shaper.stdout is not None and shaper.stdout.readline() == "ready\n"
        told = subprocess.run(
            ["ip", "-n", space, "-j", "link", "show", "eth0"], capture_output=True, check=True, timeout=20
        )
        _do("ip", "link", "del", self.wires[k])
        _do("ip", "link", "set", taps[0], "netns", space, "name", "eth0")
        # its neighbours may know its address already
        _do("ip", "-n", space, "link", "set", "eth0", "address", json.loads(told.stdout)[0]["address"])
        _do("ip", "-n", space, "addr", "add", f"{self.address(k)}/24", "dev", "eth0")
        _do("ip", "-n", space, "link", "set", "eth0", "up")
        _do("ip", "link", "set", taps[1], "master", self.bridge, "up")

    def cut(self, k: int) -> None:
        """Take the cable of a host out."""
        _do("ip", "link", "set", self.wires[k], "down")


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def _bytecode(source: str, share: float = 1.0) -> str:
    """Classic BPF that takes this share of the IPv4 packets from an address, for ``tc filter … bpf bytecode``."""
    address = int.from_bytes(socket.inet_aton(source))
    lines = ["40 0 0 12", "21 0 {end} 2048", "32 0 0 26", f"21 0 {{end}} {address}"]
    if share < 1:
        # a random number: SKF_AD_OFF + SKF_AD_RANDOM
        lines += [f"32 0 0 {0xFFFFF000 + 56}", f"53 {{end}} 0 {int(share * 2**32)}"]
    lines += [f"6 0 0 {0xFFFFFFFF}", "6 0 0 0"]
    last = len(lines) - 1
    return ",".join([str(len(lines)), *(line.format(end=last - k - 1) for k, line in enumerate(lines))])


@contextlib.contextmanager
def hosts(count: int) -> Iterator[Hosts]:
    """`count` hosts called node0, node1, … with addresses of one network. Raises OSError where that cannot be."""
    number = (os.getpid() + 251 * next(_MADE)) % 0xFFFF  # the kernel takes its time to remove the last ones
    prefix, bridge = f"omb{number:x}-", f"ombr{number:x}"
    network = f"10.{64 + (number >> 8) % 128}.{number & 0xFF}"
    names = tuple(f"node{k}" for k in range(count))
    wires = tuple(f"ombw{number:x}.{k}" for k in range(count))
    made = Hosts(names, prefix, bridge, f"{network}.0/24", wires)
    try:
        _do("ip", "link", "add", bridge, "type", "bridge")
        _do("ip", "addr", "add", f"{network}.254/24", "dev", bridge)
        _do("ip", "link", "set", bridge, "up")
        for name, wire in zip(names, wires, strict=True):
            space, k = prefix + name, names.index(name)
            _do("ip", "netns", "add", space)
            _do("ip", "link", "add", wire, "type", "veth", "peer", "name", "eth0", "netns", space)
            _do("ip", "link", "set", wire, "master", bridge, "up")
            _do("ip", "-n", space, "addr", "add", f"{network}.{k + 1}/24", "dev", "eth0")
            _do("ip", "-n", space, "link", "set", "lo", "up")
            _do("ip", "-n", space, "link", "set", "eth0", "up")
        yield made
    finally:
        made.undo.close()
        # The wires by themselves: with their namespaces they go some time later, under the hands of a launcher that
        # looks at the interfaces (Open MPI then says that its listener thread failed to start).
        for wire in (*wires, bridge):
            subprocess.run(["ip", "link", "del", wire], capture_output=True, timeout=20, check=False)
        for name in names:
            subprocess.run(["ip", "netns", "del", prefix + name], capture_output=True, timeout=20, check=False)
