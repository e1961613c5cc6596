"""A node is called what the user called it."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path

import pytest

from omb_py.engine.rank.node_name import is_own_address, node_name
from omb_py.launchers.launcher import host_and_slots
from omb_py.launchers.registry import BATCH_SYSTEMS


def nobody(_name: str) -> bool:
    raise AssertionError("addresses are asked for only where host names do not decide")


@pytest.mark.parametrize(
    ("entry", "host", "slots"),
    [
        ("n1", "n1", None),
        ("n1:4", "n1", 4),
        ("10.0.0.1:12", "10.0.0.1", 12),
        ("fd00::1", "fd00::1", None),
        ("::1", "::1", None),
        ("fd00::2:4", "fd00::2:4", None),
        ("n1:x", "n1:x", None),
    ],
)
def test_slots_are_told_from_an_address(entry: str, host: str, slots: int | None) -> None:
    assert host_and_slots(entry) == (host, slots)


@pytest.mark.parametrize(
    ("own", "names", "name"),
    [
        ("node2", ("node1", "node2"), "node2"),
        ("node2.cluster.example", ("node1:2", "node2:2"), "node2"),
        ("node2", ("node1.cluster.example", "node2.cluster.example"), "node2.cluster.example"),
        ("NODE2", ("node1", "node2"), "node2"),
        ("n.a.example", ("n.a.example", "n.b.example"), "n.a.example"),
    ],
)
def test_host_names_decide(own: str, names: Sequence[str], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: own)
    assert node_name({"hosts": names}, nobody) == name


SLURM = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "cn[01-04]", "SLURM_STEP_ID": "0", "SLURM_PROCID": "1"}
TASK = {**SLURM, "SLURMD_NODENAME": "cn02"}


@pytest.mark.parametrize(
    ("own", "environ", "name"),
    [
        ("cn02.lab.local", SLURM, "cn02"),
        ("cn02.lab.local", {}, "cn02.lab.local"),
        ("machine", TASK, "cn02"),
        ("machine", {**TASK, "PMI_RANK": "1"}, "cn02"),
        # mpiexec's helper was started by srun, and its ranks get the variables of the first node
        (
            "machine",
            {**TASK, "PMI_RANK": "5", "PMI_SIZE": "8", "MPI_LOCALNRANKS": "4", "MPI_LOCALRANKID": "1"},
            "machine",
        ),
        ("cn03.lab.local", {**TASK, "PMI_RANK": "5", "MPI_LOCALNRANKS": "4", "MPI_LOCALRANKID": "1"}, "cn03"),
        ("machine", {**TASK, "SLURM_STEP_ID": "4294967291"}, "machine"),
        ("machine", {**SLURM, "SLURM_JOB_NODELIST": "cn["}, "machine"),
        ("h2.example", {"LSB_JOBID": "4", "LSB_HOSTS": "h1 h1 h2 h2"}, "h2"),
        ("h2.example", {"PBS_JOBID": "4.pbs", "PBS_NODEFILE": "/nowhere"}, "h2.example"),
        ("f2", {"FLUX_URI": "local:///tmp/f"}, "f2"),
    ],
)
def test_a_batch_system_names_its_nodes(
    own: str, environ: dict[str, str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: own)
    monkeypatch.setattr("os.environ", environ)
    spec = {"batch_signs": [system.sign for system in BATCH_SYSTEMS]}
    assert node_name(spec, nobody) == name
    assert node_name({**spec, "hosts": ("other", own)}, nobody) == own, "the user's own names come first"


def test_a_file_of_a_batch_system_names_its_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "nodes"
    file.write_text("r1i0n0\nr1i0n0\n\nr1i0n3 2 all.q\n")
    monkeypatch.setattr("socket.gethostname", lambda: "r1i0n3.ib0")
    for environ in ({"PBS_JOBID": "4", "PBS_NODEFILE": str(file)}, {"PE_HOSTFILE": str(file)}):
        monkeypatch.setattr("os.environ", environ)
        assert node_name({"batch_signs": ("PBS_JOBID", "PE_HOSTFILE")}) == "r1i0n3"


def test_addresses_tell_nodes_with_one_host_name_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "image")
    names = ("10.0.0.1:4", "10.0.0.2:4", "fd00::1")
    assert [node_name({"hosts": names}, mine.__eq__) for mine in ("10.0.0.1", "10.0.0.2", "fd00::1")] == [
        "10.0.0.1",
        "10.0.0.2",
        "fd00::1",
    ]


@pytest.mark.parametrize("names", [(), ("a", "b")])
def test_what_no_name_stands_for_keeps_its_host_name(names: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "image")
    assert node_name({"hosts": names}, lambda _name: False) == "image"
    assert node_name({"hosts": names}, lambda _name: len(names) > 0) == "image", "both would be this node"


def test_a_name_that_nobody_knows_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_words: object, **_more: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr("socket.getaddrinfo", unknown)
    assert node_name({"hosts": ("a", "b")}) == socket.gethostname()


def test_loopback_is_every_node_and_a_foreign_address_none() -> None:
    assert not is_own_address("127.0.0.1")
    assert not is_own_address("192.0.2.1"), "RFC 5737: no machine has it"
