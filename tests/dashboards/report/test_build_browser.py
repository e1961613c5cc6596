"""The report in a headless Chromium, from ``file://``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

from omb_py.dashboards.base.reading import StoreSelection
from omb_py.dashboards.figures.curves import PanelGrid, multiples, points
from omb_py.dashboards.report.build import StoreReport, TabContent, report
from omb_py.dashboards.report.html_page import page
from tests.support import gpu_store
from tests.support.browser import NEEDS_BROWSER, OVERLAPS, chromium, draw_all, errors, press, resize, until

pytestmark = [pytest.mark.slow, *NEEDS_BROWSER]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(scope="module")
def opened(browser, every_view, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The browser, without a network, with every view drawn."""
    made = StoreReport("s", "", [], "18 cells")
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
    draw_all(browser)
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


CURVES = "const plot = document.querySelector('figure[data-kind=curves] .plot');"
GROUPS = CURVES + (
    "return [...new Set(plot.data.filter(t => (t.visible ?? true) === true).map(t => t.legendgroup))].length"
)


def all_groups(opened) -> None:
    """Show every series, whichever test isolated one before."""
    opened.execute_script(CURVES + "Plotly.restyle(plot, {visible: true});")
    until(lambda: opened.execute_script(GROUPS), 2)


def test_a_click_on_the_legend_isolates(opened) -> None:
    all_groups(opened)
    until(lambda: press(opened, CURVES + "return plot.querySelector('.legendtoggle')"), True)
    until(lambda: opened.execute_script(GROUPS), 1)


def test_a_picture_that_is_saved_has_the_name_of_its_figure(opened) -> None:
    title, name = opened.execute_script(
        "const plot = document.querySelector('.js-plotly-plot'); plot.querySelector('.modebar-btn').click();"
        "const title = plot.closest('figure').querySelector('h3').textContent;"
        "return [title, plot._context.toImageButtonOptions.filename];"
    )
    assert title and name == re.sub(r"[^\w.]+", "-", title)[:80]


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_overlaps_or_sticks_out(opened, width: int) -> None:
    resize(opened, width)
    draw_all(opened)
    until(lambda: opened.execute_script(OVERLAPS), [])
    tops = "return new Set([...document.querySelectorAll('[role=tab]')].map(t => t.getBoundingClientRect().top)).size"
    until(lambda: opened.execute_script(tops), 1)


def test_tables_open_and_hold_the_rows(opened, every_view) -> None:
    opened.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    counts = (
        "return [...document.querySelectorAll('details[data-table]')]"
        ".map(d => ['tbody tr', 'td'].map(each => d.querySelectorAll(each).length))"
    )
    whole = [[len(view.rows), len(view.rows) * len(view.columns)] for view in every_view]
    until(lambda: sorted(opened.execute_script(counts)), sorted(whole))
    assert opened.execute_script("return document.querySelectorAll('pre').length") == len(every_view)


def test_one_tab_is_shown_and_a_link_opens_the_tab_of_its_figure(opened, browser) -> None:
    browser.get(browser.current_url.partition("#")[0] + "?again")
    shown = "return [...document.querySelectorAll('.tab')].filter(t => t.checkVisibility()).map(t => t.id)"
    assert browser.execute_script(shown) == ["compare"]
    browser.execute_script("document.getElementById('tab-cell').click()")
    assert browser.execute_script(shown) == ["cell"]
    place = browser.execute_script("return document.querySelector('#health figure').id")
    browser.execute_script(f"location.hash = '{place}'")
    until(lambda: browser.execute_script(shown), ["health"])
    browser.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert browser.execute_script(shown) == ["compare", "health", "history", "cell", "workloads"]
    browser.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert browser.execute_script(shown) == ["health"]
    browser.execute_script("document.getElementById('tab-compare').click()")
    draw_all(browser)


CONTROLS = (
    "return [...document.querySelectorAll('a[href], button, summary, .scroll, .legendtoggle')].filter(e => "
    "e.checkVisibility()).length"
)


