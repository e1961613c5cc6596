"""What disturbs measurements on this machine, from files as Linux writes them."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from omb_py import process_begin
from omb_py.orchestrate.launching import machine_state
from omb_py.orchestrate.launching.machine_state import (
    MachineState,
    OtherWork,
    busy_now,
    busy_ticks,
    during,
    machine_facts,
    observe,
    say_what_disturbs,
    sibling_cores,
    sibling_ticks,
    stored_facts,
    throttle_count,
)
from tests.support.machines.mpi import run_command

HZ = os.sysconf("SC_CLK_TCK")
LOADED = """
import sys
import omb_py.__main__
from omb_py import process_begin
order = list(sys.modules)
print(process_begin.TICKS.split()[0].decode(), order.index("omb_py.process_begin") < order.index("omb_py.cli"))
"""
QUIET = MachineState(8, 0.1, 0.2, 8, False, "performance", 0)


def stat(proc: Path, *ticks: int) -> None:
    proc.mkdir(exist_ok=True)
    (proc / "stat").write_text(f"cpu  {' '.join(map(str, ticks))} 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n")


def test_busy_ticks_hold_what_a_hypervisor_gave_to_others(tmp_path) -> None:
    stat(tmp_path / "proc", 1, 2, 3, 100, 50, 4, 5, 6)
    assert busy_ticks(tmp_path / "proc") == (1 + 2 + 3 + 4 + 5 + 6, 171)
    assert busy_ticks(tmp_path / "none") is None
    (tmp_path / "proc" / "stat").write_text("cpu 1 2\n")
    assert busy_ticks(tmp_path / "proc") is None


def test_observes_what_others_do_in_a_moment(tmp_path, monkeypatch) -> None:
    proc, system = tmp_path / "proc", tmp_path / "sys"
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    counts = [system / f"devices/system/cpu/cpu{n}/thermal_throttle/core_throttle_count" for n in range(2)]
    for path in counts:
        path.parent.mkdir(parents=True)
        path.write_text("5\n")
    (system / "devices/system/cpu/cpu0/cpufreq").mkdir()
    (system / "devices/system/cpu/cpu0/cpufreq/scaling_governor").write_text("powersave\n")
    stat(proc, 0, 0, 0, 0, 0, 0, 0, 0)

    def wait(seconds: float) -> None:
        stat(proc, 60, 0, 15, 25, 0, 0, 0, 0)  # 75 of 100 ticks
        counts[1].write_text("7\n")

    state = observe(proc, system, wait)
    assert (state.cores, state.busy_cores, state.governor, state.throttled) == (4, 3.0, "powersave", 2)
    assert throttle_count(system) == 12 and throttle_count(tmp_path / "none") is None


def test_the_other_ranks_of_a_launcher_are_no_other_programs(tmp_path, monkeypatch) -> None:
    """Process 11 is a rank, 12 has another parent, 13 is a rank that began in the meantime, 14 has ended."""
    proc = tmp_path / "proc"
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    monkeypatch.setattr("os.getppid", lambda: 7)

    def process(number: int, parent: int, user: int, system: int) -> None:
        (proc / str(number)).mkdir(parents=True, exist_ok=True)
        (proc / str(number) / "stat").write_text(
            f"{number} (a) b) R {parent} {' 0' * 9} {user} {system} 0 0 20 0 1 0 300\n"
        )

    stat(proc, 0, 0, 0, 0, 0, 0, 0, 0)
    process(11, 7, 100, 10)
    process(12, 6, 5, 5)
    (proc / "14").mkdir()

    def wait(seconds: float) -> None:
        stat(proc, 75, 0, 0, 25, 0, 0, 0, 0)
        process(11, 7, 120, 15)
        process(12, 6, 30, 5)
        process(13, 7, 20, 5)

    assert observe(proc, tmp_path, wait, started=True).busy_cores == 1.0  # 75 of 100 ticks, less 25 and 25, of 4 cores
    assert sibling_ticks(proc) == {11: 135, 13: 25} and sibling_ticks(proc, 6) == {12: 35}
    monkeypatch.setattr("os.getpid", lambda: 13)
    monkeypatch.setattr("time.clock_gettime", lambda clock: 300 / HZ + 2)  # two seconds after they began
    assert sibling_cores(proc) == pytest.approx(135 / HZ / 2)
    stat(proc, 0, 0, 0, 0, 0, 0, 0, 0)
    assert observe(proc, tmp_path, wait).busy_cores == 3.0


@pytest.mark.parametrize(
    ("seconds", "ticks", "started", "watched"),
    [
        (0.5, 12, False, False),  # a fourth of a core of two
        (0.5, 80, False, True),
        (2.0, 12, False, True),  # that is not now
        (0.5, 80, True, False),  # by other ranks of the job
        (0.1, 20, True, True),  # two cores, and a rank that began earlier keeps one of them busy
    ],
)
def test_a_machine_is_watched_only_where_it_may_be_busy(
    seconds: float, ticks: int, started: bool, watched: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr(machine_state, "sibling_cores", lambda: 1.0 if seconds < 0.5 else 1.6)
    monkeypatch.setattr(machine_state, "own_seconds", lambda: 0.0)
    proc = tmp_path / "proc"
    stat(proc, 0, 0, 0, 0, 0, 0, 0, 0)
    times = [0.0]
    since = OtherWork(proc, lambda: times[0])
    times[0] = seconds
    stat(proc, ticks, 0, 0, 100, 0, 0, 0, 0)
    asked: list[bool] = []
    busy = replace(QUIET, busy_cores=6.0)
    said = busy_now(started, since, lambda started: asked.append(started) or busy)
    assert asked == [started] * watched and said == (busy.busy() if watched else "")


def test_others_are_watched_since_the_process_began(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not since a module was loaded: over 6 ms, one tick of 10 ms is a core and a half."""
    done = run_command([sys.executable, "-c", LOADED])
    assert done.stdout == "cpu True\n", done.stderr
    monkeypatch.setattr(process_begin, "TICKS", b"cpu  1000 0 0 0 0 0 0 0 0 0\n")
    monkeypatch.setattr(machine_state, "own_seconds", lambda: process_begin.OWN_S + 1.0)
    monkeypatch.setattr(machine_state, "busy_ticks", lambda proc: (1000 + 3 * HZ, 0))
    work = OtherWork.of_this_process()
    work._clock = lambda: process_begin.BEGAN_S + 10.0
    assert work.cores() == pytest.approx(0.2)


