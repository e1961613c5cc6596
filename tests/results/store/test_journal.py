from __future__ import annotations

import errno
import json
import os
import shutil
import socket
import sys
import textwrap
from shlex import quote

import numpy as np
import pytest

from omb_py.errors import EnvironmentProblem
from omb_py.results.store import journal as module
from omb_py.results.store.journal import (
    Journal,
    RunLock,
    decode_row,
    encode_row,
    lock,
    recover_command,
    unfinished_runs,
)
from omb_py.results.store.read import files, load, read_provenance
from omb_py.results.store.recovery import journals, recover
from omb_py.results.store.schema import SCHEMA_VERSION
from tests.support.machines.mpi import run_command

HEADER = {"run_id": "r1", "started_at": "2026-11-21T12:00:00+00:00", "provenance": {"a": 1}}


def full_disk(monkeypatch, room: int) -> None:
    """From now on the disk has room for so many bytes."""
    write, left = os.write, [room]

    def limited(handle: int, data: bytes) -> int:
        if not left[0]:
            raise OSError(errno.ENOSPC, "full")
        taken = min(left[0], len(data))
        left[0] -= taken
        return write(handle, data[:taken])

    monkeypatch.setattr(module.os, "write", limited)


class TestWriting:
    def test_the_header_says_who_writes(self, tmp_path) -> None:
        with Journal(tmp_path, "r1-0", HEADER) as journal:
            assert journal.path == tmp_path / ".journal" / "r1-0.jsonl"
            [line] = journal.path.read_text().splitlines()
        assert json.loads(line) == {
            **HEADER,
            "schema_version": SCHEMA_VERSION,
            "launch_id": "r1-0",
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "locked": True,
        }
        assert [p.name for p in journal.path.parent.iterdir()] == ["r1-0.jsonl"]

    def test_each_row_is_one_write_and_then_a_sync(self, tmp_path, make_row, monkeypatch) -> None:
        calls: list[str] = []
        write, fsync = os.write, os.fsync
        monkeypatch.setattr(module.os, "write", lambda *a: (calls.append("write"), write(*a))[1])
        monkeypatch.setattr(module.os, "fsync", lambda *a: (calls.append("sync"), fsync(*a))[1])
        with Journal(tmp_path, "r1-0", HEADER) as journal:
            calls.clear()
            journal.append(make_row(samples_us=[1.0] * 10_000))
            assert calls == ["write", "sync"]
            assert len(journal.path.read_bytes().splitlines()) == 2

    def test_numpy_values_are_written_as_plain_ones(self, tmp_path, make_row) -> None:
        row = make_row(ranks=np.int32(4), value=np.float64(1.5), validated=np.bool_(True), samples_us=np.ones(3))
        with Journal(tmp_path, "r1-0", HEADER) as journal:
            journal.append(row)
        [line] = journal.path.read_text().splitlines()[1:]
        stored = json.loads(line)["row"]
        assert (stored["ranks"], stored["value"], stored["validated"]) == (4, 1.5, True)
        assert stored["samples_us"] == {"f4": "AACAPwAAgD8AAIA/"}
        assert "device" not in stored

    def test_finish_writes_the_launch_and_takes_the_journal_away(self, tmp_path, make_row) -> None:
        journal = Journal(tmp_path, "r1-0", HEADER)
        for size in (1, 2):
            journal.append(make_row(size_bytes=size))
        journal.provenance({"b": 2})
        path = journal.finish()
        assert path is not None
        assert files(tmp_path) == [path]
        assert load(tmp_path)["size_bytes"].tolist() == [1, 2]
        assert read_provenance(path) == {"b": 2}
        assert journals(tmp_path) == []

    @pytest.mark.slow
    def test_cells_that_were_finished_together_are_one_line(self, tmp_path, make_row) -> None:
        journal = Journal(tmp_path, "r1-0", HEADER)
        journal.append(make_row(size_bytes=0))
        journal.extend([make_row(size_bytes=size, parameters={"pair": str(size)}) for size in range(1, 5000)])
        journal.extend([make_row(size_bytes=5000, samples_us=[1.5])])
        assert journal.cells == 5001 and len(journal.path.read_bytes().splitlines()) == 4
        assert journal.path.stat().st_size < 5000 * 100
        with pytest.raises(ValueError, match="a row of launch r2-0 in the journal of r1-0"):
            journal.extend([make_row(), make_row(launch_id="r2-0")])
        path = journal.finish()
        stored = load(tmp_path)
        assert path is not None and stored["size_bytes"].tolist() == list(range(5001))
        assert dict(stored["parameters"].iloc[4321]) == {"pair": "4321"}
        assert stored["samples_us"].iloc[5000].tolist() == [1.5]

    def test_finish_without_cells_leaves_nothing(self, tmp_path) -> None:
        journal = Journal(tmp_path, "r1-0", HEADER)
        assert journal.finish() is None
        assert files(tmp_path) == []
        assert journals(tmp_path) == []

    def test_a_wrong_row_is_refused_and_leaves_no_line(self, tmp_path, make_row) -> None:
        with Journal(tmp_path, "r1-0", HEADER) as journal:
            with pytest.raises(ValueError, match="not a column"):
                journal.append({**make_row(), "nonsense": 1})
            with pytest.raises(ValueError, match="a row of launch r2-0 in the journal of r1-0"):
                journal.append(make_row(launch_id="r2-0"))
            assert len(journal.path.read_bytes().splitlines()) == 1
            assert journal.cells == 0

    def test_a_closed_journal_takes_nothing(self, tmp_path, make_row) -> None:
        journal = Journal(tmp_path, "r1-0", HEADER)
        journal.close()
        journal.close()
        with pytest.raises(EnvironmentProblem, match="closed"):
            journal.append(make_row())


