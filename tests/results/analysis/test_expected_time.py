"""The expected time of planned launches, from stored ones."""

from __future__ import annotations

import pytest

from omb_py.results.analysis.expected_time import combined, expected_time, key_of, seconds_of
from omb_py.results.store.write import write_launch


def test_cells_and_starts_are_added() -> None:
    launches = [[("a", 1), ("a", 2)], [("a", 1)]]
    expected = combined(launches, {("a", 1): 2.0, ("a", 2): 3.0}, [1.0, 9.0, 2.0])
    assert expected is not None
    assert (expected.seconds, expected.known, expected.cells) == (2 + 3 + 2 + 2 * 2.0, 3, 3)


def test_unknown_cells_count_like_the_known_ones() -> None:
    expected = combined([[("a", 1), ("a", 2), ("b", 1)]], {("a", 1): 2.0, ("a", 2): 4.0}, [0.5])
    assert expected is not None and expected.seconds == pytest.approx(9.0 + 0.5)
    assert (expected.known, expected.cells) == (2, 3)


@pytest.mark.parametrize(("cells", "overheads"), [({}, [1.0]), ({("a", 1): 1.0}, []), ({("a", 9): 1.0}, [1.0])])
def test_without_history_nothing_is_expected(cells, overheads) -> None:
    assert combined([[("a", 1), ("a", 2), ("a", 3)]], cells, overheads) is None


def test_the_newest_launch_of_a_cell_counts(tmp_path, make_row) -> None:
    for number, mean_us in enumerate((500.0, 100.0)):
        row = make_row(
            launch_id=f"r1-{number}",
            launch_index=number,
            started_at=f"2026-11-2{number}T12:00:00",
            binding="native",
            dtype="char",
            ranks=2,
            size_bytes=8,
            iterations=9000,
            warmup=1000,
            mean_us=mean_us,
        )
        seconds = seconds_of(row)
        assert seconds == pytest.approx(10_000 * mean_us * 1e-6)
        write_launch(tmp_path, [row], {"launch": {"elapsed_s": seconds + 1.5}})
    expected = expected_time(tmp_path, [[key_of(row)]] * 2)
    assert expected is not None and expected.seconds == pytest.approx(2 * (1.0 + 1.5))
    assert expected_time(tmp_path, [[("bcast", "mpi", "native", "char", 2, 8)]]) is None
    assert expected_time(tmp_path / "none", [[key_of(row)]]) is None
