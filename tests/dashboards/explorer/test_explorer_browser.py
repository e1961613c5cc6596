"""The explorer in a headless Chromium."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omb_py.cli import main
from omb_py.dashboards.explorer.data import FILTERS, Data
from omb_py.dashboards.explorer.state import choices
from tests.dashboards.stores import write
from tests.dashboards.views.test_checks import LINKS, PROMISES
from tests.dashboards.views.test_comparisons import compared
from tests.dashboards.views.test_tuning import LINE as TUNED
from tests.support import gpu_store
from tests.support.browser import DRAWN, NEEDS_BROWSER, OVERLAPS, chromium, errors, mouse, press, resize, until
from tests.support.explorer_server import served

pytestmark = [pytest.mark.slow, *NEEDS_BROWSER]

TITLES = "return [...document.querySelectorAll('#figures h3')].map(h => h.textContent)"
TRACES = (
    "return [...document.querySelectorAll('.js-plotly-plot')].flatMap(p => p.data.filter(t => t.mode === "
    "'lines+markers').map(t => t.name))"
)

ROWS = "return dash_ag_grid.getApi('cells').getDisplayedRowCount()"
SEARCH = "return location.search"
BOTH = ["MPICH 5.0.2", "Open MPI 5.0.2"]


@pytest.fixture(scope="module")
def store(frame, cell, step_cells, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two libraries, also on eight ranks, with a comparison and something for every view."""
    more = frame.assign(
        ranks=8,
        median_us=frame["median_us"] * 3,
        comparability_key=frame["comparability_key"] + "p8",
        launch_id=frame["launch_id"] + "p8",
        run_id="p8",
        benchmark="bcast",
        environment_key="e1",
        started_at=frame["started_at"] + pd.to_timedelta(frame["launch_index"] // 2, unit="D"),
    )
    both = pd.concat([frame, more, more.assign(ranks=4, launch_id=more["launch_id"] + "p4", comparability_key="p4")])
    sizes = [
        cell(
            1 + 2**n / 1000,
            50,
            run_id="l",
            launch_id="l",
            benchmark="latency",
            ranks=2,
            size_bytes=2**n,
            bytes_total=2**n,
            comparability_key=f"l{n}",
        )
        for n in (3, 6, 16, 18)
    ]
    made = write(tmp_path_factory.mktemp("s") / "store", pd.concat([both, pd.DataFrame(sizes), step_cells]))
    tuned = TUNED.replace("allreduce", "alltoall").split()
    assert main([*tuned, "--store", str(made), "--folder", str(made / "tuned")]) == 0
    compared(made)
    for words in (LINKS, PROMISES):
        assert main([*words.split(), "--store", str(made)]) == 1
    return made


@pytest.fixture(scope="module")
def address(store: Path) -> Iterator[str]:
    with served(store) as found:
        yield found


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(autouse=True)
def wide(browser: Any) -> None:
    """What the test before has left must not matter."""
    browser.get("about:blank")
    errors(browser)
    resize(browser, 1280)


def visit(browser: Any, link: str) -> None:
    """Open a page and wait until it has drawn all that it shows."""
    browser.get(link)
    until(lambda: browser.execute_script(DRAWN), True)


CHOSEN = "return document.querySelector('#view input:checked')?.value"
FOLLOW = "history.pushState(null, '', arguments[0]); window.dispatchEvent(new PopStateEvent('popstate'));"


def follow(browser: Any, view: str, more: str = "") -> None:
    """Go to another view in the page that is open, by its link, and wait until it is drawn."""
    browser.execute_script(FOLLOW, f"?view={view}{more}")
    until(lambda: browser.execute_script(CHOSEN), view)
    until(lambda: browser.execute_script(DRAWN), True)


OPTION = """
const options = document.querySelectorAll(
  ".dash-dropdown-options label, .dash-options-list label, [role=listbox] label");
const wanted = [...options].find((option) => option.textContent.includes("Open MPI"));
wanted?.click();
return wanted !== undefined;
"""


def test_a_filter_changes_the_figure_and_the_link_restores_it(browser, address: str) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    visit(browser, address + "?view=curves&benchmark=allreduce")
    until(lambda: browser.execute_script(TRACES), BOTH)
    browser.find_element(By.ID, "library").send_keys(Keys.ENTER)
    until(lambda: browser.execute_script(OPTION), True)
    until(lambda: browser.execute_script(TRACES), ["median"])
    chosen, title = "?view=curves&benchmark=allreduce&library=Open+MPI", ["allreduce: 1.01 µs at 8 B, 133 µs at 64 KiB"]
    until(lambda: browser.execute_script(SEARCH), chosen)
    until(lambda: browser.execute_script(TITLES), title)
    assert errors(browser) == []

    browser.get("about:blank")
    visit(browser, address + chosen)
    until(lambda: browser.execute_script(TITLES), title)
    assert browser.execute_script(SEARCH) == chosen
    assert errors(browser) == []


UNITS = """
// axes that a reader sees, without a title: categories and counts name themselves, the rest needs a unit
return [...document.querySelectorAll('#figures .js-plotly-plot')].flatMap((p) => Object.entries(p._fullLayout)
  .filter(([name, axis]) => /^[xy]axis/.test(name) && axis.type !== 'category' && axis.showticklabels !== false
    && !(axis.title && axis.title.text)).map(([name]) => `${p.closest('section').dataset.kind} ${name}`));
"""


UNMEASURED = {"gpus"}
"""Views of what is stored with GPUs only."""


@pytest.mark.parametrize(("theme", "width", "paper"), [("light", 1280, "#ffffff"), ("dark", 390, "#15191e")])
def test_each_view_is_drawn_without_a_word_on_the_console(
    browser, address: str, theme: str, width: int, paper: str
) -> None:
    """No text lies on another; every axis has its unit, where that has room."""
    # the others show enough of one benchmark
    wide = {"scaling", "history", "environment", "model", "guidelines", "pairs", "steps", "tuned", "winners"}
    resize(browser, width)  # a phone has its width when it opens the page
    visit(browser, f"{address}?theme={theme}")
    for view in choices()["view"]:
        if view in UNMEASURED:
            continue
        follow(browser, view, f"&theme={theme}{'' if view in wide else '&benchmark=allreduce'}")
        assert browser.execute_script("return document.querySelector('#note').textContent") == "", view
        assert theme == "dark" or browser.execute_script(UNITS) == [], view
        until(lambda: browser.execute_script(PAPERS), [paper])
        until(lambda: browser.execute_script(OVERLAPS), [])
        assert errors(browser) == [], view


PAPERS = """
const plots = [...document.querySelectorAll('#figures .js-plotly-plot')].map((p) => p._fullLayout.paper_bgcolor);
const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number);
return [...new Set([...plots, '#' + [r, g, b].map((v) => v.toString(16).padStart(2, '0')).join('')])];
"""


def test_on_a_phone_the_filters_are_folded_and_the_figure_is_seen(browser, address: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    resize(browser, 390, 844)
    visit(browser, address + "?view=curves&benchmark=allreduce")
    until(lambda: browser.execute_script(TRACES), BOTH)
    folded = "return [document.getElementById('choices').hidden, document.getElementById('fold').ariaExpanded]"
    until(lambda: browser.execute_script(folded), [True, "false"])
    assert browser.execute_script("return document.getElementById('chosen').textContent") == (
        "over message size · benchmark allreduce"
    )
    top = "return document.querySelector('.js-plotly-plot').getBoundingClientRect().top"
    # the tabs and the views take the room of two lines
    until(lambda: browser.execute_script(top) < 0.6 * 844, True)
    browser.execute_script("document.body.focus()")
    for _ in range(12):  # the tabs come first
        ActionChains(browser).send_keys(Keys.TAB).perform()
        if browser.execute_script("return document.activeElement.id") == "fold":
            break
    ActionChains(browser).send_keys(Keys.ENTER).perform()
    until(lambda: browser.execute_script(folded), [False, "true"])
    resize(browser, 1280)
    visit(browser, address + "?view=curves&benchmark=allreduce")
    until(lambda: browser.execute_script(TRACES), BOTH)
    until(lambda: browser.execute_script(folded), [False, "true"])


def test_back_and_forth_restore_controls_and_figures(browser, address: str) -> None:
    visit(browser, address + "?view=curves&benchmark=allreduce")
    until(lambda: browser.execute_script(TRACES), BOTH)
    kind = "return document.querySelector('#figures section').dataset.kind"
    browser.execute_script("document.querySelector('#view input[value=first]').click()")
    until(lambda: browser.execute_script(kind), "status")
    until(lambda: browser.execute_script(SEARCH), "?benchmark=allreduce")
    until(lambda: browser.execute_script(DRAWN), True)
    browser.back()
    until(lambda: browser.execute_script(kind), "curves")
    until(lambda: browser.execute_script(CHOSEN), "curves")
    until(lambda: browser.execute_script(DRAWN), True)
    assert browser.execute_script(SEARCH) == "?view=curves&benchmark=allreduce"
    browser.forward()
    until(lambda: browser.execute_script(kind), "status")
    until(lambda: browser.execute_script(CHOSEN), "first")


def test_every_control_is_reached_by_the_keyboard(browser, address: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    visit(browser, address + "?view=curves&benchmark=latency&library=MPICH")
    until(lambda: browser.execute_script(ROWS), 4)
    controls = ["view", "quantity", "count", "theme", "size", "fold", "csv", "parquet", "cells"]
    wanted = {*controls, *FILTERS}
    reached: set[str] = set()
    where = (
        "const found = []; for (let e = document.activeElement; e; e = e.parentElement) if (e.id) found.push(e.id); "
        "return found"
    )
    for _ in range(120):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        reached |= set(browser.execute_script(where))
        if wanted <= reached:
            break
    assert wanted - reached == set()


def test_a_click_on_the_legend_isolates(browser, address: str) -> None:
    visit(browser, address + "?view=curves&benchmark=allreduce")
    until(lambda: browser.execute_script(TRACES), BOTH)
    visible = (
        "return [...new Set(document.querySelector('.js-plotly-plot').data.filter(t => (t.visible ?? true) === true)"
        ".map(t => t.legendgroup))].length"
    )
    until(lambda: browser.execute_script(visible), 2)
    until(lambda: press(browser, "return document.querySelector('.legendtoggle')"), True)
    until(lambda: browser.execute_script(visible), 1)
    browser.execute_script("document.querySelector('#theme input[value=dark]').click()")
    until(lambda: browser.execute_script(PAPERS), ["#15191e"])
    assert browser.execute_script(visible) == 1, "what is drawn again has the same series"
    assert errors(browser) == []


def test_new_launches_appear_by_themselves(browser, tmp_path: Path, cell) -> None:
    def launch(name: str, size: int) -> pd.DataFrame:
        there = {"run_id": name, "launch_id": name, "benchmark": "latency", "ranks": 2, "size_bytes": size}
        return pd.DataFrame([cell(1.5, 60, **there)])

    about = "return (document.getElementById('about') || {}).textContent || ''"
    with served(write(tmp_path / "store", launch("a", 8)), refresh_ms=500) as place:
        browser.get(place + "?view=curves&benchmark=latency&library=MPICH")
        until(lambda: ": 1 row of " in browser.execute_script(about), True)
        until(lambda: browser.execute_script(ROWS), 1)
        write(tmp_path / "store", launch("z", 16))
        until(lambda: ": 2 rows of " in browser.execute_script(about), True)
        until(lambda: browser.execute_script(ROWS), 2)
        assert errors(browser) == []
        browser.get("about:blank")  # before the server ends, which it would ask


def test_the_first_screen_has_room_beside_the_sidebar(browser, tmp_path: Path) -> None:
    """Beside the sidebar the figures have a third less than the window."""
    gpu_store.write(tmp_path / "s", benchmarks=("allreduce", "allgather", "alltoall", "bcast"))
    with served(tmp_path / "s") as place:
        for width in (1024, 1440):
            resize(browser, width)
            visit(browser, place)
            until(lambda: browser.execute_script(OVERLAPS), [])
            browser.get("about:blank")


LOST = "return document.getElementById('lost').textContent"


def test_what_is_not_answered_is_said(browser, tmp_path: Path, cell, monkeypatch: pytest.MonkeyPatch) -> None:
    """An explorer that ended, and one that failed: a control without effect says nothing of either."""

    def choose(value: str) -> None:
        browser.execute_script(f"document.querySelector('#quantity input[value={value}]').click()")

    with served(write(tmp_path / "store", pd.DataFrame([cell()]))) as place:
        visit(browser, place)
        assert browser.execute_script(LOST) == ""
        with monkeypatch.context() as broken:
            broken.setattr(Data, "drawn", None)
            choose("busbw")
            until(lambda: browser.execute_script(LOST).startswith("The explorer could not answer"), True)
        choose("time")
        until(lambda: browser.execute_script(LOST), "")
        until(lambda: browser.execute_script(DRAWN), True)
    choose("busbw")
    until(lambda: browser.execute_script(LOST).startswith("The explorer does not answer"), True)
    assert browser.execute_script("return document.getElementById('lost').getBoundingClientRect().height") > 0


WILD = "<b>x</b><img src=x onerror='window.bad=1'><script>window.bad=1</script><a href='javascript:window.bad=1'>y</a>"
NAMES = ("library", "library_version", "binding_version", "device_name", "host", "hosts", "tags", "op", "source")
"""Columns whose texts are a site's own: only they hold markup in a store that is read at all."""
RUN = """
return window.bad === undefined && document.querySelectorAll(
  "main img, main script, main b:not(.kind), a[href^='javascript'], #drawer img").length;
"""
FIGURES = "return document.getElementById('figures').textContent"


def test_markup_is_text_in_every_view_and_a_broken_file_is_named(browser, wild_store) -> None:
    marked = set()
    visit(browser, wild_store)
    for view in choices()["view"]:
        follow(browser, view)
        assert browser.execute_script(RUN) == 0, view
        marked |= {view} if browser.execute_script(FIGURES).count(WILD) else set()
        assert errors(browser) == [], view
    assert marked >= set(choices()["view"]) - {"gpus"}, "the store has none"
    follow(browser, "curves", "&benchmark=allreduce")
    until(lambda: opened(browser, "allreduce 8 B"), "")
    until(lambda: browser.execute_script(DRAWN), True)
    assert WILD in browser.execute_script("return document.getElementById('drawer').textContent")
    assert browser.execute_script(RUN) == 0
    about = browser.execute_script("return document.querySelector('#about').textContent")
    assert "1 file could not be read" in about and "broken.parquet: not a readable Parquet file" in about
    assert errors(browser) == []


def _marked(value: Any) -> Any:
    """A value of a table or a JSON file with markup in each text."""
    if isinstance(value, dict):
        return {key: _marked(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_marked(each) for each in value]
    return value + WILD if isinstance(value, str) else value


@pytest.fixture(scope="module")
def wild_store(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an explorer of the store with markup in all names, and a file that is none."""
    wild = Path(shutil.copytree(store, tmp_path_factory.mktemp("odd") / "wild"))
    for file in wild.glob("date=*/*.parquet"):
        with pq.ParquetFile(file) as opened_file:
            table = opened_file.read()
        for name in set(NAMES) & set(table.column_names):
            column = table.schema.field(name)
            values = [[*v, (WILD, WILD)] if name == "tags" else _marked(v) for v in table[name].to_pylist()]
            table = table.set_column(table.schema.get_field_index(name), column, pa.array(values, column.type))
        pq.write_table(table, file)
    for file in (*wild.rglob("*.json"), *wild.rglob("*.report")):
        text = file.read_text()
        for name in ("MPICH", "Open MPI"):
            text = text.replace(name, json.dumps(name + WILD)[1:-1])
        file.write_text(text)
    next(wild.glob("date=*")).joinpath("broken.parquet").write_bytes(b"PAR1 no")
    with served(wild) as address:
        yield address


DRAWER = """
const drawer = document.getElementById('drawer');
const drawn = drawer && !drawer.hidden && drawer.querySelectorAll('.main-svg').length > 0;
return drawn ? drawer.querySelector('h2').textContent : '';
"""
POINT = """
const p = [...document.querySelectorAll('#figures .points path.point')][3];
p.scrollIntoView({ block: 'center', behavior: 'instant' });
const b = p.getBoundingClientRect();
return [b.x + b.width / 2, b.y + b.height / 2];
"""
HOVERED = """
return [...document.querySelectorAll('#figures .js-plotly-plot')].some((plot) => (plot._hoverdata || []).length > 0);
"""

CLICKS = """
// how many clicks the figures have taken, as far as this was asked before
for (const plot of document.querySelectorAll('#figures .js-plotly-plot'))
  if (!plot.isCounted) {
    plot.isCounted = true;
    plot.on('plotly_click', () => { window.taken = (window.taken || 0) + 1; });
  }
return window.taken || 0;
"""
TOP = "return (document.elementFromPoint(arguments[0], arguments[1]) || {}).outerHTML?.slice(0, 120)"


def press_escape(browser: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    ActionChains(browser).send_keys(Keys.ESCAPE).perform()


def opened(browser: Any, heading: str) -> str:
    """Click on a point as a reader does; empty where its cell is shown, else what was there instead.

    Plotly looks for points 50 ms after it has looked last: of a click that comes before this it knows no point, and
    says nothing. Such a click is made again. One that it has taken gets 20 s, since the drawer moves the points; what
    it has opened in place of the cell is closed.
    """
    x, y = browser.execute_script(POINT)
    taken = browser.execute_script(CLICKS)
    mouse(browser, "mouseMoved", 1, 1)
    mouse(browser, "mouseMoved", x, y)
    with suppress(AssertionError):
        until(lambda: browser.execute_script(HOVERED), True, 20)
    for kind in ("mousePressed", "mouseReleased"):
        mouse(browser, kind, x, y)
    with suppress(AssertionError):  # a press that is tried again sooner would be a double click
        until(lambda: browser.execute_script(CLICKS) > taken, True, 1)
        until(lambda: browser.execute_script(DRAWER).startswith(heading), True, 20)
    if (seen := browser.execute_script(DRAWER)).startswith(heading):
        return ""
    top = browser.execute_script(TOP, x, y)
    press_escape(browser)
    return f"clicked at {x:.0f}, {y:.0f}, drawer {seen!r}, on top {top}"


def test_a_click_on_a_point_opens_its_cell_and_escape_closes_it(browser, address: str) -> None:
    visit(browser, address + "?view=curves&benchmark=allreduce")
    until(lambda: browser.execute_script(TRACES), BOTH)
    until(lambda: opened(browser, "allreduce 8 B, mpi · Open MPI"), "")
    until(lambda: "&cell=" in browser.execute_script(SEARCH), True)
    until(lambda: browser.execute_script(DRAWN), True)
    link = browser.execute_script("return location.href")
    press_escape(browser)
    until(lambda: browser.execute_script("return document.getElementById('drawer').hidden"), True)
    until(lambda: "cell=" in browser.execute_script(SEARCH), False)
    until(lambda: browser.execute_script(DRAWN), True)
    until(lambda: opened(browser, "allreduce 8 B, mpi · Open MPI"), "")  # the same point opens it again
    browser.get("about:blank")
    browser.get(link)  # a link opens it too
    until(lambda: browser.execute_script(DRAWER).startswith("allreduce 8 B"), True)
    assert errors(browser) == []
