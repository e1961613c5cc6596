from __future__ import annotations

import pandas as pd
import pytest

from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.series import Panel
from omb_py.dashboards.figures import curves
from omb_py.dashboards.views.over_size import panels_over_count


def panel(frame: pd.DataFrame) -> Panel:
    return Panel(series.prepared(frame))


def lines_of(view) -> dict[str, dict]:
    return {t["name"]: t for t in view.spec["data"] if t["mode"] == "lines+markers"}


def test_what_is_drawn_is_what_is_stored(frame) -> None:
    view = curves.curves(panel(frame))
    drawn = lines_of(view)
    assert set(drawn) == {"MPICH 5.0.2", "Open MPI 5.0.2"}
    for library, line in drawn.items():
        stored = frame[frame["library"] == library.removesuffix(" 5.0.2")].groupby("size_bytes")["median_us"].median()
        assert line["x"] == [8, 1024, 65536]
        assert line["y"] == pytest.approx(list(stored))
    tail = next(t for t in view.spec["data"] if t["name"] == "MPICH 5.0.2 p99")
    assert tail["y"] == pytest.approx(list(frame[frame["library"] == "MPICH"].groupby("size_bytes")["p99_us"].median()))
    band = next(t for t in view.spec["data"] if t["name"] == "MPICH 5.0.2 quartiles")
    first = frame[(frame["library"] == "MPICH") & (frame["size_bytes"] == 8)]
    assert band["x"][0] == band["x"][-1] == 8
    assert (band["y"][0], band["y"][-1]) == pytest.approx((first["p25_us"].median(), first["p75_us"].median()))


@pytest.mark.parametrize(("quantity", "unit"), [("time", "µs"), ("busbw", "GB/s"), ("algbw", "GB/s")])
def test_a_point_says_its_unit(frame, quantity: str, unit: str) -> None:
    for line in lines_of(curves.curves(panel(frame), quantity)).values():
        assert line["hovertemplate"].startswith(f"%{{text}}: %{{y:.4g}} {unit}")


def test_the_title_is_the_finding(frame) -> None:
    view = curves.curves(panel(frame))
    assert view.title == "allreduce, 4 ranks: MPICH 5.0.2 is fastest at 64 KiB; up to 2× apart, at 64 KiB"
    one = curves.curves(panel(frame[frame["library"] == "MPICH"]))
    assert one.title == "allreduce: 1.01 µs at 8 B, 66.5 µs at 64 KiB"
    assert one.caption.endswith("4 ranks · 3 launches · 10 800 samples · sync barrier · timing local_max · 2026-11-20")


@pytest.mark.slow
def test_a_side_leads_where_its_launches_lie_apart_and_one_launch_has_no_spread(cell) -> None:
    def title(*launches: tuple[str, float]) -> str:
        rows = [cell(at, n, library=name) for n, (name, at) in enumerate(launches)]
        return curves.curves(panel(pd.DataFrame(rows))).title

    near = [("A", 1.0), ("A", 1.2), ("B", 1.1), ("B", 1.3)]
    assert "no side is faster beyond the noise of the launches; up to 1.09× apart" in title(*near)
    assert "no side is faster than all others beyond the noise" in title(*near, ("C", 9.0), ("C", 9.1))
    far = [("A", 1.0), ("A", 1.01), ("A", 1.02), ("B", 1.3), ("B", 1.31), ("B", 1.32)]
    assert title(*far).startswith("allreduce, 4 ranks: A 5.0.2 is fastest at every size")
    assert "one launch of a side has no known spread, so none is called the fastest" in title(("A", 1.0), ("B", 1.1))


def test_bandwidth_is_told_by_its_peaks(frame) -> None:
    rows = series.prepared(frame.assign(busbw_gbps=frame["size_bytes"] / frame["value"] / 1e3))
    peaks = frame["size_bytes"] / 1e3 / frame.groupby(["library", "size_bytes"])["median_us"].transform("median")
    assert peaks.groupby(frame["library"]).max().round(3).tolist() == [0.985, 0.506]
    assert curves.curves(Panel(rows, "allreduce, bus bandwidth"), "busbw").title == (
        "allreduce, bus bandwidth: up to 0.985 GB/s with MPICH 5.0.2, at 64 KiB; 0.506 GB/s with Open MPI 5.0.2"
    )


def test_a_lower_bound_and_zero_bytes(frame, cell) -> None:
    rows = series.prepared(pd.concat([frame, pd.DataFrame([cell(0.5, size_bytes=0)])]))
    bound = pd.DataFrame({"size_bytes": [8, 1024, 99], "lower_us": [0.5, 0.6, 1.0]})
    view = curves.curves(Panel(rows), bound=bound)
    drawn = next(t for t in view.spec["data"] if t["name"] == "lower bound")
    assert (drawn["x"], drawn["y"]) == ([8, 1024], [0.5, 0.6])
    axis = view.spec["layout"]["xaxis"]
    assert axis["tickvals"][0] == 2.0 and axis["ticktext"][0] == "0 B"
    assert lines_of(view)["MPICH 5.0.2"]["x"][0] == 2.0


