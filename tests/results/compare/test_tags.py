"""Tags that omb-py writes itself, and the rows that they take out of comparisons and histories."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.results.analysis.series import rows_of
from omb_py.results.compare.select_launches import read_side
from omb_py.results.store.write import write_launch
from tests.support.rows import row_of


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """An acceptance of two timed launches, after one that checked bytes and before one beside another job."""
    for launch, phase in enumerate(("correctness", "performance", "performance", "beside")):
        row = row_of("a", launch, size_bytes=8, median_us=2.0, tags={"accept_phase": phase})
        write_launch(tmp_path, [row], {})
    return tmp_path


def test_checks_and_calls_beside_another_job_are_no_launches_of_a_side_or_a_history(store: Path) -> None:
    assert {row["launch_id"] for row in read_side("a", store).rows} == {"a-1", "a-2"}
    assert [row["launch_id"] for row in rows_of(store, "allreduce", {})] == ["a-1", "a-2"]


def test_who_asks_for_them_alone_gets_them(store: Path) -> None:
    assert [row["launch_id"] for row in read_side("tag=accept_phase=beside", store).rows] == ["a-3"]
    checks = {"tags": {"accept_phase": "correctness"}}
    assert [row["launch_id"] for row in rows_of(store, "allreduce", checks)] == ["a-0"]
