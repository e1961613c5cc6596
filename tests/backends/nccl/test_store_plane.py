"""Ranks of a torchrun that the user started agree over its store: values as JSON, and no socket of ours."""

from __future__ import annotations

import json
import pickle
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from omb_py.backends.nccl import plane
from omb_py.backends.nccl import plane as store_plane
from omb_py.backends.nccl.plane import StorePlane
from omb_py.engine.rank import control_plane
from omb_py.errors import EnvironmentProblem
from tests.support.machines.mpi import start, torchrun
from tests.support.optional import needs_torch

pytestmark = needs_torch
HERE = "127.0.0.1"


def store(port: int, serves: bool = False) -> Any:
    from torch.distributed import TCPStore

    return TCPStore(HERE, port, None, serves, wait_for_workers=False)


@pytest.fixture
def agent() -> Any:
    """The store that torchrun's agent serves."""
    return store(0, serves=True)


def by_rank(size: int, do: Callable[[int], Any]) -> list[Any]:
    """What each rank gets, all at the same time."""
    results: list[Any] = [None] * size
    threads = [threading.Thread(target=lambda k=k: results.__setitem__(k, do(k)), daemon=True) for k in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def planes(agent: Any, size: int, name: str = "a") -> list[StorePlane]:
    def join(rank: int) -> StorePlane:
        return StorePlane(rank, size, store(agent.port), name)

    return by_rank(size, join)


def test_ranks_agree(agent: Any) -> None:
    ranks = planes(agent, 3)
    assert by_rank(3, lambda k: ranks[k].gather((k, b"id"))) == [[(0, b"id"), (1, b"id"), (2, b"id")], [], []]
    assert by_rank(3, lambda k: ranks[k].share({"from": k})) == [{"from": 0}] * 3
    assert by_rank(3, lambda k: ranks[k].total(np.array([1.0, k])).tolist()) == [[3.0, 3.0]] * 3
    assert by_rank(3, lambda k: ranks[k].maximum(np.array([-1.0, k])).tolist()) == [[-1.0, 2.0]] * 3
    for rank in ranks:
        rank.close()


def test_a_long_value_goes_in_pieces(agent: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_plane, "PIECE", 100)
    ranks, long = planes(agent, 2), np.arange(1000.0)
    first, _ = by_rank(2, lambda k: ranks[k].gather(long + k))
    assert [array.tolist() for array in first] == [long.tolist(), (long + 1).tolist()]
    assert by_rank(2, lambda k: ranks[k].share("x" * 1000 if k == 0 else None)) == ["x" * 1000] * 2


def test_the_store_does_not_grow(agent: Any) -> None:
    ranks = planes(agent, 2)
    at_first = agent.num_keys()
    for _ in range(20):
        by_rank(2, lambda k: ranks[k].barrier())
    assert agent.num_keys() == at_first


def test_planes_of_other_names_do_not_meet(agent: Any) -> None:
    """So a job that torchrun starts again reads nothing of what its first attempt left."""
    one = planes(agent, 2, "attempt 0")
    one[0].share("old")
    other = planes(agent, 2, "attempt 1")
    assert by_rank(2, lambda k: other[k].share("new")) == ["new", "new"]


def test_a_stranger_can_break_a_launch_and_runs_no_code(agent: Any) -> None:
    ranks = planes(agent, 2)
    agent.set("a/3/0", pickle.dumps(print))
    agent.set("a/3", "1")
    with pytest.raises(ValueError, match=r"\S"):
        ranks[1].share(None)


def test_ranks_that_do_not_come_are_said(agent: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_plane, "JOINING_S", 0.1)
    with pytest.raises(
        EnvironmentProblem, match=r"rank 0 of 2 did not meet all others at torchrun's store within 0\.1 s"
    ):
        StorePlane(0, 2, store(agent.port), "alone")


def test_which_plane_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret that the user has given is worth more than a store that takes everybody."""
    world = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": HERE, "MASTER_PORT": "1", "TORCHELASTIC_RUN_ID": "none"}
    of_store: list[str] = []
    monkeypatch.setattr(StorePlane, "from_environment", lambda environ: of_store.append("store"))
    monkeypatch.setattr(control_plane.TcpPlane, "from_environment", lambda environ: of_store.append("tcp"))
    served = {**world, "TORCHELASTIC_USE_AGENT_STORE": "True"}
    for environ in (served, {**served, "OMB_PY_TOKEN": "6cce360d"}, {**world, "TORCHELASTIC_USE_AGENT_STORE": "False"}):
        plane.plane(environ)
    assert of_store == ["store", "tcp", "tcp"]


@pytest.mark.slow
@pytest.mark.mpi
def test_under_torchrun_no_rank_listens() -> None:
    done = start([sys.executable, "-m", "tests.support.sessions.plane_under_torchrun"], 2, torchrun(2))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [one["gathered"] for one in told] == [[[0, "here"], [1, "here"]], []]
    assert all(one["shared"] == "rank 0" and one["total"] == [2.0, 1.0] for one in told)
    assert [(one["kind"], one["listening"]) for one in told] == [("StorePlane", [])] * 2
    assert [one["with one of its own"] for one in told] == [1, 1], "the count sees sockets that listen"
