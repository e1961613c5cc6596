"""Ports that ranks share: first come, first served, also among groups that call at once."""

from __future__ import annotations

import pytest

from omb_py.backends.mock.config import parse
from omb_py.backends.mock.simulator.network import Topology
from omb_py.backends.mock.simulator.timing import Ports
from omb_py.suites.workloads.benchmark import columns
from tests.support.machines.simulated import measured

FAR = "between=5us:1ns"


def ports(text: str, ranks: int = 4) -> Ports:
    return Ports(Topology(parse(text), ranks))


def test_two_ranks_send_through_one_nic() -> None:
    made = ports("nodes=2,nics=1")
    assert made.message(0, 2, 0, 500, 400) == (0, 500)
    assert made.message(1, 3, 0, 500, 400) == (400, 900)
    assert made.message(2, 0, 0, 500, 400) == (0, 500), "a NIC receives while it sends"
    assert made.message(0, 1, 0, 50, 40) == (0, 50), "and messages within the node do not use it"


def test_two_nodes_send_to_one() -> None:
    made = ports("nodes=4,nics=1")
    assert made.message(0, 3, 0, 500, 400) == (0, 500)
    assert made.message(1, 3, 0, 500, 400) == (0, 900), "its last byte comes after those of the first"


def test_a_group_waits_for_the_nics_of_another() -> None:
    made = ports("nodes=2,nics=1")
    assert made.collective((0, 2), 100, 0.0, 50.0) == 100
    assert made.collective((1, 3), 100, 0.0, 50.0) == 150
    assert ports("nodes=2,nics=2").collective((1, 3), 100, 0.0, 50.0) == 100


def test_groups_that_call_at_once_share_the_nic() -> None:
    """Two pairs over the node boundary take twice as long through one NIC as through two, with equal calls."""
    text = "three_d:model=gpt2-124m,tp=2,dp=2,layers=1,seq=1024,order=dp-tp-pp,compute=1ms"

    def serial(nics: int) -> float:
        done = measured("step", 4, f"data=off,nodes=2,{FAR},nics={nics}", workload=text, iterations=1)
        return columns(done.laps)["serial_us"]

    assert serial(2) == pytest.approx(serial(0))
    assert 1.4 < serial(1) / serial(2) < 2


@pytest.mark.parametrize(("seq", "inner"), [(16, "dp"), (16384, "tp")])
def test_where_the_node_boundary_should_lie(seq: int, inner: str) -> None:
    """Short sequences: gradients are what is large, so replicas belong on one node. Long ones: activations are."""
    times = {}
    for order in ("tp-dp", "dp-tp"):
        text = f"three_d:model=gpt2-124m,tp=2,dp=2,layers=2,seq={seq},order={order}-pp,compute=1ms"
        done = measured("step", 4, f"data=off,nodes=2,{FAR},nics=1", workload=text, iterations=1)
        times[order[:2]] = columns(done.laps)["serial_us"]
    assert min(times, key=lambda name: times[name]) == inner and max(times.values()) > 2 * min(times.values())
