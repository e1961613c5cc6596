"""Costs on two levels: within a node and between nodes, and where ranks share NICs and memory channels."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.backends.mock.config import Config, parse
from omb_py.backends.mock.simulator.network import Costs, Network, Spread, Topology
from omb_py.engine.program.steps import COLLECTIVES

A, B, FAR_A, FAR_B = 1000.0, 0.5, 5000.0, 2.0
TWO_LEVELS = f"alpha={A}ns,beta={B}ns,between={FAR_A}ns:{FAR_B}ns"


def network(ranks: int, more: str = "nodes=2") -> Network:
    return Network(parse(f"{TWO_LEVELS},{more}"), ranks)


def test_ranks_of_a_node_are_spread_over_its_ports() -> None:
    where = Topology(parse("nodes=2,nics=2,channels=3"), 8)
    nodes, nics = [0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 0, 0, 1, 1]
    assert [where.nic(rank)[1:] for rank in range(8)] == list(zip(nodes, nics, strict=True))
    assert [where.channel(rank)[2] for rank in range(4)] == [0, 0, 1, 2]
    assert where.spread(()) == Spread(ranks=8, nodes=2, widest=4, on_nic=2, on_channel=2)
    assert where.spread((0, 4)) == Spread(ranks=2, nodes=2, widest=1, on_nic=1, on_channel=1)
    alone = Topology(Config(nodes=2), 8)
    assert not alone.shared and alone.spread(()).on_nic == alone.spread(()).on_channel == 1
    assert len({alone.nic(rank) for rank in range(8)}) == 8


def test_a_message_costs_what_its_level_costs() -> None:
    made = network(4)
    assert made.message(0, 1, 8) == (A + 8 * B, 8 * B)
    assert made.message(1, 2, 8) == (FAR_A + 8 * FAR_B, 8 * FAR_B)


@pytest.mark.parametrize("op", COLLECTIVES)
def test_a_group_on_one_node_does_not_know_of_the_others(op: str) -> None:
    price = network(8).collective(op, (4, 5, 6, 7), 1 << 16)
    assert price.time == Costs(A, B, 4).collective(op, 1 << 16) and price.nic == 0


def test_a_long_allreduce_takes_parts_a_short_one_doubles() -> None:
    n, made = 1 << 20, network(8)
    parts = 2 * 2 * A + 2 * 3 / 4 * n * B + 2 * FAR_A / 2 + n / 4 * FAR_B  # among 4, then 2 ranks with a quarter each
    assert made.collective("allreduce", (), n).time == pytest.approx(parts)
    assert made.collective("allreduce", (), 8).time == pytest.approx(2 * (A + 8 * B) + FAR_A + 8 * FAR_B)


def test_ranks_that_share_a_nic_share_its_rate() -> None:
    n = 1 << 20
    own, shared = network(8), network(8, "nodes=2,nics=1")
    assert own.collective("allreduce", (), n).nic == pytest.approx(n / 4 * FAR_B)
    assert shared.collective("allreduce", (), n).nic == pytest.approx(n * FAR_B), "all four parts go through it"
    direct = 3 * (A + n * B) + 4 * (FAR_A + 4 * n * FAR_B)
    assert shared.collective("alltoall", (), n).time == pytest.approx(direct)


def test_memory_channels_slow_a_node_down() -> None:
    n = 1 << 20
    price = network(4, "nodes=1,channels=1").collective("allgather", (), n)
    assert price.time == 2 * A + 3 * n * 4 * B and price.channel == 3 * n * 4 * B


@given(
    st.sampled_from(COLLECTIVES),
    st.integers(1, 8),
    st.integers(1, 8),
    st.integers(0, 8),
    st.integers(0, 8),
    st.integers(0, 1 << 22),
)
def test_prices_are_sane(op: str, nodes: int, width: int, nics: int, channels: int, nbytes: int) -> None:
    """Ports are never busy longer than the call takes, and what is shared is never cheaper."""
    price = network(nodes * width, f"nodes={nodes},nics={nics},channels={channels}").collective(op, (), nbytes)
    assert 0 <= price.channel + price.nic <= price.time * (1 + 1e-9)
    alone = network(nodes * width, f"nodes={nodes}").collective(op, (), nbytes)
    assert alone.time <= price.time * (1 + 1e-9)