def test_what_disturbs_is_said_and_a_quiet_machine_is_silent() -> None:
    said: list[str] = []
    busy = replace(QUIET, busy_cores=6.0, load=7.0, governor="powersave")
    assert say_what_disturbs(said.append, lambda: busy) is busy
    assert [line.split(":")[:2] for line in said] == [["warning", " busy machine"], ["warning", " clock rates"]]
    assert say_what_disturbs(said.append, lambda: QUIET) is QUIET and len(said) == 2


def test_a_machine_without_these_files_is_not_accused(tmp_path) -> None:
    state = observe(tmp_path, tmp_path, lambda seconds: None)
    assert state.busy_cores is None and state.throttled is None and state.governor is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, None),
        ({"busy_cores": 4.0}, None),
        ({"busy_cores": 4.2, "load": 6.5}, "other programs use 4.2 of 8 cores (load 6.5): end them"),
        ({"busy_cores": None, "load": 90.0}, None),
        ({"governor": "powersave"}, "the governor is powersave"),
        ({"governor": "schedutil"}, None),
        ({"governor": None}, None),
        ({"restricted": True, "usable": 2}, "may use 2 of 8 cores"),
        ({"usable": 2}, None),
        ({"throttled": 3}, "throttled 3 times"),
    ],
)
def test_warnings(changes, words) -> None:
    state = MachineState(**{**{name: getattr(QUIET, name) for name in QUIET.__dataclass_fields__}, **changes})
    lines = state.warnings()
    assert lines == [] if words is None else len(lines) == 1 and words in lines[0]
    assert state.as_dict()["warnings"] == lines and state.as_dict()["cores"] == 8


def test_work_of_others_is_all_work_without_ours(tmp_path, monkeypatch) -> None:
    proc, now, own = tmp_path / "proc", [10.0], [5.0]
    monkeypatch.setattr("os.sysconf", lambda name: 100)
    monkeypatch.setattr("omb_py.orchestrate.launching.machine_state.own_seconds", lambda: own[0])
    stat(proc, 1000, 0, 0, 0, 0, 0, 0, 0)
    work = OtherWork(proc, lambda: now[0])
    now[0], own[0] = 20.0, 5.0 + 19.0  # 2 ranks for nearly 10 s
    stat(proc, 1000 + 3400, 0, 0, 600, 0, 0, 0, 0)
    assert work.cores() == pytest.approx(1.5)
    own[0] = 5.0 + 40.0  # counted more exactly than ticks: never below 0
    assert work.cores() == 0.0


@pytest.mark.parametrize(
    ("others", "cores", "ranks", "busy"),
    [
        ([], 8, 2, False),
        ([0.1, 0.2, 3.9], 8, 2, False),
        ([3.0, 3.0], 8, 2, False),
        ([4.5, 4.5], 8, 2, True),
        ([2.0, 2.0], 8, 6, False),
        ([2.5, 2.5], 8, 6, True),  # the ranks had to share cores
        ([0.2], 2, 2, False),
        ([0.7], 2, 2, True),
        ([0.7], 2, 4, True),
    ],
)
def test_launches_that_were_disturbed(others, cores, ranks, busy) -> None:
    assert bool(during(others, cores, ranks)) is busy


def test_facts_of_a_report() -> None:
    facts = machine_facts(QUIET, [0.6, 0.8, 0.7], 8)
    assert facts["other_cores"] == {"median": 0.7, "max": 0.8, "launches": 3}
    assert facts["warnings"] == [
        "busy machine: other programs used 0.7 of 8 cores during the launches (median of 3, at most 0.8): numbers and "
        "spreads are larger than on a quiet machine"
    ]
    assert machine_facts(QUIET, [], 2)["warnings"] == []


def test_stored_launches_say_who_else_used_the_machine() -> None:
    def launch(used: float | None) -> dict[str, object]:
        return {"launch": {"other_cores": used}, "node_facts": [{"cores_online": 8}]}

    launches = [launch(0.6), launch(0.8), launch(0.7), launch(None), {"launch": {}}]
    assert stored_facts(launches, 8)["warnings"] == machine_facts(QUIET, [0.6, 0.8, 0.7], 8)["warnings"]
    assert stored_facts(launches, 2) == {}
    assert stored_facts([{"launch": {"other_cores": 3.0}}], 8) == {}
