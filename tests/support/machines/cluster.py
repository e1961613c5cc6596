"""``omb-py links`` on hosts of :mod:`tests.support.machines.nodes`, with what is wrong with them."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.machines import mpi
from tests.support.machines.mpi import ROOT, run_command
from tests.support.machines.nodes import OVER_TCP, Hosts, hosts

QUICK = ("--rounds", "serial", "-i", "40", "-W", "4", "--large", "256K")
FEW, MANY, SOME = ("--windows", "10", "--passes", "9"), ("--windows", "6", "--passes", "7"), ("--windows", "3")
# a launch of 40 ping-pongs loses no packet at all in one of sixty, and the fastest launch counts
LOSSY = ("--windows", "3", "--passes", "3", "-i", "80")
YIELD = {**mpi.YIELD, **OVER_TCP}
"""There are more ranks than cores."""


UPLINK = "three of eight behind an uplink"


def _behind_an_uplink(cluster: Hosts, rate: str) -> None:
    """The last three hosts reach the others at this rate, and each other as before."""
    own = range(len(cluster.names) - 3, len(cluster.names))
    for inside in own:
        for outside in range(own.start):
            cluster.limit(outside, inside, rate)


@dataclass(frozen=True)
class Fault:
    """What is wrong, and what must be named."""

    slight: Callable[[Hosts], None]
    """As machines have it, to count how often it is named."""
    gross: Callable[[Hosts], None]
    """So bad that other work on the machine hides it from nobody."""
    names: frozenset[str] = frozenset()


FAULTS: Mapping[str, Fault] = {
    "nothing": Fault(lambda cluster: None, lambda cluster: None),
    "a slow link": Fault(
        lambda cluster: cluster.limit(0, 2, "1gbit"),
        lambda cluster: cluster.limit(0, 2, "50mbit"),
        frozenset({"node0 - node2"}),
    ),
    "a late node": Fault(
        lambda cluster: cluster.delay(1, 200), lambda cluster: cluster.delay(1, 1000), frozenset({"node1"})
    ),
    "a link that loses packets": Fault(
        lambda cluster: cluster.lose(1, 3, 0.05), lambda cluster: cluster.lose(1, 3, 0.1), frozenset({"node1 - node3"})
    ),
    UPLINK: Fault(
        lambda cluster: _behind_an_uplink(cluster, "1gbit"),
        lambda cluster: _behind_an_uplink(cluster, "100mbit"),
        frozenset({"node5, node6, node7"}),
    ),
}

SETTINGS = {
    "nothing": (FEW, MANY),
    "a slow link": (FEW, MANY),
    "a late node": (SOME, MANY),
    "a link that loses packets": (LOSSY, LOSSY),
    UPLINK: (FEW, SOME),
}
"""How often a link is looked at between four hosts, and between more: few pairs say little about how much healthy links
differ, so that each must be known well where hosts that share two cores make one a half faster than the next."""


def command(cluster: Hosts, folder: Path, *words: str, program: str = "omb_py") -> list[str]:
    """The command line of ``omb-py`` on all hosts, one rank each."""
    launcher = " ".join(cluster.words(folder))
    where = ["--hosts", ",".join(cluster.names), "--launcher-args", launcher]
    return [sys.executable, "-m", program, words[0], *where, *words[1:]]


Swept = tuple[int, dict[str, Any], str]
"""Exit code, JSON, stderr."""


@contextlib.contextmanager
def broken(nodes: int, fault: str, *, gross: bool = False) -> Iterator[Callable[..., Swept]]:
    """So many hosts with something wrong between them; makes one sweep over them at each call."""
    with tempfile.TemporaryDirectory() as folder, hosts(nodes) as cluster:
        (FAULTS[fault].gross if gross else FAULTS[fault].slight)(cluster)

        def sweep(*more: str, timeout_s: float = 300) -> Swept:
            size = SOME if gross else SETTINGS[fault][nodes > 4]
            words = command(cluster, Path(folder), "links", *QUICK, *size, "--format", "json", "--no-store", *more)
            done = run_command(words, timeout=timeout_s, cwd=ROOT, **YIELD)
            return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr

        yield sweep


def named(found: Mapping[str, Any]) -> set[str]:
    """Nodes and links that are confirmed slow."""
    return {one["name"] for one in found.get("found", ()) if one["state"] == "confirmed"}
