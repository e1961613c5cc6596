from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from omb_py.errors import EnvironmentProblem
from omb_py.results.store import journal as journal_module
from omb_py.results.store import recovery
from omb_py.results.store.journal import Journal
from omb_py.results.store.read import files, load
from omb_py.results.store.recovery import journals, recover
from omb_py.results.store.write import write_launch

WRITER = """
    import sys, time
    from omb_py.results.store import schema
    from omb_py.results.store.journal import Journal
    store, cells, end = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    journal = Journal(store, "r1-0", {"run_id": "r1"})
    print("started", flush=True)
    for size in range(cells):
        journal.append({**schema.blank_row(), "run_id": "r1", "launch_id": "r1-0", "launch_index": 0,
            "schema_version": 1, "started_at": "2026-11-21T12:00:00+00:00", "source": "omb-py", "benchmark": "bw",
            "backend": "mock", "metric": "latency", "unit": "us", "size_bytes": size, "samples_us": [1.0] * 1000})
        print(size, flush=True)
    if end == "finish":
        journal.finish()
        print("finished", flush=True)
    else:
        time.sleep(60)
"""


def dead_journal(store: Path, rows: list[dict], launch_id: str = "r1-0", **header: object) -> Path:
    """The journal of a run that is no more."""
    with Journal(store, launch_id, {"run_id": "r1", **header}) as journal:
        for row in rows:
            journal.append(row)
    return journal.path


def test_every_dead_journal_is_recovered_once(tmp_path, make_row) -> None:
    dead_journal(tmp_path, [make_row(size_bytes=1), make_row(size_bytes=2)])
    dead_journal(tmp_path, [make_row(launch_id="r1-1", launch_index=1, size_bytes=4)], "r1-1")
    found = recover(tmp_path)
    assert [(r.launch_id, r.cells, r.state, r.note) for r in found] == [
        ("r1-0", 2, "recovered", ""),
        ("r1-1", 1, "recovered", ""),
    ]
    assert [r.path for r in found] == files(tmp_path)
    assert journals(tmp_path) == []
    assert recover(tmp_path) == []
    assert sorted(load(tmp_path)["size_bytes"]) == [1, 2, 4]


def test_a_running_journal_is_left_alone(tmp_path, make_row) -> None:
    with Journal(tmp_path, "r1-0", {}) as journal:
        journal.append(make_row())
        [result] = recover(tmp_path)
        assert (result.state, result.cells, result.path) == ("running", 1, journal.path)
        assert files(tmp_path) == []
        journal.append(make_row())
        assert journal.finish() is not None
    assert len(load(tmp_path)) == 2


def test_a_launch_that_is_stored_already_is_not_stored_twice(tmp_path, make_row) -> None:
    rows = [make_row(size_bytes=1, value=1.0), make_row(size_bytes=2, value=2.0)]
    path = dead_journal(tmp_path, rows)
    target = write_launch(tmp_path, rows, {"first": True})
    before = target.read_bytes()
    [result] = recover(tmp_path)
    assert (result.state, result.cells, result.path) == ("stored already", 2, target)
    assert target.read_bytes() == before
    assert not path.exists()


@pytest.mark.parametrize("stored", ["fewer cells", "junk"])
def test_a_poorer_or_broken_file_of_the_launch_is_replaced(tmp_path, make_row, stored: str) -> None:
    rows = [make_row(size_bytes=1), make_row(size_bytes=2)]
    dead_journal(tmp_path, rows)
    target = write_launch(tmp_path, rows[:1], {})
    if stored == "junk":
        target.write_bytes(b"junk")
    assert [(r.state, r.cells) for r in recover(tmp_path)] == [("recovered", 2)]
    assert len(load(tmp_path)) == 2


def test_cells_that_were_finished_together_are_recovered_and_lost_together(tmp_path, make_row) -> None:
    with Journal(tmp_path, "r1-0", {"run_id": "r1"}) as journal:
        for start in (0, 10, 20):
            journal.extend([make_row(size_bytes=start + k) for k in range(10)])
        journal.append(make_row(size_bytes=30))
    lines = journal.path.read_bytes().splitlines(keepends=True)
    journal.path.write_bytes(b"".join([*lines[:2], lines[2][:200] + lines[2][210:], *lines[3:]]))
    [result] = recover(tmp_path)
    assert (result.cells, result.state) == (21, "recovered") and "1 line could not be read" in result.note
    assert sorted(load(tmp_path)["size_bytes"]) == [*range(10), *range(20, 31)]


def test_a_damaged_line_in_the_middle_costs_that_cell_and_the_journal_is_kept(tmp_path, make_row) -> None:
    path = dead_journal(tmp_path, [make_row(size_bytes=n) for n in (1, 2, 4)])
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = b"\0" * 100 + b"\n"
    path.write_bytes(b"".join(lines))
    [result] = recover(tmp_path)
    assert (result.state, result.cells) == ("recovered", 2)
    assert result.note == "1 line could not be read; the journal is kept as r1-0.jsonl.damaged"
    assert path.with_name("r1-0.jsonl.damaged").read_bytes() == b"".join(lines)
    assert load(tmp_path)["size_bytes"].tolist() == [1, 4]
    assert recover(tmp_path) == []


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"not json\n", b"[1]\n", b'{"run_id": "r1"}\n', b"\xff\xfe\n", b'{"launch_id": "r1-0", "sche'],
)
def test_a_journal_without_a_header_is_named_and_left(tmp_path, make_row, content: bytes) -> None:
    dead_journal(tmp_path, [make_row(launch_id="good-0")], "good-0")
    bad = tmp_path / ".journal" / "bad-0.jsonl"
    bad.write_bytes(content)
    found = {r.launch_id: r for r in recover(tmp_path)}
    assert found["good-0"].state == "recovered"
    assert (found["bad-0"].state, found["bad-0"].path) == ("unreadable", bad)
    assert found["bad-0"].note == "it has no readable header"
    assert bad.read_bytes() == content


