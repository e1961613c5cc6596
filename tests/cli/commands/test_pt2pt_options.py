"""OMB's options of the point-to-point benchmarks: read, explained, refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from omb_py.cli import main
from omb_py.options.request import Request
from omb_py.suites.registry import BENCHMARKS
from tests.support.planning import plan

Parse = Callable[[str], Request]


@pytest.mark.parametrize(
    ("line", "request_"),
    [
        ("mbw_mr -V", Request("mbw_mr", vary_window=True)),
        ("mbw_mr --vary-window -R 0", Request("mbw_mr", vary_window=True, print_rate=0)),
        ("mbw_mr -R1", Request("mbw_mr", print_rate=1)),
        ("latency -b MULTIPLE", Request("latency", buffer_num="multiple")),
        ("bw --buffer-num single", Request("bw", buffer_num="single")),
        ("latency_mt -t 4", Request("latency_mt", thread_counts="1:4")),
        ("latency_mt --num-threads 2:03", Request("latency_mt", thread_counts="2:3")),
        ("latency_mp -t 4", Request("latency_mp", process_counts="2:4")),
        ("latency_mp --num-processes 1:4", Request("latency_mp", process_counts="1:4")),
    ],
)
def test_are_read(request_of: Parse, line: str, request_: Request) -> None:
    assert request_of(line) == request_
    (launch,) = plan(request_, 2)
    assert all({**cell.options, **request_.options} == cell.options for cell in launch.cells)


def test_several_buffers_of_latency_are_bounded(capsys: pytest.CaptureFixture[str]) -> None:
    from omb_py.engine.program.benchmark import World
    from tests.support.machines.simulated import cell

    def buffers(size: int) -> tuple[int, int]:
        made = BENCHMARKS["latency"].program(World(0, 2), cell("latency", size, buffer_num="multiple"))
        return len(made.stages[0].variants), made.buffers[0].nbytes

    assert buffers(8) == (64, 512)
    assert buffers(1 << 22) == (16, 1 << 26)
    assert buffers(1 << 28) == (1, 1 << 28)
    assert main(["latency", "--help-all"]) == 0
    assert "up to 64 iterations in turn" in " ".join(capsys.readouterr().out.split())
