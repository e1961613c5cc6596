from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from omb_py.dashboards.base import series
from omb_py.dashboards.explorer.data import Data
from omb_py.dashboards.views import cells, fits
from omb_py.results.statistics.change_points import LEAST
from tests.dashboards.stores import write


def test_a_step_is_in_the_title_with_what_changed(cell) -> None:
    rows = [
        cell(
            2.0 if n < 10 else 3.0,
            n,
            run_id=f"r{n}",
            started_at=pd.Timestamp("2026-11-20T10:00Z") + pd.Timedelta(hours=n, milliseconds=n % 2),
            library_version="5.0.2" if n < 10 else "5.0.3",
            environment_key=f"e{n < 10}",
        )
        for n in range(20)
    ]
    frame = series.prepared(pd.DataFrame(rows))
    ((view, shown, *_),) = fits.histories(frame, lambda launch: {}, 6)
    assert "50.0 % slower from 2026-11-20 20:00 UTC on (library: MPICH 5.0.2 → MPICH 5.0.3)" in view.title
    assert view.spec["data"][0]["y"] == pytest.approx([2.0] * 10 + [3.0] * 10, rel=1e-3)
    assert view.spec["data"][1]["y"] == pytest.approx([2.0] * 10 + [3.0] * 10, rel=1e-3)
    assert any("r-9 → r-10 (+50.0 %)" in note for note in view.notes)
    assert len(shown) == 20


def test_few_launches_and_one_quiet_day_and_one_run_are_no_history(cell) -> None:
    frame = series.prepared(pd.DataFrame([cell(2.0, n, run_id=f"r{n}") for n in range(LEAST)]))
    one_run = series.prepared(pd.DataFrame([cell(2.0 + (n >= LEAST), n) for n in range(2 * LEAST)]))
    assert fits.histories(one_run, lambda launch: {}, 6) == []
    assert fits.histories(frame.iloc[:-1], lambda launch: {}, 6) == []
    assert fits.histories(frame, lambda launch: {}, 6) == []


@pytest.mark.slow
def test_histories_are_chosen_by_change_and_go_through_the_versions(cell, tmp_path: Path) -> None:
    """One benchmark has twice as many launches and never moves; the other steps at an upgrade."""
    noise = [0.002, -0.001, 0.003, -0.002, 0.001, -0.003]

    def run(number: int) -> dict[str, Any]:
        """A run of its own, a few minutes after the one before."""
        return {"run_id": f"r{number}", "started_at": pd.Timestamp("2026-11-20T10:00Z") + pd.Timedelta(minutes=number)}

    rows = [cell(2.0 * (1 + noise[n % 6]), n, comparability_key="still", **run(n)) for n in range(40)]
    rows += [
        cell(
            (2.0 if n < 10 else 2.6) * (1 + noise[n % 6]),
            100 + n,
            benchmark="bcast",
            comparability_key="steps",
            library_version="5.0.2" if n < 10 else "5.0.3",
            **run(100 + n),
        )
        for n in range(20)
    ]
    frame = pd.DataFrame(rows).astype({"size_bytes": "Int64", "ranks": "Int32"})
    (shown,) = fits.histories(series.prepared(frame), lambda launch: {}, 1)
    assert "bcast" in shown.view.title and "30.0 % slower" in shown.view.title
    data = Data(write(tmp_path / "s", frame))
    first, *_ = fits.over_time(data.cells(data.frame))
    assert "bcast" in first.view.title and "30.0 % slower" in first.view.title, "one series, not one a version"
    assert set(first.rows["library_version"]) == {"5.0.2", "5.0.3"}


def linear(cell, benchmark: str, alpha: float, beta: float, **more) -> list[dict]:
    return [
        cell(
            alpha + beta * 2**n,
            launch,
            benchmark=benchmark,
            size_bytes=2**n,
            bytes_total=2**n,
            comparability_key=f"{benchmark}{n}",
            **more,
        )
        for n in range(3, 20, 2)
        for launch in range(2)
    ]


@pytest.fixture
def bounded(cell) -> pd.DataFrame:
    """An allreduce that takes twice its lower bound at small sizes, and the messages that the bound comes from."""
    rows = linear(cell, "latency", 1.0, 0.001, ranks=2, op=None)
    return pd.DataFrame(rows + linear(cell, "allreduce", 4.0, 0.003, bw_formula="nccl-tests:all_reduce"))


def whole(store: Path, rows: pd.DataFrame) -> cells.Cells:
    """The cells of a store that has these rows."""
    return cells.Cells(store, series.prepared(rows), rows[:0], rows[:0], rows[:0], lambda launch: {})


def test_the_lower_bound_of_a_collective(bounded: pd.DataFrame, tmp_path: Path) -> None:
    every = whole(tmp_path, bounded)
    frame, found = every.rows, every.bounds
    assert set(found["benchmark"]) == {"allreduce"} and set(found["ranks"]) == {4}
    small = found[found["size_bytes"] == 8]["lower_us"].iloc[0]
    assert small == pytest.approx(2 * frame[frame["benchmark"] == "latency"]["median_us"].min(), rel=1e-3)
    panel = frame[frame["benchmark"] == "allreduce"]
    assert list(every.bound_of(panel)["size_bytes"]) == sorted(set(panel["size_bytes"]))


def test_without_messages_there_is_no_bound(bounded: pd.DataFrame, tmp_path: Path) -> None:
    every = whole(tmp_path, bounded[bounded["benchmark"] == "allreduce"])
    assert len(every.bounds) == 0 and every.bound_of(every.rows) is None


def test_the_fit_is_that_of_omb_py_model(bounded: pd.DataFrame, tmp_path: Path) -> None:
    made = fits.fits(whole(tmp_path, bounded))
    assert [view.title.split(" · ")[0] for view, *_ in made] == ["allreduce", "latency"]
    view, rows, *_ = made[0]
    assert set(rows["benchmark"]) == {"allreduce"}
    line = view.spec["data"][1]
    assert line["y"] == pytest.approx([4 + 0.003 * x for x in line["x"]], rel=0.02)
    assert view.columns[-2:] == ("lower bound µs", "efficiency, %") and "% of what the lower bound allows" in view.title


def test_another_tools_numbers_of_the_same_cells_take_no_fit_away(bounded: pd.DataFrame, tmp_path: Path) -> None:
    others = bounded[bounded["size_bytes"] <= 2048].assign(source="OMB text", launch_id="theirs")
    made = fits.fits(whole(tmp_path, pd.concat([bounded, others], ignore_index=True)))
    assert [view.title.split(" · ")[0] for view, *_ in made] == ["allreduce", "latency"]
    sizes = [set(view.spec["data"][0]["x"]) for view, *_ in made]
    assert sizes == [set(bounded["size_bytes"])] * 2, "the curve with most sizes"


def test_a_benchmark_too_short_for_the_clock_takes_no_fit_away(cell, bounded: pd.DataFrame, tmp_path: Path) -> None:
    rows = linear(cell, "bcast", 1.0, 0.001, launch_id="more") + linear(cell, "bcast", 1.0, 0.001)
    short = pd.DataFrame(rows).assign(median_us=0.0)
    made = fits.fits(whole(tmp_path, pd.concat([bounded, short], ignore_index=True)))
    assert [view.title.split(" · ")[0] for view, *_ in made] == ["allreduce", "latency"]
