"""Hosts of :mod:`omb_py.orchestrate.launching.emulated_hosts` with more that can be wrong with them."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from omb_py.orchestrate.launching.emulated_hosts import OVER_TCP, EmulatedHosts, do, missing_program
from tests.support.machines.mpi import ROOT, mpiexec, run_command

__all__ = ["OVER_TCP", "Hosts", "hosts", "why_not"]
_MADE = itertools.count()


@cache
def why_not() -> str:
    """Why there can be no hosts here; empty when there can."""
    if why := missing_program():
        return why
    try:
        with hosts(1):
            return ""
    except OSError as error:
        return f"this machine allows no namespaces: {error}"


class Hosts(EmulatedHosts):
    """Hosts that :func:`hosts` has made."""

    def words(self, folder: Path, host_name: str = "$host") -> list[str]:
        """The words of this environment's launcher for starting processes on the hosts."""
        told = run_command([mpiexec()[0], "--version"], check=True)
        return self.agent(folder, "Open MPI" in told.stdout, host_name)

    def launcher(self, folder: Path, ranks_per_host: int) -> list[str]:
        """The words that start ranks on all hosts; the agent is written into `folder`."""
        words, ranks = self.words(folder), len(self.names) * ranks_per_host
        if "--prtemca" in words:
            slots = ",".join(f"{name}:{ranks_per_host}" for name in self.names)
            return [mpiexec()[0], *words, "--host", slots, "-n", str(ranks)]
        hosts = ",".join(self.names)
        return [mpiexec()[0], *words, "-hosts", hosts, "-n", str(ranks), "-ppn", str(ranks_per_host)]

    def lose(self, a: int, b: int, share: float) -> None:
        """Lose this share of the packets between two hosts, in each direction: the bridge drops them by lot."""
        for source, target in ((a, b), (b, a)):
            self.add_class(target, source, "1mbit")
            # a queue that has room for nothing
            do("tc", "qdisc", "add", "dev", self.wires[target], "parent", f"1:{source + 16:x}", "bfifo", "limit", "1")
            self.take_packets(target, source, share)

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
        do("ip", "link", "del", self.wires[k])
        do("ip", "link", "set", taps[0], "netns", space, "name", "eth0")
        # its neighbours may know its address already
        do("ip", "-n", space, "link", "set", "eth0", "address", json.loads(told.stdout)[0]["address"])
        do("ip", "-n", space, "addr", "add", f"{self.address(k)}/24", "dev", "eth0")
        do("ip", "-n", space, "link", "set", "eth0", "up")
        do("ip", "link", "set", taps[1], "master", self.bridge, "up")

    def cut(self, k: int) -> None:
        """Take the cable of a host out."""
        do("ip", "link", "set", self.wires[k], "down")


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def _choices(count: int) -> Iterator[Hosts]:
    """Each with another number: the kernel takes its time to remove the last ones, and others run tests too.

    A rehearsal has the number 0.
    """
    while True:
        yield Hosts(count, 1 + (os.getpid() + 251 * next(_MADE)) % 0xFFFE)


@contextlib.contextmanager
def hosts(count: int) -> Iterator[Hosts]:
    """`count` hosts called node0, node1, … with addresses of one network. Raises OSError where that cannot be."""
    made = next(made for made in _choices(count) if not Path("/sys/class/net", made.bridge).exists())
    try:
        made.make()
        yield made
    finally:
        made.remove()
