"""The copy of a launch's rows, and the hash, in the footer of its file."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omb_py.errors import EnvironmentProblem
from omb_py.results.store import footer
from omb_py.results.store.compaction import compact
from omb_py.results.store.index import refreshed
from omb_py.results.store.paths import entries
from omb_py.results.store.provenance import read_provenance
from omb_py.results.store.read import load, load_launches
from omb_py.results.store.write import write_launch


@pytest.fixture
def path(tmp_path: Path, make_row) -> Path:  # type: ignore[no-untyped-def]
    rows = [
        make_row(size_bytes=size, samples_us=[1.0, 2.0], tags={"a": "b"}, metrics={"x": 0.5}, hosts=["n1", "n2"])
        for size in (8, 4, None)
    ]
    return write_launch(tmp_path, rows, {"n": 1})


def begin_of(data: bytes) -> int:
    """Where the footer of a file begins."""
    return len(data) - 8 - int.from_bytes(data[-8:-4], "little")


def test_it_is_what_the_file_says(path: Path) -> None:
    batch = footer.read_excerpt(path)
    assert batch is not None
    file = pq.read_table(path, partitioning=None).replace_schema_metadata(None)
    assert pa.Table.from_batches([batch]).equals(file.select(footer.COLUMNS))


def test_of_a_file_that_others_have_changed_it_is_not_used(path: Path) -> None:
    kept = pq.read_metadata(path).metadata
    table = pq.read_table(path, partitioning=None).replace_schema_metadata(kept)
    place = table.schema.get_field_index("value")
    pq.write_table(table.set_column(place, table.schema.field(place), pa.array([7.0, 8.0, 9.0])), path)
    assert footer.EXCERPT_KEY in path.read_bytes()
    assert footer.read_excerpt(path) is None


def test_damage_is_never_believed(path: Path) -> None:
    whole = path.read_bytes()
    good = footer.read_excerpt(path)
    first = whole.index(footer.EXCERPT_KEY)
    for place in range(first, len(whole), 97):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        found = footer.read_excerpt(path)
        assert found is None or found.equals(good)
    for length in (0, 3, 8, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        assert footer.read_excerpt(path) is None


def test_a_changed_letter_in_the_name_of_a_column_is_seen_by_every_reader(path: Path) -> None:
    """Parquet's own sums cover pages: the column would be empty."""
    whole, store = path.read_bytes(), path.parent.parent
    place = whole.index(b"ranks_per_node", begin_of(whole))
    path.write_bytes(whole[:place] + b"R" + whole[place + 1 :])
    assert "Ranks_per_node" in pq.read_schema(path).names, "Arrow believes it"
    skipped: dict[Path, str] = {}
    assert load(store, on_skip=skipped.__setitem__).empty
    assert skipped == {path: "not a readable Parquet file (its footer is not the one that was written)"}
    with pytest.raises(EnvironmentProblem, match="its footer is not the one that was written"):
        read_provenance(path)
    again: dict[Path, str] = {}
    assert load_launches(store, {path.stem: path.parent.name[5:]}, columns=["ranks_per_node"]).empty
    assert not compact(store, timedelta(0), on_skip=again.__setitem__) and path.exists()


def test_no_changed_byte_of_a_footer_is_believed(path: Path) -> None:
    whole = path.read_bytes()
    good = footer.read_schema(path)
    ours = range(whole.rindex(footer.SUM_KEY) - 2, len(whole))
    for place in range(begin_of(whole), len(whole), 41):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        if place in ours:
            continue  # the sum itself and the hash hold no facts of the rows
        with pytest.raises(footer.unreadable()):
            footer.read_schema(path)
    path.write_bytes(whole)
    assert footer.read_schema(path).equals(good, check_metadata=True)


def test_the_index_is_made_of_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from omb_py.results.store import index

    monkeypatch.setattr(index, "_NEW", 1)
    monkeypatch.setattr(index, "_YOUNG_NS", -(10**9))
    monkeypatch.setattr(pq, "ParquetFile", None)
    store = path.parent.parent
    found = refreshed(store, entries(store), lambda path, why: pytest.fail(why))
    assert len(found.covered) == 1


def test_a_merged_file_has_none(path: Path, make_row) -> None:  # type: ignore[no-untyped-def]
    store = path.parent.parent
    write_launch(store, [make_row(launch_id="other", launch_index=1)], {})
    (merged,) = compact(store, timedelta(0))
    assert footer.read_excerpt(merged.path) is None and len(load(store)) == 4


def test_the_hash_covers_every_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    assert footer.hash_in(data) == footer.hash_of(data) is not None
    for place in (4, len(data) // 2, data.index(footer.HASH_KEY) - 1):
        data[place] ^= 1
        assert footer.hash_in(data) != footer.hash_of(data)
        data[place] ^= 1
    assert footer.hash_in(b"PAR1PAR1") is footer.hash_of(b"PAR1PAR1") is None
    with pytest.raises(ValueError, match="no place for a hash"):
        footer.seal(bytearray(b"PAR1PAR1"))
