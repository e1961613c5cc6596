"""A slow rank: what it does to those that wait for it, and clients that share a device."""

from __future__ import annotations

import pytest

from omb_py.backends.registry import capabilities_of
from omb_py.errors import UsageError
from omb_py.options.table import change_cell
from omb_py.orchestrate.workloads.describe import describe_call
from omb_py.suites.registry import find
from tests.suites.workloads.test_families import calls, step
from tests.support.machines.simulated import cell

ANYONE = "a server that answers whoever comes first needs MPI_ANY_SOURCE"


def steps(text: str, ranks: int = 4) -> list[float]:
    """The step's time on every rank, µs."""
    laps = step(f"{text},compute=1ms", ranks).laps
    return [a + b for a, b in zip(laps["step.compute"], laps["step.exposed"], strict=True)]


def test_all_wait_for_a_slow_rank_in_an_all_reduce() -> None:
    alike, delayed = steps("ddp:model=mlp"), steps("ddp:slow=3:4")
    assert [late - early for early, late in zip(alike, delayed, strict=True)] == pytest.approx([3000] * 4, rel=0.01)


def test_an_asynchronous_server_answers_the_others_at_once() -> None:
    """The slow worker is the last: those before it are served in the order in which they are ready."""
    sync, free = (steps(f"parameter_server:mode={mode},slow=3:4") for mode in ("sync", "async"))
    assert min(sync[1:]) > 4000, "all workers wait for the slow one"
    assert max(free[1:3]) < 3000 < 4000 < free[3]


@pytest.mark.parametrize("slow", [1, 2, 3])
def test_a_server_of_whoever_comes_first_makes_no_worker_wait_for_a_slow_one(slow: int) -> None:
    """Whichever worker is slow; in the order of the ranks only those before it do not wait."""
    anyone, in_order = (steps(f"parameter_server:mode={mode},slow={slow}:4") for mode in ("any", "async"))
    others = [rank for rank in (1, 2, 3) if rank != slow]
    assert max(anyone[rank] for rank in others) < 3000 < 4000 < anyone[slow]
    assert [in_order[rank] > 4000 for rank in others] == [rank > slow for rank in others]


@pytest.mark.slow
@pytest.mark.parametrize("servers", [1, 2])
def test_every_byte_of_a_server_of_whoever_comes_first(servers: int) -> None:
    text = f"parameter_server:scale=1/64,mode=any,servers={servers},slow=3:4"
    assert step(text, 4, validate=True).wrong_bytes == 0
    for rank in (0, 3):  # a server, a worker
        assert step(text, 4, validate=True, mock=f"flip={rank}").wrong_bytes > 0


@pytest.mark.parametrize("backend", ["gloo", "nccl"])
def test_backends_without_a_receive_from_anyone(backend: str) -> None:
    what = cell("step", workload="parameter_server:mode=any")
    why = capabilities_of()[backend].why_refused(find("step"), what)
    assert why == f"{ANYONE} (mode=async answers in order): use --backend mpi"
    assert not capabilities_of()[backend].why_refused(
        find("step"), change_cell(what, workload="parameter_server:mode=async")
    )


def test_a_call_of_whoever_comes_first_in_words() -> None:
    (call,) = calls("parameter_server:model=mlp,mode=any", 4)[0]
    nbytes = call.sends[0].nbytes
    assert (
        describe_call(call)
        == f"pull: {nbytes} B from each of 1, 2, 3 in the order in which they come, {nbytes} B back at once"
    )


def test_only_the_slow_rank_computes_more() -> None:
    flop = [sum(c.flop for c in own) for own in calls("ddp:slow=1:2.5,compute=matmul", 4)]
    assert flop[1] == 2.5 * flop[0] and flop[0] == flop[2] == flop[3]
    laps = step("ddp:slow=1:3", 4).laps["step.compute"]
    assert laps[1] == pytest.approx(3 * laps[0], rel=0.01), "also where the computing is as long as all calls"


def test_a_slow_rank_that_there_is_not() -> None:
    with pytest.raises(UsageError, match=r"slow=4:… of 4 ranks: the last one is 3"):
        calls("ddp:slow=4:2", 4)


@pytest.mark.parametrize("name", ["ddp", "horovod", "ring"])
def test_clients_of_a_device_share_its_samples(name: str) -> None:
    """Each still reduces the whole gradient (AccDP: Alnaasan et al., HiPC 2022)."""
    one, two = (f"{name}:model=gpt2-124m,tokens=64,compute=matmul,clients={clients}" for clients in (1, 2))
    assert [c.sent for c in calls(one, 4)[0]] == [c.sent for c in calls(two, 4)[0]]
    assert sum(c.flop for c in calls(one, 4)[0]) == 2 * sum(c.flop for c in calls(two, 4)[0])
    with pytest.raises(UsageError, match="ranks 3 cannot be divided by clients 2"):
        calls(two, 3)
