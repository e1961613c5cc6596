"""What a rank does before it measures."""

from __future__ import annotations

import errno
import json
import os
import socket
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import omb_py
from omb_py.backends.registry import find
from omb_py.engine.measuring import host_memory
from omb_py.engine.measuring.cache_rotation import CACHE_BYTES
from omb_py.engine.program.benchmark import World
from omb_py.engine.rank.link import LocalLink
from omb_py.errors import UsageError
from omb_py.options.request import Request
from omb_py.options.table import change_cell, make_cell
from omb_py.orchestrate.planning.plan import plan_launches
from omb_py.orchestrate.running import rank_process
from omb_py.orchestrate.running.rank_process import measure_on, numbers_on_node, reserve
from omb_py.orchestrate.running.run import new_run, spec_of
from omb_py.suites.registry import find as benchmark
from tests.support.machines.mpi import ROOT, run_command
from tests.support.planning import narrow

BENCHMARKS = ("allreduce", "bcast", "alltoallv", "barrier", "latency")
ORDER = """
import json, sys
from types import SimpleNamespace
from omb_py.engine.program.benchmark import World
from omb_py.orchestrate.running.rank_process import reserve
from omb_py.options.table import make_cell
from omb_py.suites.registry import find

cells = [make_cell(find(name), "nccl", "native", 64) for name in sys.argv[1:]]
asked = []
session = SimpleNamespace(
    local=(0,), hosts=("a", "a"), total=lambda values: values,
    cache_bytes=0, memory_left=lambda: None, stages=lambda: False,
    reserve=lambda kind, sizes: asked.extend((kind, name) for name in sizes),
)
reserve(session, cells, {0: World(0, 2, session.hosts)})
print(json.dumps(asked))
"""


def _reserved(seed: int) -> list[list[str]]:
    done = run_command([sys.executable, "-c", ORDER, *BENCHMARKS], cwd=ROOT, check=True, PYTHONHASHSEED=str(seed))
    return list(json.loads(done.stdout))


@pytest.mark.slow
def test_all_ranks_reserve_their_buffers_in_one_order_whatever_their_hash_seeds() -> None:
    first, *others = map(_reserved, range(5))
    assert len(first) > 2 and all(other == first for other in others)


