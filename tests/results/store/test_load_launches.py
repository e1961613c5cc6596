"""Launches whose days are known are read from their own files."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pandas as pd
import pytest

from omb_py.results.store import read
from omb_py.results.store.compaction import compact
from omb_py.results.store.read import load, load_launches
from tests.results.store import writers

COLUMNS = ["launch_id", "benchmark", "size_bytes", "samples_us"]
DAYS = {"a-1": "2026-11-02", "a-5": "2026-11-03"}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    writers.main(str(tmp_path), "a", 6)
    return tmp_path


def names(rows: pd.DataFrame) -> list[tuple[str, int, int]]:
    cells = zip(rows["launch_id"], rows["size_bytes"], rows["samples_us"], strict=True)
    return sorted((launch, int(size), len(samples)) for launch, size, samples in cells)


def test_they_are_what_load_reads_and_no_other_file_is_opened(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = names(load(store, columns=COLUMNS, launch_id=[*DAYS]))
    monkeypatch.setattr(read, "load_table", None)
    assert names(load_launches(store, DAYS, columns=COLUMNS)) == wanted and len(wanted) == 4
    assert len(load_launches(store, DAYS, columns=COLUMNS, benchmark="allreduce", size_bytes=8)) == 2


def test_a_merged_launch_is_found_through_the_store(store: Path) -> None:
    wanted = names(load(store, columns=COLUMNS, launch_id=[*DAYS]))
    assert compact(store, timedelta(0))
    assert names(load_launches(store, DAYS, columns=COLUMNS)) == wanted
    assert len(load_launches(store, {}, columns=COLUMNS)) == len(load_launches(store, {"x": "y"}, columns=COLUMNS)) == 0
