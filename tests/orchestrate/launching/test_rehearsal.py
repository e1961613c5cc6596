"""``omb-py rehearse``: several nodes on this machine, real ones or simulated, and nothing of them left."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from omb_py.cli import main
from omb_py.errors import UsageError
from omb_py.orchestrate.launching import rehearsal
from omb_py.orchestrate.launching.emulated_hosts import PROGRAMS, missing_program
from omb_py.orchestrate.launching.rehearsal import Rehearsal, enter, why_no_nodes
from omb_py.results.store.read import load
from tests.support.machines.mpi import environment, run_command, run_omb_py
from tests.support.patience import PATIENCE_S

QUICK = "--rounds serial -i 40 -W 4 --large 256K --windows 6 --passes 7 --no-store".split()


@pytest.mark.slow
def test_simulated_nodes_have_the_slow_link(capsys: pytest.CaptureFixture[str]) -> None:
    words = "rehearse --simulated --slow-link 1-3 links --seed 1 --quiet --no-store"
    assert main(words.split()) == 1
    told = capsys.readouterr()
    assert "4 nodes, 6 links: link node1 - node3 is slow" in told.out
    first, *_ = told.err.splitlines()
    assert first == "omb-py: simulated: 4 nodes, node0 to node3, with a slow link between node1 and node3"


@pytest.mark.parametrize(
    ("words", "ranks"), [(["bcast", "-m", "8"], ["-n", "3"]), (["bcast", "-n2"], []), (["accept", "nersc10"], [])]
)
def test_a_simulated_command_has_a_rank_a_node_unless_it_says_more(words: list[str], ranks: list[str]) -> None:
    assert Rehearsal(3).simulated(words) == [
        words[0],
        *("--backend", "mock", "--mock", "nodes=3,noise=0.03"),
        *ranks,
        *words[1:],
    ]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--slow-link 1-4 links", "--slow-link: node 4 is not among 4 nodes, 0 to 3"),
        ("--slow-link 1-1 links", "'1-1' are not two nodes, as 1-3"),
        ("--slow-link a links", "'a' are not two nodes, as 1-3"),
        ("--nodes 1 links", "2 or more"),
        ("--nodes 300 links", "at most 253 fit into one network here"),
        ("--simulated", "COMMAND"),
        ("--simulated nothing", "unknown benchmark or command 'nothing'"),
    ],
)
def test_bad_words_are_one_line(words: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rehearse", *words.split()]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("omb-py: error: ") and says in error


def test_without_its_programs_nodes_are_simulated_and_it_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(rehearsal, "_SBIN", ())
    assert main("rehearse --nodes 2 latency -m 8:8 -i 2 --quiet --no-store".split()) == 0
    (first,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("omb-py: simulated")]
    assert first == (
        "omb-py: simulated: 2 nodes, node0 to node1: ip is not installed (Debian: iproute2, util-linux, hostname)"
    )


def test_a_machine_without_namespaces_is_asked_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(rehearsal, "missing_program", lambda path: "")
    unshare = tmp_path / "unshare"
    unshare.write_text("#!/bin/sh\necho unshare: Operation not permitted >&2\nexit 1\n")
    unshare.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert why_no_nodes() == "this machine allows no namespaces: unshare: Operation not permitted"


@pytest.mark.parametrize("user", [0, 1001])
def test_a_user_without_tc_in_path_and_not_root_has_nodes(
    user: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sbin = tmp_path / "sbin"
    sbin.mkdir()
    for name, says in [(name, "exit 0") for name in PROGRAMS] + [("unshare", 'echo "$PATH" >&2; exit 1')]:
        (sbin / name).write_text(f"#!/bin/sh\n{says}\n")
        (sbin / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(rehearsal, "_SBIN", (str(sbin),))
    assert why_no_nodes() == f"this machine allows no namespaces: {tmp_path}:{sbin}", "and what runs sees them"
    entered: list[tuple[str, Sequence[str], Mapping[str, str]]] = []
    monkeypatch.setattr(rehearsal.os, "geteuid", lambda: user)
    monkeypatch.setattr(rehearsal.os, "execve", lambda *words: entered.append(words))
    enter(["--nodes", "2", "links"], {"PATH": str(tmp_path)})
    ((program, words, environ),) = entered
    assert program == str(sbin / "unshare") and words[-4:] == ["rehearse", "--nodes", "2", "links"]
    assert ("--map-root-user" in words) == (user > 0)
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} if user else {}
    assert environ == {"PATH": f"{tmp_path}:{sbin}", rehearsal.INSIDE: "rehearse --nodes 2 links", **allowed}


def test_two_ends_are_wanted() -> None:
    with pytest.raises(UsageError, match="node 7 is not among 2 nodes"):
        Rehearsal(2, (0, 7))


def nodes_here() -> list[str]:
    """Namespaces and cables outside of a rehearsal that have the names of its own."""
    listed = (run_command(words, check=True).stdout for words in (["ip", "netns", "list"], ["ip", "-br", "link"]))
    return [line for text in listed for line in text.splitlines() if line.startswith(("omb0-", "ombr0 ", "ombw0."))]


@pytest.mark.mpi
@pytest.mark.slow
def test_ranks_run_on_nodes_that_end_with_them(tmp_path: Path) -> None:
    if missing_program() or why_no_nodes():
        pytest.skip(missing_program() or why_no_nodes())
    done = run_omb_py("rehearse", *"--nodes 3 allreduce -n 3 -m 8:8 -i 5 -c --store".split(), str(tmp_path))
    assert done.returncode == 0 and "Pass" in done.stdout, done.stderr
    assert done.stderr.startswith("omb-py: on this machine: 3 nodes, node0 to node2\n")
    assert list(load(tmp_path)["hosts"].iloc[0]) == ["node0", "node1", "node2"]
    assert nodes_here() == []


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.alone
def test_a_slow_link_is_named() -> None:
    if missing_program() or why_no_nodes():
        pytest.skip(missing_program() or why_no_nodes())
    done = run_omb_py("rehearse", "--slow-link", "0-2", "links", *QUICK)
    assert done.returncode == 1 and "node0 - node2" in done.stdout, done.stdout + done.stderr


@pytest.mark.mpi
@pytest.mark.slow
def test_a_signal_ends_ranks_and_nodes() -> None:
    if missing_program() or why_no_nodes():
        pytest.skip(missing_program() or why_no_nodes())
    words = "rehearse --nodes 2 latency -m 8:8 -i 100 --repeat-for 10m --no-store".split()
    child = subprocess.Popen(
        [sys.executable, "-m", "omb_py", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment(),
    )  # fmt: skip
    assert child.stdout is not None
    assert any(line.startswith("8 ") for line in child.stdout), "it measures"
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=PATIENCE_S)
    assert child.returncode != 0 and nodes_here() == []
