"""The supervisor, with toy ranks and with ranks made of bare sockets."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from omb_py.errors import EnvironmentProblem, Interrupted, LaunchFailed, UsageError
from omb_py.orchestrate.supervision import processes, wire
from omb_py.orchestrate.supervision.rank_state import RankState
from omb_py.orchestrate.supervision.supervisor import Handlers, Outcome, Supervisor, beat_interval
from tests.lab.launching.control_plane import simulate
from tests.orchestrate.supervision.peers import Clock, Peer, supervising
from tests.orchestrate.supervision.toy import Toy
from tests.support.patience import PATIENCE_S

NO_PROGRESS = "no rank made progress for 3 s"


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    return Toy(tmp_path)


def test_a_launch_runs_to_its_end(toy: Toy) -> None:
    outcome = toy.run("fine", ranks=3)
    assert [kind for kind, _ in toy.messages] == ["launch", "note", "cell"]
    assert toy.messages[2][1]["value"] == 1.5
    assert (outcome.status, outcome.notes) == (0, ())
    assert outcome.hosts == (socket.gethostname(),) * 3


@pytest.mark.parametrize("mode", ["meets", "meets late"])
def test_the_ranks_hear_where_rank_0_listens(toy: Toy, mode: str) -> None:
    toy.run(mode, ranks=3)
    said = sorted(message["text"] for kind, message in toy.messages if kind == "note")
    assert said == ["0 {'port': 4321}", "1 {'port': 4321}", "2 {'port': 4321}", "a note"]


@pytest.mark.slow
def test_the_spec_reaches_every_rank_even_when_it_is_large(toy: Toy) -> None:
    assert toy.run("fine", ranks=4, spec={"cells": [{"benchmark": "x" * 1000}] * 5000}).status == 0


@pytest.mark.faults
@pytest.mark.parametrize(
    ("mode", "words"),
    [
        pytest.param("dies after hello", ["rank 1 on", "died", "has not joined"], marks=pytest.mark.slow),
        ("dies in the loop", ["rank 1 on", "died", "allreduce 8 B, loop iteration", "recv 8 B from 0", "dmesg on"]),
        pytest.param("exits 5", ["rank 1 on", "died", "allreduce 8 B"], marks=pytest.mark.slow),
        pytest.param("rank 0 dies", ["rank 0 on", "died"], marks=pytest.mark.slow),
        ("launcher dies", ["launcher toy was killed by signal 9 (SIGKILL)"]),
        (
            "fails at once",
            ["toy ended with exit status 7 when 0 of 2 ranks had reported", "toy: no such host", "doctor"],
        ),
        ("apart", ["did not join one world", "2 processes each see 1 rank", "do not belong together"]),
        ("too many", ["more than 2 rank processes", "-n"]),
    ],
)
def test_a_death_is_named_at_once(toy: Toy, mode: str, words: list[str]) -> None:
    with pytest.raises(LaunchFailed) as caught:
        toy.run(mode, timeout=PATIENCE_S)  # which would give other words
    line = str(caught.value)
    assert "\n" not in line
    assert [word for word in words if word not in line] == []
    if mode == "rank 0 dies":
        assert "cell" in [kind for kind, _ in toy.messages], "what was sent before the death is kept"
    if mode == "apart":
        assert toy.messages == [], "a world of one measures something else"


@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("hangs", [NO_PROGRESS, "rank 1 on", "behind the others", "iteration 4, recv 8 B from 0"]),
        ("stops", ["rank 1 on", "sent no sign of life", "stopped, or its node is gone", "loop iteration"]),
        ("dies unheard", ["1 of 2 ranks reported (rank 1 did not)", "other for 3 s", "--timeout"]),
        ("never joins", [NO_PROGRESS, "rank 1 on", "is behind the others", "has not joined"]),
    ],
)
def test_who_hangs_or_does_not_come_is_named_within_the_timeout(
    toy: Toy, mode: str, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of the supervisor stands still until the rank hangs, however long a busy machine takes to start it."""
    clock = Clock(monkeypatch, tick=0.02)

    def let_time_pass() -> None:
        toy.wait_until(mode)
        clock.wait(turns=20)  # in which the last heartbeats arrive
        clock.step = 0.04 if mode == "stops" else 0.01

    thread = threading.Thread(target=let_time_pass)
    thread.start()
    with pytest.raises(LaunchFailed) as caught:
        toy.run(mode, timeout=3.0)
    thread.join()
    assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.slow
