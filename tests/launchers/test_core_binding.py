from __future__ import annotations

import os
from pathlib import Path

import pytest

from omb_py.launchers.core_binding import CoreBinding, Processors, bind_cores, bound_by_user, parse_list, processors

FOUR = Processors(((0,), (1,), (2,), (3,)))
TWO_WITH_THREADS = Processors(((0, 2), (1, 3)))


@pytest.mark.parametrize(("text", "numbers"), [("0", (0,)), ("0-3\n", (0, 1, 2, 3)), ("1,4-5", (1, 4, 5)), ("\n", ())])
def test_the_kernels_lists_are_read(text: str, numbers: tuple[int, ...]) -> None:
    assert parse_list(text) == numbers


@pytest.mark.parametrize("ranks", [1, 4])
def test_enough_cores_are_one_for_each_rank(ranks: int) -> None:
    assert bind_cores(ranks, FOUR) == CoreBinding("core")


def test_too_few_cores_are_said_out_loud() -> None:
    placed = bind_cores(4, Processors(((0,), (1,))))
    assert (placed.policy, placed.oversubscribed) == ("none", True)
    assert placed.notes[0].startswith("4 ranks on 2 cores: ranks share cores; ")
    assert bind_cores(2, Processors(((0,),))).notes[0].startswith("2 ranks on 1 core: ")


def test_hardware_threads_are_used_before_sharing_them() -> None:
    assert bind_cores(2, TWO_WITH_THREADS).policy == "core"
    placed = bind_cores(4, TWO_WITH_THREADS)
    assert (placed.policy, placed.oversubscribed) == ("hwthread", False)
    assert "4 ranks on 2 cores with 4 hardware threads" in placed.notes[0]
    assert bind_cores(5, TWO_WITH_THREADS).policy == "none"


def test_a_mask_that_launchers_overlook_becomes_a_list() -> None:
    masked = Processors(((2, 6), (3, 7)), restricted=True)
    assert bind_cores(2, masked) == CoreBinding("list", (2, 3))
    assert bind_cores(3, masked).cpus == (2, 6, 3)
    assert bind_cores(9, masked).policy == "none"


def test_the_processors_are_read_from_the_kernels_files(tmp_path: Path) -> None:
    mine = sorted(os.sched_getaffinity(0))
    for cpu in mine:
        folder = tmp_path / f"devices/system/cpu/cpu{cpu}/topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(",".join(map(str, mine)))
    assert processors(tmp_path) == Processors((tuple(mine),))
    (tmp_path / "devices/system/cpu/online").write_text(f"0-{mine[-1] + 1}")
    assert processors(tmp_path).restricted, "the mask leaves out a processor that is online"
    (tmp_path / "fs/cgroup").mkdir(parents=True)
    (tmp_path / "fs/cgroup/cpuset.cpus.effective").write_text(",".join(map(str, mine)))
    assert not processors(tmp_path).restricted, "a control group's choice is known to launchers"


def test_without_those_files_each_processor_is_a_core(tmp_path: Path) -> None:
    assert processors(tmp_path).logical == len(os.sched_getaffinity(0)) == len(processors(tmp_path).cores)


def test_the_users_own_arguments_are_seen() -> None:
    assert bound_by_user(["-v", "--bind-to", "socket"], ["bind-to"])
    assert bound_by_user(["--cpu-bind=none"], ["cpu-bind"])
    assert not bound_by_user(["bind-to", "-x", "A"], ["bind-to"])
