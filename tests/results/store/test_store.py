from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import threading
import warnings
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.results.store import index as summary_index
from omb_py.results.store import schema
from omb_py.results.store import write as writing
from omb_py.results.store.read import SkippedFile, distinct_tags, files, load, load_table, read_provenance, to_rows
from omb_py.results.store.write import check_writable, to_table, write_launch


@pytest.fixture
def store(tmp_path, make_row) -> Path:
    """Two launches on two days."""
    root = tmp_path / "store"
    first = [make_row(size_bytes=n, ranks=2, validated=n < 4, value=float(n)) for n in (1, 2, 4)]
    write_launch(root, first, {"software": {"python": "3.11"}})
    later = {"run_id": "r2", "launch_id": "r2-0", "started_at": "2026-11-22T00:00:00+00:00", "benchmark": "barrier"}
    write_launch(root, [make_row(**later, tags={"site": "x"})], {})
    return root


class TestCheckWritable:
    def test_makes_the_folder_and_leaves_nothing_in_it(self, tmp_path) -> None:
        store = tmp_path / "a" / "b"
        check_writable(store)
        check_writable(store)
        assert list(store.iterdir()) == []

    def test_a_file_in_the_way(self, tmp_path) -> None:
        (tmp_path / "file").write_text("")
        for store, needed in ((tmp_path / "file", True), (tmp_path / "file" / "below", False)):
            with pytest.raises(EnvironmentProblem) as caught:
                check_writable(store, needed)
            assert str(caught.value) == (
                f"cannot write results to '{store}': a file is in the way, not a folder; choose another folder with "
                f"--store DIR{'' if needed else ', or measure with --no-store'}"
            )

    @pytest.mark.parametrize("below", [".", "store"])
    def test_a_link_to_a_disk_that_is_not_mounted(self, below: str, tmp_path) -> None:
        (tmp_path / "link").symlink_to("scratch")
        with pytest.raises(EnvironmentProblem, match=r"': .*/link is a link to scratch, which does not exist; choose"):
            check_writable(tmp_path / "link" / below)

    def test_a_path_that_arrow_could_not_read(self, tmp_path) -> None:
        store = tmp_path / os.fsdecode(b"caf\xe9")
        with pytest.raises(EnvironmentProblem, match="the path is not UTF-8; choose another folder"):
            check_writable(store)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.ENOSPC, errno.EDQUOT])
    def test_what_the_system_refuses(self, tmp_path, monkeypatch, number: int) -> None:
        def refuse(handle: int, data: bytes) -> int:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(writing.os, "write", refuse)
        words = {
            errno.EACCES: "permission denied",
            errno.EROFS: "read-only file system",
            errno.ENOSPC: "no space left on the disk",
            errno.EDQUOT: "your quota of disk space is used up",
        }
        with pytest.raises(EnvironmentProblem, match=words[number]):
            check_writable(tmp_path)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("below", [".journal", f"date={datetime.now(UTC).date()}"])
    def test_a_folder_of_another_user(self, tmp_path, monkeypatch, below: str) -> None:
        """Not only when all is measured."""
        (tmp_path / below).mkdir()
        make = writing.tempfile.mkstemp

        def refuse(dir: Path, **words: str) -> tuple[int, str]:
            if dir != tmp_path:
                raise PermissionError(errno.EACCES, "Permission denied")
            return make(dir=dir, **words)

        monkeypatch.setattr(writing.tempfile, "mkstemp", refuse)
        with pytest.raises(EnvironmentProblem, match=f"/{below}': permission denied; choose another folder"):
            check_writable(tmp_path)