def test_a_journal_of_a_newer_version_is_left(tmp_path, make_row) -> None:
    path = dead_journal(tmp_path, [make_row()])
    path.write_bytes(path.read_bytes().replace(b'"schema_version":1', b'"schema_version":2', 1))
    [result] = recover(tmp_path)
    assert (result.state, result.note) == ("unreadable", "written by a newer omb-py: recover with that one")
    assert path.exists()


def test_rows_of_another_launch_fail_and_the_journal_stays(tmp_path, make_row) -> None:
    path = dead_journal(tmp_path, [make_row(), make_row()])
    text = path.read_text().splitlines()
    text[2] = text[2].replace('"launch_id":"r1-0"', '"launch_id":"r2-0"')
    path.write_text("\n".join(text) + "\n")
    [result] = recover(tmp_path)
    assert (result.state, result.path) == ("failed", path)
    assert "not the rows of one launch" in result.note
    assert path.exists()


def test_a_full_disk_fails_and_the_journal_stays(tmp_path, make_row, monkeypatch) -> None:
    path = dead_journal(tmp_path, [make_row()])

    def refuse(*args: object) -> Path:
        raise EnvironmentProblem("cannot write 'x': no space left on the disk")

    monkeypatch.setattr(recovery, "write_launch", refuse)
    [result] = recover(tmp_path)
    assert (result.state, result.cells, result.note) == ("failed", 0, "cannot write 'x': no space left on the disk")
    monkeypatch.undo()
    assert path.exists()
    assert [r.state for r in recover(tmp_path)] == ["recovered"]


def test_a_journal_that_another_recovery_took_is_passed_over(tmp_path, make_row, monkeypatch) -> None:
    path = dead_journal(tmp_path, [make_row()])
    monkeypatch.setattr(recovery, "journals", lambda store: [path, path.with_name("gone.jsonl")])
    lock = recovery.lock

    def slow(handle: int) -> bool:
        path.unlink()
        return lock(handle)

    monkeypatch.setattr(recovery, "lock", slow)
    assert recover(tmp_path) == []


def with_header(store: Path, make_row, **values: object) -> None:
    """A dead journal whose header says something else."""
    path = dead_journal(store, [make_row()])
    header, *rest = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps({**json.loads(header), **values}), *rest]) + "\n")


def test_the_lock_of_a_writer_that_had_none_proves_nothing(tmp_path, make_row) -> None:
    """The writer's node mounts the file system without locks, this one with them: its lock is free while it lives."""
    with_header(tmp_path, make_row, locked=False)
    [result] = recover(tmp_path)
    assert (result.state, result.note) == ("running", f"process {os.getpid()} is alive")


class TestWithoutLocks:
    @pytest.fixture(autouse=True)
    def no_locks(self, monkeypatch) -> None:
        def refuse(handle: int, how: int) -> None:
            raise OSError(errno.ENOLCK, "no locks")

        monkeypatch.setattr(journal_module.fcntl, "flock", refuse)

    def test_a_living_process_is_left_alone(self, tmp_path, make_row) -> None:
        with_header(tmp_path, make_row)
        [result] = recover(tmp_path)
        assert (result.state, result.note) == ("running", f"process {os.getpid()} is alive")

    def test_a_dead_process_is_recovered(self, tmp_path, make_row) -> None:
        dead = subprocess.Popen([sys.executable, "-c", ""])
        dead.wait()
        with_header(tmp_path, make_row, pid=dead.pid)
        assert [r.state for r in recover(tmp_path)] == ["recovered"]

    def test_another_host_has_to_do_it(self, tmp_path, make_row) -> None:
        with_header(tmp_path, make_row, host="elsewhere")
        [result] = recover(tmp_path)
        assert (result.state, result.note) == (
            "running",
            "no file locks here, and its run was on elsewhere: recover there",
        )


@pytest.mark.faults
@pytest.mark.parametrize(("end", "seed"), [("finish", 0), ("finish", 1), ("hang", 2), ("hang", 3)])
def test_a_writer_killed_at_any_moment_loses_no_announced_cell(tmp_path, end: str, seed: int) -> None:
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(tmp_path), "30", end]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        time.sleep(random.Random(seed).uniform(0, 0.25))
        process.send_signal(signal.SIGKILL)
        announced = [int(line) for line in process.stdout.read().split() if line.isdigit()]
    results = recover(tmp_path)
    assert all(r.state in ("recovered", "stored already", "empty") for r in results)
    stored = load(tmp_path)["size_bytes"].tolist()
    # at most one more than was announced: written, not yet printed
    assert stored[: len(announced)] == announced
    assert len(stored) <= len(announced) + 1
    assert recover(tmp_path) == []
    assert load(tmp_path)["size_bytes"].tolist() == stored


@pytest.mark.slow
@pytest.mark.faults
def test_a_living_writer_in_another_process_is_seen(tmp_path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(tmp_path), "1", "hang"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["started\n", "0\n"]
        assert [(r.state, r.cells) for r in recover(tmp_path)] == [("running", 1)]
        process.kill()
    assert [(r.state, r.cells) for r in recover(tmp_path)] == [("recovered", 1)]