def test_every_control_is_reached_by_the_keyboard(opened) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    opened.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true; }); scrollTo(0, 0)")
    unreached = "return document.querySelectorAll('.legendtoggle:not([tabindex])').length"
    until(lambda: opened.execute_script(unreached), 0)
    wanted = opened.execute_script(CONTROLS)
    assert wanted > 40
    opened.execute_script("window.seen = new Set(); document.addEventListener('focusin', e => seen.add(e.target))")
    for _ in range(wanted // 10 + 2):
        ActionChains(opened).send_keys(Keys.TAB * 10).perform()
    assert opened.execute_script("return seen.size") >= wanted


def test_enter_on_the_legend_isolates(opened) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    all_groups(opened)
    opened.execute_script(CURVES + "plot.querySelector('.legendtoggle').focus()")
    ActionChains(opened).send_keys(Keys.ENTER).perform()
    until(lambda: opened.execute_script(GROUPS), 1)


def test_on_paper_it_is_light_and_fits_and_what_is_folded_stays_so(opened) -> None:
    state = (
        "return [getComputedStyle(document.body).backgroundColor, document.querySelector('.plot')._fullLayout.width,"
        "[...document.querySelectorAll('details[open] pre')].length,"
        "document.querySelector('.plot')._fullLayout.paper_bgcolor]"
    )
    resize(opened, 794)  # of A4
    draw_all(opened)
    before = opened.execute_script(state)
    opened.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    draw_all(opened)
    until(lambda: opened.execute_script(state), ["rgb(255, 255, 255)", 690, before[2], "#ffffff"])
    until(lambda: opened.execute_script(OVERLAPS), [])
    opened.execute_script("window.dispatchEvent(new Event('afterprint'))")
    until(lambda: opened.execute_script(state), before)


LINES_OF_CELLS = """
const cells = document.querySelectorAll("figure[data-kind=overview] td:not(.command)");
return [...cells].filter((cell) => cell.textContent).map((cell) => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  return range.getClientRects().length;
});
"""


def test_panels_have_room_on_paper_and_in_half_a_screen(browser, tmp_path) -> None:
    """Four maps, the figure of sizes and counts, and six panels of curves; wide tables do not shrink the paper."""
    gpu_store.write(tmp_path / "s", benchmarks=("allreduce", "allgather", "alltoall", "bcast"))
    file = tmp_path / "report.html"
    file.write_text(page(report(tmp_path / "s", StoreSelection())), encoding="utf-8")
    for width in (640, 820, 990):
        resize(browser, width)
        browser.get(file.as_uri())
        draw_all(browser)
        until(lambda: browser.execute_script(OVERLAPS), [])
    assert set(browser.execute_script(LINES_OF_CELLS)) == {1}, "4 B to 64 MiB stood in three lines"
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    resize(browser, 720)
    browser.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    draw_all(browser)
    until(lambda: browser.execute_script(OVERLAPS), [])
    browser.execute_script("window.dispatchEvent(new Event('afterprint'))")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


SEEN = """
const seen = (name) => [...document.querySelectorAll(name)].filter((each) => each.checkVisibility()).length;
return ["#unscripted", ".plot", "details[data-table]", "figure h3"].map((name) => Math.sign(seen(name)));
"""


def test_where_its_script_may_not_run_the_page_says_so(browser, every_view, tmp_path) -> None:
    """As a server for builds serves it: titles stand there, no empty boxes."""
    file = tmp_path / "report.html"
    made = StoreReport("s", "", [], "18 cells")
    made.tabs["Compare"] = TabContent([], [], every_view[:2])
    file.write_text(page(made), encoding="utf-8")
    browser.get(file.as_uri())
    until(lambda: browser.execute_script(SEEN), [0, 1, 1, 1])
    file.write_text(page(made).replace("script-src 'unsafe-inline'", "script-src 'none'"), encoding="utf-8")
    browser.get(file.as_uri())
    until(lambda: browser.execute_script(SEEN), [1, 0, 0, 1])
    errors(browser)


def test_a_browser_that_cannot_unpack_says_so_and_opens_the_tables(browser, every_view, tmp_path) -> None:
    file = tmp_path / "report.html"
    made = StoreReport("s", "", [], "18 cells")
    made.tabs["Compare"] = TabContent([], [], every_view[:2])
    file.write_text(page(made), encoding="utf-8")
    without = {"source": "delete window.DecompressionStream"}
    added = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", without)
    browser.get(file.as_uri())
    said = "return document.querySelector('.plot').textContent"
    until(lambda: browser.execute_script(said).startswith("This browser is too"), True)
    rows = "return document.querySelectorAll('tbody tr').length"
    until(lambda: browser.execute_script(rows), sum(len(view.rows) for view in every_view[:2]))
    browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


def test_curves_of_several_ranks_switch_between_time_bandwidth_and_ratio(browser, frame, tmp_path) -> None:
    rows = pd.concat([frame.assign(ranks=count, busbw_gbps=frame["median_us"] * count) for count in (2, 4)])
    made = StoreReport("s", "", [], "36 cells")
    sides = [("A", rows), ("B", rows.assign(median_us=rows["median_us"] * 3))]
    made.tabs["Compare"] = TabContent(views=[multiples(sides, "allreduce", points(sides, PanelGrid()))])
    file = tmp_path / "report.html"
    file.write_text(page(made), encoding="utf-8")
    resize(browser, 1280)
    browser.get(file.as_uri())
    draw_all(browser)
    state = (
        "const plot = document.querySelector('.plot'), { yaxis, yaxis2 } = plot.layout;"
        "const ys = plot.data.filter(t => t.name === 'B').flatMap(t => [...t.y]);"
        "return [yaxis.title.text, yaxis2.title.text, ys, plot.data[0].hovertemplate]"
    )
    time, *_, times, _ = browser.execute_script(state)

    def switch(quantity: str, axis: str) -> Any:
        browser.execute_script(f"""document.querySelector('[data-quantity="{quantity}"]').click()""")
        until(lambda: browser.execute_script(state)[0], axis)
        return browser.execute_script(state)

    _, beside, ratios, hover = switch("ratio", "time over A's")
    assert (time, beside) == ("time (µs)", "") and "×" in hover
    assert ratios == pytest.approx([3.0] * len(times))
    *_, rates, _ = switch("bus bandwidth", "bus bandwidth (GB/s)")
    assert rates[0] == pytest.approx(2 / 3 * times[0])
    assert switch("time", time)[2] == times and errors(browser) == []
