"""``omb-py links --isolate``: groups name what is slow, pairs confirm it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import omb_py
from omb_py.cli import main
from omb_py.options.request import SILENT, Request
from omb_py.orchestrate.checks.isolate import GroupSearch
from omb_py.orchestrate.checks.links import SweepDesign
from omb_py.orchestrate.running.run import finish, new_run
from omb_py.results.checks.isolation import Culprit, Split
from omb_py.results.checks.isolation_report import IsolationResult, isolation_document
from omb_py.results.checks.links import Suspect
from omb_py.results.checks.pair_sweeps import HEADS
from omb_py.suites.registry import find

QUICK = ("links", "--backend", "mock", "-i", "10", "--windows", "2", "-W", "2", "--seed", "2", "--quiet")


def searched(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, object]]:
    code = main([*QUICK, "--no-store", "--format", "json", *words])
    return code, json.loads(capsys.readouterr().out)


def topology(folder: Path, nodes: int, per_switch: int) -> str:
    path = folder / "topology.conf"
    lines = [
        f"SwitchName=leaf{k} Nodes=node[{first}-{first + per_switch - 1}]\n"
        for k, first in enumerate(range(0, nodes, per_switch))
    ]
    path.write_text("".join(lines))
    return str(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mock", "names"),
    [
        ("noise=0.05,uplink=16-23:2,slow=60:2", ["node60", "uplink of leaf2"]),
        ("noise=0.05", []),
        ("noise=0.05,launch=0.2,slow=5:1.5,slow=40:2", ["node40", "node5"]),
    ],
)
def test_slow_nodes_and_uplinks_are_named_and_confirmed(
    mock: str, names: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, report = searched(capsys, "-n", "64", "--mock", mock, "--isolate", "--topology", topology(tmp_path, 64, 8))
    assert isinstance(report["found"], list)
    assert sorted(one["name"] for one in report["found"]) == names and report["possible"] == []
    assert all(one["state"] == "confirmed" and one["metrics"] for one in report["found"])
    assert code == bool(names) and int(str(report["launches"])) + int(str(report["pair_launches"])) <= 40


@pytest.mark.slow
def test_an_uplink_among_256_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("-n", "256", "--mock", "noise=0.05,launch=0.1,uplink=64-95:1.5", "--isolate")
    code, report = searched(capsys, *words, "--topology", topology(tmp_path, 256, 32))
    assert code == 1 and isinstance(report["found"], list)
    assert [(one["name"], one["state"]) for one in report["found"]] == [("uplink of leaf2", "confirmed")]


@pytest.mark.slow
def test_a_slow_link_between_two_nodes_is_named_without_a_topology(capsys: pytest.CaptureFixture[str]) -> None:
    code, report = searched(capsys, "-n", "13", "--mock", "noise=0.03,link=2-9:2", "--isolate", "alltoall")
    assert code == 1 and isinstance(report["found"], list) and report["benchmark"] == "alltoall"
    assert [(one["name"], one["state"]) for one in report["found"]] == [("link node2 - node9", "confirmed")]


@pytest.mark.slow
def test_every_launch_is_stored_and_the_page_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, store = tmp_path / "l.html", tmp_path / "s"
    words = ("-n", "8", "--mock", "slow=3:2", "--isolate", "--store", str(store), "--output", str(page))
    assert main([*QUICK, *words]) == 1
    assert "8 nodes: node3 is slow" in capsys.readouterr().out and "8 nodes: node3 is slow" in page.read_text()
    rows = omb_py.load(store)
    groups = rows[rows["benchmark"] == "allreduce"]
    assert set(groups["launch_index"].value_counts()) == {5} and rows["run_id"].nunique() == 1
    assert set(rows["benchmark"]) == {"allreduce", "latency", "bw"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--isolate", "latency"), "--isolate latency: groups need a collective in which all ranks wait for all"),
        (("--isolate", "bcast"), "--isolate bcast: groups need a collective"),
        (("--isolate", "alreduce"), "unknown benchmark 'alreduce': did you mean allreduce?"),
        (("-n", "5", "--isolate"), "--isolate: 5 nodes make no two groups of two: sweep all pairs without it"),
        (("-n", "3", "--isolate"), "links needs 4 ranks or more, not 3"),
        (("--topology", "t"), "--topology is for --isolate and --from: give one of them too"),
        (("--isolate", "-G", "tty"), "--graph draws all pairs, which --isolate does not measure: leave one out"),
    ],
)
def test_what_cannot_be_searched_is_one_line(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*QUICK, "-n", "8", "--no-store", *words]) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1


@pytest.mark.parametrize("culprit", [Culprit("uplink", (0,)), Culprit("link", (0, 1)), Culprit("node", (1,))])
def test_what_pairs_did_not_confirm_is_said_and_is_no_failure(culprit: Culprit) -> None:
    names = ("n1", "n2", "n3", "n4")
    possible = tuple(Culprit("node", (node,)) for node in (2, 3))
    result = IsolationResult("r", names, names, ("a", "b"), "allreduce", 9, 5, {culprit: []}, possible, 1.2)
    document = isolation_document(result)
    assert document.exit_code == 0
    assert "a group counted as slow from 1.2 times the usual on: less is noise here" in document.notes
    assert (
        document.headline == f"4 nodes: {result.name(culprit)}: slow in groups, not in pairs; one of n3, n4 may be slow"
    )
    assert document.tables[0].rows == [(culprit.kind, result.name(culprit), "", "not confirmed", "", "")]


def test_what_pairs_confirmed_is_a_row_of_the_table_of_links() -> None:
    names, slow = ("n1", "n2", "n3", "n4"), Suspect("node", (1,), "latency", 1.5, 1.1)
    outcomes = {Culprit("node", (1,)): [slow]}
    document = isolation_document(IsolationResult("r", names, names, (), "allreduce", 9, 5, outcomes, (), 1.2))
    assert document.exit_code == 1
    (table,) = document.tables
    assert table.heads == HEADS and table.rows == [("node", "n2", "latency", "confirmed", "1.500", "1.100")]


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.each_library
def test_real_ranks_run_groups_of_several_sizes_at_once() -> None:
    request = Request(backends=("mpi",), benchmark="allreduce", ranks=7, store=None, format=SILENT, quiet=True)
    search = GroupSearch(request, find("allreduce"), SweepDesign(large=64, iterations=10))
    run = new_run(request, [])
    try:
        times, hosts = search.measured_groups(run, Split(((1, 4), (0, 6)), (2, 3, 5)), 0)
    finally:
        finish(run)
    assert len(times) == 3 and all(0 < time < 60e6 for time in times) and len(hosts) == 7
