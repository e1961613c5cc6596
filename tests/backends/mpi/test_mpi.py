"""The mpi backend on real processes: one launch a rank count, many looks at it."""

from __future__ import annotations

import json
import socket
from functools import cache
from typing import Any

import pytest

from omb_py.backends.registry import find
from omb_py.engine.measuring.host_memory import available_bytes
from tests.support.machines.mpi import report, run_omb_py
from tests.support.sessions import large_messages
from tests.support.sessions.mpi_session import ROUNDS, spoiled

pytestmark = [pytest.mark.mpi, pytest.mark.each_library]
BINDINGS = ("native", "mpi4py")
AT_A_LEVEL = ("facts", "turning_threads")
"""What depends on the level of threads."""


@cache
def told(ranks: int, level: str = "funneled", *checks: str) -> dict[str, list[Any]]:
    """What every rank of a launch said: check (all where none is named) and binding -> one entry a rank."""
    result: dict[str, list[Any]] = report("tests.support.sessions.mpi_session", ranks, level, *checks)
    return result


@pytest.fixture(params=[2, pytest.param(3, marks=pytest.mark.slow)])
def ranks(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def test_the_backend_is_there() -> None:
    probe = find("mpi").capabilities.here()
    assert probe.available, probe.reason
    assert dict(probe.bindings) == {"native": "", "mpi4py": ""}


@pytest.mark.parametrize("level", ["single", "multiple"])
def test_what_a_session_says(level: str) -> None:
    said = told(2, level, *AT_A_LEVEL)["facts native"]
    host = socket.gethostname()
    assert [(s["rank"], s["size"], s["local"], s["hosts"]) for s in said] == [
        (0, 2, [0], [host, host]),
        (1, 2, [1], [host, host]),
    ]
    for one in said:
        assert one["library"] in ("MPICH", "Open MPI", "Intel MPI") and one["version"][0].isdigit()
        assert one["binding_version"].startswith("mpi4py ")
        assert one["level"] == level
        assert 0 <= one["skew"] < 1e5


def test_the_engines_own_traffic(ranks: int) -> None:
    said = told(ranks)["reductions native"]
    for rank, one in enumerate(said):
        assert one["maximum"] == [ranks - 1, 1]
        assert one["total"] == [sum(range(ranks)), ranks]
        assert one["share"] == "from 0"
        assert one["gather"] == (list(range(ranks)) if rank == 0 else [])


@pytest.mark.parametrize("binding", BINDINGS)
def test_a_failing_call_is_named_by_its_step(binding: str) -> None:
    receiver, _ = told(2)[f"failing {binding}"]
    assert receiver["step"] == 1 and receiver["doing"].startswith("recv")
    assert "trunc" in receiver["text"].lower()


@pytest.mark.parametrize("binding", BINDINGS)
def test_stages_of_an_overlapped_collective(ranks: int, binding: str) -> None:
    said = told(ranks)[f"overlap {binding}"]
    laps = said[0]["laps"]
    assert set(laps) == {"pure.time", "both.init", "both.compute", "both.wait"} and min(laps.values()) > 0
    # every rank computes for its own mean of the first stage: over the ranks the means agree
    assert 0.9 * laps["pure.time"] < laps["both.compute"]
    # what else runs here lengthens the mean, and not every iteration
    assert said[0]["least compute"] < 3 * laps["pure.time"] + 200
    assert all(one["seen"] == ["setup", "end"] for one in said)


@pytest.mark.parametrize("binding", BINDINGS)
def test_variants_rotate_the_root(ranks: int, binding: str) -> None:
    for one in told(ranks)[f"rotating {binding}"]:
        assert one["buf"] == [root + 1 for root in range(ranks)]
        assert one["samples"] == [ranks, 1] and one["least"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("binding", BINDINGS)
def test_a_server_answers_whoever_comes_first(binding: str) -> None:
    """The launch would not end if it waited for rank 1, which waits for the answer of rank 2."""
    assert told(3)[f"served {binding}"] == [[True, 0]] * 3


@pytest.mark.slow
@pytest.mark.parametrize("binding", BINDINGS)
def test_a_graph_is_made_anew_by_all_ranks_and_may_have_ranks_that_only_receive(binding: str) -> None:
    """The launch would not end if only the ranks with other edges made the second graph."""
    checked = 9 if binding == "native" or find("mpi").capabilities.here().inspection.library == "MPICH" else 6
    assert told(3)[f"neighbors {binding}"] == [[[True, 0]] * checked] * 3


@pytest.mark.parametrize("binding", BINDINGS)
def test_one_inverted_byte_is_found(ranks: int, binding: str) -> None:
    found = told(ranks)[f"corrupted {binding}"][0]
    assert len(found) == 2 * len(spoiled(ranks)) >= 6
    for what, (validated, wrong) in found.items():
        if "flip" in what:
            assert validated is False and wrong > 0, what
        else:
            assert validated is True and wrong == 0, what


@pytest.mark.parametrize("binding", BINDINGS)
def test_every_synchronisation_keeps_data_and_counts(ranks: int, binding: str) -> None:
    found = told(ranks)[f"synchronised {binding}"][0]
    kinds = ["barrier", "dissemination", *(["roundtime"] if ranks == 2 else []), "none"]
    assert [kind for kind in found if not kind.startswith("skew")] == kinds
    for kind in kinds:
        assert found[kind] == [True, ROUNDS, ["time"], kind == "roundtime"], kind
        assert binding == "mpi4py" or 0 <= found[f"skew {kind}"] < 1e5


@pytest.mark.parametrize("binding", BINDINGS)
def test_with_rotating_memory_every_copy_is_right_and_checked(ranks: int, binding: str) -> None:
    for rank, found in enumerate(told(ranks)[f"turning {binding}"]):
        # iterations 4, 5 and 6 of 6 copies
        assert found.pop("copies") == ([7] * 6 if rank == 0 else [7, 0, 0, 0, 7, 7])
        if rank == 0:
            assert len(found) == (9 if ranks == 2 else 3)
            for what, (validated, wrong) in found.items():
                assert (validated, wrong == 0) == (("flip" not in what,) * 2), what


@pytest.mark.parametrize("binding", BINDINGS)
def test_with_rotating_memory_the_copies_of_every_thread_are_right(binding: str) -> None:
    found = told(2, "multiple", *AT_A_LEVEL)[f"turning_threads {binding}"][0]
    assert len(found) == 3 and all(checked == [True, 0] for checked in found.values()), found


@pytest.mark.slow
def test_messages_of_more_than_2_gib() -> None:
    """With MPI-4's large counts every byte arrives; a library without them is named, with the missing function."""
    needed = 2 * large_messages.NBYTES + (2 << 30)
    if available_bytes() < needed:
        pytest.skip(f"two ranks need {needed >> 20} MiB, {available_bytes() >> 20} MiB are free")
    said = report("tests.support.sessions.large_messages", 2)
    marks = [[10 * number + k for k in range(8)] for number in range(5)]
    for what, ranks_said in said.items():
        for one in ranks_said:
            if "problem" in one:
                assert "_c, which is missing in" in one["problem"], what
            else:
                assert one["found"] == marks, what


@pytest.mark.parametrize("binding", ["native", "mpi4py"])
def test_a_session_instead_of_init(binding: str) -> None:
    """``-I``: the benchmark's communicator comes from a session; all data arrives, and what its start took is known."""
    words = ["--binding", binding, "-c", "-i", "5", "-m", "8:4K:8", "--no-store", "--format", "json", "-I"]
    done = run_omb_py("allgather", "-n", "2", *words)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [(row["size_bytes"], row["validated"]) for row in rows] == [(8, True), (64, True), (512, True), (4096, True)]
    assert {row["parameters"]["session"] for row in rows} == {"True"}
