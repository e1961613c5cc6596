"""One benchmark over size and count: the fastest side in its colour, the crossover, bandwidth, and what is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd
import plotly.graph_objects as go
import pytest

from omb_py.dashboards.base import theme
from omb_py.dashboards.figures.curves import PanelGrid, Points
from omb_py.dashboards.figures.size_by_count import SizeByCount, size_by_count
from tests.support.plotly_figures import plotly_figure

SIZES = (64, 4096, 262144)
SLOW, FAST = "NCCL 2.27.3", "MPICH 5.0"
TIMES = {SLOW: (10.0, 12.0, 40.0), FAST: (5.0, 12.0, 80.0)}
RATES = {2: (0.01, 0.5, 100.0), 8: (0.01, 0.5, 100.0), 16: (0.01, 0.4, 10.0)}
FASTEST = {64: FAST, 4096: None, 262144: SLOW}


def frame(values: tuple[float, ...], launches: float = 5.0) -> pd.DataFrame:
    return pd.DataFrame({"middle": values, "launches": launches}, index=SIZES)


def data(
    sides: Mapping[str, tuple[float, ...]] = TIMES,
    counts: tuple[int, ...] = (2, 8, 16),
    rated: bool = True,
    launches: float = 5.0,
    fastest: Mapping[int, str | None] = FASTEST,
) -> SizeByCount:
    times = {(side, count): frame(values, launches) for side, values in sides.items() for count in counts}
    rates = {(side, count): frame(RATES[count]) for side in sides for count in counts} if rated else {}
    return SizeByCount(
        "allreduce",
        Points(PanelGrid("devices"), times),
        Points(PanelGrid("devices", quantity="busbw"), rates),
        {count: fastest if len(sides) > 1 else {} for count in counts},
        {count: max(1, count // 8) for count in counts},
    )


def test_the_fastest_side_has_its_colour_and_its_lead() -> None:
    view = size_by_count(data(), "title", "caption")
    assert view is not None
    maps = [trace for trace in view.spec["data"] if trace["type"] == "heatmap"]
    assert [trace["name"] for trace in maps] == [SLOW, FAST]
    # at 4096 B the launches do not tell: the palest colour of the first, and a word
    assert maps[0]["z"] == [[None, 0.75, 2.0]] * 3 and maps[1]["z"] == [[2.0, None, None]] * 3
    texts = [note["text"] for note in view.spec["layout"]["annotations"]]
    assert (texts.count("2.0"), texts.count("=")) == (6, 3)
    (seconds,) = [trace for trace in view.spec["data"] if trace["name"] == "the second"]
    assert seconds["marker"]["color"][:3] == [theme.colour(0), theme.colour(1), theme.colour(1)]
    assert any("Who is fastest?" in text and theme.colour(1) in text for text in texts)
    assert "<b>262144 B" not in str(maps[0]["text"]) and "256 KiB, 16 GPUs" in maps[0]["text"][2][2]


def test_the_title_says_who_is_fastest_where_and_the_caption_what_is_kept() -> None:
    view = size_by_count(data(), "title", "method")
    assert view.title == (
        f"allreduce on 16 GPUs, fastest: {FAST} up to 64 B (2.0×), {SLOW} from 256 KiB (2.0×); "
        "elsewhere no difference is shown"
    )
    assert view.caption == (
        "Of the bus bandwidth of one node (8 GPUs), on 16 GPUs "
        f"{SLOW} keeps 10 % at 256 KiB (10 GB/s), 80 % at 4 KiB (0.4 GB/s); "
        f"{FAST} keeps 10 % at 256 KiB (10 GB/s), 80 % at 4 KiB (0.4 GB/s)"
    )
    sure, method = view.notes
    assert method == "method" and sure.endswith("the chance that a row of it calls one of them faster is at most 1 %.")


def test_one_launch_is_no_tie() -> None:
    single = data(launches=1.0, fastest=dict.fromkeys(SIZES))
    view = size_by_count(single, "title", "method")
    texts = [note["text"] for note in view.spec["layout"]["annotations"]]
    assert texts.count("?") == 9 and "=" not in texts
    assert view.title == "title", "nobody is called the fastest"


def test_a_side_has_one_colour_in_every_panel() -> None:
    view = size_by_count(data(), "title", "caption")
    lines = [trace for trace in view.spec["data"] if trace.get("mode") == "lines"]
    assert {trace["yaxis"] for trace in lines} == {"y2", "y3", "y4"}
    for number, side in enumerate((SLOW, FAST)):
        own = {trace["line"]["color"] for trace in lines if trace["name"].endswith(side)}
        assert own == {theme.faint(theme.colour(number), 1.0)}


def test_what_is_kept_is_in_per_cent_of_the_last_count_on_one_node() -> None:
    view = size_by_count(data(), "title", "caption")
    texts = [note["text"] for note in view.spec["layout"]["annotations"]]
    assert any(text.startswith("<b>Kept beyond one node</b>") and "solid: 256 KiB" in text for text in texts)
    kept = [trace for trace in view.spec["data"] if trace["yaxis"] == "y4" and trace["name"].endswith(FAST)]
    assert [trace["y"] for trace in kept] == [[100.0, 80.0], [100.0, 10.0]]
    assert [trace["line"]["dash"] for trace in kept] == ["dot", "solid"]
    assert kept[-1]["text"] == ["100 %", "10 %"]


def test_what_was_measured_on_one_node_alone_keeps_nothing_beyond_it() -> None:
    view = size_by_count(replace(data(), nodes={2: 1, 8: 1, 16: 1}), "title", "caption")
    assert "Kept beyond 2 GPUs" in str(view.spec) and view.caption.startswith("Of the bus bandwidth of 2 GPUs, on 16")
    assert "one node" not in str(view.spec) + view.caption


def test_one_library_has_no_map_of_who_is_fastest() -> None:
    view = size_by_count(data({SLOW: TIMES[SLOW]}), "title", "caption")
    assert {trace["type"] for trace in view.spec["data"]} == {"scatter"}
    assert view.title == "title"


def test_without_bus_bandwidth_times_are_shown() -> None:
    view = size_by_count(data(rated=False), "title", "caption")
    texts = [note["text"] for note in view.spec["layout"]["annotations"]]
    assert any(text.startswith("<b>Time by size</b>") for text in texts)
    assert not any("kept" in text for text in texts)
    assert view.spec["layout"]["yaxis2"]["type"] == "log"


def test_bus_bandwidth_over_gpus_is_linear_unless_lines_would_lie_on_its_axis() -> None:
    wide = data()  # 0.4 to 100 GB/s
    near = {key: rows.assign(middle=[40.0, 60.0, 100.0]) for key, rows in wide.rates.known.items()}
    axes = [
        size_by_count(one, "title", "caption").spec["layout"]["yaxis3"]
        for one in (wide, replace(wide, rates=Points(wide.rates.grid, near)))
    ]
    assert [axis.get("type") for axis in axes] == ["log", None]
    assert [axis["title"]["text"] for axis in axes] == ["GB/s (log)", "GB/s"]


def test_labels_of_lines_that_end_near_each_other_are_apart() -> None:
    sizes = (4, 8, 16, 1024, 2048, 4096)
    rates = {8: [100.0] * 6, 16: [100.0, 100.0, 100.0, 99.0, 50.0, 98.0]}
    both = [
        {
            (SLOW, count): pd.DataFrame({"middle": values, "launches": 5.0}, index=sizes)
            for count, values in rates.items()
        }
        for _ in range(2)
    ]
    times, busbw = Points(PanelGrid("devices"), both[0]), Points(PanelGrid("devices", quantity="busbw"), both[1])
    view = size_by_count(SizeByCount("allreduce", times, busbw, {8: {}, 16: {}}, {8: 1, 16: 2}), "title", "caption")
    (kept,) = [n for n, trace in enumerate(view.spec["data"]) if trace["text"][-1:] == ["50 %"]]
    axis = view.spec["data"][kept]["yaxis"]
    labels = {n["text"]: (n["y"], n["yshift"]) for n in view.spec["layout"]["annotations"] if n["yref"] == axis}
    assert labels == {"2 KiB": (50.0, 0), "4 KiB": (98.0, 0), "1 KiB": (99.0, 11)}, "a point is 1.4 pixels high"


@pytest.mark.parametrize("counts", [(2,), (8,)])
def test_one_count_has_no_such_figure(counts: tuple[int, ...]) -> None:
    assert size_by_count(data(counts=counts), "title", "caption") is None


def test_plotly_takes_it_and_the_table_has_every_number() -> None:
    view = size_by_count(data(), "title", "caption")
    assert isinstance(plotly_figure(view), go.Figure)
    assert len(view.rows) == 9
    assert view.rows[0] == ("64 B", 2, FAST, 2.0, 10.0, 5.0)
    assert view.rows[1] == ("4 KiB", 2, "", "", 12.0, 12.0)
    narrow = view.spec["layout"]["meta"]["narrow"]
    assert narrow["xaxis4"]["domain"] == [0.0, 1.0]
    assert view.spec["layout"]["meta"]["middle"]["xaxis4"]["domain"][1] == 1.0


def test_what_has_no_bus_bandwidth_is_nothing_to_hold_others_against() -> None:
    """One rank has none: the panel of what is kept stood there without a line."""
    whole = data()
    rates = {at: rows for at, rows in whole.rates.known.items() if at[1] != 2}
    part = replace(whole, rates=Points(whole.rates.grid, rates), nodes=dict.fromkeys(whole.nodes, 1))
    view = size_by_count(part, "title", "caption")
    assert view is not None and view.spec["layout"]["yaxis4"]["title"]["text"] == "% of 8 GPUs"
    assert {y for trace in view.spec["data"] if trace.get("yaxis") == "y4" for y in trace["y"]} >= {100.0, 10.0}
