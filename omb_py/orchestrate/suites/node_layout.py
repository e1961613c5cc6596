"""The nodes that an entry of a suite takes, and the number of ranks on each (docs/suites.md)."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

from omb_py.backends.registry import capabilities
from omb_py.errors import EnvironmentProblem, nearest
from omb_py.launchers.core_binding import processors
from omb_py.launchers.launcher import host_and_slots
from omb_py.launchers.registry import job_around
from omb_py.options.request import Request
from omb_py.orchestrate.suites import toml_values as toml
from omb_py.orchestrate.suites.toml_values import TomlSetting, kind

Part = Literal["nic", "core", "accelerator"]
PARTS: Final = get_args(Part)
"""Parts of a node that may have a rank each."""
NODES = ("all", "nearest", "distant")
PARITIES = ("odd", "even")
LAYOUT_KEYS = ("nodes", "ranks-per-node", "parity")
_MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class NodeContents:
    """What the nodes of a machine have, and which of them are near each other."""

    nics: int = 1
    cores: int | None = None
    """None: as many as this machine."""
    accelerators: int = 0
    device: str = ""
    """Kind of the accelerators, as ``cuda``; empty: whichever an entry names."""
    nearest: tuple[str, ...] = ()
    """Two nodes that are near each other; ``()``: the first two."""
    distant: tuple[str, ...] = ()
    """Two nodes that are far from each other; ``()``: the first and the last."""
    stand_in: tuple[str, ...] = ()
    """Nodes to plan with where none are known, as where a file is only checked."""

    def count(self, part: Part) -> int:
        """Number of these parts on each node."""
        cores = len(processors().cores) if self.cores is None else self.cores
        return {"nic": self.nics, "core": cores, "accelerator": self.accelerators}[part]


@dataclass(frozen=True, slots=True)
class NodeLayout:
    """Which nodes take part, and how many ranks run on each."""

    nodes: int | str = "all"
    """A number, or a word of :data:`NODES`."""
    per_node: int | Part = 1
    share: float = 1.0
    """Share of the parts that have a rank."""
    parity: str = ""
    """A word of :data:`PARITIES`: the last rank is left out where the number of ranks is not so."""
    settings: tuple[TomlSetting, ...] = ()

    def choose_nodes(self, there: tuple[str, ...], contents: NodeContents) -> tuple[int, tuple[str, ...]]:
        """Choose nodes.

        Args:
            there: all nodes; ``()`` is this machine.

        Returns:
            The number of ranks, and the nodes on which they lie in blocks; ``()`` is this machine.

        Raises:
            EnvironmentProblem: there are too few nodes, or no such part on them.
        """
        chosen = self._choose(there or ("",), contents)
        each = self.per_node if isinstance(self.per_node, int) else contents.count(self.per_node)
        if each < 1:
            raise EnvironmentProblem(f"it takes a rank for each {self.per_node}, and the nodes have none")
        each = math.ceil(each * self.share - 1e-9)
        ranks = len(chosen) * each
        if self.parity and ranks % 2 != (self.parity == "odd"):
            ranks -= 1
        return ranks, chosen[: -(-ranks // each)] if there else ()

    def _choose(self, there: tuple[str, ...], contents: NodeContents) -> tuple[str, ...]:
        if self.nodes == "all":
            return there
        wanted = self.nodes if isinstance(self.nodes, int) else 2
        if len(there) < wanted:
            have = "1 node is" if len(there) == 1 else f"{len(there)} nodes are"
            raise EnvironmentProblem(f"it takes {wanted} nodes, and {have} here: --hosts or a batch job gives more")
        if isinstance(self.nodes, int):
            return there[:wanted]
        pair = contents.nearest if self.nodes == "nearest" else contents.distant
        if absent := [name for name in pair if name not in there]:
            raise EnvironmentProblem(f"the {self.nodes} nodes are {', '.join(pair)}: {absent[0]} is none of these")
        return pair or (there[0], there[1 if self.nodes == "nearest" else -1])


ANY_NODES: Final = NodeContents(nics=2, cores=4, accelerators=2, stand_in=("n1", "n2", "n3", "n4"))
"""Nodes by which a suite is checked before its nodes are known."""


def read_layout(keys: Mapping[str, TomlSetting]) -> NodeLayout | None:
    """Read the keys :data:`LAYOUT_KEYS` of an entry; None where it has none. Raises LocatedError."""
    settings = tuple(keys[key] for key in LAYOUT_KEYS if key in keys)
    if not settings:
        return None
    if "ranks" in keys:
        raise keys["ranks"].error(f"stands beside {settings[0].key!r}, which gives the number of ranks: leave one out")
    usual = NodeLayout()
    nodes = toml.read(keys, "nodes", _nodes, usual.nodes)
    per_node, share = toml.read(keys, "ranks-per-node", _per_node, (usual.per_node, usual.share))
    parity = toml.read(keys, "parity", lambda s: toml.one_of(s, PARITIES), "")
    return NodeLayout(nodes, per_node, share, parity, settings)


def _nodes(setting: TomlSetting) -> int | str:
    return toml.one_of(setting, NODES) if isinstance(setting.value, str) else toml.whole(setting, 1, _MOST)


def _per_node(setting: TomlSetting) -> tuple[int | Part, float]:
    """Read ``4``, ``nic`` or ``80% of cores``."""
    if not isinstance(setting.value, str):
        return toml.whole(setting, 1, _MOST), 1.0
    words = toml.text(setting)
    match = re.fullmatch(r"(?:(\d{1,2}|100)\s*% of )?(\w+?)(s?)", words)
    part: Part | None = next((known for known in PARTS if match and known == match[2]), None)
    if match is None or part is None or (match[1] is None) == bool(match[3]) or match[1] == "0":
        raise setting.error(
            f"expected a number, a part of a node or a share, as 4, 'nic' or '80% of cores', got {kind(words)}: "
            f"{nearest(words, PARTS)}"
        )
    return part, int(match[1] or 100) / 100


def nodes_of(request: Request) -> tuple[str, ...]:
    """The nodes on which the ranks of a request may start: those of ``--hosts``, the simulated ones, or the job's.

    Returns:
        Names without slots; ``()`` is this machine.

    Raises:
        EnvironmentProblem: the scheduler's answer cannot be read.
    """
    if request.launching.hosts:
        return tuple(dict.fromkeys(host_and_slots(host)[0] for host in request.launching.hosts))
    backend = request.backends[0]
    offer = capabilities(backend)
    if offer.in_process and offer.option is not None:
        return tuple(f"node{k}" for k in range(offer.option.nodes_of(request.settings.get(backend, ""))))
    job = None if offer.in_process else job_around(os.environ)
    return () if job is None else tuple(name for name, _ in job.nodes)
