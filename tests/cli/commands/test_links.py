"""``omb-py links`` on the simulated backend, and what bad input gets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import omb_py
from omb_py.cli import main
from omb_py.cli.commands.links import with_advice
from omb_py.results.compare.tags import distinguishing_tags
from omb_py.results.document import Document
from tests.dashboards.stores import drawings

QUICK = ("links", "--backend", "mock", "--passes", "3", "-i", "10", "--windows", "2", "-W", "2")


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main([*QUICK, *words])
    return code, *capsys.readouterr()


@pytest.mark.slow
def test_a_slow_node_and_a_slow_link_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mock, page, file = "noise=0.03,slow=5:1.5,link=1-2:2", tmp_path / "l.html", tmp_path / "l.json"
    code, out, err = run(
        capsys,
        "-n",
        "8",
        "--mock",
        mock,
        "--store",
        str(tmp_path / "s"),
        "--seed",
        "1",
        "-G",
        "tty",
        "--output",
        str(page),
        "--output",
        str(file),
        "--tag",
        "why=test",
    )
    assert code == 1
    assert "8 nodes, 28 links: link node1 - node2 is slow (" in out and "node5 is slow (" in out
    assert "node5 |" in out and "of the median" in out
    assert "omb-py: 2 suspects are measured again, in launches of their own, among all 8 nodes\n" in err
    told = json.loads(file.read_text())
    assert [(one["kind"], one["name"], one["state"]) for one in told["found"]] == [
        ("link", "node1 - node2", "confirmed"),
        ("node", "node5", "confirmed"),
    ]
    assert told["found"][1]["metrics"]["latency"]["slower"] == pytest.approx(1.5, rel=0.03)
    assert len(told["pairs"]) == 28 and told["units"]["bandwidth"] == "MB/s"
    html = page.read_text()
    assert "node1 - node2: confirmed" in html and "heatmap" in json.dumps(drawings(html))
    assert "Nothing odd" not in html and "What was measured" not in html, "the page is about the sweep alone"
    rows = omb_py.load(tmp_path / "s")
    assert len(rows) == 2 * 28 * 3 * 3  # launches, pairs, passes, latency and bandwidth there and back
    assert rows["run_id"].nunique() == 1 and rows["launch_id"].nunique() == 6
    assert {row["pair"] for row in rows["parameters"].map(dict)} >= {"1-2", "2-1"}
    assert set(rows["ranks"]) == {2} and all(len(hosts) == 2 for hosts in rows["hosts"])
    assert {tuple(distinguishing_tags(dict(tags)).items()) for tags in rows["tags"]} == {(("why", "test"),)}


@pytest.mark.parametrize("rounds", ["parallel", "serial"])
def test_nothing_is_slow(rounds: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(
        capsys, "-n", "6", "--mock", "noise=0.03", "--seed", "4", "--no-store", "--rounds", rounds, "--quiet"
    )
    assert (code, out, err) == (0, "6 nodes, 15 links: nothing is slow\n", "")


@pytest.mark.slow
def test_a_group_that_is_slow_to_all_others_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """It was subtracted in silence: "nothing is slow", exit code 0."""
    slow = ",".join(f"link={a}-{b}:1.5" for a in range(9) for b in range(9, 12))
    code, out, _ = run(capsys, "-n", "12", "--mock", f"noise=0.02,{slow}", "--seed", "1", "--no-store", "--quiet")
    headline = "12 nodes, 66 links: node9, node10, node11 are slow to all others (latency +50 %, bandwidth 67 %)"
    assert code == 1 and f"{headline}: an uplink, a switch, or another rack" in out
    assert "nearer to each other by latency: node0, node1" in out


@pytest.mark.parametrize(
    ("slow", "environ", "notes"),
    [
        (
            ["cn02"],
            {"SLURM_JOB_ID": "7"},
            "Slurm job 7: take out of service: scontrol update nodename=cn02 state=drain",
        ),
        ([], {"SLURM_JOB_ID": "7"}, ""),
        (["cn02"], {}, ""),
        (["cn02"], {"PE_HOSTFILE": "/x"}, ""),
    ],
)
def test_the_batch_system_is_told_which_nodes_to_leave_out(
    slow: list[str], environ: dict[str, str], notes: str
) -> None:
    document = with_advice(Document("omb-py links", "h", 1, dict), slow, environ)
    assert " ".join(document.notes).startswith(notes) and len(document.notes) == bool(notes)


@pytest.mark.slow
def test_several_ranks_on_a_node_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(
        capsys, "-n", "8", "--per-node", "2", "--mock", "slow=3:2", "--seed", "1", "--no-store", "--format", "json"
    )
    told = json.loads(out)
    assert code == 1 and told["nodes"][:4] == ["node0:0", "node0:1", "node1:0", "node1:1"]
    assert [one["name"] for one in told["found"]] == ["node1:1"]


def test_inside_a_launcher_it_says_where_to_run_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    assert main(["links", "-n", "4", "--no-store"]) == 2
    assert "links starts its launches itself" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("hosts", "ranks", "environ", "wanted"),
    [
        (("a", "b"), None, {}, (4, ())),
        ((), 6, {"SLURM_JOB_NUM_NODES": "5"}, (6, ())),
        ((), None, {"SLURM_JOB_NUM_NODES": "5"}, (10, ("--ntasks-per-node=2",))),
        ((), None, {}, (None, ())),
    ],
)
def test_where_ranks_come_from(
    hosts: tuple[str, ...], ranks: int | None, environ: dict[str, str], wanted: object
) -> None:
    from omb_py.options.request import Request
    from omb_py.orchestrate.checks.links import ranks_and_words

    assert ranks_and_words(Request("latency", hosts=hosts, ranks=ranks), 2, environ) == wanted
