from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from omb_py.results.analysis.series import KINDS, SeriesPoint, kind_of, units_of

START = datetime(2026, 11, 1, 22, tzinfo=UTC)


def launch(number: int, hours: float, run: str, version: str = "5", log_time: float = 0.0) -> SeriesPoint:
    started = (START + timedelta(hours=hours)).isoformat()
    return SeriesPoint(run, f"{run}-{number}", started, version, "e", log_time)


pauses = st.lists(st.tuples(st.floats(0, 30), st.booleans(), st.sampled_from("45")), max_size=30)


@given(pauses, st.sampled_from(KINDS), st.booleans())
def test_units_are_a_partition(drawn, kind, versions) -> None:
    hours, run, points = 0.0, 0, []
    for number, (pause, new_run, version) in enumerate(drawn):
        hours, run = hours + pause, run + new_run
        points.append(launch(number, hours, f"r{run}", version, float(number)))
    units = units_of(points, kind, versions)
    assert sorted((p for unit in units for p in unit.points), key=points.index) == points
    for unit in units:
        assert len({p.library_version for p in unit.points}) == 1
        assert min(p.log_time for p in unit.points) <= unit.log_time <= max(p.log_time for p in unit.points)
        assert kind != "run" or len({p.run_id for p in unit.points}) == 1
    if versions:
        assert [u.points[0].library_version for u in units] == sorted(u.points[0].library_version for u in units)


def test_a_night_goes_past_midnight_and_is_the_unit_where_there_are_several() -> None:
    evening = [launch(number, hours, f"r{number}") for number, hours in enumerate((0, 1, 3, 5))]
    assert kind_of(evening) == "run" and kind_of([]) == "run"
    both = [*evening, launch(4, 24, "r4"), launch(5, 25, "r5")]
    assert kind_of(both) == "night"
    assert [len(unit.points) for unit in units_of(both, "night")] == [4, 2]
    assert [len(unit.points) for unit in units_of(both, "launch")] == [1] * 6


def test_launches_of_a_run_are_one_and_its_number_is_their_mean() -> None:
    points = [launch(n, n / 60, "r0" if n < 3 else "r1", log_time=n) for n in range(5)]
    assert [unit.log_time for unit in units_of(points, "run")] == [1.0, 3.5]


def test_two_versions_of_a_night_are_two_units() -> None:
    points = [launch(n, n / 60, f"r{n}", "5.0.10" if n % 2 else "5.0.9") for n in range(4)]
    assert [u.points[0].library_version for u in units_of(points, "night")] == ["5.0.9", "5.0.10"]
    newer_first = list(reversed(points))
    newer_first = [launch(n, n / 60, p.run_id, p.library_version) for n, p in enumerate(newer_first)]
    assert [u.points[0].library_version for u in units_of(newer_first, "night")] == ["5.0.10", "5.0.9"]
    assert [u.points[0].library_version for u in units_of(newer_first, "night", True)] == ["5.0.9", "5.0.10"]
