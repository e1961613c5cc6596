"""Strangers at the supervisor's socket."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from omb_py.engine.rank import handshake
from omb_py.orchestrate.supervision.supervisor import Handlers, Outcome, Supervisor
from omb_py.orchestrate.supervision.wire import MOST, Lobby
from tests.orchestrate.supervision.peers import GARBAGE, Clock, Peer, supervising


def test_strangers_are_dropped_and_disturb_nothing() -> None:
    cells: list[Any] = []
    supervisor = Supervisor({"cells": [1]}, 2, 5.0, handlers=Handlers(cell=cells.append))
    with supervising(supervisor) as result:
        for garbage in GARBAGE:
            stranger = Peer(supervisor)
            stranger.socket.sendall(garbage)
            if garbage:
                with contextlib.suppress(ConnectionResetError):
                    assert stranger.read()["type"] == "challenge"
                    assert stranger.read() == {}, "no word of the spec to a stranger"
            stranger.close()
        token = supervisor.token
        for wrong in (token[:-1], token + "0", token[:1], token.upper() + "x", "omb-py", "none"):
            stranger = Peer(supervisor)
            with pytest.raises(handshake.Stranger):
                stranger.hello(wrong, 0)
            stranger.close()
        idle = Peer(supervisor)
        ranks = [Peer(supervisor), Peer(supervisor)]
        assert [rank.hello(supervisor.token, k)["cells"] for k, rank in enumerate(ranks)] == [[1], [1]]
        for k, rank in enumerate(ranks):
            rank.send(type="joined", rank=k, size=2, host="elsewhere", pid=0)
            rank.send(type="done")
        assert [rank.read() for rank in ranks] == [{"type": "exit", "code": 0}] * 2
        for peer in (idle, *ranks):
            peer.close()
    assert isinstance(result[0], Outcome)
    assert result[0].status is None
    assert cells == []


def test_a_recorded_hello_opens_nothing() -> None:
    supervisor = Supervisor({"cells": [1]}, 2, 5.0)
    with supervising(supervisor) as result:
        rank, eavesdropper = Peer(supervisor), Peer(supervisor)
        challenge = rank.read()
        nonce = handshake.new_nonce()
        proof = handshake.proof(supervisor.token, "caller", challenge["nonce"], nonce)
        hello = {"type": "hello", "nonce": nonce, "proof": proof, "pid": 0, "host": "elsewhere", "env_rank": 0}
        rank.send(**hello)
        assert [rank.read()["type"], rank.read()["type"]] == ["welcome", "spec"]
        assert eavesdropper.read()["type"] == "challenge"
        eavesdropper.send(**hello)
        assert eavesdropper.read() == {}, "the proof is for another connection"
        rank.send(type="error", code=3, text="the end")
        assert rank.read()["type"] == "exit"
        for peer in (rank, eavesdropper):
            peer.close()
    assert str(result[0]) == "the end", "a second hello of rank 0 has not ended the launch"


def test_a_rank_that_imports_for_long_is_waited_for_and_a_silent_stranger_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch, tick=0.01)
    supervisor = Supervisor({}, 2, 1.0)
    monkeypatch.setattr(supervisor, "_lobby", Lobby(supervisor.token, patience=0.1))
    with supervising(supervisor) as result:
        quick, slow = Peer(supervisor), Peer(supervisor)
        assert slow.hello(supervisor.token, 1)["type"] == "spec"
        stranger = Peer(supervisor)
        assert stranger.read()["type"] == "challenge"
        clock.step = 0.02
        assert stranger.read() == {}, "the supervisor hangs up on whom it does not know"
        clock.step = 0.0
        quick.close()
        quick = Peer(supervisor)
        assert quick.hello(supervisor.token, 0)["type"] == "spec"
        clock.step = 0.02
        clock.wait(turns=30)  # 0.6 s: far more than a stranger has, less than --timeout
        clock.step = 0.0
        for k, rank in enumerate([quick, slow]):
            rank.send(type="joined", rank=k, size=2, host="elsewhere", pid=0)
            rank.send(type="done")
        assert [rank.read() for rank in (quick, slow)] == [{"type": "exit", "code": 0}] * 2
        for peer in (quick, slow, stranger):
            peer.close()
    assert isinstance(result[0], Outcome)


def test_a_flood_of_strangers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch)  # which stands still: nobody waits too long
    supervisor = Supervisor({}, 1, 5.0)
    with supervising(supervisor) as result:
        flood = [Peer(supervisor) for _ in range(MOST + 10)]
        for stranger in flood[:9]:
            assert stranger.read()["type"] == "challenge"
            assert stranger.read() == {}, "the oldest had to leave"
        rank = Peer(supervisor)
        assert rank.hello(supervisor.token, 0)["type"] == "spec"
        rank.send(type="joined", rank=0, size=1, host="elsewhere", pid=0)
        rank.send(type="done")
        assert rank.read()["type"] == "exit"
        for peer in (rank, *flood):
            peer.close()
    assert isinstance(result[0], Outcome)
