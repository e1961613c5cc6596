"""bw_fan_in and bw_fan_out: rank j of every other node against rank j of the first."""

from __future__ import annotations

import pytest

from omb_py.engine.program.benchmark import World
from omb_py.engine.program.language import Lap, Region, Repeat, Requests, RequestSlot
from omb_py.engine.program.steps import irecv, isend, recv, send, waitall
from omb_py.suites.pt2pt.congestion import by_node
from omb_py.suites.registry import BENCHMARKS
from tests.support.machines.simulated import cell, measured

HOSTS = ("a", "b", "c", "a", "b", "c")
OUT, ACK = Region("send", 0, 16), Region("ack", 0, 1)


def body(name: str, rank: int) -> object:
    (stage,) = BENCHMARKS[name].program(World(rank, 6, HOSTS), cell(name, 16, window=4)).stages
    return stage.variants[0]


def test_nodes_are_in_the_order_of_their_first_ranks() -> None:
    assert by_node(HOSTS) == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize(("rank", "peers"), [(0, (1, 2)), (3, (4, 5))])
def test_a_rank_of_the_first_node_posts_a_window_for_each_other_node(rank: int, peers: tuple[int, ...]) -> None:
    acks, out, into = ([Region(name, j * n, n) for j in (0, 1)] for name, n in (("ack", 1), ("send", 16), ("recv", 16)))
    replies = tuple(send(acks[j], peer, "char", 101) for j, peer in enumerate(peers))
    posts = tuple(Repeat(4, (irecv(into[j], p, "char", RequestSlot(4 * j, 1), 100),)) for j, p in enumerate(peers))
    assert body("bw_fan_in", rank) == (*posts, waitall(Requests(0, 8)), *replies)
    posts = tuple(Repeat(4, (isend(out[j], p, "char", RequestSlot(4 * j, 1), 100),)) for j, p in enumerate(peers))
    answers = tuple(recv(acks[j], peer, "char", 101) for j, peer in enumerate(peers))
    assert body("bw_fan_out", rank) == (Lap(), *posts, waitall(Requests(0, 8)), *answers, Lap("time"))


@pytest.mark.parametrize(("rank", "peer"), [(1, 0), (2, 0), (4, 3), (5, 3)])
def test_a_rank_of_another_node_has_one_peer(rank: int, peer: int) -> None:
    post = Repeat(4, (isend(OUT, peer, "char", RequestSlot(0, 1), 100),))
    wait = waitall(Requests(0, 4))
    assert body("bw_fan_in", rank) == (Lap(), post, wait, recv(ACK, peer, "char", 101), Lap("time"))


def test_the_senders_are_timed() -> None:
    assert BENCHMARKS["bw_fan_in"].timed_ranks(6, HOSTS) == (1, 2, 4, 5)
    assert BENCHMARKS["bw_fan_out"].timed_ranks(6, HOSTS) == (0, 3)


@pytest.mark.parametrize(("name", "senders"), [("bw_fan_in", 4), ("bw_fan_out", 2)])
def test_all_links_of_the_first_node_count(name: str, senders: int) -> None:
    done = measured(name, 6, "nodes=3,series=10us", size=1000, window=4)
    assert done.bytes_moved == 1000 * 4 * 2 * (3 - 1)
    assert done.laps["time"] == [20] * senders  # the window, and the reply


@pytest.mark.parametrize("name", ["bw_fan_in", "bw_fan_out"])
def test_every_byte_is_checked(name: str) -> None:
    assert measured(name, 6, "nodes=3", size=64, validate=True).wrong_bytes == 0
    assert measured(name, 6, "nodes=3,flip=1,flip=0", size=64, validate=True).validated is False


@pytest.mark.parametrize(
    ("hosts", "fits"), [(("a", "a"), False), (("a", "b"), True), (("a", "a", "b"), False), (HOSTS, True)]
)
def test_needs_several_nodes_of_equal_size(hosts: tuple[str, ...], fits: bool) -> None:
    rule = BENCHMARKS["bw_fan_in"].ranks.over_nodes
    assert rule is not None and rule(hosts) is fits
