"""Requests become launches and cells; what cannot be is refused in one line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from omb_py.engine.program.benchmark import Needs
from omb_py.engine.program.steps import RESIZED
from omb_py.errors import UsageError
from omb_py.options.request import Request
from omb_py.options.table import takes
from omb_py.orchestrate.planning import parsing
from omb_py.orchestrate.planning.plan import plan_launches
from omb_py.suites import BENCHMARKS, find
from tests.support.kinds import one_of_each
from tests.support.planning import check, plan

ONE_LINE = r"^[^\n]+$"


def refusal(**fields: Any) -> str:
    with pytest.raises(UsageError, match=ONE_LINE) as caught:
        check(Request(**fields))
    return str(caught.value)


@pytest.mark.parametrize("name", one_of_each(BENCHMARKS))
def test_defaults_are_ombs(name: str) -> None:
    """One launch; sizes double over the benchmark's range; counts switch above 8192 bytes."""
    benchmark = find(name)
    ranks = next(n for n in (2, 4, 8) if benchmark.ranks.admits(n))
    (launch,) = plan(Request(name), ranks)
    level = "multiple" if name.endswith("_mt") else "funneled"
    assert (launch.backend, launch.needs.thread_level, launch.ranks, launch.index) == ("mpi", level, ranks, 0)
    sizes = [cell.size for cell in launch.cells]
    if benchmark.sizes is None:
        assert sizes == [1 if benchmark.one_element else 0]
    else:
        smallest = 8 if name == "partitioned_latency" else benchmark.sizes.minimum  # a byte for each partition
        assert sizes[0] == smallest and sizes[-1] == benchmark.sizes.maximum
        assert sizes == [sizes[0] << k for k in range(len(sizes))]
    for cell in launch.cells:
        small = cell.size <= 8192
        counts = benchmark.counts
        assert cell.sampling.iterations == (counts.small if small else counts.large)
        assert cell.sampling.warmup == (counts.small_warmup if small else counts.large_warmup)
        assert (cell.sampling.auto, cell.binding, cell.dtype, cell.validate) == (True, "native", benchmark.dtype, False)


def test_a_users_counts_hold_for_all_sizes() -> None:
    (launch,) = plan(Request("latency", sizes="4K:32K", iterations="7", warmup=0), 2)
    assert {(c.sampling.iterations, c.sampling.warmup, c.sampling.auto) for c in launch.cells} == {(7, 0, False)}


def test_counts_by_size() -> None:
    (launch,) = plan(Request("latency", sizes="8:32:2", iterations="8:3,16:2,0:1"), 2)
    assert [(c.size, c.sampling.iterations) for c in launch.cells] == [(8, 3), (16, 2), (32, 1)]


def test_counts_do_not_stick_across_types() -> None:
    """OMB keeps the large counts for the next type of -T all; we do not."""
    (launch,) = plan(Request("bcast", dtypes=("char", "int32"), sizes="8K:16K"), 2)
    assert [(c.dtype, c.size, c.sampling.iterations) for c in launch.cells] == [
        ("char", 8192, 1000),
        ("char", 16384, 100),
        ("int32", 8192, 1000),
        ("int32", 16384, 100),
    ]


def test_sizes_that_hold_no_element_are_skipped() -> None:
    (launch,) = plan(Request("bcast", dtypes=("float64",), sizes="1:16"), 2)
    assert [c.size for c in launch.cells] == [8, 16]
    (launch,) = plan(Request("bcast", dtypes=("int32",), sizes="7,3,9"), 2)
    assert [c.size for c in launch.cells] == [7, 9], "printed as asked; the count is size // 4"
    assert refusal(benchmark="bcast", dtypes=("float64",), sizes="1:4").endswith("write -m 8:8")


def test_bindings_need_launches_of_their_own() -> None:
    launches = plan(Request("barrier", bindings=("native", "mpi4py"), launches=2), 2)
    assert [(p.index, p.needs.thread_level, [c.binding for c in p.cells]) for p in launches] == [
        (0, "funneled", ["native"]),
        (1, "multiple", ["mpi4py"]),
        (2, "funneled", ["native"]),
        (3, "multiple", ["mpi4py"]),
    ]


def test_equal_needs_share_a_launch() -> None:
    (launch,) = plan(Request("barrier", bindings=("native", "mpi4py"), thread_level="single"), 2)
    assert [c.binding for c in launch.cells] == ["native", "mpi4py"]
    assert launch.needs.thread_level == "single"


def test_backends_take_turns() -> None:
    launches = plan(Request("barrier", backends=("mpi", "mock"), launches=2), 2)
    assert [p.backend for p in launches] == ["mpi", "mock", "mpi", "mock"]


