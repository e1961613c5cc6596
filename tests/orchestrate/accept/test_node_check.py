"""Nodes that do not answer: found by one launch over all, then named one by one; launches are replaced here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omb_py.cli.suite_options import CommandLine
from omb_py.errors import EnvironmentProblem, LaunchFailed
from omb_py.orchestrate.accept import node_check
from omb_py.orchestrate.accept.session import AcceptRequest, accept
from omb_py.orchestrate.suites.suite_file import parse_suite
from omb_py.results.accept.report import AcceptReport
from tests.support.accepting import criterion
from tests.support.planning import plan

TEXT = 'name = "mine"\ndescription = "d"\n[defaults]\niterations = 5\n[[entry]]\nbenchmarks = ["allreduce"]\n'
TEXT += 'ranks = "max"\nmessage-size = "8:8"\n' + criterion('benchmark = "allreduce"\nmax = "1 s"')
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


def test_the_rest_goes_on_where_the_suite_allows_it(
    tried: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On three of four nodes with as many ranks a node."""
    found = accepted(ALLOWED, tmp_path, "n1,n2,n3,n4", monkeypatch)
    assert found.missing_nodes == {"n3": "ssh: n3: no route to host"}
    assert found.deviations == ["3 of 4 nodes take part"]


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
