"""Pairs of ranks i and i + ranks/2 (reference section 1.2): the programs, and numbers from times that are known."""

from __future__ import annotations

import pytest

from omb_py.engine.program.benchmark import World
from omb_py.engine.program.language import Lap, Region
from omb_py.engine.program.steps import barrier, recv, send
from omb_py.options.measured import VARIED_WINDOWS
from omb_py.options.request import Request
from omb_py.results.dialects.omb.transcript import WINDOWS
from omb_py.suites.registry import BENCHMARKS
from tests.support.machines.simulated import cell, measured
from tests.support.planning import plan

OUT, IN = Region("send", 0, 16), Region("recv", 0, 16)


@pytest.mark.parametrize(("rank", "peer"), [(0, 3), (1, 4), (2, 5), (3, 0), (4, 1), (5, 2)])
class TestOnSixRanks:
    def test_multi_lat_is_a_barrier_and_a_ping_pong_of_each_pair(self, rank: int, peer: int) -> None:
        (stage,) = BENCHMARKS["multi_lat"].program(World(rank, 6), cell("multi_lat", 16)).stages
        ping, pong = send(OUT, peer, "char"), recv(IN, peer, "char")
        first = (barrier(), Lap(), ping, pong, Lap("time"))
        assert stage.variants == (first if rank < 3 else (barrier(), pong, ping),)


class TestNumbers:
    SERIES = "series=2us/4us:10us/30us:2us/4us:10us/30us"

    def test_multi_lat_is_the_mean_over_pairs(self) -> None:
        done = measured("multi_lat", 4, self.SERIES, iterations=2)
        assert done.laps["time"] == [3, 20]  # of each pair: half of there and back, which take as long

    def test_mbw_mr_divides_all_pairs_bytes_by_the_mean_time_of_the_senders(self) -> None:
        done = measured("mbw_mr", 4, self.SERIES, size=1000, iterations=2, window=8)
        assert done.bytes_moved == 1000 * 8 * 2
        assert done.laps["time"] == [6, 40]  # the window (its messages do not wait for each other) and the reply

    def test_percentiles_are_of_all_senders(self) -> None:
        done = measured("mbw_mr", 4, self.SERIES, size=1000, iterations=2, window=8)
        assert done.series["time"]["avg"].tolist() == [12, 34]
        assert done.series["time"]["max"].tolist() == [20, 60]


@pytest.mark.parametrize("name", ["multi_lat", "mbw_mr"])
def test_needs_an_even_number_of_ranks_and_times_the_first_half(name: str) -> None:
    rule = BENCHMARKS[name].ranks
    assert [n for n in range(8) if rule.admits(n)] == [2, 4, 6] and rule.text == "an even number of ranks"
    assert BENCHMARKS[name].timed_ranks(6) == (0, 1, 2)


def test_a_sweep_over_windows_is_planned_size_by_size() -> None:
    (launch,) = plan(Request("mbw_mr", vary_window=True, sizes="8,16"), 2)
    assert VARIED_WINDOWS == WINDOWS == (1, 2, 4, 8, 16, 32, 64, 128)
    assert [(c.size, c.options.window) for c in launch.cells] == [(size, w) for size in (8, 16) for w in WINDOWS]
    assert all(c.options.vary_window for c in launch.cells)