def test_requests_with_equal_needs_share_a_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Needs as a whole, backend and number of ranks decide; the order is that of the requests."""
    needy = replace(find("bw"), needs=Needs("multiple"))
    monkeypatch.setattr(parsing, "find", lambda name: needy if name == "bw" else find(name))
    requests = [
        Request("latency", ranks=2, sizes="8:16"),
        Request("bw", ranks=2, sizes="8:8"),
        Request("bcast", ranks=4, sizes="8:8"),
        Request("allreduce", ranks=2, sizes="8:8"),
        Request("barrier", ranks=2, backends=("mock",)),
        Request("gather", ranks=2, sizes="8:8", bindings=("mpi4py",)),
    ]
    made = plan_launches([check(request) for request in requests])
    told = [
        (p.index, p.backend, p.needs.thread_level, p.ranks, [(c.benchmark, c.sweep) for c in p.cells]) for p in made
    ]
    assert told == [
        (0, "mpi", "funneled", 2, [("latency", 0), ("latency", 0), ("allreduce", 3)]),
        (1, "mpi", "multiple", 2, [("bw", 1), ("gather", 5)]),
        (2, "mpi", "funneled", 4, [("bcast", 2)]),
        (3, "mock", "funneled", 2, [("barrier", 4)]),
    ]
    assert all(p.requests == tuple(requests) for p in made)


def test_turns_of_several_requests() -> None:
    made = plan_launches([check(Request("barrier", ranks=2, launches=2)), check(Request("barrier", ranks=3))])
    assert [(p.index, p.turn, p.ranks) for p in made] == [(0, 0, 2), (1, 0, 3), (2, 1, 2), (3, 1, 3)]
    assert plan_launches([]) == []


ASKED = st.tuples(
    st.sampled_from(list(BENCHMARKS)),
    st.sampled_from([None, "single", "multiple"]),
    st.sampled_from(["mpi", "mock"]),
    st.sampled_from([2, 4]),
)


@pytest.mark.slow
@settings(max_examples=30)
@given(st.lists(ASKED, min_size=1, max_size=5))
def test_every_cell_of_every_request_is_in_one_launch(asked: list[tuple[str, str | None, str, int]]) -> None:
    requests = [
        Request(name, thread_level=level, backends=(backend,), ranks=ranks)
        for name, level, backend, ranks in asked
        if find(name).ranks.admits(ranks) and (level, find(name).needs.thread_level) != ("single", "multiple")
    ]
    made = plan_launches([check(request) for request in requests])
    assert len({(p.backend, p.ranks, p.needs) for p in made}) == len(made)
    alone = [cell for request in requests for p in plan_launches([check(request)]) for cell in p.cells]
    assert sorted(repr(replace(c, sweep=0)) for p in made for c in p.cells) == sorted(map(repr, alone))
    for launch in made:
        for cell in launch.cells:
            request = requests[cell.sweep]
            assert (request.benchmark, request.ranks) == (cell.benchmark, launch.ranks)
            level = request.launching.thread_level or find(cell.benchmark).needs.thread_level
            assert (request.backends, level) == ((cell.backend,), launch.needs.thread_level)


def test_a_benchmarks_need_sets_the_level(monkeypatch: pytest.MonkeyPatch) -> None:
    needy = replace(find("latency"), needs=Needs("multiple"))
    monkeypatch.setattr(parsing, "find", lambda name: needy)
    (launch,) = plan(Request("latency"), 2)
    assert launch.needs.thread_level == "multiple"


def test_options_reach_every_cell() -> None:
    request = Request(
        "allreduce", op="max", precision=0.05, time_limit=2.0, validate=True, buffer="bytearray", process_sync="none"
    )
    for cell in plan(request, 3)[0].cells:
        assert (cell.options.op, cell.sampling.precision, cell.sampling.time_limit, cell.validate) == (
            "max",
            0.05,
            2.0,
            True,
        )
        assert (cell.buffer, cell.options.process_sync) == ("bytearray", "none")
    assert {c.options.window for c in plan(Request("bw", window=3), 2)[0].cells} == {3}


def test_osu_names() -> None:
    assert plan(Request("osu_allreduce"), 2)[0].cells[0].benchmark == "allreduce"


def test_groups_have_no_start_in_common() -> None:
    for sync in ("barrier", "dissemination"):
        plan(Request("allreduce", groups="2x2", process_sync=sync), 4)
    with pytest.raises(UsageError, match=r"--groups do not wait for each other: use barrier or dissemination"):
        plan(Request("allreduce", groups="2x2", process_sync="roundtime"), 4)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"benchmark": "alreduce"}, "unknown benchmark 'alreduce': did you mean allreduce?"),
        ({"benchmark": "latency", "ranks": 0}, "ranks must be 1 or more, not 0"),
        ({"benchmark": "latency", "launches": 0}, "launches must be 1 or more"),
        ({"benchmark": "bw", "warmup": -1}, "warm-up must be 0 or more"),
        ({"benchmark": "bw", "iterations": "0"}, "iterations must be 1 or more"),
        ({"benchmark": "bw", "sizes": "9:4"}, "write 4:9"),
        ({"benchmark": "bw", "sizes": "-4"}, "cannot be negative"),
        (
            {"benchmark": "bcast", "op": "sum"},
            "bcast has no reduction operation, so it takes no --op: for reduce, allreduce",
        ),
        ({"benchmark": "latency", "full": True}, "takes no -f/--full: for barrier, bcast"),
        ({"benchmark": "latency", "process_sync": "none"}, "takes no --process-sync: for barrier"),
        ({"benchmark": "barrier", "sizes": "8"}, "barrier has no message size"),
        ({"benchmark": "barrier", "dtypes": ("char",)}, "takes no -T/--type"),
        ({"benchmark": "barrier", "validate": True}, "takes no -c/--validation: for latency"),
    ],
)
def test_refusals(fields: dict[str, Any], says: str) -> None:
    assert says in refusal(**fields)


def test_barrier_is_not_named_where_it_cannot_help() -> None:
    assert "barrier" not in refusal(benchmark="latency", op="sum").partition("for ")[2]
    assert not takes(find("barrier"), "sizes")


@given(
    st.sampled_from([name for name in BENCHMARKS if name not in RESIZED]),
    st.integers(1, 3),
    st.lists(st.sampled_from(["native", "mpi4py"]), unique=True),
    st.sampled_from([None, "single", "multiple"]),
)
def test_every_launch_has_one_backend_and_numbers_ascend(
    name: str, launches: int, bindings: list[str], level: str | None
) -> None:
    assume(find(name).ranks.admits(2) and (level, find(name).needs.thread_level) != ("single", "multiple"))
    made = plan(Request(name, launches=launches, bindings=tuple(bindings), thread_level=level), 2)
    assert [p.index for p in made] == list(range(len(made)))
    assert all({c.backend for c in p.cells} == {p.backend} for p in made)
    per_turn = len(made) // launches
    wanted = bindings or ["native"]
    for turn in range(launches):
        cells = [c for p in made[turn * per_turn : (turn + 1) * per_turn] for c in p.cells]
        assert list(dict.fromkeys(c.binding for c in cells)) == wanted


@pytest.mark.parametrize(
    ("name", "ranks", "asked", "sizes"),
    [
        ("allgather", 3, "8:64:2", [16, 32, 64]),
        ("allgather", 3, "24:24", [16]),
        ("allgather", 3, None, [11_184_800]),  # 32 MiB / 3 is 11184810
        ("alltoall", 2, "100:100", [96]),
        ("reduce_scatter", 3, "200:200", [192]),
        ("reduce_scatter", 3, None, [33_554_400]),
        ("allreduce", 3, "24:24", [24]),
        ("bcast", 3, "4:8:2", [4, 8]),
    ],
)
def test_in_the_form_of_nccl_tests_blocks_are_cut_as_there(
    name: str, ranks: int, asked: str | None, sizes: list[int]
) -> None:
    request = Request(name, backends=("nccl",), device="sim", format="nccl-tests", sizes=asked, ranks=ranks)
    (launch,) = plan(request, ranks)
    assert list(dict.fromkeys(cell.size for cell in launch.cells)) == sizes


@pytest.mark.parametrize("backend", ["gloo", "mpi"])
def test_blocking_calls_have_the_sweep_of_nccl_tests_each_call_timed_alone(backend: str) -> None:
    (launch,) = plan(Request("allreduce", backends=(backend,), format="nccl-tests", ranks=2), 2)
    assert list(dict.fromkeys(cell.size for cell in launch.cells)) == [1 << power for power in range(3, 28)]
    assert {cell.dtype for cell in launch.cells} == {"float32"}
    assert {(c.sampling.iterations, c.sampling.auto, c.options.timing or "isolated") for c in launch.cells} == {
        (20, False, "isolated")
    }
    both = [cell.options.in_place for cell in launch.cells if cell.size == 8]
    assert both == ([True] if backend == "gloo" else [False, True]), "Gloo reduces in place alone"
    assert "nccl-tests have no latency" in refusal(benchmark="latency", backends=(backend,), format="nccl-tests")


def test_a_block_of_which_nothing_is_left_is_refused() -> None:
    usual = {"backends": ("nccl",), "device": "sim", "format": "nccl-tests", "ranks": 4}
    assert "reduce_scatter has blocks of 16 B or more a rank there: -m 64, or" in refusal(
        benchmark="reduce_scatter", sizes="8:32:2", **usual
    )
