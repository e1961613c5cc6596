"""The file of ``links --topology``: which nodes hang on which switch.

Either Slurm's ``topology.conf`` (its manual, topology.conf(5): ``SwitchName=leaf1 Nodes=n[1-32]``,
``SwitchName=top Switches=leaf[1-2]``), or a line ``leaf1: n[1-32],n40`` for each switch. Switches may hold switches.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.grammar.line_file import entries
from omb_py.launchers.launcher import expand_hosts

_FORM = "a line SWITCH: NODE,NODE[1-8] for each switch, or give Slurm's topology.conf"
_NAME, _NODES, _SWITCHES = "switchname", "nodes", "switches"
_IGNORED = frozenset({"linkspeed"})


@dataclass(frozen=True, slots=True)
class SwitchNodes:
    """A switch that holds nodes."""

    name: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _SwitchLine:
    number: int
    nodes: tuple[str, ...]
    switches: tuple[str, ...]


def read_topology(path: Path) -> tuple[SwitchNodes, ...]:
    """The switches of a file that hold nodes themselves.

    Raises:
        UsageError: the file cannot be read, or a line is wrong: an unknown key, a switch or node given twice, a switch
            that does not exist, switches in a loop. The message has file, line and key.
    """
    switches: dict[str, _SwitchLine] = {}
    of_node: dict[str, str] = {}
    for number, text in entries(path, "topology file", _FORM):
        at = f"{path}: line {number}"
        is_slurm = text.lower().startswith(_NAME)
        name, nodes, below = _slurm_line(text, at) if is_slurm else _simple_line(text, at)
        if name in switches:
            raise UsageError(f"{at}: switch {name} is given twice, first in line {switches[name].number}")
        switches[name] = _SwitchLine(number, nodes, below)
        for node in nodes:
            if node in of_node:
                raise UsageError(f"{at}: node {node} of {name} is in {of_node[node]} already: each node has one switch")
            of_node[node] = name
    switches = _tell_apart(switches)
    _check_below(path, switches)
    leaves = tuple(SwitchNodes(name, line.nodes) for name, line in switches.items() if line.nodes)
    if not leaves:
        raise UsageError(f"{path}: no switch has nodes: write {_FORM}")
    return leaves


def _slurm_line(text: str, at: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    values: dict[str, str] = {}
    for word in text.split():
        key, equals, value = word.partition("=")
        if key.lower() not in {_NAME, _NODES, _SWITCHES} | _IGNORED or not equals or not value:
            raise UsageError(f"{at}: {word!r} is not one of SwitchName=, Nodes=, Switches=, LinkSpeed= with a value")
        if key.lower() in values:
            raise UsageError(f"{at}: {key} is given twice")
        values[key.lower()] = value
    if _NODES not in values and _SWITCHES not in values:
        raise UsageError(f"{at}: SwitchName={values[_NAME]} has neither Nodes= nor Switches=")
    return values[_NAME], _names(values, _NODES, at), _names(values, _SWITCHES, at)


def _simple_line(text: str, at: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    name, colon, rest = (piece.strip() for piece in text.partition(":"))
    if not colon or not name or not rest or re.search(r"[\s=]", name):
        raise UsageError(f"{at}: {text!r} is not {_FORM}")
    listed = ",".join(re.split(r"[\s,]+(?![^\[]*\])", rest.strip(" ,")))
    return name, _names({name: listed}, name, at), ()


def _names(values: dict[str, str], key: str, at: str) -> tuple[str, ...]:
    if key not in values:
        return ()
    try:
        return tuple(expand_hosts(values[key], key))
    except EnvironmentProblem:
        raise UsageError(f"{at}: {key}={values[key]} is no list of names, as n[1-8],n12") from None


def _tell_apart(switches: dict[str, _SwitchLine]) -> dict[str, _SwitchLine]:
    """The same with the names of switches taken from the nodes, among which a simple line lists them."""
    return {
        name: _SwitchLine(
            line.number,
            tuple(node for node in line.nodes if node not in switches),
            (*line.switches, *(node for node in line.nodes if node in switches)),
        )
        for name, line in switches.items()
    }


def _check_below(path: Path, switches: dict[str, _SwitchLine]) -> None:
    for line in switches.values():
        for below in line.switches:
            if below not in switches:
                raise UsageError(f"{path}: line {line.number}: Switches: there is no switch {below} in this file")
    for name in switches:
        _check_loop(path, switches, (name,))


def _check_loop(path: Path, switches: dict[str, _SwitchLine], above: tuple[str, ...]) -> None:
    line = switches[above[-1]]
    for below in line.switches:
        if below in above:
            way = " > ".join((*above[above.index(below) :], below))
            raise UsageError(f"{path}: line {line.number}: Switches: a loop: {way}")
        _check_loop(path, switches, (*above, below))


def switches_of(leaves: Sequence[SwitchNodes], hosts: Sequence[str], path: Path) -> list[tuple[str, tuple[int, ...]]]:
    """(name, ranks) of each switch that has ranks.

    Args:
        hosts: host of each rank.

    Raises:
        UsageError: a host is on no switch of the file.
    """
    of_host = {node: leaf.name for leaf in leaves for node in leaf.nodes}
    ranks: dict[str, list[int]] = {}
    missing = list(dict.fromkeys(host for host in hosts if host not in of_host))
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise UsageError(f"{path}: no switch has {', '.join(missing[:3])}{more}: add what takes part, named as here")
    for rank, host in enumerate(hosts):
        ranks.setdefault(of_host[host], []).append(rank)
    return [(name, tuple(own)) for name, own in ranks.items()]
