"""Sides of a store, and times of rows as logs."""

from __future__ import annotations

import itertools
import math

import pandas as pd
import pytest

from omb_py.dashboards.base import series
from omb_py.dashboards.changes.ratios import with_logs
from omb_py.dashboards.changes.regions import LOG
from omb_py.dashboards.changes.sides import Pair, keep_common_method, pairs, rows_of, sides


def frame(cell, *who: tuple[str, str, str]) -> pd.DataFrame:
    """Cells of (library, version, binding) at two sizes, two launches each."""
    rows = [
        cell(1.0, 10 * n + launch, library=library, library_version=version, binding=binding, size_bytes=size)
        for n, (library, version, binding) in enumerate(who)
        for size, launch in itertools.product((8, 1024), range(2))
    ]
    return series.prepared(pd.DataFrame(rows))


def names(found: list[Pair]) -> list[str]:
    return [pair.name for pair in found]


def test_versions_of_one_library_come_first_the_newest_before_the_others(cell) -> None:
    rows = frame(
        cell,
        ("Open MPI", "5.0.10", "native"),
        ("MPICH", "5.0.2", "native"),
        ("Open MPI", "5.0.9", "native"),
        ("Open MPI", "4.1.8", "native"),
    )
    found = pairs(sides(rows))
    assert names(found) == [
        "Open MPI 5.0.10 against Open MPI 5.0.9",
        "Open MPI 5.0.9 against Open MPI 4.1.8",
        "Open MPI 5.0.10 against Open MPI 4.1.8",
        "Open MPI 5.0.10 against MPICH 5.0.2",
    ]
    assert [pair.kind for pair in found] == ["versions", "versions", "versions", "libraries"]
    base, new = rows_of(found[0], rows)
    assert set(base["library_version"]) == {"5.0.9"} and set(new["library_version"]) == {"5.0.10"}


def test_libraries_meet_by_the_binding_that_both_have(cell) -> None:
    both = [(lib, "5.0", binding) for lib in ("MPICH", "Open MPI") for binding in ("mpi4py", "native")]
    assert names(pairs(sides(frame(cell, *both)))) == [
        "Open MPI 5.0 · mpi4py against MPICH 5.0 · mpi4py",
        "Open MPI 5.0 · native against MPICH 5.0 · native",
        "MPICH 5.0 · native against MPICH 5.0 · mpi4py",
        "Open MPI 5.0 · native against Open MPI 5.0 · mpi4py",
    ]


def test_parameters_part_sides_only_where_one_side_has_several(cell) -> None:
    rows = pd.DataFrame(
        [cell(1.0, n, benchmark=b, comparability_key=b, parameters={"of": b}) for n, b in enumerate(("bw", "bcast"))]
    )
    assert len(sides(series.prepared(rows))) == 1
    tuned = pd.DataFrame([cell(1.0, n, parameters={"algorithm": str(n)}) for n in range(2)])
    assert names(pairs(sides(series.prepared(tuned)))) == [
        "MPICH 5.0.2 · algorithm=1 against MPICH 5.0.2 · algorithm=0"
    ]


def test_a_side_is_drawn_with_one_set_of_parameters(cell) -> None:
    rows = [
        cell(at, launch, parameters={"sync": sync}, comparability_key=sync)
        for launch, (at, sync) in enumerate([(1.0, "lock"), (2.5, "fence"), (2.6, "fence")])
    ]
    frame = series.prepared(pd.DataFrame(rows))
    [(_, kept)], notes = keep_common_method([("MPICH", frame)])
    assert set(kept["parameters"]) == {"sync=fence"} and len(kept) == 2
    assert notes == ["One way of measuring of several is drawn: parameters sync=fence."]


def test_sides_of_one_library_that_differ_in_two_settings_meet_where_none_is_between_them(cell) -> None:
    apart = [("single", "native"), ("multiple", "mpi4py")]
    rows = [cell(1.0, n, thread_level=level, binding=binding) for n, (level, binding) in enumerate(apart)]
    assert len(pairs(sides(series.prepared(pd.DataFrame(rows))))) == 1
    rows.append(cell(1.0, 2, thread_level="multiple", binding="native"))
    found = pairs(sides(series.prepared(pd.DataFrame(rows))))
    assert len(found) == 2 and all(len(pair.base.differing(pair.new)) == 1 for pair in found)


def test_of_sides_that_a_user_tagged_the_one_that_began_first_is_the_base(cell) -> None:
    def against(*tags: dict[str, str]) -> list[str]:
        rows = [cell(1.0, n, tags=each, run_id=f"r{n}") for n, each in enumerate(tags)]
        return names(pairs(sides(series.prepared(pd.DataFrame(rows)))))

    assert against({"side": "old"}, {"side": "new"}) == ["MPICH 5.0.2 · side=new against MPICH 5.0.2 · side=old"]
    assert against({"baseline": "spring"}, {}) == ["MPICH 5.0.2 against MPICH 5.0.2 · baseline=spring"]
    in_turn = ({"tune_proof": "ring"}, {"tune_proof": "default"})
    assert against(*in_turn) == ["MPICH 5.0.2 · tuned (ring) against MPICH 5.0.2"]


def test_a_rate_is_a_time_a_message_and_no_rate_is_none() -> None:
    frame = pd.DataFrame(
        {
            "unit": ["MB/s", "MB/s", "us", "us"],
            "size_bytes": [1000, 1000, 8, 8],
            "value": [500.0, 0.0, 3.0, 4.0],
            "median_us": [None, None, 3.0, 0.0],
        }
    )
    rows = with_logs(frame)
    assert list(rows.index) == [0, 2]
    assert list(rows[LOG]) == pytest.approx([math.log(2.0), math.log(3.0)])