class TestFailures:
    def test_a_store_that_cannot_be_written(self, tmp_path) -> None:
        (tmp_path / "store").write_text("")
        with pytest.raises(EnvironmentProblem, match=r"cannot write the journal '.*r1-0\.jsonl': a file is in the way"):
            Journal(tmp_path / "store", "r1-0", HEADER)

    def test_a_full_disk_at_the_header_leaves_nothing(self, tmp_path, monkeypatch) -> None:
        full_disk(monkeypatch, 10)
        with pytest.raises(EnvironmentProblem, match="no space left on the disk"):
            Journal(tmp_path, "r1-0", HEADER)
        assert list((tmp_path / ".journal").iterdir()) == []

    @pytest.mark.parametrize("room", [0, 1, 100])
    def test_a_full_disk_at_a_row_keeps_the_rows_before(self, tmp_path, make_row, monkeypatch, room: int) -> None:
        journal = Journal(tmp_path, "r1-0", HEADER)
        journal.append(make_row(size_bytes=1))
        before = journal.path.read_bytes()
        full_disk(monkeypatch, room)
        with pytest.raises(EnvironmentProblem) as caught:
            journal.append(make_row(size_bytes=2))
        assert str(caught.value) == (
            f"cannot write the journal '{journal.path}': no space left on the disk; 1 finished cell is kept in "
            f"{journal.path}: make room, then run: omb-py results recover --store {quote(str(tmp_path))}"
        )
        assert journal.path.read_bytes() == before
        assert journal.cells == 1
        monkeypatch.undo()
        journal.append(make_row(size_bytes=4))
        journal.close()
        assert recover(tmp_path)[0].cells == 2
        assert load(tmp_path)["size_bytes"].tolist() == [1, 4]

    def test_what_cannot_be_taken_back_closes_the_journal(self, tmp_path, make_row, monkeypatch) -> None:
        journal = Journal(tmp_path, "r1-0", HEADER)
        journal.append(make_row(size_bytes=1))

        def refuse(handle: int, size: int) -> None:
            raise OSError(errno.EIO, "input/output error")

        full_disk(monkeypatch, 100)
        monkeypatch.setattr(module.os, "ftruncate", refuse)
        with pytest.raises(EnvironmentProblem, match="no space left"):
            journal.append(make_row(size_bytes=2))
        monkeypatch.undo()
        with pytest.raises(EnvironmentProblem, match="closed"):
            journal.append(make_row(size_bytes=4))
        journal.close()
        [result] = recover(tmp_path)
        assert (result.state, result.cells, result.note) == ("recovered", 1, "")

    def test_a_full_disk_at_the_end_keeps_the_journal_and_says_how_to_recover(
        self, tmp_path, make_row, monkeypatch
    ) -> None:
        store = tmp_path / "my store"
        journal = Journal(store, "r1-0", HEADER)
        journal.append(make_row())
        journal.append(make_row())
        full_disk(monkeypatch, 50)
        with pytest.raises(EnvironmentProblem) as caught:
            journal.finish()
        monkeypatch.undo()
        text = str(caught.value)
        assert "no space left on the disk; 2 finished cells are kept in" in text
        assert text.endswith(f"{journal.path}: make room, then run: omb-py results recover --store '{store}'")
        assert files(store) == []
        [result] = recover(store)
        assert (result.state, result.cells) == ("recovered", 2)

    @pytest.mark.parametrize("in_the_way", [False, True])
    def test_a_store_that_was_removed_while_the_launch_ran(self, tmp_path, make_row, in_the_way: bool) -> None:
        store = tmp_path / "store"
        journal = Journal(store, "r1-0", HEADER)
        journal.append(make_row(size_bytes=1))
        shutil.rmtree(store)
        if in_the_way:
            store.touch()
        journal.append(make_row(size_bytes=2))
        if in_the_way:
            with pytest.raises(EnvironmentProblem) as caught:
                journal.finish()
            says = f"; 2 finished cells are only on the screen: somebody removed {journal.path} while the launch ran"
            assert str(caught.value).endswith(says)
        else:
            assert journal.finish() is not None and load(store)["size_bytes"].tolist() == [1, 2]

    def test_a_real_limit_of_the_system(self, tmp_path) -> None:
        """A file may not grow over 4 KiB: the system takes a part of the row, then refuses."""
        code = """
            import resource, sys
            from omb_py.errors import EnvironmentProblem
            from omb_py.results.store import schema
            from omb_py.results.store.journal import Journal
            row = {**schema.blank_row(), "run_id": "r1", "launch_id": "r1-0", "launch_index": 0, "schema_version": 1,
                   "started_at": "2026-11-21T12:00:00+00:00", "source": "omb-py", "benchmark": "bw", "backend": "mock",
                   "metric": "latency", "unit": "us"}
            journal = Journal(sys.argv[1], "r1-0", {})
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
            journal.append({**row, "size_bytes": 1})
            try:
                journal.append({**row, "size_bytes": 2, "samples_us": [1.0] * 5000})
            except EnvironmentProblem as error:
                print(error)
            journal.append({**row, "size_bytes": 4})
        """
        done = run_command([sys.executable, "-c", textwrap.dedent(code), str(tmp_path)], check=True)
        assert "file too large; 1 finished cell is kept in" in done.stdout
        assert [r.state for r in recover(tmp_path)] == ["recovered"]
        assert load(tmp_path)["size_bytes"].tolist() == [1, 4]


