"""Merging, removing and checking files: no row lost or doubled, whenever it stops."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.results.store import compaction as module
from omb_py.results.store import paths
from omb_py.results.store import write as writing
from omb_py.results.store.compaction import compact, doomed, prune
from omb_py.results.store.integrity import verify
from omb_py.results.store.journal import Journal
from omb_py.results.store.paths import entries, files, maintenance
from omb_py.results.store.provenance import provenance_of, provenances, read_provenance
from omb_py.results.store.read import load, load_table, to_rows
from omb_py.results.store.recovery import recover
from omb_py.results.store.write import write_launch
from tests.results.store import writers as writer_program
from tests.support.machines.mpi import ROOT
from tests.support.patience import PATIENCE_S
from tests.support.tiers import few_quick

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def add(tmp_path, make_row):
    def write(number: int, day: int, value: float = 0.0, rows: int = 3) -> Path:
        launch = {"run_id": f"r{day}", "launch_id": f"r{day}-{number}", "launch_index": number}
        made = [
            make_row(
                **launch,
                started_at=f"2026-11-{day:02d}T12:00:00",
                value=value or float(index),
                size_bytes=index,
                samples_us=[float(number), 1.0],
                tags={"site": "x", "odd": str(number % 2)},
                metrics={"m": 0.5},
            )
            for index in range(rows)
        ]
        return write_launch(tmp_path, made, {"number": number, "day": day, "text": "x" * 100})

    return write


@pytest.fixture
def store(tmp_path, add) -> Path:
    for day in (1, 2, 21):
        for number in range(4):
            add(number, day)
    return tmp_path


def contents(store: Path) -> list[str]:
    """Every row, whatever file it is in."""
    return sorted(repr(row) for row in to_rows(load_table(store, on_skip=pytest.fail)))


def names(store: Path) -> list[str]:
    return [entry.relative for entry in entries(store)]


@pytest.mark.slow
def test_merges_old_days_and_leaves_new_ones(store) -> None:
    before = contents(store)
    planned = compact(store, 7 * DAY, now=NOW, dry_run=True)
    assert [(m.files, m.launches, m.rows) for m in planned] == [(4, 4, 12)] * 2
    assert len(names(store)) == 12
    done = compact(store, 7 * DAY, now=NOW)
    assert [(m.files, m.launches, m.rows) for m in done] == [(4, 4, 12)] * 2
    assert len(names(store)) == 6 and sum("merged-" in name for name in names(store)) == 2
    assert contents(store) == before
    assert compact(store, 7 * DAY, now=NOW) == []
    assert not [p for p in store.rglob(".*") if p.suffix in (".tmp", ".old")]


@pytest.mark.slow
def test_every_launch_keeps_its_provenance(store) -> None:
    path = compact(store, 7 * DAY, now=NOW)[0].path
    assert provenances(path)["r1-2"] == {"number": 2, "day": 1, "text": "x" * 100}
    assert read_provenance(path, "r1-3")["number"] == 3
    with pytest.raises(UsageError, match="holds 4 launches: name one"):
        read_provenance(path)
    with pytest.raises(UsageError, match=r"no launch 'r1-9'.*r1-"):
        read_provenance(path, "r1-9")
    with pytest.raises(UsageError, match="no launch 'x'"):
        read_provenance(files(store)[-1], "x")


def test_a_launch_is_looked_up_wherever_it_lies(store) -> None:
    compact(store, 7 * DAY, now=NOW)
    look = provenance_of(store)
    assert (look("r1-2")["number"], look("r21-3")["day"], look("none")) == (2, 21, {})


@pytest.mark.slow
def test_what_comes_later_is_merged_with_what_was(store, add) -> None:
    compact(store, 7 * DAY, now=NOW)
    add(7, 1)
    before = contents(store)
    assert [m.launches for m in compact(store, 7 * DAY, now=NOW)] == [5]
    assert contents(store) == before and len(names(store)) == 6


@pytest.mark.slow
def test_a_file_as_large_as_a_group_may_be_is_left_alone(store, add, monkeypatch) -> None:
    """It was merged alone, and again each time a launch of its day was imported."""
    large = add(0, 1, rows=40)
    monkeypatch.setattr(module, "BYTES", large.stat().st_size)
    before = contents(store)
    for number in (10, 11):
        compact(store, 7 * DAY, now=NOW)
        assert large.exists() and contents(store) == before
        add(number, 1)
        before = contents(store)


@pytest.mark.slow
def test_a_launch_that_is_written_again_counts_instead_of_its_merged_copy(store, add) -> None:
    compact(store, 7 * DAY, now=NOW)
    add(2, 1, value=77.0, rows=5)
    frame = load(store, columns=["value", "launch_id"], launch_id="r1-2")
    assert frame["value"].tolist() == [77.0] * 5
    assert {c.state for c in verify(store)} == {"ok", "double"}
    before = contents(store)
    compact(store, 7 * DAY, now=NOW)
    assert contents(store) == before and {c.state for c in verify(store)} == {"ok"}


class Crash(BaseException):
    """The process is gone: nothing after this moment is done, no cleaning up either."""


def crash_at(monkeypatch: pytest.MonkeyPatch, moment: int) -> None:
    """Let the call of the system number `moment` and all after it fail."""
    count = 0

    def limited(real):
        def call(*args, **more):
            nonlocal count
            count += 1
            if count > moment:
                raise Crash
            return real(*args, **more)

        return call

    for name in ("replace", "rename", "unlink", "link", "fsync", "write", "fchmod"):
        monkeypatch.setattr(os, name, limited(getattr(os, name)))


@pytest.mark.slow
@pytest.mark.parametrize("again", few_quick([True, False]))
def test_a_crash_at_any_moment_loses_and_doubles_nothing(store, add, monkeypatch, again: bool) -> None:
    if again:  # merged files take part too
        compact(store, 7 * DAY, now=NOW)
        add(1, 1, value=5.0), add(9, 1)
    before = contents(store)
    for moment in range(200):
        with monkeypatch.context() as patch:
            crash_at(patch, moment)
            try:
                compact(store, 7 * DAY, now=NOW)
                break
            except Crash:
                pass
        assert contents(store) == before, moment
    else:
        pytest.fail("never finished")
    assert moment > 10
    assert len(names(store)) == 6 and {c.state for c in verify(store)} == {"ok"}


@pytest.mark.slow
def test_a_file_that_is_replaced_while_it_is_merged_stays(store, add, monkeypatch) -> None:
    raising = module.raise_generation

    def meanwhile(root: Path) -> None:
        add(0, 1, value=42.0)
        raising(root)

    monkeypatch.setattr(module, "raise_generation", meanwhile)
    compact(store, 19 * DAY, now=NOW)
    assert load(store, launch_id="r1-0")["value"].tolist() == [42.0] * 3


@pytest.mark.slow
def test_a_reader_lists_again_when_files_are_merged_meanwhile(store, monkeypatch) -> None:
    before = contents(store)
    listing = paths._list_below
    turns = iter([True])

    def meanwhile(*args):
        found = list(listing(*args))
        if next(turns, False):
            compact(store, 7 * DAY, now=NOW)
        return iter(found)

    monkeypatch.setattr(paths, "_list_below", meanwhile)
    assert contents(store) == before


@pytest.mark.slow
def test_a_reader_whose_file_is_gone_reads_again(store, monkeypatch) -> None:
    from omb_py.results.store import read

    before = contents(store)
    listing, turns = read.entries, iter([True])

    def meanwhile(root, on_skip):
        found = listing(root, on_skip)
        if next(turns, False):
            compact(store, 7 * DAY, now=NOW)
        return found

    monkeypatch.setattr(read, "entries", meanwhile)
    assert contents(store) == before


@pytest.mark.slow
def test_damaged_and_foreign_files_stay_and_are_named(store) -> None:
    (store / "date=2026-11-01" / "junk.parquet").write_bytes(b"junk")
    (store / "date=2026-11-02" / "r2-0.parquet").rename(store / "date=2026-11-02" / "other.parquet")
    said: dict[str, str] = {}
    compact(store, 7 * DAY, now=NOW, on_skip=lambda path, why: said.__setitem__(path.name, why))
    assert said["junk.parquet"].startswith("damaged") and said["other.parquet"].startswith("not the rows of the one")
    assert (store / "date=2026-11-01" / "junk.parquet").exists()


@pytest.mark.slow
def test_recovery_knows_launches_that_were_merged(store, make_row) -> None:
    compact(store, 7 * DAY, now=NOW)
    journal = Journal(store, "r1-0", {})
    journal.append(make_row(run_id="r1", launch_id="r1-0", started_at="2026-11-01T12:00:00"))
    journal.close()
    assert [(r.state, r.cells) for r in recover(store)] == [("stored already", 3)]


def test_a_lock_of_another_user_is_named(store) -> None:
    (store / ".maintenance").mkdir()
    with pytest.raises(EnvironmentProblem, match=r"cannot write '.*/\.maintenance': is a directory"):
        compact(store, DAY, now=NOW)


@pytest.mark.slow
def test_two_at_once_and_a_store_that_cannot_be_written(store, monkeypatch) -> None:
    with maintenance(store), pytest.raises(EnvironmentProblem, match="another omb-py is tidying"):
        compact(store, DAY, now=NOW)
    before = contents(store)

    def full(handle: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(writing.os, "write", full)
        with pytest.raises(EnvironmentProblem, match=r"cannot merge files of .*: no space left on the disk"):
            compact(store, 7 * DAY, now=NOW)
    assert contents(store) == before and len(names(store)) == 12


MERGES = """
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from omb_py.results.store.compaction import compact
while not (Path(sys.argv[1]) / "enough").exists():
    for merged in compact(sys.argv[1], timedelta(days=7), now=datetime(2026, 11, 21, tzinfo=UTC)):
        print(merged.files, flush=True)
