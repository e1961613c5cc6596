"""Nodes that do not answer: found by one launch over all, then named one by one; launches are replaced here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omb_py.cli.suite_options import CommandLine
from omb_py.errors import EnvironmentProblem, LaunchFailed
from omb_py.orchestrate.accept.session import AcceptRequest, accept
from omb_py.orchestrate.running import node_check
from omb_py.orchestrate.running.lost_nodes import NodesLost
from omb_py.orchestrate.suites.suite_file import parse_suite
from omb_py.results.accept.report import AcceptReport, exit_code, headline
from tests.support.accepting import criterion
from tests.support.planning import plan

TEXT = 'name = "mine"\ndescription = "d"\n[defaults]\niterations = 5\n[[entry]]\nbenchmarks = ["allreduce"]\n'
TEXT += 'ranks = "max"\nmessage-size = "8:8"\n' + criterion('benchmark = "allreduce"\nmax = "1 s"')
NODES = ("n1", "n2", "n3", "n4")
ALLOWED = TEXT + "[accept]\nallow-missing-nodes = true\n"


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The hosts of each launch that was tried to find nodes; n3 never answers."""
    seen: list[tuple[str, ...]] = []

    def start(run: Any, launch: Any) -> None:
        seen.append(run.request.launching.hosts)
        if "n3" in run.request.launching.hosts:
            raise LaunchFailed("ssh: n3: no route to host")

    monkeypatch.setattr(node_check, "start", start)
    return seen


def accepted(text: str, store: Path, hosts: str, monkeypatch: pytest.MonkeyPatch) -> AcceptReport:
    def nothing(run: Any, launches: Any, skips: Any, tell: Any) -> int:
        assert {r.launching.hosts for launch in launches for r in launch.requests} == {("n1", "n2", "n4")}
        assert {launch.ranks for launch in launches} == {6}
        return max(launch.index for launch in launches)

    monkeypatch.setattr("omb_py.orchestrate.accept.launches.make_launches", nothing)
    asked = AcceptRequest(CommandLine(), {"hosts": tuple(hosts.split(","))}, ranks=8, quiet=True)
    return accept(parse_suite(text, "f.toml"), asked, store)


def test_a_missing_node_is_named(tried: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EnvironmentProblem, match=r"1 of 4 nodes do not answer: n3: ssh: n3: no route to host"):
        accepted(TEXT, tmp_path, "n1,n2,n3,n4", monkeypatch)
    assert tried == [("n1", "n2", "n3", "n4"), ("n1",), ("n2",), ("n3",), ("n4",)]


def test_what_is_the_same_of_many_nodes_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(run: Any, launch: Any) -> None:
        host = run.request.launching.hosts[-1]
        raise LaunchFailed(f"ssh: {host}: " + ("no route to host" if host != "n3" else "no such host"))

    monkeypatch.setattr(node_check, "start", start)
    with pytest.raises(EnvironmentProblem) as raised:
        accepted(TEXT, tmp_path, "n1,n2,n3,n4", monkeypatch)
    assert str(raised.value) == (
        "4 of 4 nodes do not answer: n1, n2, n4: ssh: n1: no route to host; n3: ssh: n3: no such host"
    )


def test_the_rest_goes_on_where_the_suite_allows_it(
    tried: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On three of four nodes with as many ranks a node."""
    found = accepted(ALLOWED, tmp_path, "n1,n2,n3,n4", monkeypatch)
    assert found.missing_nodes == {"n3": "ssh: n3: no route to host"}
    assert found.deviations == ["3 of 4 nodes take part"]


@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.parametrize("correctness", [True, False])
def test_a_node_that_is_lost_in_the_middle(
    allowed: bool, correctness: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The launches are planned again on the others, and made; without leave all is given up."""
    made: list[tuple[tuple[str, ...], int]] = []

    def launches(run: Any, plans: Any, skips: Any, tell: Any) -> int:
        made.extend((plan.requests[0].launching.hosts, plan.ranks) for plan in plans)
        if len(made) == len(plans):
            raise NodesLost({"n3": "ssh: n3: no route to host"}, LaunchFailed("rank 4 was lost"), run.note)
        return max(plan.index for plan in plans)

    monkeypatch.setattr(node_check, "start", lambda run, launch: None)
    monkeypatch.setattr("omb_py.orchestrate.accept.launches.make_launches", launches)
    asked = AcceptRequest(CommandLine(), {"hosts": NODES}, ranks=8, quiet=True, correctness=correctness)
    found = accept(parse_suite(ALLOWED if allowed else TEXT, "f.toml"), asked, tmp_path)
    first, *again = made
    assert first == (NODES, 8) and list(found.missing_nodes) == ["n3"] and headline(found).endswith("; missing: n3")
    if allowed:
        assert again and set(again) == {(("n1", "n2", "n4"), 6)}
        assert "n3 stopped answering: the rest was measured on 3 nodes" in found.deviations
        (lost,) = [one for one in found.incidents if "rank 4 was lost" in one.reason]
        assert lost.reason.startswith("lost, and measured again without n3") and not lost.failed
    else:
        assert not again and exit_code(found) == 3
        assert [one.failed for one in found.incidents] == [True]


def test_when_all_answer_one_launch_is_enough(
    tried: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = AcceptRequest(CommandLine(), {"hosts": ("n1", "n2")}, ranks=4, quiet=True)
    monkeypatch.setattr(
        "omb_py.orchestrate.accept.launches.make_launches", lambda run, launches, *rest: launches[-1].index
    )
    accept(parse_suite(TEXT, "f.toml"), asked, tmp_path)
    assert tried == [("n1", "n2")]


def test_nodes_that_answer_only_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def start(run: Any, launch: Any) -> None:
        if len(run.request.launching.hosts) > 1:
            raise LaunchFailed("ranks did not join one world")

    monkeypatch.setattr(node_check, "start", start)
    asked = AcceptRequest(CommandLine(), {"hosts": ("n1", "n2")}, ranks=4, quiet=True)
    with pytest.raises(
        EnvironmentProblem, match="each of the 2 nodes answers alone, and all together do not: ranks did"
    ):
        accept(parse_suite(TEXT, "f.toml"), asked, tmp_path)


def test_the_probe_is_a_benchmark_of_ours() -> None:
    from omb_py.options.request import Request

    (launch,) = plan(Request(node_check.PROBE), 3)
    assert launch.ranks == 3 and len(launch.cells) == 1