class TestWriteLaunch:
    def test_puts_one_file_in_the_folder_of_its_day(self, store) -> None:
        names = [str(path.relative_to(store)) for path in files(store)]
        assert names == ["date=2026-11-21/r1-0.parquet", "date=2026-11-22/r2-0.parquet"]
        everything = [path.name for path in store.rglob("*") if path.is_file()]
        assert sorted(everything) == ["r1-0.parquet", "r2-0.parquet"]

    def test_packs_lists_with_zstd_and_has_dictionaries_and_says_its_version(self, store) -> None:
        meta = pq.read_metadata(files(store)[0])
        columns = {meta.schema.column(i).path: meta.row_group(0).column(i) for i in range(meta.num_columns)}
        packed = {path.partition(".")[0] for path, column in columns.items() if column.compression == "ZSTD"}
        assert packed == {*schema.NAMES} - {*schema.SCALARS}  # lists and maps; of numbers a launch has too few
        assert "RLE_DICTIONARY" in columns["benchmark"].encodings
        assert meta.metadata[b"omb_py.schema_version"] == b"1"
        assert columns["size_bytes"].statistics.max == 4

    def test_the_day_is_the_day_in_utc(self, tmp_path, make_row) -> None:
        path = write_launch(tmp_path, [make_row(started_at="2026-11-21T23:30:00-02:00")], {})
        assert path.parent.name == "date=2026-11-22"
        assert to_rows(load_table(tmp_path))[0]["started_at"] == "2026-11-22T01:30:00+00:00"

    def test_replaces_the_same_launch(self, tmp_path, make_row) -> None:
        write_launch(tmp_path, [make_row(value=1.0), make_row(value=2.0)], {})
        write_launch(tmp_path, [make_row(value=3.0)], {})
        assert load(tmp_path)["value"].tolist() == [3.0]

    def test_can_be_read_by_others_as_the_umask_allows(self, tmp_path, make_row) -> None:
        old = os.umask(0o027)
        try:
            path = write_launch(tmp_path, [make_row()], {})
        finally:
            os.umask(old)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640

    def test_syncs_the_file_before_the_rename_and_the_folder_after(self, tmp_path, make_row, monkeypatch) -> None:
        done: list[str] = []
        fsync, replace = os.fsync, os.replace

        def note_sync(handle: int) -> None:
            done.append(os.readlink(f"/proc/self/fd/{handle}").removeprefix(str(tmp_path)))
            fsync(handle)

        def note_replace(source: str, target: Path) -> None:
            done.append("rename")
            replace(source, target)

        monkeypatch.setattr(writing.os, "fsync", note_sync)
        monkeypatch.setattr(writing.os, "replace", note_replace)
        write_launch(tmp_path, [make_row()], {})
        assert re.fullmatch(r"/date=2026-11-21/\.r1-0-.*\.tmp", done[0])
        assert done[1:] == ["rename", "/date=2026-11-21", ""]

    def test_a_full_disk_leaves_nothing_and_the_old_file(self, tmp_path, make_row, monkeypatch) -> None:
        path = write_launch(tmp_path, [make_row(value=1.0)], {})
        write = os.write

        def fill(handle: int, data: memoryview) -> int:
            if len(data) > 100:
                return write(handle, data[:100])
            raise OSError(errno.ENOSPC, "full")

        monkeypatch.setattr(writing.os, "write", fill)
        with pytest.raises(EnvironmentProblem, match=r"cannot write '.*r1-0\.parquet': no space left on the disk"):
            write_launch(tmp_path, [make_row(value=2.0)], {})
        monkeypatch.undo()
        assert [p.name for p in path.parent.iterdir()] == ["r1-0.parquet"]
        assert load(tmp_path)["value"].tolist() == [1.0]

    def test_rows_that_do_not_fit_are_refused_before_anything_is_written(self, tmp_path, make_row) -> None:
        with pytest.raises(ValueError, match="without rows"):
            write_launch(tmp_path, [], {})
        with pytest.raises(ValueError, match="not the rows of one launch"):
            write_launch(tmp_path, [make_row(), make_row(launch_id="r1-1")], {})
        with pytest.raises(ValueError, match=r"usable id: '\.\./x'"):
            write_launch(tmp_path, [make_row(launch_id="../x")], {})
        with pytest.raises(ValueError, match="column ranks"):
            write_launch(tmp_path, [make_row(ranks="two")], {})
        with pytest.raises(ValueError, match="not a time"):
            write_launch(tmp_path, [make_row(started_at=3)], {})
        assert list(tmp_path.iterdir()) == []

    def test_readers_never_see_a_half_written_file(self, tmp_path, make_row) -> None:
        rows = [make_row(samples_us=[1.0] * 2000) for _ in range(20)]
        write_launch(tmp_path, rows, {})
        stop = threading.Event()

        def writer() -> None:
            while not stop.is_set():
                write_launch(tmp_path, rows, {})

        thread = threading.Thread(target=writer)
        thread.start()
        try:
            lengths = {len(load(tmp_path, columns=["value"])) for _ in range(20)}
        finally:
            stop.set()
            thread.join()
        assert lengths == {20}