"""


@pytest.mark.slow
def test_merging_beside_readers_and_writers(tmp_path) -> None:
    """Processes of their own: what a reader has seen once it sees again, each row once, and no file is damaged."""
    (tmp_path / "store").mkdir()
    store = tmp_path / "store"
    writers = [
        subprocess.Popen([sys.executable, "-m", writer_program.__name__, str(store), name, "30"], cwd=ROOT)
        for name in ("a", "b")
    ]
    merger = subprocess.Popen([sys.executable, "-c", MERGES, str(store)], stdout=subprocess.PIPE, text=True)
    seen: set[tuple[str, int]] = set()
    try:
        while any(writer.poll() is None for writer in writers) or len(seen) < 120 or len(names(store)) > 45:
            rows = [(row["launch_id"], row["size_bytes"]) for row in to_rows(load_table(store, on_skip=pytest.fail))]
            assert len(rows) == len(set(rows)) and seen <= set(rows)
            seen = set(rows)
            assert merger.poll() is None and not any(writer.poll() for writer in writers)
    finally:
        (store / "enough").touch()
        told, _ = merger.communicate(timeout=PATIENCE_S)
        for writer in writers:
            assert writer.wait(PATIENCE_S) == 0
    assert merger.returncode == 0 and sum(map(int, told.split())) > 10, "it merged, again and again"
    assert len(seen) == 2 * 30 * 2


@pytest.mark.slow
def test_what_reads_back_differently_is_not_trusted(store, monkeypatch) -> None:
    monkeypatch.setattr(module, "_are_same", lambda a, b: False)
    before = contents(store)
    with pytest.raises(EnvironmentProblem, match="reads differently"):
        compact(store, 7 * DAY, now=NOW)
    assert contents(store) == before and len(names(store)) == 12


class TestPrune:
    @pytest.mark.slow
    @pytest.mark.parametrize("merged", [False, True])
    def test_by_age_tag_and_run(self, store, merged: bool) -> None:
        if merged:
            compact(store, 7 * DAY, now=NOW)
        rest = {"older_than": 10 * DAY, "now": NOW}
        assert len(doomed(store, **rest)) == 8
        found = doomed(store, tags={"odd": "1"}, runs=["r1", "r21"], **rest)
        assert [one.launch_id for one in found] == ["r1-1", "r1-3"] and found[0].cells == 3
        prune(store, [one.launch_id for one in found])
        left = load(store, columns=["launch_id"])["launch_id"]
        assert len(left) == 30 and not set(left) & {"r1-1", "r1-3"}
        assert {c.state for c in verify(store)} == {"ok"}
        prune(store, [one.launch_id for one in doomed(store, **rest)])
        assert set(load(store)["run_id"]) == {"r21"}

    def test_a_launch_exactly_as_old_as_the_limit_stays(self, store) -> None:
        """``--older-than`` is a limit that a launch must be beyond."""
        started = datetime(2026, 11, 1, 12, tzinfo=UTC)
        assert doomed(store, older_than=DAY, now=started + DAY) == []
        found = doomed(store, older_than=DAY, now=started + DAY + timedelta(microseconds=1))
        assert {launch.run_id for launch in found} == {"r1"}

    def test_a_reader_is_told_that_a_file_went(self, store) -> None:
        """The generation rises also where no file is merged: a listing made meanwhile is made again."""
        before = paths.generation(store)
        prune(store, ["r1-0"])
        assert paths.generation(store) > before

    @pytest.mark.slow
    def test_a_copy_in_a_merged_file_goes_too(self, store, add) -> None:
        compact(store, 7 * DAY, now=NOW)
        add(2, 1, value=3.0)
        prune(store, ["r1-2"])
        assert "r1-2" not in set(load(store)["launch_id"])


class TestVerify:
    def test_any_changed_byte_is_found(self, store) -> None:
        assert {c.state for c in verify(store)} == {"ok"}
        path = files(store)[0]
        data = path.read_bytes()
        for place in range(4, len(data) - 8, max(1, len(data) // 60)):
            path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
            found = next(c for c in verify(store) if c.path == path)
            assert found.state == "changed", place  # the hash's own name may be hit
        for length in (0, 7, len(data) // 2, len(data) - 1):
            path.write_bytes(data[:length])
            assert next(c for c in verify(store) if c.path == path).state in ("changed", "unreadable")

    def test_misplaced_and_foreign(self, store) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        (store / "date=2026-11-01" / "r1-0.parquet").rename(store / "date=2026-11-02" / "r1-0.parquet")
        (store / "date=2026-11-01" / "r1-1.parquet").rename(store / "date=2026-11-01" / "z.parquet")
        pq.write_table(pa.table({"a": [1]}), store / "foreign.parquet")
        found = {c.path.name: (c.state, c.note) for c in verify(store) if c.state != "ok"}
        assert found["r1-0.parquet"] == ("misplaced", "its launches are of 2026-11-01")
        assert found["z.parquet"][0] == "misplaced" and found["foreign.parquet"][0] == "foreign"


@pytest.mark.parametrize(
    ("sizes", "together"),
    [([60, 60, 30], [[60, 30]]), ([10, 10, 10, 10, 10], [[10, 10, 10], [10, 10]]), ([50, 50], [[50, 50]])],
)
def test_a_group_is_bounded_by_files_and_by_bytes(sizes, together, monkeypatch) -> None:
    monkeypatch.setattr(module, "FILES", 3)
    monkeypatch.setattr(module, "BYTES", 100)
    groups = module._split_bounded([], [SimpleNamespace(size=size) for size in sizes])
    assert [[entry.size for entry in group] for group in groups] == together