class TestLock:
    def test_without_locks_the_header_says_so(self, tmp_path, monkeypatch) -> None:
        def refuse(handle: int, how: int) -> None:
            raise OSError(errno.ENOLCK, "no locks")

        monkeypatch.setattr(module.fcntl, "flock", refuse)
        with Journal(tmp_path, "r1-0", HEADER) as journal:
            assert json.loads(journal.path.read_text())["locked"] is False

    def test_a_held_lock_is_refused(self, tmp_path) -> None:
        with Journal(tmp_path, "r1-0", HEADER) as journal:
            handle = os.open(journal.path, os.O_RDWR)
            with pytest.raises(BlockingIOError):
                lock(handle)
            os.close(handle)


class TestRows:
    def test_nulls_are_left_out_and_come_back(self, make_row) -> None:
        row = make_row()
        assert None not in encode_row(row).values()
        assert decode_row(encode_row(row)) == row


def test_the_recover_command_can_be_pasted() -> None:
    assert recover_command("a b") == "omb-py results recover --store 'a b'"


class TestTheLockOfARun:
    ELSEWHERE = (
        "import sys; from omb_py.errors import UsageError; from omb_py.results.store.journal import RunLock\n"
        "try: RunLock(sys.argv[1], 'r1')\n"
        "except UsageError as error: print(error)"
    )

    def elsewhere(self, store) -> str:
        """What another process says that takes the lock of run r1."""
        command = [sys.executable, "-c", self.ELSEWHERE, str(store)]
        return run_command(command, check=True).stdout

    @pytest.mark.slow
    def test_no_other_process_measures_the_same_run(self, tmp_path) -> None:
        held = RunLock(tmp_path, "r1")
        refused = "run r1 is still running: end it, or begin another without --resume\n"
        assert self.elsewhere(tmp_path) == refused
        RunLock(tmp_path, "r2")
        again = RunLock(tmp_path, "r1")
        del held
        assert self.elsewhere(tmp_path) == refused
        del again
        assert self.elsewhere(tmp_path) == ""
        assert not list((tmp_path / module.JOURNALS).iterdir())

    def test_a_lock_whose_file_was_removed_meanwhile_is_taken_anew(self, tmp_path, monkeypatch) -> None:
        opened, path = [], tmp_path / module.JOURNALS / "r1.run"

        def locking(handle: int) -> bool:
            opened.append(handle)
            if len(opened) == 1:
                path.unlink()  # by the process that had it
            return lock(handle)

        monkeypatch.setattr(module, "lock", locking)
        held = RunLock(tmp_path, "r1")
        assert len(opened) == 2 and path.exists()
        del held

    def test_a_forked_child_does_not_give_it_up(self, tmp_path) -> None:
        held = RunLock(tmp_path, "r1")
        if not (child := os.fork()):
            del held
            os._exit(0)
        os.waitpid(child, 0)
        assert "still running" in self.elsewhere(tmp_path)
        del held

    def test_a_run_that_ended_early_is_known_until_it_goes_on(self, tmp_path) -> None:
        held = RunLock(tmp_path, "r1")
        assert unfinished_runs(tmp_path) == {"r1": "running"}
        held.ended_early("interrupted")
        del held
        assert unfinished_runs(tmp_path) == {"r1": "interrupted"}
        held = RunLock(tmp_path, "r1")
        assert unfinished_runs(tmp_path) == {"r1": "running"}
        del held
        assert unfinished_runs(tmp_path) == {}

    def test_a_killed_process_leaves_its_file(self, tmp_path) -> None:
        kill = self.ELSEWHERE.replace("try: RunLock(", "try: held = RunLock(") + "\nimport os; os.kill(os.getpid(), 9)"
        run_command([sys.executable, "-c", kill, str(tmp_path)])
        assert unfinished_runs(tmp_path) == {"r1": "killed"}

    def test_without_locks_only_what_a_run_noted_is_known(self, tmp_path, monkeypatch) -> None:
        RunLock(tmp_path, "r1").ended_early("failed")
        (tmp_path / module.JOURNALS / "r2.run").touch()
        monkeypatch.setattr(module, "lock", lambda handle: False)
        assert unfinished_runs(tmp_path) == {"r1": "failed"}
