"""Several hosts on one machine: each a network namespace on a bridge, with its own host name and shared memory.

Launchers start a process on a host through an agent instead of ssh; the libraries then talk TCP, since nothing else
reaches from one host to another.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.support.mpi import mpiexec

_AGENT = """#!/bin/sh
# called by a launcher as: agent [OPTION...] HOST COMMAND...
while [ "${{1#-}}" != "$1" ]; do shift; done
host=$1
shift
exec ip netns exec {prefix}$host unshare -m -u sh -c "hostname $host && mount -t tmpfs tmpfs /dev/shm || exit 1; $*"
"""
_MADE = itertools.count()
OVER_TCP = {"UCX_TLS": "tcp,self"}
"""What MPICH needs to be told, lest it tries shared memory."""


def _do(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, timeout=20, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")


@cache
def why_not() -> str:
    """Why there can be no hosts here; empty when there can."""
    for program in ("ip", "unshare", "hostname", "mount"):
        if shutil.which(program) is None:
            return f"{program} is not installed (Debian: iproute2, util-linux, hostname)"
    try:
        with hosts(1):
            return ""
    except OSError as error:
        return f"this machine allows no namespaces: {error}"


class Hosts:
    """Hosts that :func:`hosts` has made."""

    def __init__(self, names: tuple[str, ...], prefix: str, bridge: str, network: str) -> None:
        self.names, self.prefix, self.bridge, self.network = names, prefix, bridge, network

    def launcher(self, folder: Path, ranks_per_host: int) -> list[str]:
        """The words that start ranks on all hosts; the agent is written into `folder`."""
        agent = folder / "agent"
        agent.write_text(_AGENT.format(prefix=self.prefix))
        agent.chmod(0o755)
        program, ranks = mpiexec()[0], len(self.names) * ranks_per_host
        told = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30, check=True).stdout
        if "Open MPI" in told:
            slots = ",".join(f"{name}:{ranks_per_host}" for name in self.names)
            return [
                program, "--prtemca", "plm_ssh_agent", str(agent), "--prtemca", "plm_ssh_no_tree_spawn", "1",
                "--prtemca", "oob_tcp_if_include", self.network, "--host", slots, "--bind-to", "none",
                "--mca", "btl", "tcp,self", "--mca", "pml", "ob1", "-n", str(ranks),
            ]  # fmt: skip
        return [
            program, "-launcher", "ssh", "-launcher-exec", str(agent), "-iface", self.bridge,
            "-hosts", ",".join(self.names), "-n", str(ranks), "-ppn", str(ranks_per_host),
        ]  # fmt: skip


@contextlib.contextmanager
def hosts(count: int) -> Iterator[Hosts]:
    """`count` hosts called node0, node1, … with addresses of one network. Raises OSError where that cannot be."""
    number = (os.getpid() + 251 * next(_MADE)) % 0xFFFF  # the kernel takes its time to remove the last ones
    prefix, bridge = f"omb{number:x}-", f"ombr{number:x}"
    network = f"10.{64 + (number >> 8) % 128}.{number & 0xFF}"
    names = tuple(f"node{k}" for k in range(count))
    try:
        _do("ip", "link", "add", bridge, "type", "bridge")
        _do("ip", "addr", "add", f"{network}.254/24", "dev", bridge)
        _do("ip", "link", "set", bridge, "up")
        for k, name in enumerate(names):
            space, wire = prefix + name, f"ombw{number:x}.{k}"
            _do("ip", "netns", "add", space)
            _do("ip", "link", "add", wire, "type", "veth", "peer", "name", "eth0", "netns", space)
            _do("ip", "link", "set", wire, "master", bridge, "up")
            _do("ip", "-n", space, "addr", "add", f"{network}.{k + 1}/24", "dev", "eth0")
            _do("ip", "-n", space, "link", "set", "lo", "up")
            _do("ip", "-n", space, "link", "set", "eth0", "up")
        yield Hosts(names, prefix, bridge, f"{network}.0/24")
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", prefix + name], capture_output=True, timeout=20, check=False)
        subprocess.run(["ip", "link", "del", bridge], capture_output=True, timeout=20, check=False)