class TestLoad:
    def test_gives_all_rows_with_stable_types(self, store) -> None:
        frame = load(store)
        assert len(frame) == 4
        assert list(frame.columns) == [*schema.NAMES, "date"]
        assert frame["size_bytes"].dtype == pd.Int64Dtype()
        assert frame["validated"].dtype == pd.BooleanDtype()
        assert str(frame["started_at"].dtype) == "datetime64[us, UTC]"
        assert frame["tags"].tolist()[3] == {"site": "x"}
        assert frame["date"].tolist() == ["2026-11-21"] * 3 + ["2026-11-22"]

    def test_filters_by_value_list_null_and_day(self, store) -> None:
        assert len(load(store, benchmark="allreduce")) == 3
        assert load(store, size_bytes=[1, 4])["size_bytes"].tolist() == [1, 4]
        assert load(store, size_bytes=None)["benchmark"].tolist() == ["barrier"]
        assert len(load(store, size_bytes=[None, 1])) == 2
        assert len(load(store, date="2026-11-22")) == 1
        assert len(load(store, benchmark="allreduce", size_bytes="2", validated="true")) == 1
        assert load(store, value="4").iloc[0]["size_bytes"] == 4
        for written in ("2026-11-22T00:00:00Z", "2026-11-22 00:00:00", "2026-11-22T01:00:00+01:00", "2026-11-22"):
            assert len(load(store, started_at=written)) == 1, written
        assert len(load(store, benchmark=[])) == 0

    def test_a_second_without_its_fraction_is_the_whole_second(self, tmp_path, make_row) -> None:
        write_launch(tmp_path, [make_row(started_at="2026-11-22T00:00:01.744+00:00")], {})
        for written, rows in (("01", 1), ("01.744", 1), ("00", 0), ("02", 0), ("01.7", 0)):
            assert len(load(tmp_path, started_at=f"2026-11-22 00:00:{written}")) == rows, written

    def test_filters_by_tags(self, tmp_path, make_row) -> None:
        tags = [{"site": "x", "when": "before"}, {"site": "x"}, {"site": "y", "when": "before"}, {}, None]
        write_launch(tmp_path, [make_row(value=float(n), tags=of_row) for n, of_row in enumerate(tags)], {})
        assert load(tmp_path, tags={"site": "x"})["value"].tolist() == [0, 1]
        assert load(tmp_path, tags={"site": "x", "when": "before"}, columns=["value"])["value"].tolist() == [0]
        assert len(load(tmp_path, tags={"site": "nowhere"})) == len(load(tmp_path, tags={"nothing": "x"})) == 0
        assert len(load(tmp_path, tags={})) == 5
        assert distinct_tags(load_table(tmp_path)["tags"]) == {("site", "x"), ("site", "y"), ("when", "before")}
        assert distinct_tags(load_table(tmp_path, tags={"site": "z"})["tags"]) == set()

    def test_a_day_opens_no_other_folder(self, store) -> None:
        (store / "date=2026-11-21" / "junk.parquet").write_bytes(b"junk")
        assert len(load(store, date="2026-11-22")) == 1  # a skipped file would be a warning, so an error
        assert len(load(store, date=["2026-11-22", "2026-11-23"])) == 1
        assert len(load(store, date="2026-11-22..")) == len(load(store, date="2026-11-22..2026-11-22")) == 1
        assert len(load(store, date=["2026-11-23..", "2026-11-20..2026-11-20"])) == 0
        with pytest.warns(SkippedFile):
            assert len(load(store, date=["2026-11-21", "2026-11-22"])) == 4
        with pytest.warns(SkippedFile):
            assert len(load(store, date="..2026-11-21")) == 3

    @pytest.mark.parametrize(
        ("filters", "message"),
        [
            ({"benchmrk": "x"}, "the store has no column 'benchmrk': did you mean benchmark?"),
            ({"ranks": "two"}, "ranks holds whole numbers of 32 bits, which 'two' is not"),
            ({"ranks": 2**40}, "ranks holds whole numbers of 32 bits, which 1099511627776 is not"),
            ({"tags": "x"}, 'cannot filter by tags, which holds texts with names; as tags={"K": "V"}'),
            ({"columns": ["nope"]}, "the store has no column 'nope'"),
            ({"nccl": "2.18"}, 'the store has no column \'nccl\': if it is a tag, filter by tags={"nccl": "VALUE"}'),
        ],
    )
    def test_bad_input_is_named(self, store, filters, message: str) -> None:
        with pytest.raises(UsageError, match=re.escape(message)):
            load(store, **filters)

    def test_no_such_store(self, tmp_path) -> None:
        with pytest.raises(UsageError, match="no store at"):
            load(tmp_path / "nothing")

    def test_an_empty_store_has_columns_and_no_rows(self, tmp_path) -> None:
        frame = load(tmp_path)
        assert len(frame) == 0
        assert list(frame.columns) == [*schema.NAMES, "date"]

    def test_a_day_that_was_moved_and_left_a_link_is_read(self, store, tmp_path) -> None:
        rows, day = len(load(store)), next(path for path in sorted(store.iterdir()) if path.is_dir())
        shutil.move(day, tmp_path / "archive")
        assert len(load(store)) < rows
        day.symlink_to(tmp_path / "archive")
        assert len(load(store)) == rows
        (tmp_path / "archive").rename(tmp_path / "unmounted")
        with pytest.warns(SkippedFile, match="is a link that leads nowhere"):
            assert len(load(store)) < rows

    def test_links_into_the_store_around_it_and_in_circles_add_nothing(self, store, tmp_path) -> None:
        rows, day = len(load(store)), next(path for path in sorted(store.iterdir()) if path.is_dir())
        (store / "again").symlink_to(day)
        (store / "around").symlink_to(tmp_path)
        for name, other in (("one", "two"), ("two", "one")):
            (tmp_path / name).mkdir()
            (tmp_path / name / "on").symlink_to(tmp_path / other)
        (store / "circle").symlink_to(tmp_path / "one")
        assert len(load(store)) == rows

    def test_stores_merge_by_copying_files(self, store, tmp_path, make_row) -> None:
        other = tmp_path / "other"
        write_launch(other, [make_row(run_id="r9", launch_id="r9-0")], {})
        shutil.copytree(other, store, dirs_exist_ok=True)
        assert len(load(store)) == 5


