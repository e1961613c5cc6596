"""Entries that say on which nodes their ranks lie, and how many on each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omb_py.cli.suite_options import CommandLine
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.orchestrate.planning.plan import plan_launches
from omb_py.orchestrate.running.resume import cell_key
from omb_py.orchestrate.running.suite_run import run_suite
from omb_py.orchestrate.suites.expand import Expanded, Ranks, expand
from omb_py.orchestrate.suites.node_layout import NodeContents, NodeLayout
from omb_py.orchestrate.suites.suite_file import parse_suite
from omb_py.results.store.read import load

FOUR = ("n1", "n2", "n3", "n4")
HEAD = 'name = "m"\ndescription = "d"\n[defaults]\nbackend = "mock"\nmock = "nodes=4"\niterations = 5\n'


def expanded(*entries: str, contents: NodeContents | None = None, **given: Any) -> Expanded:
    text = HEAD + "".join(f'[[entry]]\nmessage-size = "8"\n{lines}\n' for lines in entries)
    return expand(parse_suite(text, "f.toml"), CommandLine(), {"quiet": True, **given}, None, contents)


def entry(benchmark: str, **keys: object) -> str:
    lines = [f'benchmarks = ["{benchmark}"]']
    for key, value in keys.items():
        lines.append(f"{key.replace('_', '-')} = " + (str(value) if isinstance(value, int) else f'"{value}"'))
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("layout", "ranks", "hosts"),
    [
        (NodeLayout(), 4, FOUR),
        (NodeLayout(2), 2, ("n1", "n2")),
        (NodeLayout("nearest", 3), 6, ("n1", "n2")),
        (NodeLayout("distant", "nic"), 4, ("n1", "n4")),
        (NodeLayout("all", "nic", parity="odd"), 7, FOUR),
        (NodeLayout("all", "nic", parity="even"), 8, FOUR),
        (NodeLayout("all", 1, parity="odd"), 3, ("n1", "n2", "n3")),
        (NodeLayout(2, "core", 0.8), 16, ("n1", "n2")),
        (NodeLayout(1, "core", 0.81), 9, ("n1",)),
        (NodeLayout(1, "accelerator"), 3, ("n1",)),
    ],
)
def test_ranks_are_placed(layout: NodeLayout, ranks: int, hosts: tuple[str, ...]) -> None:
    assert layout.choose_nodes(FOUR, NodeContents(nics=2, cores=10, accelerators=3)) == (ranks, hosts)


def test_the_contents_say_which_nodes_are_near_and_far() -> None:
    contents = NodeContents(nearest=("n2", "n3"), distant=("n2", "n4"))
    assert NodeLayout("nearest").choose_nodes(FOUR, contents) == (2, ("n2", "n3"))
    assert NodeLayout("distant").choose_nodes(FOUR, contents) == (2, ("n2", "n4"))


def test_this_machine_is_one_node_without_a_name() -> None:
    assert NodeLayout("all", 3).choose_nodes((), NodeContents()) == (3, ())
    with pytest.raises(EnvironmentProblem, match="it takes 2 nodes, and 1 node is here"):
        NodeLayout("distant").choose_nodes((), NodeContents())
    with pytest.raises(EnvironmentProblem, match="a rank for each accelerator, and the nodes have none"):
        NodeLayout(2, "accelerator").choose_nodes(FOUR, NodeContents())


def test_each_set_of_nodes_is_a_launch(tmp_path: Path) -> None:
    made = expanded(
        entry("latency", name="near", nodes="nearest"),
        entry("latency", name="far", nodes="distant"),
        entry("bibw", nodes=2),
        entry("allreduce", nodes="all", ranks_per_node="nic", parity="odd"),
        store=tmp_path,
        contents=NodeContents(nics=2),
    )
    plans = plan_launches(made.checked)
    assert [(plan.ranks, plan.hosts, len(plan.cells)) for plan in plans] == [
        (2, ("node0", "node1"), 2),
        (2, ("node0", "node3"), 1),
        (7, ("node0", "node1", "node2", "node3"), 1),
    ]
    keys = {cell_key(plan, cell) for plan in plans for cell in plan.cells}
    assert len(keys) == 4, "a name tells cells apart that are alike"
    assert run_suite(made) == 0
    hosts = {(row["benchmark"], *row["hosts"]) for row in load(tmp_path).to_dict("records")}
    assert ("latency", "node0", "node3") in hosts
    assert ("allreduce", *"node0 node0 node1 node1 node2 node2 node3".split()) in hosts


def test_hosts_of_the_command_line_and_what_cannot_be_placed() -> None:
    made = expanded(entry("latency", name="far", nodes="distant"), backend=("mpi",), hosts=("a:2", "b", "c"), mock="")
    (plan,) = plan_launches(made.checked)
    assert plan.hosts == ("a", "c") and plan.requests[0].launching.hosts == ("a:2", "b", "c")
    lacking = expanded(entry("latency", name="far", nodes="distant"), mock="nodes=1")
    assert [(skip.what, "1 node is here" in skip.reason) for skip in lacking.skips] == [("latency (entry: far)", True)]
    joined = expand(
        parse_suite(HEAD + "[[entry]]\n" + entry("latency", nodes=2), "f.toml"), CommandLine(), {}, Ranks(2, only=True)
    )
    assert "start omb-py without a launcher" in joined.skips[0].reason and not joined.checked


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ({"nodes": "far"}, "f.toml:10: [entry 1] key 'nodes': 'far' is unknown"),
        ({"nodes": 0}, "f.toml:10: [entry 1] key 'nodes': expected a whole number from 1"),
        ({"ranks_per_node": "nics"}, "f.toml:10: [entry 1] key 'ranks-per-node': expected a number, a part of a node"),
        ({"ranks_per_node": "0% of cores"}, "f.toml:10: [entry 1] key 'ranks-per-node': expected a number"),
        ({"parity": "add"}, "f.toml:10: [entry 1] key 'parity': 'add' is unknown: valid: "),
        ({"nodes": 2, "ranks": 4}, "f.toml:11: [entry 1] key 'ranks': stands beside 'nodes'"),
        ({"name": "a b"}, "f.toml:10: [entry 1] key 'name': expected letters"),
        ({"node": 2}, "f.toml:10: [entry 1] key 'node': there is no such key: did you mean nodes?"),
    ],
)
def test_a_bad_line_is_named(lines: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        expanded(entry("latency", **lines))
    assert str(caught.value).startswith(says) and "\n" not in str(caught.value)


def test_two_entries_have_two_names() -> None:
    with pytest.raises(UsageError, match="'a' is the name of entry 1 already"):
        expanded(entry("latency", name="a"), entry("bw", name="a"))
