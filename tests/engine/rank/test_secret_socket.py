"""Strangers at the sockets of ranks: nobody gets in without the secret, and nobody holds up those who have it."""

from __future__ import annotations

import contextlib
import json
import pickle
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from omb_py.engine.rank import handshake, secret_socket
from omb_py.engine.rank.control_plane import TcpPlane
from omb_py.engine.rank.secret_socket import AT_ONCE, SecretGate, SecretLine, reach
from omb_py.errors import EnvironmentProblem
from omb_py.grammar.json_values import JsonObject
from tests.support.ports import free_port

SECRET = "6cce360d76e7258ad48e060e0709ca9a"
HERE = "127.0.0.1"


@pytest.fixture
def gate() -> Iterator[SecretGate]:
    gate = SecretGate(HERE, 0, SECRET)
    yield gate
    gate.close()


@contextlib.contextmanager
def stranger(gate: SecretGate) -> Iterator[socket.socket]:
    with socket.create_connection((HERE, gate.port), 5) as connection:
        yield connection


def rest(connection: socket.socket) -> bytes:
    """All that comes until the other end closes."""
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while chunk := connection.recv(4096):
            data += chunk
    return data


def test_both_ends_get_what_the_other_sends(gate: SecretGate) -> None:
    line = reach((HERE, gate.port), SECRET, {"rank": 3}, 5)
    hello, theirs = gate.admit(5)
    assert hello["rank"] == 3
    line.send((1, b"\x00", np.arange(3.0)))
    one, data, array = theirs.receive()
    assert (one, data, array.tolist()) == (1, b"\x00", [0, 1, 2])
    theirs.send(None)
    assert line.receive() is None
    theirs.close()
    with pytest.raises(EOFError):
        line.receive()
    line.close()


WRONG = ["", SECRET[:-1], SECRET[:1], SECRET + "0", SECRET.upper(), "none", "omb-py"]


@pytest.mark.parametrize("secret", [secret for secret in WRONG if secret])
def test_a_wrong_secret_opens_nothing(gate: SecretGate, secret: str) -> None:
    with pytest.raises(handshake.Stranger, match="does not know this launch's secret"):
        reach((HERE, gate.port), secret, {}, 5)
    with pytest.raises(TimeoutError):
        gate.admit(0)


def test_an_empty_secret_is_none() -> None:
    with pytest.raises(ValueError, match="proves nothing"):
        handshake.proof("", "caller", "1", "2")


GARBAGE = [
    b"GET / HTTP/1.1\r\n\r\n",
    b"\xff" * 100_000,
    b"[" * 3000 + b"\n",
    b"\n" * 10,
    pickle.dumps(print) + b"\n",
    json.dumps({"type": "hello", "nonce": "1", "proof": ""}).encode() + b"\n",
    json.dumps({"type": "hello", "nonce": "1", "proof": "\ud800"}).encode() + b"\n",
    json.dumps({"type": "hello", "nonce": {}, "proof": 1}).encode() + b"\n",
    json.dumps({"type": "hello"}).encode() + b"\n",
]


@pytest.mark.parametrize("garbage", GARBAGE)
def test_garbage_is_hung_up_on(gate: SecretGate, garbage: bytes) -> None:
    with stranger(gate) as connection:
        with contextlib.suppress(OSError):
            connection.sendall(garbage)
        assert rest(connection).count(b"\n") <= 1, "the challenge, and no word more"
    with pytest.raises(TimeoutError):
        gate.admit(0)


def test_a_recorded_hello_opens_nothing(gate: SecretGate) -> None:
    with stranger(gate) as first, stranger(gate) as second:
        lines = [connection.makefile("rb") for connection in (first, second)]
        challenges = [json.loads(line.readline())["nonce"] for line in lines]
        assert challenges[0] != challenges[1]
        hello = {"type": "hello", "nonce": "1", "proof": handshake.proof(SECRET, "caller", challenges[0], "1")}
        handshake.write(first, hello)
        assert json.loads(lines[0].readline())["type"] == "welcome"
        handshake.write(second, hello)
        assert lines[1].readline() == b""
        for line in lines:
            line.close()
    gate.admit(5)[1].close()


def test_a_listener_cannot_send_back_the_callers_own_proof() -> None:
    """Each end has a proof of its own, so whoever merely echoes is found out."""
    assert handshake.proof(SECRET, "caller", "1", "2") != handshake.proof(SECRET, "listener", "1", "2")


def test_silence_is_ended_and_holds_up_nobody(gate: SecretGate, monkeypatch: pytest.MonkeyPatch) -> None:
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(stranger(gate)) for _ in range(AT_ONCE - 1)]
        reach((HERE, gate.port), SECRET, {}, 5).close()
        gate.admit(5)[1].close()
        assert silent[0].recv(4096).endswith(b"\n")
    monkeypatch.setattr(secret_socket, "STRANGER_S", 0.01)
    with stranger(gate) as connection:
        assert rest(connection).count(b"\n") == 1, "the gate hung up after its challenge"


