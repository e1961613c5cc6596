from __future__ import annotations

import socket
from typing import Any

import pytest

from omb_py.orchestrate.supervision import failure_messages
from omb_py.orchestrate.supervision.failure_messages import advice, join_hint
from omb_py.orchestrate.supervision.rank_state import RankState, doing, names, next_cell, numbers, position


def rank(number: int | None, host: str = "n0", **beat: object) -> RankState:
    state = RankState(host=host, pid=100 + (number or 0), ticks=None, env_rank=number, seen=0.0, rank=number)
    state.beat = beat or None
    return state


def test_positions_order_ranks_by_how_far_they_are() -> None:
    starting = RankState(host="n0", pid=1, ticks=None, env_rank=0, seen=0.0)
    order = [
        starting,
        rank(0),
        rank(0, cell=0, phase="start"),
        rank(0, cell=0, phase="validate", iteration=9, step=9),
        rank(0, cell=0, phase="loop", iteration=3, step=2),
        rank(0, cell=0, phase="loop", iteration=4, step=0),
        rank(0, cell=1, phase="start"),
    ]
    done = rank(0)
    done.done = True
    positions = [position(state) for state in [*order, done]]
    assert positions == sorted(positions)
    assert len(set(positions)) == len(positions)


def test_what_a_rank_does_in_words() -> None:
    beat = {"phase": "loop", "label": "bw 8 B", "iteration": 7, "doing": "waitall"}
    assert doing(rank(0, **beat)) == "bw 8 B, loop iteration 7, waitall"
    assert doing(rank(0, phase="start", label="", doing="start")) == "no cell yet, phase start"
    assert "joined the other ranks" in doing(rank(0))


def test_many_ranks_are_named_by_a_few() -> None:
    assert names([rank(k) for k in (2, 1)]) == "rank 1 on n0 (pid 101), rank 2 on n0 (pid 102)"
    assert names([rank(k) for k in range(9)]).endswith("rank 3 on n0 (pid 103) and 5 more")
    assert names([rank(None)]) == "a rank process on n0 (pid 100)"
    assert numbers([7, 0, 1, 2]) == "ranks 0-2, 7" and numbers([4]) == "rank 4"


def test_a_rank_that_was_never_heard_of_is_the_suspect() -> None:
    text = failure_messages.describe_deaths(
        [rank(0)], 1, [rank(0)], 2, "prterun noticed that process rank 1 with PID 9 on node n0 exited on\nsignal 9"
    )
    assert "1 of 2 ranks had reported (rank 1 had not); the launcher reports rank 1: killed by signal 9" in text


def test_the_launcher_that_knows_the_first_is_believed() -> None:
    both = [rank(0), rank(1)]
    text = failure_messages.describe_deaths(
        [both[0]], 1, both, 2, "process rank 1 with PID 101 on node n0 exited on\nsignal 11 (x)"
    )
    assert text.startswith("rank 1 on n0 (pid 101) died (killed by signal 11 (SIGSEGV))")
    mpich = "=   PID 101 RUNNING AT n0\n=   EXIT CODE: 9"
    told = failure_messages.describe_deaths([both[0]], 1, both, 2, mpich)
    assert told.startswith("rank 0 on n0 (pid 100) died before"), "it may err"
    assert "; the launcher reports process 101: killed by signal 9 (SIGKILL); last seen in" in told
    # the connection that closed first accuses, whichever of the killed the launcher picks
    assert failure_messages.describe_deaths(both, 1, both, 2, mpich).startswith(
        "rank 0 on n0 (pid 100) died (killed by signal 9"
    )
    assert failure_messages.describe_deaths(both[::-1], 1, both, 2, mpich).startswith(
        "rank 1 on n0 (pid 101) died (killed by signal 9"
    )
    crash = "=   PID 101 RUNNING AT n0\n=   EXIT CODE: 11"
    assert failure_messages.describe_deaths(both, 1, both, 2, crash).startswith(
        "rank 1 on n0 (pid 101) died (killed by signal 11"
    )


def test_ranks_whose_order_is_not_known_are_all_named() -> None:
    both = [rank(0), rank(1)]
    text = failure_messages.describe_deaths(both, 2, both, 2, "")
    assert text.startswith("rank 0 on n0 (pid 100), rank 1 on n0 (pid 101) died before the launch was done")
    crash = "=   PID 101 RUNNING AT n0\n=   EXIT CODE: 11"
    assert failure_messages.describe_deaths(both, 2, both, 2, crash).startswith(
        "rank 1 on n0 (pid 101) died (killed by signal 11"
    )


def test_all_ranks_at_one_place() -> None:
    states = [rank(k, phase="loop", cell=0, label="barrier", iteration=5) for k in range(2)]
    assert "and so all ranks are at the same place: barrier, loop iteration 5" in failure_messages.stuck(states, 3)
    assert "rank 0 on n0 (pid 100) is at: barrier" in failure_messages.stuck(states[:1], 3)


