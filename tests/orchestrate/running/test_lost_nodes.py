"""A node is lost in the middle of commands that make many launches: it is named, left out, and the rest measured.

The launches are planned for MPI on four hosts and made on simulated ranks.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omb_py.backends.registry import find
from omb_py.cli import main
from omb_py.errors import EnvironmentProblem, LaunchFailed
from omb_py.options.request import Request
from omb_py.orchestrate.running import lost_nodes
from omb_py.orchestrate.running import run as running
from omb_py.orchestrate.running.lost_nodes import NodesLeft, NodesLost, go_on
from omb_py.orchestrate.running.node_check import answering
from omb_py.results.store.read import load
from tests.support.planning import check

HOSTS = ("n1", "n2", "n3", "n4")
Made = list[tuple[tuple[str, ...], int]]
"""Hosts and ranks of each launch."""
SUITE = """
name = "mine"
description = "d"
[defaults]
iterations = 5
warmup = 1
[[entry]]
benchmarks = ["allreduce", "latency"]
message-size = "8:16"
[[entry]]
benchmarks = ["bcast"]
message-size = "8:8"
nodes = "distant"
ranks-per-node = 2
"""


@pytest.fixture
def lose(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Made]:
    """From a launch on, counted from 1, nodes are dead; the launches that were tried, with those of before."""

    def plant(number: int, *nodes: str, cells: int = 0) -> Made:
        made: Made = []

        def start(run: Any, launch: Any) -> None:
            hosts = launch.hosts or run.request.launching.hosts
            made.append((hosts, launch.ranks))
            dead = len(made) >= number and bool(set(nodes) & set(hosts))
            own = launch.cells[:cells] if dead else launch.cells
            if own:
                running.start(run, replace(launch, cells=own))
            if dead:
                raise LaunchFailed(f"a rank on {nodes[0]} was lost")

        def looked(run: Any, request: Request, index: int) -> tuple[dict[str, str], int]:
            dead = nodes if len(made) >= number or number == 1 else ()
            return {host: "no route" for host in request.launching.hosts if host in dead}, index

        monkeypatch.setattr(running, "in_process", lambda names: True)
        monkeypatch.setattr(running, "find", lambda name: find("mock"))
        monkeypatch.setattr(lost_nodes, "start", start)
        monkeypatch.setattr(lost_nodes, "answering", looked)
        monkeypatch.setattr("omb_py.orchestrate.accept.launches.answering", looked)
        return made

    return plant


def command(tmp_path: Path, line: str) -> int:
    return main([*line.split(), "--backend", "mpi", "--hosts", ",".join(HOSTS), "--store", str(tmp_path / "s")])


def test_the_rest_of_a_suite_is_measured(
    lose: Callable[..., Made], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With as many ranks a node; an entry with nodes of its own takes the nearest one that is left."""
    (tmp_path / "f.toml").write_text(SUITE)
    made = lose(1, "n4", cells=1)
    assert command(tmp_path, f"run {tmp_path}/f.toml -n 8 --quiet") == 3
    assert made == [(HOSTS, 8), (HOSTS[:3], 6), (("n1", "n3"), 4)]
    out, err = capsys.readouterr()
    first = err.splitlines()[0]
    assert first.startswith("omb-py: lost n4: the rest was measured on n1, n2, n3: n4: no route"), err
    assert "skipped: latency" in err and "failed: " not in err
    rows = load(tmp_path / "s")
    assert sorted(zip(rows["benchmark"], rows["size_bytes"], rows["ranks"], strict=True)) == [
        ("allreduce", 8, 8),
        ("allreduce", 16, 6),
        ("bcast", 8, 4),
    ]
    assert len(set(rows["run_id"])) == 1 and out.count("# OSU") == 3


