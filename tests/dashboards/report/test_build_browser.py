"""The report in a headless Chromium, from ``file://``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

from omb_py.dashboards.figures.multiples import multiples
from omb_py.dashboards.report.build import Report, TabContent
from omb_py.dashboards.report.html_page import page
from tests.support.browser import DRAW, OVERLAPS, chromium, errors, missing, resize

pytestmark = [pytest.mark.browser, pytest.mark.skipif(bool(missing()), reason=missing() or "there is one")]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(scope="module")
def opened(browser, every_view, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The browser, without a network, with every view drawn."""
    made = Report("s", "", [], "18 cells")
    made.tabs["Compare"] = TabContent(["text"], [], every_view[:6])
    made.tabs["Health"] = TabContent([], ["odd"], every_view[6:9])
    made.tabs["Cell"] = TabContent([], [], every_view[9:])
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(page(made), encoding="utf-8")
    resize(browser, 1280)
    browser.execute_cdp_cmd("Network.enable", {})
    away = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", away)
    browser.get(file.as_uri())
    browser.execute_async_script(DRAW)
    return browser


def test_every_view_is_drawn_without_a_word_on_the_console(opened, every_view) -> None:
    assert errors(opened) == []
    drawn = opened.execute_script(
        "return [...document.querySelectorAll('.plot')].map(p => [p.closest('figure').dataset.kind, "
        "p.querySelectorAll('.main-svg').length, p.data.length])"
    )
    assert len(drawn) == sum(view.spec is not None for view in every_view)
    assert all(svgs > 0 and traces > 0 for _, svgs, traces in drawn)
    assert opened.execute_script("return window.bad") is None
    assert opened.execute_script("return document.querySelectorAll('figure b, figure svg script').length") == 0


def test_what_the_browser_holds_is_what_was_given(opened, every_view) -> None:
    held = opened.execute_script(
        "return JSON.stringify([...document.querySelectorAll('figure[data-kind=curves] .plot')][0].data.map(t => "
        "[...t.y]))"
    )
    given = [trace["y"] for trace in every_view[0].spec["data"]]
    for mine, theirs in zip(given, json.loads(held), strict=True):
        assert theirs == pytest.approx(mine, rel=1e-5)


def test_a_click_on_the_legend_isolates(opened) -> None:
    opened.execute_script(
        "const toggle = document.querySelector('figure[data-kind=curves] .legendtoggle');"
        "toggle.scrollIntoView({block: 'center', behavior: 'instant'});"
    )
    box = opened.execute_script(
        "const b = document.querySelector('figure[data-kind=curves] .legendtoggle').getBoundingClientRect();"
        "return [b.x + b.width / 2, b.y + b.height / 2]"
    )
    for kind in ("mousePressed", "mouseReleased"):
        opened.execute_cdp_cmd(
            "Input.dispatchMouseEvent", {"type": kind, "x": box[0], "y": box[1], "button": "left", "clickCount": 1}
        )
    shown = opened.execute_async_script(
        "const done = arguments[0]; setTimeout(() => "
        "done([...document.querySelectorAll('figure[data-kind=curves] .plot')][0]"
        ".data.map(t => [t.legendgroup, t.visible === undefined || t.visible === true])), 800)"
    )
    groups = {group for group, visible in shown if visible}
    assert len(groups) == 1 and len({group for group, _ in shown}) == 2


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_overlaps_or_sticks_out(opened, width: int) -> None:
    resize(opened, width)
    opened.execute_async_script("setTimeout(arguments[0], 400)")
    opened.execute_async_script(DRAW)
    assert opened.execute_script(OVERLAPS) == []


def test_tables_open_and_hold_the_rows(opened, every_view) -> None:
    opened.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    opened.execute_async_script("setTimeout(arguments[0], 200)")
    counts = opened.execute_script(
        "return [...document.querySelectorAll('details[data-table]')].map(d => d.querySelectorAll('tbody tr').length)"
    )
    assert sorted(counts) == sorted(len(view.rows) for view in every_view)
    assert opened.execute_script("return document.querySelectorAll('pre').length") == len(every_view)


def test_one_tab_is_shown_and_a_link_opens_the_tab_of_its_figure(opened, browser) -> None:
    browser.get(browser.current_url.partition("#")[0] + "?again")
    shown = "return [...document.querySelectorAll('.tab')].filter(t => t.checkVisibility()).map(t => t.id)"
    assert browser.execute_script(shown) == ["compare"]
    browser.execute_script("document.getElementById('tab-cell').click()")
    assert browser.execute_script(shown) == ["cell"]
    place = browser.execute_script("return document.querySelector('#health figure').id")
    browser.execute_script(f"location.hash = '{place}'")
    browser.execute_async_script("setTimeout(arguments[0], 100)")
    assert browser.execute_script(shown) == ["health"]
    browser.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert browser.execute_script(shown) == ["compare", "health", "time", "cell", "workloads"]
    browser.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert browser.execute_script(shown) == ["health"]
    browser.execute_script("document.getElementById('tab-compare').click()")
    browser.execute_async_script(DRAW)


CONTROLS = (
    "return [...document.querySelectorAll('a[href], button, summary, .scroll, .legendtoggle')].filter(e => "
    "e.checkVisibility()).length"
)


