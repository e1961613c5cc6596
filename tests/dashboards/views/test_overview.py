"""The line that says what rows there are."""

from __future__ import annotations

from omb_py.dashboards.views.overview import summary


def test_rows_without_a_library_are_over_none(frame) -> None:
    assert " over MPICH 5.0.2, Open MPI 5.0.2, " in summary([frame])
    unknown = frame.assign(library=None, library_version=None)
    assert " over " not in summary([unknown]) and "allreduce, 2" in summary([unknown])