def test_a_launcher_that_ends_early_is_quoted() -> None:
    text = failure_messages.launcher_ended("toy", 1, [], 2, ["=====", "ssh: no route to host", "=   EXIT CODE: 255"])
    assert text.startswith("the launcher toy ended with exit status 1 when 0 of 2 ranks had reported; it said: ssh: no")
    assert "that ssh HOST true works" in text
    assert "omb-py doctor says" in failure_messages.launcher_ended("toy", 1, [], 2, ["unknown option"])
    srun = failure_messages.launcher_ended("srun", 1, [], 2, ["srun: error: Invalid MPI type 'pmix'"])
    assert "Invalid MPI type 'pmix'. What to do: --launcher mpiexec" in srun
    for said, todo in (
        ("srun: error: Unable to create step for job 7: More processors requested than permitted", "has no room for"),
        ("srun: error: Unable to create step for job 7: Requested node configuration is not available", "has no room"),
        ("srun: error: Unable to create step for job 7: Job/step already completing or completed", "squeue --steps"),
        ("srun: error: Task launch failed on node cn02", "omb-py doctor says"),
    ):
        text = failure_messages.launcher_ended("srun", 1, [], 2, [said])
        assert todo in text.partition("What to do: ")[2] and "--launcher mpiexec" not in text
    late = failure_messages.launcher_ended("toy", 0, [rank(0), rank(1, phase="loop", cell=0, label="bw 1 B")], 2, [])
    assert "before rank 0 on n0 (pid 100) was done" in late


def test_worlds_of_odd_sizes() -> None:
    states = [rank(0), rank(1)]
    states[0].size, states[1].size = 1, 3
    assert "4 were started, they see a world of 1 or 3" in failure_messages.describe_worlds_apart(states, 4, "toy")


def test_what_passes_by_itself() -> None:
    # as Open MPI 5.0 prints it, in a frame and broken
    told = "-----\nThe PMIx server's listener\nthread failed to start. We cannot\ncontinue.\n-----"
    assert failure_messages.passes_by_itself([], told)
    assert not failure_messages.passes_by_itself([rank(0)], told)
    assert not failure_messages.passes_by_itself([], "ssh: no route to host")


def test_under_srun_the_hint_names_the_protocol() -> None:
    assert "srun --mpi=pmi2 for MPICH and Intel MPI, srun --mpi=pmix for Open MPI" in join_hint("srun")
    assert "use the mpiexec of the MPI library" in join_hint("mpiexec") and "srun" not in join_hint("mpiexec")


def test_a_bus_error_is_told_as_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    bus = "process rank 0 with PID 100 on node n0 exited on signal 7 (Bus error)"
    text = failure_messages.describe_deaths([rank(0)], 1, [rank(0)], 1, bus)
    assert "SIGBUS" in text and "/dev/shm on n0 is too small" in text and "--shm-size=1g" in text
    assert "try another -m" not in text
    monkeypatch.setattr("socket.gethostname", lambda: "n0")
    assert "MiB in all" in failure_messages.describe_deaths([rank(0)], 1, [rank(0)], 1, bus)


CELLS = [{"benchmark": "allreduce", "size": 8}, {"benchmark": "allreduce", "size": 16}, {"benchmark": "barrier"}]


def test_a_finished_cell_tells_where_the_ranks_are() -> None:
    """Heartbeats come once a second: they may be many cells late."""
    late, ahead = rank(0, phase="start", cell=-1), rank(1, phase="loop", cell=2, label="barrier", iteration=4)
    place = next_cell(CELLS, {"index": 0})
    assert place is not None
    for state in (late, ahead):
        state.catch_up(place)
    assert doing(late) == "allreduce 16 B, phase start"
    assert doing(ahead) == "barrier, loop iteration 4"
    assert doing_after({"index": 1}) == "barrier, phase start"
    assert next_cell(CELLS, {"index": 2}) is None, "after the last one"
    assert next_cell(CELLS, {"indexes": [0], "lacking": "no"}) is None
    assert next_cell(CELLS, {"index": 0, "pairs": [], "last": False}) is None, "a round of pairs, of many"


def doing_after(message: dict[str, Any]) -> str:
    state = rank(0)
    place = next_cell(CELLS, message)
    assert place is not None
    state.catch_up(place)
    return doing(state)


def test_ranks_that_are_missing_are_named_only_where_all_others_are_known() -> None:
    assert failure_messages._list_missing([rank(0), rank(2)], 3, "never came") == " (rank 1 never came)"
    assert failure_messages._list_missing([rank(0), rank(None)], 4, "never came") == "", "it may be any of the three"
    assert failure_messages._list_missing([rank(0), rank(1)], 2, "never came") == ""
    assert failure_messages._list_missing([], 2, "never came") == ""


@pytest.mark.parametrize("why", ["", "exit status 1"])
def test_a_shared_memory_that_cannot_be_written_is_named(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """MPICH ends without a word where /dev/shm is mounted read-only."""
    here = socket.gethostname()
    assert "/dev/shm" not in advice(why, here)
    monkeypatch.setattr("os.access", lambda path, mode: path != "/dev/shm")
    assert advice(why, here).startswith(f"/dev/shm on {here} cannot be written")
    assert "/dev/shm" not in advice(why, "another")
