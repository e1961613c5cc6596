"""The file of ``links --topology``, and what a bad one gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.errors import UsageError
from omb_py.orchestrate.checks.topology_file import read_topology, switches_of


@pytest.mark.parametrize(
    "text",
    [
        "SwitchName=a Nodes=n[1-3]\nswitchname=b nodes=n04,m[1-2] LinkSpeed=100\nSwitchName=top Switches=a,b\n",
        "# racks\na: n[1-3]\nb: n04 m1, m2 # the new one\ntop: a, b\n",
        "top: a b\na: n1 n[2-3]\nb: n04,m[1,2]\n",
    ],
)
def test_switches_with_nodes_are_read(text: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_text(text)
    leaves = read_topology(path)
    assert {leaf.name: leaf.nodes for leaf in leaves} == {"a": ("n1", "n2", "n3"), "b": ("n04", "m1", "m2")}
    hosts = ["m2", "n1", "n3", "m2", "n04"]
    assert switches_of(leaves, hosts, path) == [("b", (0, 3, 4)), ("a", (1, 2))]
    with pytest.raises(UsageError, match=r"/t: no switch has x1, x2, x3 and 1 more: add what takes part"):
        switches_of(leaves, ["n1", "x1", "x2", "x3", "x4"], path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: n1\nb: n2\na: n3", "line 3: switch a is given twice, first in line 1"),
        ("a: n1,n2\nb: n2", "line 2: node n2 of b is in a already: each node has one switch"),
        ("a: n1,n1", "line 1: node n1 of a is in a already"),
        ("SwitchName=a Nods=n1", "line 1: 'Nods=n1' is not one of SwitchName=, Nodes=, Switches=, LinkSpeed="),
        ("SwitchName=a Nodes=", "line 1: 'Nodes=' is not one of"),
        ("SwitchName=a Nodes=n1 Nodes=n2", "line 1: Nodes is given twice"),
        ("SwitchName=a LinkSpeed=1", "line 1: SwitchName=a has neither Nodes= nor Switches="),
        ("SwitchName=a Nodes=n[3-1]", r"line 1: nodes=n\[3-1\] is no list of names"),
        ("SwitchName=a Nodes=n1\nSwitchName=b Switches=a,c", "line 2: Switches: there is no switch c in this file"),
        ("SwitchName=a Switches=b\nSwitchName=b Switches=c\nSwitchName=c Switches=b", "Switches: a loop: b > c > b"),
        ("a: b n1\nb: a n2", "Switches: a loop: a > b > a"),
        ("a: a", "line 1: Switches: a loop: a > a"),
        ("n1 n2", "line 1: 'n1 n2' is not a line SWITCH: NODE"),
        ("a:", "line 1: 'a:' is not a line SWITCH"),
        ("\n# none\n", "no switch has nodes: write a line SWITCH"),
    ],
)
def test_a_bad_line_is_named_by_file_line_and_key(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_text(text)
    with pytest.raises(UsageError, match=message) as caught:
        read_topology(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"topology file .*none: No such file or directory: write"):
        read_topology(tmp_path / "none")