def test_a_rank_that_refuses_gives_its_own_words_and_code(toy: Toy) -> None:
    with pytest.raises(UsageError, match=r"^-i must be at least 1$"):
        toy.run("usage")
    with pytest.raises(EnvironmentProblem, match=r"^no memory$") as caught:
        toy.run("environment")
    assert not isinstance(caught.value, LaunchFailed)


def test_ten_megabytes_of_output_are_bounded_and_never_block(toy: Toy) -> None:
    outcome = toy.run("prints")
    assert outcome.output.startswith("first words\n")
    assert "bytes left out" in outcome.output
    assert len(outcome.output) < 600_000


@pytest.mark.faults
def test_the_last_words_go_with_the_failure(toy: Toy) -> None:
    with pytest.raises(LaunchFailed) as caught:
        toy.run("fails at once")
    assert caught.value.__notes__ == ["last words of the launch:\n  toy: no such host"]


@pytest.mark.faults
@pytest.mark.parametrize(
    ("number", "mode"), [(signal.SIGINT, "runs on"), (signal.SIGTERM, "stops"), (signal.SIGHUP, "runs on")]
)
def test_an_interrupt_ends_all(toy: Toy, number: signal.Signals, mode: str) -> None:
    """Also a rank that is stopped and cannot end itself; nobody waits for the time-out."""
    before = signal.getsignal(number)
    sender = threading.Thread(target=lambda: (toy.wait_until(mode), os.kill(os.getpid(), number)))
    sender.start()
    with pytest.raises(Interrupted):
        toy.run(mode, timeout=PATIENCE_S)
    sender.join()
    assert signal.getsignal(number) is before


def test_an_interrupt_that_a_rank_reports_ends_all(toy: Toy) -> None:
    """A foreign launcher sends it to the ranks alone."""
    with pytest.raises(Interrupted):
        toy.run("interrupted", timeout=PATIENCE_S)


def test_an_ignored_hangup_stays_ignored(toy: Toy) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGHUP))
    timer.start()
    try:
        assert toy.run("fine").status == 0
    finally:
        timer.join()
        signal.signal(signal.SIGHUP, before)


@pytest.mark.faults
def test_a_failing_callback_leaves_no_process(toy: Toy) -> None:
    def full(message: dict[str, Any]) -> None:
        raise EnvironmentProblem("disk full")

    supervisor = Supervisor({}, 2, PATIENCE_S, command=toy.command("runs on", 2), handlers=Handlers(cell=full))
    with pytest.raises(EnvironmentProblem, match="disk full"):
        supervisor.run()
    toy.check_no_orphan(supervisor.token)


def test_a_command_that_does_not_exist_says_so(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match=r"cannot start .*/absent: No such file"):
        Supervisor({}, 1, 5, command=[str(tmp_path / "absent")]).run()


@pytest.mark.slow
@pytest.mark.faults
def test_a_rank_that_stays_after_the_end_is_ended(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, tick=0.02)

    def let_time_pass() -> None:
        toy.wait_until("stays")
        clock.step = 0.04

    thread = threading.Thread(target=let_time_pass)
    thread.start()
    outcome = toy.run("stays", timeout=1.5)
    thread.join()
    assert "rank 1" in outcome.notes[0] and "was killed" in outcome.notes[0]
    assert "cell" in [kind for kind, _ in toy.messages]


PARENT = """
import sys
from omb_py.orchestrate.supervision.rank_state import RankState
from omb_py.orchestrate.supervision.supervisor import Handlers, Supervisor
cell = Handlers(cell=lambda message: print("cell", flush=True))
supervisor = Supervisor({"beat_s": 0.05}, 2, 600, command=sys.argv[1:], handlers=cell)
print(supervisor.token, flush=True)
supervisor.run()
"""