def test_a_resumed_suite_keeps_what_is_measured(
    lose: Callable[..., Made], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where the node is still dead: what was measured without it is not measured again."""
    (tmp_path / "f.toml").write_text(SUITE)
    lose(1, "n4", cells=1)
    command(tmp_path, f"run {tmp_path}/f.toml -n 8 --quiet")
    before = len(load(tmp_path / "s"))
    lose(1, "n4")
    command(tmp_path, f"run {tmp_path}/f.toml -n 8 --quiet --resume")
    assert len(load(tmp_path / "s")) == before == 3


COMPARE = "compare --option NEW:warmup=2 allreduce -n 8 -m 8:8 -i 5 -x 1 --launches 4 --rounds 1 --seed 3"


@pytest.mark.slow
def test_a_comparison_begins_again_on_the_rest(
    lose: Callable[..., Made], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """None of the pairs on all nodes counts, and both sides are on the same nodes."""
    made = lose(5, "n2")
    out = tmp_path / "r.json"
    code = command(tmp_path, f"{COMPARE} --output {out}")
    assert made == [(HOSTS, 8)] * 5 + [(("n1", "n3", "n4"), 6)] * 8
    text, err = capsys.readouterr()
    assert code == 3 and "without n2, which stopped answering" in text.splitlines()[0], text
    assert "n2 stopped answering: a rank on n2 was lost; going on without" in err
    report = json.loads(out.read_text())
    assert report["lost_nodes"] == {"n2": "no route"} and [c["ranks"] for c in report["cells"]] == [6]
    assert {side["launches"] for side in report["sides"].values()} == {4}
    assert not list((tmp_path / "s" / ".reports").glob("*.begun"))


@pytest.mark.slow
def test_a_comparison_that_lost_a_node_resumes_without_it(
    lose: Callable[..., Made], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Although it answers again: all pairs are on the same nodes."""
    made, start = lose(5, "n2"), lost_nodes.start

    def interrupted(run: Any, launch: Any) -> None:
        if len(made) == 8:
            raise KeyboardInterrupt
        start(run, launch)

    monkeypatch.setattr(lost_nodes, "start", interrupted)
    assert command(tmp_path, COMPARE) == 130
    assert "; --resume=" in capsys.readouterr().err
    again = lose(99)
    assert command(tmp_path, COMPARE.replace("compare", "compare --resume")) == 3
    assert again == [(("n1", "n3", "n4"), 6)] * 5


@pytest.mark.slow
def test_a_comparison_on_other_nodes_is_not_resumed(
    lose: Callable[..., Made], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(run: Any, launch: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(lost_nodes, "start", interrupted)
    assert command(tmp_path, COMPARE) == 130
    lose(99)
    capsys.readouterr()
    assert main(f"{COMPARE} --hosts n1,n5 --store {tmp_path}/s --resume".replace("--resume", "").split()) in (0, 1)
    line = f"{COMPARE} --hosts n1,n5 --store {tmp_path}/s".replace("compare", "compare --resume")
    assert main(line.split()) == 2
    assert "was begun with hosts" in capsys.readouterr().err


@pytest.mark.slow
def test_a_tuning_begins_again_on_the_rest(
    lose: Callable[..., Made], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = lose(4, "n3")
    line = f"tune allreduce -n 8 -m 8:8 -i 5 -x 1 --seed 1 --no-guidelines --folder {tmp_path}/t --candidate a=X=1"
    code = command(tmp_path, line)
    assert made[:4] == [(HOSTS, 8)] * 4 and set(made[4:]) == {(("n1", "n2", "n4"), 6)}
    text, _ = capsys.readouterr()
    assert code == 3 and "without n3, which stopped answering" in text
    assert "without n3" in text.splitlines()[0] and "lost: n3: no route" in text


def test_guidelines_begin_again_on_the_rest(
    lose: Callable[..., Made], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = lose(2, "n3")
    code = command(tmp_path, "guidelines gl5 -n 8 -m 8:8 -i 5 -x 1 --launches 3 --rounds 1")
    assert made == [(HOSTS, 8)] * 2 + [(("n1", "n2", "n4"), 6)] * 3
    text, _ = capsys.readouterr()
    assert code in (1, 3) and "without n3, which stopped answering" in text.splitlines()[0]


ACCEPT = """
name = "mine"
description = "d"
[accept]
allow-missing-nodes = true
launches = 6
most-launches = 6
confidence = "80%"
[defaults]
iterations = 5
[[entry]]
benchmarks = ["allreduce"]
message-size = "8:8"
[[entry]]
name = "pair"
benchmarks = ["bcast"]
message-size = "8:8"
nodes = "nearest"
ranks-per-node = 1
[[criterion]]
id = "a"
benchmark = "allreduce"
max = "1 s"
[[criterion]]
id = "b"
benchmark = "bcast"
max = "1 s"
"""
ALL, REST, PAIR = (HOSTS, 8), (("n2", "n3", "n4"), 6), (("n2", "n3"), 2)


@pytest.fixture
def accept_line(tmp_path: Path, lose: Callable[..., Made], capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Accept a suite: exit code, the first line with verdicts, and stderr."""

    def call(*more: str) -> tuple[int, str, str]:
        (tmp_path / "f.toml").write_text(ACCEPT)
        capsys.readouterr()
        code = command(tmp_path, f"accept {tmp_path}/f.toml -n 8 --no-correctness {' '.join(more)}")
        out, err = capsys.readouterr()
        return code, next((line for line in out.splitlines() if " verdicts; " in line), ""), err

    return call


@pytest.mark.slow
def test_an_acceptance_that_may_not_go_on_is_judged_as_far_as_it_goes(
    lose: Callable[..., Made], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Finished cells of the launch that was cut off count; what is missing is an ERROR."""
    (tmp_path / "f.toml").write_text(ACCEPT.replace("allow-missing-nodes = true\n", "").replace("8:8", "8:16"))
    lose(2, "n1", cells=1)
    assert command(tmp_path, f"accept {tmp_path}/f.toml -n 8 --no-correctness --format json") == 3
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"] == "ERROR" and list(told["missing_nodes"]) == ["n1"]
    assert any("n1 was lost" in one["reason"] and one["failed"] for one in told["incidents"]), told["incidents"]
    assert [len(one["launches"]) for one in told["verdicts"]] == [1, 1, 1, 0]
    assert told["verdicts"][-1]["verdict"] == "ERROR"
    assert sorted(load(tmp_path / "s")["benchmark"]) == ["allreduce", "allreduce", "bcast"]


def interrupt_at(number: int, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    start = lost_nodes.start

    def interrupted(run: Any, launch: Any) -> None:
        if len(made) == number:
            raise KeyboardInterrupt
        start(run, launch)

    monkeypatch.setattr(lost_nodes, "start", interrupted)


@pytest.mark.slow
@pytest.mark.parametrize("answers_again", [True, False])
def test_an_acceptance_that_lost_a_node_resumes_without_it(
    answers_again: bool,
    lose: Callable[..., Made],
    accept_line: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No launch on the nodes that are left is made twice, and none of those on all counts."""
    made = lose(5, "n1")
    interrupt_at(9, made, monkeypatch)
    code, _, err = accept_line()
    assert code == 130, err
    assert made[:4] == [ALL, (("n1", "n2"), 2)] * 2 and made[5:] == [REST, PAIR] * 2, made
    again = lose(99) if answers_again else lose(1, "n1")
    code, first, err = accept_line("--resume")
    assert code == 0 and first.startswith("PASS: 2 pass of 2 verdicts") and first.endswith("missing: n1"), err
    assert again == [REST, PAIR] * 4
    rows = load(tmp_path / "s")
    assert len(rows[rows["ranks"] == 6]) == 6


@pytest.mark.slow
def test_a_node_that_is_lost_while_an_acceptance_is_interrupted(
    lose: Callable[..., Made], accept_line: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = lose(99)
    interrupt_at(5, made, monkeypatch)
    code, _, err = accept_line()
    assert code == 130, err
    again = lose(1, "n1")
    code, first, err = accept_line("--resume")
    assert code == 0 and first.endswith("missing: n1"), err
    assert again == [REST, PAIR] * 6


@pytest.mark.slow
def test_too_few_nodes_do_not_go_on(
    lose: Callable[..., Made], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One node has no network to measure, and two ranks do not fit on one."""
    made = lose(3, "n1", "n2", "n3")
    assert command(tmp_path, COMPARE) == 3
    assert len(made) == 3
    err = capsys.readouterr().err
    assert "n1, n2, n3 stopped answering: a rank on n1 was lost" in err and "going on" not in err


@pytest.mark.slow
def test_the_rest_may_be_unable(lose: Callable[..., Made], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lose(2, "n1")
    line = COMPARE.replace("allreduce -n 8", "allreduce -n 8 -k fixed:7").replace("allreduce", "bcast")
    assert command(tmp_path, line) == 3
    err = capsys.readouterr().err.splitlines()[-1]
    assert "n1 stopped answering" in err and "n2, n3, n4 cannot go on alone: " in err, err


def test_a_failure_that_is_none_of_a_node_is_no_loss(lose: Callable[..., Made], monkeypatch: Any) -> None:
    """All nodes answer, or each alone and not together."""

    def fails(run: Any, launch: Any) -> None:
        raise LaunchFailed("rank 1 died")

    request = check(Request("allreduce", backends=("mpi",), hosts=HOSTS, ranks=4)).request
    (plan,) = running.plan_launches([check(request)])
    monkeypatch.setattr(lost_nodes, "start", fails)
    for answer in ({}, EnvironmentProblem("each answers alone")):

        def looked(*words: Any, answer: Any = answer) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer, 1

        monkeypatch.setattr(lost_nodes, "answering", looked)
        with pytest.raises(LaunchFailed, match=r"^rank 1 died$") as caught:
            lost_nodes.start_on_nodes(running.new_run(request.changed(store=None), []), plan)
        assert not isinstance(caught.value, NodesLost)


def test_two_losses_one_after_the_other() -> None:
    nodes = NodesLeft(HOSTS)
    answers: list[Any] = [
        NodesLost({"n1": "a"}, LaunchFailed("x"), lambda text: None),
        NodesLost({"n4": "b"}, LaunchFailed("y"), lambda text: None),
        "done",
    ]

    def measure() -> object:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert go_on(nodes, measure) == "done" and nodes.left == ("n2", "n3") and nodes.lost == {"n1": "a", "n4": "b"}


def test_looks_at_nodes_store_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stores: list[object] = []

    def fails(run: Any, launch: Any) -> None:
        stores.append(run.request.store)
        raise LaunchFailed("no")

    monkeypatch.setattr(lost_nodes, "start", fails)
    monkeypatch.setattr("omb_py.orchestrate.running.node_check.start", fails)
    monkeypatch.setattr(lost_nodes, "answering", answering)
    request = check(Request("allreduce", backends=("mpi",), hosts=HOSTS, ranks=4)).request
    run = running.new_run(request.changed(store=tmp_path), [])
    (plan,) = running.plan_launches([check(request)])
    with pytest.raises(NodesLost):
        lost_nodes.start_on_nodes(run, plan)
    assert stores == [tmp_path, *[None] * 5]