def test_a_process_that_fails_ends_although_its_gate_is_open() -> None:
    words = (
        f"from {SecretGate.__module__} import SecretGate\n"
        f"gate = SecretGate('{HERE}', 0, '{SECRET}')\nraise SystemExit(7)"
    )
    assert subprocess.run([sys.executable, "-c", words], timeout=60, check=False).returncode == 7


def test_a_caller_knows_a_false_listener() -> None:
    false = SecretGate(HERE, 0, "another secret")
    with pytest.raises(handshake.Stranger):
        reach((HERE, false.port), SECRET, {}, 5)
    false.close()


# the control plane, which stands on it


def planes(size: int) -> list[TcpPlane]:
    made: list[TcpPlane | None] = [None] * size

    def join(rank: int) -> None:
        made[rank] = TcpPlane(rank, size, (HERE, port), SECRET)

    with free_port() as port:
        threads = [threading.Thread(target=join, args=(rank,)) for rank in range(size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return [plane for plane in made if plane is not None]


def together(ranks: list[TcpPlane], do: Any) -> list[Any]:
    """What each rank gets from a call that all of them make."""
    results: list[Any] = [None] * len(ranks)
    threads = [
        threading.Thread(target=lambda k=k, plane=plane: results.__setitem__(k, do(plane)))
        for k, plane in enumerate(ranks)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_ranks_agree_over_the_plane() -> None:
    ranks = planes(3)
    assert [plane.rank for plane in ranks] == [0, 1, 2]
    assert together(ranks, lambda plane: plane.gather((plane.rank, b"id"))) == [
        [(0, b"id"), (1, b"id"), (2, b"id")],
        [],
        [],
    ]
    assert together(ranks, lambda plane: plane.share({"from": plane.rank})) == [{"from": 0}] * 3
    totals = together(ranks, lambda plane: plane.total(np.array([1.0, plane.rank])).tolist())
    assert totals == [[3.0, 3.0]] * 3
    maxima = together(ranks, lambda plane: plane.maximum(np.array([-1.0, plane.rank])).tolist())
    assert maxima == [[-1.0, 2.0]] * 3
    for plane in ranks:
        plane.close()


def test_ranks_meet_where_rank_0_says() -> None:
    """Its port is the first that is free, and each launch has a secret of its own."""
    told: queue.SimpleQueue[JsonObject] = queue.SimpleQueue()
    places: list[JsonObject] = []

    def meet(place: JsonObject | None) -> JsonObject:
        if place is None:
            return told.get(timeout=60)
        places.append(place)
        told.put(place)
        told.put(place)
        return place

    ranks: list[TcpPlane] = []
    threads = [threading.Thread(target=lambda r=r: ranks.append(TcpPlane.met(r, 3, HERE, meet))) for r in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ranks.sort(key=lambda plane: plane.rank)
    assert together(ranks, lambda plane: plane.share(plane.gather(plane.rank))) == [[0, 1, 2]] * 3
    assert [(place["host"], len(str(place["secret"])) >= 32) for place in places] == [(HERE, True)]
    for plane in ranks:
        plane.close()


def test_a_stranger_at_the_plane_is_no_rank() -> None:
    root: list[TcpPlane] = []
    line: SecretLine | None = None
    with free_port() as port:
        thread = threading.Thread(target=lambda: root.append(TcpPlane(0, 2, (HERE, port), SECRET)))
        thread.start()
        while line is None:
            with contextlib.suppress(OSError):
                # of this launch's secret, but for another socket of it: as the supervisor's token would be
                with pytest.raises(handshake.Stranger):
                    reach((HERE, port), SECRET, {"rank": 1}, 5)
                for number in (0, 2, -1, "1", None):  # a rank that cannot be
                    reach((HERE, port), f"plane {SECRET}", {"rank": number}, 5).close()
                line = reach((HERE, port), f"plane {SECRET}", {"rank": 1}, 5)
        thread.join()
    line.send("here")
    assert root[0].gather("root") == ["root", "here"]
    root[0].close()
    line.close()


@pytest.mark.parametrize("environ", [{}, {"TORCHELASTIC_RUN_ID": "none"}, {"TORCHELASTIC_RUN_ID": "omb-py"}])
def test_what_others_can_guess_is_no_secret(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omb_py.engine.rank.control_plane.JOINING_S", 0.01)  # nobody would come
    world = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": HERE, "MASTER_PORT": "1"}
    with pytest.raises(EnvironmentProblem, match=r"these ranks have no secret.*OMB_PY_TOKEN"):
        TcpPlane.from_environment({**world, **environ})


def test_a_single_rank_needs_no_secret() -> None:
    plane = TcpPlane.from_environment({"RANK": "0", "WORLD_SIZE": "1"})
    assert plane.gather("here") == ["here"]
