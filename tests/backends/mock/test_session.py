"""The backend and its session, and what the engine prints from a known series."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from omb_py import __version__
from omb_py.backends.mock import BACKEND
from omb_py.engine.measuring.cell_result import CellResult
from omb_py.engine.measuring.measure import measure
from omb_py.engine.session import StepFailed
from omb_py.options.table import make_cell
from omb_py.suites import find


def connect(ranks: int = 4, text: str = "", **spec: Any) -> Any:
    return BACKEND.connect({"ranks": ranks, "launch_index": 0, "seed": 1, "settings": text, **spec})


def measured(name: str, ranks: int, size: int, text: str, iterations: int = 6, **cell: Any) -> CellResult:
    """A cell measured by the engine, without warm-up."""
    benchmark = find(name)
    what = make_cell(
        name, "mock", "native", size, dtype=benchmark.dtype, iterations=iterations, auto=False, warmup=0, **cell
    )
    return measure(connect(ranks, text), benchmark, what)


def test_probe_says_that_it_is_always_there() -> None:
    probe = BACKEND.capabilities.here()
    assert BACKEND.name == probe.name == "mock"
    assert probe.available
    assert dict(probe.bindings) == {"native": ""} and dict(probe.devices) == {"cpu": ""}
    assert probe.buffers == ("numpy", "bytearray", "array")


def test_importing_the_backend_does_not_load_numpy() -> None:
    code = "import sys; from omb_py.backends.mock import BACKEND; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_what_a_session_says() -> None:
    session = connect(4, "nodes=2,version=2.1", thread_level="single")
    assert (session.backend, session.binding, session.size, session.local) == ("mock", "native", 4, (0, 1, 2, 3))
    assert session.hosts == ("node0", "node0", "node1", "node1")
    assert (session.library, session.library_version) == ("mock", "2.1")
    assert session.binding_version == __version__
    assert session.thread_level == "single"


@pytest.mark.parametrize(("ranks", "nodes", "counts"), [(5, 2, [3, 2]), (7, 3, [3, 2, 2]), (8, 4, [2, 2, 2, 2])])
def test_ranks_lie_on_nodes_in_blocks(ranks: int, nodes: int, counts: list[int]) -> None:
    hosts = connect(ranks, f"nodes={nodes}").hosts
    assert [hosts.count(f"node{k}") for k in range(nodes)] == counts
    assert list(hosts) == sorted(hosts)


def test_skew() -> None:
    assert connect(8).skew() == 0
    assert connect(8, "straggler=1:5us,hang=2,series=1us:2us").skew() == 0
    noisy = connect(8, "noise=0.1")
    assert 0.2 < noisy.skew() < 2  # eight exits of 3 us, each 10 % apart
    assert noisy.skew() == noisy.skew()
    assert noisy.clocks.tolist() == [0] * 8


def test_position_and_what_is_done_there() -> None:
    session = connect(4)
    assert (session.position(), session.doing(0)) == ((0, 0), "")
    session.reserve("numpy", {"send": 8})
    benchmark = find("allreduce")
    measure(session, benchmark, make_cell("allreduce", "mock", "native", 8, dtype="int32", iterations=5, auto=False))
    assert session.position() == (5, 0)
    assert session.doing(0) == "allreduce 8 B int32 sum"
    assert session.doing(1) == "barrier"
    session.close()
    assert session.position() == (0, 0)


def test_launches_differ_by_their_effect() -> None:
    factors = {connect(2, "launch=0.1", launch_index=k).scale for k in range(4)}
    assert len(factors) == 4
    drifting = [connect(2, "drift=0.5", launch_index=k).scale for k in range(3)]
    assert drifting == [1.0, 1.5, 2.25]


# -- what is printed, from a known series ------------------------------------------------------------------------


def test_latency_values_by_hand() -> None:
    result = measured("latency", 2, 8, "series=10us/12us/14us")
    assert result.series["time"]["max"].tolist() == [10, 12, 14, 10, 12, 14]
    assert result.laps["time"] == [12.0]


def test_collective_values_by_hand() -> None:
    result = measured("allreduce", 4, 8, "series=10us/12us:20us/22us/30us:1us")
    assert result.series["time"]["max"].tolist() == [20, 22, 30] * 2
    assert result.series["time"]["avg"].tolist() == [sum_ / 4 for sum_ in (41, 47, 51, 45, 43, 55)]
    assert result.laps["time"] == pytest.approx([11, 24, 1, 11])
    assert result.slowest_rank_share == [0, 1, 0, 0]


def test_bandwidth_values_by_hand() -> None:
    result = measured("bw", 2, 1000, "series=5us")
    assert result.laps["time"] == [10.0]
    assert result.bytes_moved == 64_000  # 6400 MB/s


def test_a_wrong_byte_in_every_iteration() -> None:
    result = measured("allreduce", 2, 64, "flip=1", validate=True)
    assert result.wrong_bytes == 11  # ten iterations of validation, and the last of the timed loop


def test_a_wrong_program_fails_as_a_library_call_would() -> None:
    with pytest.raises(StepFailed, match="bcast: there is no rank 5 among 2"):
        measured("bcast", 2, 8, "", root=5)


@pytest.mark.parametrize(
    ("text", "factors"),
    [
        ("slow=1:3,slow=2:2", [3, 2]),
        ("slow=1:0.5", [1, 1]),
        ("link=2-3:4,link=0-3:9", [1, 4]),
        ("uplink=0-1:5", [1, 1]),
        ("uplink=1-2:5", [5, 5]),
        ("uplink=3-3:5,slow=3:2", [1, 5]),
    ],
)
def test_a_collective_is_as_slow_as_the_slowest_in_its_group(text: str, factors: list[int]) -> None:
    """Two groups of two ranks: of each the time over that of a machine where nothing is slow."""
    usual = measured("allreduce", 4, 1024, "", groups="2x2").laps["time"]
    times = measured("allreduce", 4, 1024, text, groups="2x2").laps["time"]
    ratios = [time / base for time, base in zip(times, usual, strict=True)]
    assert ratios == pytest.approx([f for f in factors for _ in (0, 1)], rel=1e-3)