@pytest.mark.parametrize(
    ("free_mib", "cache", "halved"), [(200, "rotate", 0), (80, "rotate", 1), (40, "rotate", 2), (1, "hot", 0)]
)
def test_where_memory_is_short_rotated_buffers_span_less(
    free_mib: int, cache: str, halved: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two ranks on a host have half of what is free each."""
    taken: dict[str, int] = {}
    session: Any = alone(free_mib, taken, monkeypatch)
    cells = [change_cell(make_cell(benchmark("allreduce"), "mpi", "native", 64), cache=cache)]
    assert reserve(session, cells, {0: World(0, 2, session.hosts)}) == halved
    assert sum(taken.values()) <= free_mib << 19 and (cache == "hot" or sum(taken.values()) >= (64 << 20) >> halved)


def test_what_does_not_fit_however_little_is_rotated_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    session: Any = alone(100, {}, monkeypatch)
    cells = [change_cell(make_cell(benchmark("allreduce"), "mpi", "native", 64 << 20), cache="rotate")]
    with pytest.raises(UsageError, match=r"needs 256 MiB on rank 0 \(a\), which has 50 MiB free for it"):
        reserve(session, cells, {0: World(0, 2, session.hosts)})


def test_times_that_do_not_fit_are_refused_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    session: Any = alone(100, {}, monkeypatch)
    cells = [change_cell(make_cell(benchmark("allreduce"), "mpi", "native", 64), iterations=10**9, auto=False)]
    said = r"the times of all calls need 30,518 MiB on rank 0 \(a\), which has 50 MiB free for it: choose a smaller -i"
    with pytest.raises(UsageError, match=said):
        reserve(session, cells, {0: World(0, 2, session.hosts)})
    reserve(session, [change_cell(cells[0], time_limit=1.0)], {0: World(0, 2, session.hosts)})  # it ends long before


@pytest.mark.parametrize(
    ("host_mib", "device_mib", "stages", "validate", "says"),
    [
        (100, 1000, False, False, ""),
        (100, 1000, True, False, "needs 64 MiB .* has 50 MiB free"),
        (100, 1000, False, True, "needs .* has 50 MiB free"),
        (1000, 50, False, False, "needs 64 MiB .* has 50 MiB free"),
        (1000, 50, True, True, "needs 64 MiB .* has 50 MiB free"),
        (1000, 64, True, True, ""),
    ],
)
def test_buffers_on_a_device_need_the_host_only_where_they_are_staged_or_checked(
    host_mib: int, device_mib: int, stages: bool, validate: bool, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session: Any = alone(host_mib, {}, monkeypatch)
    session.memory_left, session.stages = lambda: device_mib << 20, lambda: stages
    cells = [change_cell(make_cell(benchmark("allreduce"), "mpi", "native", 32 << 20), validate=validate)]
    with pytest.raises(UsageError, match=says) if says else nullcontext():
        reserve(session, cells, {0: World(0, 2, session.hosts)})


def alone(free_mib: int, taken: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The session of one of two ranks on a host with so much free memory and a cache of 32 MiB."""
    monkeypatch.setenv(CACHE_BYTES, str(32 << 20))
    monkeypatch.setattr(host_memory, "available_bytes", lambda: free_mib << 20)
    return SimpleNamespace(
        local=(0,),
        hosts=("a", "a"),
        total=lambda values: values,
        gather=lambda part: [part],
        share=lambda value: value,
        cache_bytes=0,
        memory_left=lambda: None,
        stages=lambda: False,
        reserve=lambda kind, sizes: taken.update(sizes),
    )


@pytest.mark.slow
def test_mock_simulates_65536_ranks(tmp_path: Path) -> None:
    result = omb_py.run("barrier", backends=("mock",), ranks=65536, iterations="1", warmup=0, store=tmp_path)
    assert result.frame["ranks"].tolist() == [65536]


def test_ranks_are_numbered_on_their_nodes() -> None:
    assert numbers_on_node(["a", "b", "a", "a", "c", "b"]) == [0, 0, 1, 2, 0, 1]


@pytest.mark.parametrize("debug", [True, False])
def test_debug_tells_what_the_start_was_made_of(debug: bool) -> None:
    request = Request("latency", ("mock",), store=None, sizes="8:16", iterations="3", debug=debug)
    plans = plan_launches([narrow(request)])
    spec = spec_of(new_run(request, plans), plans[0])
    notes: list[str] = []

    def handle(message: Mapping[str, Any]) -> Mapping[str, Any] | None:
        if message["type"] == "note":
            notes.append(message["text"])
        return spec if message["type"] == "hello" else None

    assert measure_on(LocalLink(handle), find("mock").connect(spec), lambda: None) == 0
    stages = ["Python and report", "parent's answer", "imports and library", "facts and buffers", "first cell's code"]
    assert len(notes) == debug, "once, however many cells follow"
    for note in notes:
        assert note.startswith("start of rank 0: ")
        assert [part.rpartition(" ")[0] for part in note.partition(" s: ")[2].split(", ")] == stages


def test_no_cell_begins_before_the_parent_is_done_with_the_last_one() -> None:
    """Where each core has a rank, what the parent computes is in the samples that are taken meanwhile."""
    events: list[str] = []

    class Watched(LocalLink):
        def send(self, type: str, **fields: Any) -> None:
            events.append(type)
            super().send(type, **fields)

        def settle(self) -> None:
            events.append("settled")

    request = Request("latency", ("mock",), store=None, sizes="8:16", iterations="3")
    plans = plan_launches([narrow(request)])
    spec = spec_of(new_run(request, plans), plans[0])
    link = Watched(lambda message: spec if message["type"] == "hello" else None)
    assert measure_on(link, find("mock").connect(spec), lambda: None) == 0
    assert [event for event in events if event in ("cell", "settled")] == ["cell", "settled", "cell"]


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (RuntimeError("no more"), "failed: RuntimeError: no more"),
        (
            OSError(errno.ENOMEM, "Cannot allocate memory"),
            "ran out of memory: take a smaller -m or fewer ranks (-n), or",
        ),
        (MemoryError(), "ran out of memory: take a smaller -m"),
    ],
)
def test_a_failure_that_is_no_step_is_told_with_the_rank(
    error: Exception, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"})
    position = rank_process.Position()
    position.session = cast(Any, SimpleNamespace(doing=lambda step: "bcast"))
    failure = rank_process._explain(error, position)
    assert failure.startswith(f"rank 1 on {socket.gethostname()} (pid {os.getpid()}) {says}")


def test_a_joined_rank_is_bound_to_its_launcher_before_the_library_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library waits for a killed launcher for ever in MPI_Finalize."""
    told: list[str] = []

    class Line:
        def __getattr__(self, name: str) -> object:
            return lambda *words: told.append(name) or {"ranks": 2}

        def done(self) -> int:
            told.append("done")
            return 0

    class Joined:
        local, size = (0,), 2

        def close(self) -> None:
            told.append("close")

    monkeypatch.setattr(rank_process, "run_cells", lambda *words: None)
    assert rank_process.measure_on(Line(), Joined(), lambda: told.append("bound")) == 0  # type: ignore[arg-type]
    assert told[-3:] == ["done", "bound", "close"]
