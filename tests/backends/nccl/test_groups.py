"""Communicators of some ranks on NCCL: ``--groups`` and workloads with groups, by ncclCommSplit."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from omb_py.backends.nccl import communicators as split
from omb_py.backends.nccl.capabilities import CAPABILITIES
from omb_py.backends.nccl.library import SPLIT_SINCE
from omb_py.backends.registry import capabilities_of
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.options.request import Request
from omb_py.options.table import change_cell, make_cell
from omb_py.suites.registry import find
from tests.backends.nccl.test_nccl import load_standin, needs_compiler
from tests.support.capabilities import with_methods
from tests.support.machines.standin import report
from tests.support.planning import plan

Cell = dict[str, Any]
SESSION = "tests.support.sessions.nccl_cells"
CELLS: tuple[Cell, ...] = (
    *({"benchmark": name, "size": 4096, "groups": "2x2"} for name in ("allreduce", "reduce_scatter_block")),
    *({"benchmark": name, "size": 4096, "groups": "2x2"} for name in ("alltoallv", "gatherv", "scatter")),
    {"benchmark": "reduce", "size": 64, "groups": "mod:2", "root": 1},
    {"benchmark": "bcast", "size": 64, "groups": "color:0,1,1,0"},
    {"benchmark": "barrier", "groups": "2x2"},
    {"benchmark": "iallreduce", "size": 64, "groups": "mod:2"},
    {"benchmark": "latency", "size": 64, "groups": "2x2"},
    {"benchmark": "allreduce", "size": 4096, "groups": "2x2", "op": "mulsum", "dtype": "float32"},
    {"benchmark": "allreduce", "size": 64, "groups": "mod:2", "timing": "graph", "batch": 4},
    {"benchmark": "step", "workload": "fsdp:scale=1/64,shard=2,replica=2"},
    {"benchmark": "step", "workload": "three_d:tp=2,pp=2,dp=1,layers=2,micro=3,scale=1/4096"},
    {"benchmark": "step", "workload": "together:first=allreduce/400,second=alltoall/400"},
)
CHOSEN: Cell = {
    "benchmark": "allgather",
    "size": 64,
    "groups": "2x2",
    "settings": "algorithm=pat,protocol=simple,log=tuning",
}
"""By variables, which the library reads for each communicator that it makes; its barriers have no such algorithm."""
WRONG: Cell = {"benchmark": "allreduce", "size": 64, "groups": "2x2", "inject": "flip:3"}


def key(cell: Cell) -> str:
    return "-".join(str(value) for value in cell.values())


@cache
def results() -> dict[str, Any]:
    """Each cell on four ranks, measured and checked on the stand-in, in one launch."""
    cells = [*CELLS, CHOSEN, WRONG]
    return dict(zip(map(key, cells), report(SESSION, 4, cells), strict=True))


@needs_compiler
@pytest.mark.mpi
@pytest.mark.parametrize("cell", CELLS, ids=key)
def test_every_byte_of_groups_at_once(cell: Cell) -> None:
    done = results()[key(cell)]
    assert done.get("refused") is None and not done["wrong"]
    assert (done["iterations"], done["native"]) == (3, True)
    assert (done["wrong"] is None) == (cell["benchmark"] == "barrier")


@needs_compiler
@pytest.mark.mpi
def test_a_wrong_byte_in_one_group_is_found() -> None:
    assert results()[key(WRONG)]["wrong"] > 0


@needs_compiler
@pytest.mark.mpi
def test_an_algorithm_by_variables_holds_in_groups() -> None:
    done = results()[key(CHOSEN)]
    assert done.get("refused") is None and done["wrong"] == 0
    assert (done["marks"]["algorithm_used"], done["marks"]["protocol_used"]) == ("PAT", "Simple")


def test_groups_without_a_common_rank_come_out_of_one_split() -> None:
    assert split.splits([(0, 1), (2, 3), (0, 2), (1, 3)]) == [[(0, 1), (2, 3)], [(0, 2), (1, 3)]]
    assert split.splits([(0, 1), (1, 2), (2, 3)]) == [[(0, 1), (2, 3)], [(1, 2)]]


class Recorder:
    """A library that makes communicators and remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int, int]] = []

    def split(self, comm: int, color: int, key: int) -> int:
        self.asked.append((comm, color, key))
        return 100 + len(self.asked) if color >= 0 else 0


def test_a_rank_takes_part_in_every_split_with_its_place_as_key() -> None:
    library: Any = Recorder()
    own = dict(split.communicators(library, 77, 3, [(3, 0), (1, 2), (0, 1)]))
    assert library.asked == [(77, 0, 0), (77, split.NO_COLOR, 0)] and own == {(3, 0): 101}


@needs_compiler
def test_a_library_before_the_split() -> None:
    library = load_standin()
    library.version = (SPLIT_SINCE[0], SPLIT_SINCE[1] - 1, 0)
    with pytest.raises(EnvironmentProblem, match=r"2\.17\.0 has no ncclCommSplit: use 2\.18 or newer, or no groups"):
        library.split(1, 0, 0)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"binding": "torch"}, "binding torch makes no communicators of some ranks here: --binding native"),
        ({"binding": "cupy"}, "binding cupy makes no communicators"),
        ({"settings": "communicators=2"}, "communicators of --nccl is for one communicator of all ranks"),
        ({"settings": "registration=window"}, "registration of --nccl is for one communicator of all ranks"),
    ],
)
def test_what_has_no_groups(more: dict[str, str], why: str) -> None:
    benchmark = find("allreduce")
    cell = change_cell(make_cell(benchmark, "nccl", "native", 64, groups="2x2"), **more)
    assert CAPABILITIES.why_refused(benchmark, cell).startswith(why)
    assert not CAPABILITIES.why_refused(benchmark, change_cell(cell, groups=""))


def test_groups_on_a_device_are_for_nccl_alone() -> None:
    offers = {name: with_methods(offer, missing=lambda self: "") for name, offer in capabilities_of().items()}
    nccl = Request("allreduce", backends=("nccl",), device="sim", groups="2x2", sizes="64:64")
    (launch,) = plan(nccl, 4, offers)
    assert [cell.options.groups for cell in launch.cells] == ["2x2"]
    with pytest.raises(UsageError, match="on devices with NCCL: leave out --buffer object and --device"):
        plan(replace(nccl, backends=("mpi",)), 4, offers)