@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.parametrize("mode", ["runs on", "stops"])
def test_killing_the_parent_leaves_no_orphan(toy: Toy, mode: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, *toy.command(mode, 2)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        token = parent.stdout.readline().strip()
        assert parent.stdout.readline() == "cell\n"
        deadline = time.monotonic() + PATIENCE_S
        while len(processes.holders(token)) < 3 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(processes.holders(token)) == 3
        parent.kill()
    while processes.holders(token) and time.monotonic() < deadline:
        time.sleep(0.02)
    toy.check_no_orphan(token)


# ranks of a foreign launcher


@pytest.mark.parametrize("end", ["dies", "hangs", "is silent"])
def test_who_fails_after_a_cell_is_seen_in_the_next(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last heartbeat may be from before the first cell."""
    cells = [{"benchmark": "allreduce", "size": size} for size in (8, 16, 32)]
    clock, done = Clock(monkeypatch, tick=0.02), threading.Event()
    handlers = Handlers(cell=lambda message: done.set())
    supervisor = Supervisor({"cells": cells}, 1, 2.0, handlers=handlers)
    with supervising(supervisor) as result:
        rank = Peer(supervisor)
        rank.hello(supervisor.token, 0)
        rank.send(type="joined", rank=0, size=1, host="elsewhere", pid=0)
        rank.send(type="beat", phase="start", cell=-1, label="")
        rank.send(type="cell", index=1)
        assert done.wait(PATIENCE_S)
        clock.step = 0.04
        while end == "hangs" and not result:
            with contextlib.suppress(OSError):
                rank.send(type="beat", phase="start", cell=-1, label="")
            time.sleep(0.001)
        if end == "dies":
            rank.close()
        while not result:
            time.sleep(0.001)
        rank.close()
    assert "allreduce 32 B, phase start" in str(result[0])


def test_who_asks_is_answered_when_the_cells_before_are_done() -> None:
    done: list[int] = []
    supervisor = Supervisor({}, 1, PATIENCE_S, handlers=Handlers(cell=lambda message: done.append(message["index"])))
    with supervising(supervisor) as result:
        rank = Peer(supervisor)
        rank.hello(supervisor.token, 0)
        for index in (0, 1):
            rank.send(type="cell", index=index)
            rank.send(type="settle", number=index + 7)
            assert rank.read() == {"type": "settled", "number": index + 7}
            assert done == [0, 1][: index + 1]
        rank.send(type="done")
        rank.read()
        rank.close()
    assert isinstance(result[0], Outcome)


@pytest.mark.slow
@pytest.mark.parametrize("heard", (0, 1))
def test_ranks_that_a_busy_supervisor_loses_at_once_are_both_named(heard: int) -> None:
    """The rank that it happened to read first was accused."""
    at_work, gone = threading.Event(), threading.Event()

    def work(message: object) -> None:
        at_work.set()
        gone.wait()

    supervisor = Supervisor({"cells": [1]}, 2, PATIENCE_S, handlers=Handlers(beat=work))
    with supervising(supervisor) as result:
        ranks = [Peer(supervisor), Peer(supervisor)]
        for number, rank in enumerate(ranks):
            rank.hello(supervisor.token, number)
        ranks[heard].send(type="beat", phase="start", cell=-1, label="")
        at_work.wait()
        for rank in ranks:
            rank.close()
        gone.set()
    assert re.match(r"rank 0 on \S+ \(pid \d+\), rank 1 on \S+ \(pid \d+\) died before", str(result[0]))


@pytest.mark.slow
def test_worlds_apart_fail_even_where_all_ranks_end_well_at_once() -> None:
    """It was a success if the launcher was seen to end before its ranks."""
    supervisor = Supervisor({"cells": [1]}, 2, PATIENCE_S)
    with supervising(supervisor) as result:
        ranks = [Peer(supervisor), Peer(supervisor)]
        for number, rank in enumerate(ranks):
            assert rank.hello(supervisor.token, number)["type"] == "spec"
        for rank in ranks:
            rank.send(type="joined", rank=0, size=1)
            rank.send(type="done")
        ends = [rank.read() for rank in ranks]
    assert isinstance(result[0], LaunchFailed) and "2 processes each see 1 rank" in str(result[0])
    assert {"type": "exit", "code": 0} not in ends
    for rank in ranks:
        rank.close()


def test_ranks_of_a_foreign_launcher_are_told_the_exit_code() -> None:
    supervisor = Supervisor({}, 2, PATIENCE_S)
    with supervising(supervisor) as result:
        ranks = [Peer(supervisor), Peer(supervisor)]
        for k, rank in enumerate(ranks):
            assert rank.hello(supervisor.token, k)["follow_launcher"] is False
        ranks[1].send(type="error", code=2, text="a rule")
        assert [rank.read() for rank in ranks] == [{"type": "exit", "code": 2}] * 2
        for rank in ranks:
            rank.close()
    assert isinstance(result[0], UsageError)


@pytest.mark.slow
def test_a_thousand_ranks_connect() -> None:
    ranks = 1024
    processes.allow_files(2 * ranks + 200)
    supervisor = Supervisor({"cells": ["y" * 100] * 100}, ranks, PATIENCE_S)
    with supervising(supervisor) as result:
        peers = [Peer(supervisor) for _ in range(ranks)]
        for k, peer in enumerate(peers):
            assert peer.hello(supervisor.token, k, f"node{k // 64}")["type"] == "spec"
        for k, peer in enumerate(peers):
            peer.send(type="joined", rank=k, size=ranks, host=f"node{k // 64}", pid=0)
            peer.send(type="beat", phase="loop", cell=0, label="barrier", iteration=k, step=0, doing="barrier")
            peer.send(type="done")
        assert {peer.read()["code"] for peer in peers} == {0}
        for peer in peers:
            peer.close()
    assert isinstance(result[0], Outcome)
    assert result[0].hosts[64] == "node1"


@pytest.mark.slow
def test_ranks_may_come_one_after_another_for_longer_than_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, tick=0.01)
    supervisor = Supervisor({}, 4, 0.5)
    with supervising(supervisor) as result:
        ranks = []
        for k in range(4):
            ranks.append(Peer(supervisor))
            assert ranks[-1].hello(supervisor.token, k)["type"] == "spec"
            clock.step = 0.02
            clock.wait(turns=15)  # 0.3 of 0.5 s
            clock.step = 0.0
        for k, rank in enumerate(ranks):
            rank.send(type="joined", rank=k, size=4, host="elsewhere", pid=0)
            rank.send(type="done")
        assert [rank.read()["type"] for rank in ranks] == ["exit"] * 4
        for rank in ranks:
            rank.close()
    assert isinstance(result[0], Outcome)


@pytest.mark.slow
@pytest.mark.faults
def test_ranks_that_end_one_after_another_get_the_time_they_take(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, tick=0.01)

    def end_in_turn() -> None:
        while toy.supervisor is None:
            time.sleep(0.001)
        for rank in range(3):
            while not (toy.folder / f"ready-{rank}").exists():
                time.sleep(0.001)
        for rank in range(3):
            clock.step = 0.02
            clock.wait(turns=60)  # 1.2 of 2 s
            clock.step = 0.0
            (toy.folder / f"go-{rank}").touch()
            while rank < 2 and toy.supervisor._lost <= rank:
                time.sleep(0.001)

    thread = threading.Thread(target=end_in_turn)
    thread.start()
    outcome = toy.run("ends in turn", ranks=3, timeout=2.0)
    thread.join()
    assert (outcome.status, outcome.notes) == (0, ())


def test_work_grows_as_the_number_of_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted: how often a rank's state is asked, from the first report to the last goodbye."""
    asked = []

    class Counted(RankState):
        __slots__ = ()

        def __getattribute__(self, name: str) -> object:
            asked.append(name)
            return super().__getattribute__(name)

    monkeypatch.setattr("omb_py.orchestrate.supervision.supervisor.RankState", Counted)
    counts = []
    for ranks in (128, 512):
        asked.clear()
        simulate(ranks)
        counts.append(len(asked) / ranks)
    assert counts[1] < 1.5 * counts[0]


def test_a_parent_that_slept_does_not_blame_its_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, tick=0.1)
    supervisor = Supervisor({}, 1, 0.5)
    with supervising(supervisor) as result:
        rank = Peer(supervisor)
        rank.hello(supervisor.token, 0)
        rank.send(type="joined", rank=0, size=1, host="elsewhere", pid=0)
        rank.send(type="beat", phase="loop", cell=0, iteration=1)
        clock.wait(turns=2)
        clock.now += 3600.0  # Ctrl-Z, and fg an hour later
        clock.wait(turns=2)
        rank.send(type="done")
        assert rank.read()["type"] == "exit"
        rank.close()
    assert isinstance(result[0], Outcome)


def test_heartbeats_stay_rare_for_the_parent() -> None:
    assert beat_interval(4, 60) == 1.0
    assert beat_interval(4, 1.0) == pytest.approx(0.2)
    assert beat_interval(1000, 60) == 2.0


def test_a_spread_launch_is_reached_by_both_protocols() -> None:
    with wire.listen(local=False) as server:
        port = server.getsockname()[1]
        for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            if family == server.family or family == socket.AF_INET:
                with socket.socket(family) as peer:
                    peer.connect((address, port))


def test_the_address_of_a_spread_launch_names_this_host() -> None:
    supervisor = Supervisor({}, 1, 1, local=False, hosts=["127.0.0.1", "no-such-host.invalid"])
    try:
        hosts = [part.rpartition(":")[0] for part in supervisor.address.split(",")]
        assert hosts[0] == "127.0.0.1"
        assert socket.gethostname() in hosts
        assert set(supervisor.environment()) == {"OMB_PY_CONTROL", "OMB_PY_TOKEN"}
    finally:
        supervisor.close()