def test_every_control_is_reached_by_the_keyboard(opened) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    opened.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true; }); scrollTo(0, 0)")
    wanted = opened.execute_script(CONTROLS)
    assert wanted > 40
    opened.execute_script("window.seen = new Set(); document.addEventListener('focusin', e => seen.add(e.target))")
    for _ in range(wanted // 10 + 2):
        ActionChains(opened).send_keys(Keys.TAB * 10).perform()
    assert opened.execute_script("return seen.size") >= wanted


def test_enter_on_the_legend_isolates(opened) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    find = "const plot = document.querySelector('figure[data-kind=curves] .plot');"
    opened.execute_script(find + "Plotly.restyle(plot, {visible: true}); plot.querySelector('.legendtoggle').focus()")
    ActionChains(opened).send_keys(Keys.ENTER).perform()
    shown = opened.execute_async_script(
        find + "setTimeout(() => arguments[0](plot.data.filter(t => t.visible === true).map(t => t.legendgroup)), 800)"
    )
    assert len(set(shown)) == 1


def test_dark(opened) -> None:
    opened.execute_script("document.getElementById('theme').click()")
    opened.execute_async_script("setTimeout(arguments[0], 300)")
    paper = opened.execute_script("return document.querySelector('.plot')._fullLayout.paper_bgcolor")
    assert paper == "#15191e" and errors(opened) == []


def test_on_paper_it_is_light_fits_and_shows_the_commands(opened, every_view) -> None:
    state = (
        "return [getComputedStyle(document.body).backgroundColor, document.querySelector('.plot')._fullLayout.width,"
        "[...document.querySelectorAll('details[open] pre')].length,"
        "document.querySelector('.plot')._fullLayout.paper_bgcolor]"
    )
    resize(opened, 794)  # of A4
    opened.execute_async_script("setTimeout(arguments[0], 400)")
    before = opened.execute_script(state)
    opened.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    opened.execute_async_script(DRAW)
    assert opened.execute_script(state) == ["rgb(255, 255, 255)", 690, len(every_view), "#ffffff"]
    assert opened.execute_script(OVERLAPS) == []
    opened.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert opened.execute_script(state) == before


@pytest.mark.slow
def test_a_browser_that_cannot_unpack_says_so_and_opens_the_tables(browser, every_view, tmp_path) -> None:
    file = tmp_path / "report.html"
    made = Report("s", "", [], "18 cells")
    made.tabs["Compare"] = TabContent([], [], every_view[:2])
    file.write_text(page(made), encoding="utf-8")
    without = {"source": "delete window.DecompressionStream"}
    added = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", without)
    browser.get(file.as_uri())
    browser.execute_async_script("setTimeout(arguments[0], 200)")
    assert browser.execute_script("return document.querySelector('.plot').textContent").startswith(
        "This browser is too"
    )
    assert browser.execute_script("return document.querySelectorAll('tbody tr').length") == sum(
        len(view.rows) for view in every_view[:2]
    )
    browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


def test_what_is_hovered_in_one_panel_shows_its_values_in_all(browser, frame, tmp_path) -> None:
    rows = pd.concat([frame.assign(ranks=count, median_us=frame["median_us"] * count) for count in (2, 4, 8)])
    made = Report("s", "", [], "54 cells")
    made.tabs["Compare"] = TabContent(views=[multiples([("A", rows)], "allreduce")])
    file = tmp_path / "report.html"
    file.write_text(page(made), encoding="utf-8")
    resize(browser, 1280)
    browser.get(file.as_uri())
    browser.execute_async_script(DRAW)
    x, y = browser.execute_async_script(
        "const done = arguments[0]; setTimeout(() => { const panel = document.querySelectorAll('.nsewdrag')[1]"
        ".getBoundingClientRect(); done([panel.x + panel.width / 2, panel.y + panel.height / 2]); }, 300)"
    )
    browser.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y})
    shown = browser.execute_async_script(
        "const done = arguments[0]; setTimeout(() => done(document.querySelector('.plot')._hoverdata.map(p => "
        "[p.xaxis._id, p.x])), 800)"
    )
    assert sorted(axis for axis, _ in shown) == ["x", "x2", "x3"] and len({at for _, at in shown}) == 1
    assert errors(browser) == []


def test_curves_of_several_ranks_switch_between_time_bandwidth_and_ratio(browser, frame, tmp_path) -> None:
    rows = pd.concat([frame.assign(ranks=count, busbw_gbps=frame["median_us"] * count) for count in (2, 4)])
    made = Report("s", "", [], "36 cells")
    sides = [("A", rows), ("B", rows.assign(median_us=rows["median_us"] * 3))]
    made.tabs["Compare"] = TabContent(views=[multiples(sides, "allreduce")])
    file = tmp_path / "report.html"
    file.write_text(page(made), encoding="utf-8")
    resize(browser, 1280)
    browser.get(file.as_uri())
    browser.execute_async_script(DRAW)
    state = (
        "const plot = document.querySelector('.plot'), { yaxis, yaxis2 } = plot.layout;"
        "const ys = plot.data.filter(t => t.name === 'B').flatMap(t => [...t.y]);"
        "return [yaxis.title.text, yaxis2.title.text, ys, plot.data[0].hovertemplate]"
    )
    click = 'document.querySelector(`[data-quantity="${arguments[0]}"]`).click(); setTimeout(arguments[1], 300)'
    time, *_, times, _ = browser.execute_script(state)
    browser.execute_async_script(click, "ratio")
    ratio, beside, ratios, hover = browser.execute_script(state)
    assert (time, ratio, beside) == ("time (µs)", "time over A's", "") and "×" in hover
    assert ratios == pytest.approx([3.0] * len(times))
    browser.execute_async_script(click, "bus bandwidth")
    rate, _, rates, _ = browser.execute_script(state)
    assert rate == "bus bandwidth (GB/s)" and rates[0] == pytest.approx(2 / 3 * times[0])
    browser.execute_async_script(click, "time")
    assert browser.execute_script(state)[2] == times and errors(browser) == []
