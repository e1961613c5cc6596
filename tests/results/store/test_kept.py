"""Files of every schema version, as the omb-py of that version wrote them, stay readable.

``kept/schema-N*.parquet`` are never written again. A new schema version adds its own file here.
"""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from omb_py.results.store import index
from omb_py.results.store.compaction import compact
from omb_py.results.store.integrity import verify
from omb_py.results.store.provenance import provenances, read_provenance
from omb_py.results.store.read import load, load_table, to_rows
from omb_py.results.store.schema import SCHEMA_VERSION

KEPT = sorted((Path(__file__).parent / "kept").glob("*.parquet"))
LAUNCH = "20261101T120000-kept-0"


def version_of(path: Path) -> int:
    return int(path.stem.split("-")[1])


@pytest.fixture(params=KEPT, ids=lambda path: path.stem)
def kept(request, tmp_path) -> tuple[int, Path]:
    """The version, and a store with the file."""
    target = tmp_path / "date=2026-11-01" / f"{LAUNCH}.parquet"
    target.parent.mkdir()
    shutil.copy(request.param, target)
    return version_of(request.param), tmp_path


def test_there_is_one_of_every_version() -> None:
    assert {version_of(path) for path in KEPT} == set(range(1, SCHEMA_VERSION + 1))


def check(store: Path, version: int) -> None:
    rows = to_rows(load_table(store, on_skip=pytest.fail))
    assert [row["size_bytes"] for row in rows] == [8, 1024]
    first = rows[0]
    assert first["schema_version"] == version and first["started_at"] == "2026-11-01T12:00:00+00:00"
    assert first["samples_us"] == [1.0, 1.5, 2.0, 1.25, 1.75, 1.5] and first["median_us"] == 1.5
    assert first["metrics"] == {"overall": 1.5} and first["hosts"] == ["n1", "n1"] and first["tags"] == {"site": "kept"}
    assert first["parameters"] == ({"tests": "3"} if version >= 2 else None)
    assert len(load(store, benchmark="allreduce", size_bytes=1024)) == 1


def test_it_is_read(kept) -> None:
    version, store = kept
    check(store, version)
    (path,) = store.rglob("*.parquet")
    assert read_provenance(path) == {"libraries": {"Open MPI": "5.0.11"}, "version": version}
    assert [c.state for c in verify(store)] in (["ok"], ["no hash"])


def test_it_is_indexed(kept, monkeypatch) -> None:
    version, store = kept
    for name, value in (("WORTH", 1), ("_NEW", 1), ("_YOUNG_NS", -(10**9))):
        monkeypatch.setattr(index, name, value)
    check(store, version)
    found = load(store, columns=["parameters", "median_us"], size_bytes=8)
    assert found["median_us"].tolist() == [1.5] and list((store / ".index").glob("*.part"))


def test_it_is_merged_with_others_into_the_schema_of_today(kept, make_row) -> None:
    from omb_py.results.store.write import write_launch

    version, store = kept
    write_launch(store, [make_row(run_id="z", launch_id="z-0", started_at="2026-11-01T13:00:00", size_bytes=7)], {})
    (merged,) = compact(store, timedelta(days=1), now=datetime(2026, 11, 21, tzinfo=UTC))
    assert provenances(merged.path)[LAUNCH] == {"libraries": {"Open MPI": "5.0.11"}, "version": version}
    assert len(load(store)) == 3
    (only,) = to_rows(load_table(store, launch_id=LAUNCH, size_bytes=8))
    assert only["schema_version"] == version and only["samples_us"][0] == 1.0
    assert [c.state for c in verify(store)] == ["ok"]