class TestDamagedFiles:
    def skipped(self, store: Path) -> tuple[int, dict[str, str]]:
        found: dict[str, str] = {}
        frame = load(store, on_skip=lambda path, why: found.__setitem__(path.name, why))
        return len(frame), found

    def test_a_file_cut_at_any_length_is_named_and_the_rest_is_read(self, store) -> None:
        data = files(store)[0].read_bytes()
        cut = store / "date=2026-11-21" / "cut.parquet"
        for length in sorted({0, 1, 4, 8, 100, len(data) // 2, len(data) - 8, len(data) - 1}):
            cut.write_bytes(data[:length])
            rows, found = self.skipped(store)
            assert rows == 4
            assert list(found) == ["cut.parquet"]
            assert found["cut.parquet"].startswith("not a readable Parquet file")

    def test_a_broken_page_is_named_and_the_rest_is_read(self, store, make_row) -> None:
        row = make_row(run_id="b", launch_id="b-0", samples_us=[float(n * n % 977) for n in range(5000)])
        path = write_launch(store, [row], {})
        column = pq.read_metadata(path).row_group(0).column(schema.NAMES.index("samples_us"))
        data = bytearray(path.read_bytes())
        start = column.dictionary_page_offset or column.data_page_offset
        data[start : start + 60] = b"\xff" * 60
        path.write_bytes(data)
        rows, found = self.skipped(store)
        assert rows == 4
        assert list(found) == ["b-0.parquet"]
        assert found["b-0.parquet"].startswith("damaged")

    def test_a_foreign_parquet_file(self, store) -> None:
        pq.write_table(pa.table({"run_id": ["x"], "a": [1]}), store / "foreign.parquet")
        assert self.skipped(store) == (4, {"foreign.parquet": "not written by omb-py"})

    def test_a_newer_schema(self, store, make_row) -> None:
        self.rewrite(store, make_row, {b"omb_py.schema_version": b"2"})
        rows, found = self.skipped(store)
        assert rows == 4
        assert found == {"x-0.parquet": "its schema version is 2, this omb-py knows up to 1: update omb-py"}

    def test_a_column_of_another_type(self, store, make_row) -> None:
        self.rewrite(store, make_row, None, lambda t: t.set_column(0, "run_id", pa.array([7])))
        assert self.skipped(store) == (4, {"x-0.parquet": "column run_id is int64, not string"})

    def test_columns_that_a_file_lacks_become_null(self, store, make_row) -> None:
        self.rewrite(store, make_row, None, lambda t: t.drop_columns(["tags", "validated"]).append_column("z", [[1]]))
        frame = load(store, run_id="x")
        assert len(frame) == 1
        assert frame["validated"].isna().all()
        assert frame["tags"].tolist() == [None]
        assert "z" not in frame

    def test_without_a_callback_a_skipped_file_is_a_warning(self, store) -> None:
        (store / "junk.parquet").write_bytes(b"junk")
        with pytest.warns(SkippedFile, match=r"skipped .*junk\.parquet: not a readable Parquet file"):
            assert len(load(store)) == 4
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(SkippedFile):
                load(store)

    @pytest.mark.parametrize("indexed", [False, True])
    def test_a_damaged_text_costs_its_file_only(self, store, make_row, monkeypatch, indexed: bool) -> None:
        def flipped(table: pa.Table) -> pa.Table:
            offsets = pa.py_buffer(np.array([0, 3], np.int32).tobytes())
            damaged = pa.StringArray.from_buffers(1, offsets, pa.py_buffer(b"\xffPI"))
            return table.set_column(table.schema.get_field_index("library"), "library", damaged)

        if indexed:
            monkeypatch.setattr(summary_index, "WORTH", 1)
        self.rewrite(store, make_row, None, flipped)
        rows, problems = self.skipped(store)
        assert rows == 4
        assert list(problems) == ["x-0.parquet"] and "UTF8" in problems["x-0.parquet"].replace("-", "")

    @staticmethod
    def rewrite(store: Path, make_row, metadata, change=lambda table: table) -> None:
        """Put a file into the store as another version of omb-py would have written it."""
        table = to_table([make_row(run_id="x", launch_id="x-0")], {})
        changed = change(table).replace_schema_metadata({**table.schema.metadata, **(metadata or {})})
        pq.write_table(changed, store / "date=2026-11-21" / "x-0.parquet")


class TestReadProvenance:
    def test_gives_what_was_written(self, store) -> None:
        assert [read_provenance(path) for path in files(store)] == [{"software": {"python": "3.11"}}, {}]