def test_bus_bandwidth_and_a_benchmark_that_prints_a_rate(frame) -> None:
    view = curves.curves(panel(frame), quantity="busbw")
    own = frame[frame["library"] == "MPICH"]
    stored = (own["busbw_gbps"] * own["value"] / own["median_us"]).groupby(own["size_bytes"]).median()
    assert lines_of(view)["MPICH 5.0.2"]["y"] == pytest.approx(list(stored))
    rate = frame.assign(unit="MB/s", metric="bandwidth", value=100.0)
    view = curves.curves(panel(rate))
    assert lines_of(view)["MPICH 5.0.2"]["y"] == [100.0] * 3
    assert view.spec["layout"]["yaxis"]["title"]["text"] == "bandwidth (MB/s)"


def test_a_barrier_has_no_size(frame) -> None:
    rows = frame[frame["size_bytes"] == 8].assign(benchmark="barrier", size_bytes=pd.array([None] * 6, dtype="Int64"))
    view = curves.curves(panel(rows))
    assert [t["y"] for t in view.spec["data"]] == [["MPICH 5.0.2"], ["Open MPI 5.0.2"]]
    assert view.spec["data"][0]["x"] == pytest.approx([rows["median_us"].iloc[0]], rel=0.01)


def test_the_passes_of_a_soak_are_one_sample_of_one_side(cell) -> None:
    rows = [cell(at, parameters={"pass": str(number)}) for number, at in enumerate((1.0, 2.0, 9.0))]
    frame = series.prepared(pd.DataFrame(rows))
    assert len(series.lines(frame)) == 1
    (table,) = curves.points([("MPICH", frame)], curves.PanelGrid()).known.values()
    assert table[["middle", "launches"]].to_numpy().tolist() == [[pytest.approx(2.0, rel=0.01), 1.0]]


def test_steps_of_two_workloads_are_no_sides(cell) -> None:
    rows = [
        cell(at * count, launch, ranks=count, benchmark="step", family="workload", size_bytes=0, parameters=workload)
        for launch, (at, workload) in enumerate([(2.0, {"workload": "ddp"}), (3.0, {"workload": "fsdp"})])
        for count in (2, 4)
    ]
    frame = series.prepared(pd.DataFrame(rows))
    names = ["step, workload=ddp", "step, workload=fsdp"]
    assert [name for name, _ in series.measured(frame)] == names
    assert [panel.name for panel in series.panels(frame)] == [f"{n}, {r} ranks" for n in names for r in (2, 4)]
    titles = [shown.view.title for shown in panels_over_count(frame, curves.PanelGrid(across="ranks"))]
    assert [title.partition(", no size")[0] for title in titles] == names


def test_many_series_become_several_panels(frame, cell) -> None:
    rows = pd.DataFrame([cell(1.0, binding=b, ranks=n) for b in "abcd" for n in (2, 4, 8)])
    found = list(series.panels(series.prepared(rows)))
    assert [panel.name for panel in found] == ["allreduce, 2 ranks", "allreduce, 4 ranks", "allreduce, 8 ranks"]
    assert sum(len(panel.rows) for panel in found) == len(rows)


@pytest.mark.slow
def test_many_libraries_are_one_figure_with_the_best_and_the_worst_coloured(cell) -> None:
    rows = pd.DataFrame(
        [
            cell(size * (1 + number / 10), library=f"lib{number:02}", size_bytes=size, comparability_key=f"k{size}")
            for number in range(20)
            for size in (8, 1024)
        ]
    )
    (found,) = series.panels(series.prepared(rows))
    view = curves.curves(found)
    assert len(view.spec["data"]) == 20 and not view.spec["layout"]["showlegend"]
    coloured = [trace["name"] for trace in view.spec["data"] if trace["line"]["color"] != theme.GREY]
    assert sorted(coloured) == ["lib00 5.0.2", "lib19 5.0.2"]
    assert sorted(word["text"] for word in view.spec["layout"]["annotations"]) == sorted(coloured)


def test_the_tags_of_a_comparison_make_no_lines_unless_nothing_else_does(cell) -> None:
    def rows(**more) -> pd.DataFrame:
        sides = ("BASE", "NEW")
        tags = [{"compare_side": side, "compare_look": look, "when": "now"} for side in sides for look in "12"]
        return series.prepared(
            pd.DataFrame(
                [
                    cell(2.0, n, tags=one, **{k: v[sides.index(one["compare_side"])] for k, v in more.items()})
                    for n, one in enumerate(tags)
                ]
            )
        )

    other = rows(library=("MPICH", "Open MPI"))
    assert [one.label for one in series.lines(other)] == ["MPICH 5.0.2", "Open MPI 5.0.2"] and set(other["tags"]) == {
        "when=now"
    }
    same = [one.label for one in series.lines(rows())]
    assert same == ["BASE, when=now", "NEW, when=now"]
