"""The explorer in a headless Chromium."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from omb_py.cli import main
from omb_py.dashboards.explorer.app import make
from omb_py.dashboards.explorer.data import FILTERS, Data
from omb_py.dashboards.explorer.state import choices
from tests.dashboards.stores import write
from tests.dashboards.views.test_comparisons import compared
from tests.dashboards.views.test_links import LINKS, PROMISES
from tests.dashboards.views.test_tuning import LINE as TUNED
from tests.support.browser import OVERLAPS, chromium, errors, missing, resize

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.skipif(bool(missing()), reason=missing() or "there is one"),
]

TITLES = "return [...document.querySelectorAll('#figures h3')].map(h => h.textContent)"
TRACES = (
    "return [...document.querySelectorAll('.js-plotly-plot')].flatMap(p => p.data.filter(t => t.mode === "
    "'lines+markers').map(t => t.name))"
)

ROWS = "try { return dash_ag_grid.getApi('cells').getDisplayedRowCount() } catch { return 'no grid yet' }"


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


@contextmanager
def served(store: Path) -> Iterator[str]:
    from werkzeug.serving import make_server

    app = make(Data(store), refresh_ms=700)
    server = make_server("127.0.0.1", 0, app.server, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join(10)
    server.server_close()


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
    resize(browser, 1280)


def until(found: Callable[[], Any], wanted: Any, patience_s: float = 30.0) -> None:
    """Wait until the page shows what is wanted; the last thing seen is in the failure."""
    end = time.monotonic() + patience_s
    while (seen := found()) != wanted:
        assert time.monotonic() < end, f"{seen!r} instead of {wanted!r}"
        time.sleep(0.1)


def test_a_filter_changes_the_figure_and_the_link_restores_it(browser, address: str) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    browser.get(address + "?view=curves&benchmark=allreduce")
    until(lambda: browser.execute_script(TRACES), ["MPICH 5.0.2", "Open MPI 5.0.2"])
    chooser = browser.find_element(By.ID, "library")
    chooser.send_keys(Keys.ENTER)
    until(
        lambda: bool(
            browser.find_elements(
                By.CSS_SELECTOR, ".dash-dropdown-options label, .dash-options-list label, [role=listbox] label"
            )
        ),
        True,
    )
    options = browser.find_elements(
        By.CSS_SELECTOR, ".dash-dropdown-options label, .dash-options-list label, [role=listbox] label"
    )
    next(one for one in options if "Open MPI" in one.text).click()
    until(lambda: browser.execute_script(TRACES), ["median"])
    until(lambda: browser.execute_script("return location.search"), "?view=curves&benchmark=allreduce&library=Open+MPI")
    title = browser.execute_script(TITLES)
    assert title == ["allreduce: 1.01 µs at 8 B, 133 µs at 64 KiB"]

    browser.get("about:blank")
    browser.get(address + "?view=curves&benchmark=allreduce&library=Open+MPI")
    until(lambda: browser.execute_script(TITLES), title)
    assert browser.execute_script("return location.search") == "?view=curves&benchmark=allreduce&library=Open+MPI"
    assert errors(browser) == []


@pytest.mark.parametrize("width", [1280, 390])
def test_side_by_side_from_a_link_fits_the_window(browser, address: str, width: int) -> None:
    resize(browser, width)
    browser.get(address + "?view=beside&benchmark=allreduce")
    until(
        lambda: browser.execute_script(TITLES),
        ["allreduce: Open MPI 5.0.2 took up to 2× the time of MPICH 5.0.2, at 64 KiB"],
    )
    until(
        lambda: browser.execute_script("return document.querySelectorAll('.js-plotly-plot .main-svg').length > 0"), True
    )
    until(lambda: browser.execute_script(OVERLAPS), [])
    assert errors(browser) == []


def test_the_grid_has_the_cells(browser, address: str) -> None:
    resize(browser, 1280)
    browser.get(address + "?view=curves&library=MPICH&benchmark=allreduce")
    until(lambda: browser.execute_script(ROWS), 9)


UNITS = """
// axes that a reader sees, without a title: categories and counts name themselves, the rest needs a unit
return [...document.querySelectorAll('#figures .js-plotly-plot')].flatMap((p) => Object.entries(p._fullLayout)
  .filter(([name, axis]) => /^[xy]axis/.test(name) && axis.type !== 'category' && axis.showticklabels !== false
    && !(axis.title && axis.title.text)).map(([name]) => `${p.closest('section').dataset.kind} ${name}`));
"""


DRAWN = """
const sections = document.querySelectorAll('#figures section');
return sections.length > 0
  && [...document.querySelectorAll('#figures .js-plotly-plot')].every((plot) => plot.querySelector('.main-svg'));
"""


UNMEASURED = {"gpus"}
"""Views of what is stored with GPUs only."""


@pytest.mark.parametrize("view", [view for view in choices()["view"] if view not in UNMEASURED])
def test_each_view_is_drawn_without_a_word_on_the_console(browser, address: str, view: str) -> None:
    """At both widths and in both themes; no text lies on another, every axis has its unit."""
    errors(browser)  # what the pages before have left
    # the others show enough of one benchmark
    tuning = ("tuned", "winners")
    wide = view in ("scaling", "beside_counts", "environment", "model", "guidelines", "pairs", "steps", *tuning)
    link = f"{address}?view={view}{'' if wide else '&benchmark=allreduce'}"
    browser.get(link)
    until(lambda: browser.execute_script(DRAWN), True)
    assert browser.execute_script("return document.querySelector('#note').textContent") == ""
    assert browser.execute_script(UNITS) == []
    until(lambda: browser.execute_script(OVERLAPS), [])
    resize(browser, 390)
    browser.get(link)  # a phone has its width when it opens the page
    until(lambda: browser.execute_script(DRAWN), True)
    browser.execute_script("document.querySelector('#theme input[value=dark]').click()")
    until(lambda: browser.execute_script(PAPERS), ["#15191e"])
    until(lambda: browser.execute_script(OVERLAPS), [])
    assert errors(browser) == []


PAPERS = """
const plots = [...document.querySelectorAll('#figures .js-plotly-plot')].map((p) => p._fullLayout.paper_bgcolor);
const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number);
return [...new Set([...plots, '#' + [r, g, b].map((v) => v.toString(16).padStart(2, '0')).join('')])];
"""


def test_on_a_phone_the_filters_are_folded_and_the_figure_is_seen(browser, address: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    resize(browser, 390, 844)
    browser.get(address + "?view=curves&benchmark=allreduce")
    until(lambda: browser.execute_script(TRACES), ["MPICH 5.0.2", "Open MPI 5.0.2"])
    folded = "return [document.getElementById('choices').hidden, document.getElementById('fold').ariaExpanded]"
    until(lambda: browser.execute_script(folded), [True, "false"])
    assert browser.execute_script("return document.getElementById('chosen').textContent") == (
        "over message size · benchmark allreduce"
    )
    top = browser.execute_script("return document.querySelector('.js-plotly-plot').getBoundingClientRect().top")
    assert top < 0.6 * 844, "the tabs and the views take the room of two lines"
    browser.execute_script("document.body.focus()")
    for _ in range(12):  # the tabs come first
        ActionChains(browser).send_keys(Keys.TAB).perform()
        if browser.execute_script("return document.activeElement.id") == "fold":
            break
    ActionChains(browser).send_keys(Keys.ENTER).perform()
    until(lambda: browser.execute_script(folded), [False, "true"])
    resize(browser, 1280)
    browser.get(address + "?view=curves&benchmark=allreduce")
    until(lambda: browser.execute_script(TRACES), ["MPICH 5.0.2", "Open MPI 5.0.2"])
    assert browser.execute_script(folded) == [False, "true"]


def test_back_and_forth_restore_controls_and_figures(browser, address: str) -> None:
    browser.get(address + "?view=curves&benchmark=allreduce")
    until(lambda: browser.execute_script(TRACES), ["MPICH 5.0.2", "Open MPI 5.0.2"])
    chosen = "return document.querySelector('#view input:checked').value"
    kinds = "return [...document.querySelectorAll('#figures section')].map(s => s.dataset.kind)"
    browser.execute_script("document.querySelector('#view input[value=beside]').click()")
    until(lambda: browser.execute_script(kinds), ["beside"])
    until(lambda: browser.execute_script("return location.search"), "?view=beside&benchmark=allreduce")
    browser.back()
    until(lambda: browser.execute_script(kinds), ["curves"])
    until(lambda: browser.execute_script(chosen), "curves")
    assert browser.execute_script("return location.search") == "?view=curves&benchmark=allreduce"
    browser.forward()
    until(lambda: browser.execute_script(kinds), ["beside"])
    until(lambda: browser.execute_script(chosen), "beside")


def test_every_control_is_reached_by_the_keyboard(browser, address: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    browser.get(
        address + "?view=beside&benchmark=latency&library=MPICH&b.library=MPICH"
    )  # which has a second selection
    until(lambda: browser.execute_script(ROWS), 4)
    controls = ["view", "quantity", "count", "theme", "size", "fold", "csv", "parquet", "cells"]
    wanted = {*controls, *(prefix + name for name in FILTERS for prefix in ("", "b-"))}
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


def test_the_downloads_hold_what_is_chosen(browser, address: str, tmp_path: Path) -> None:
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    browser.get(address + "?view=curves&library=MPICH&benchmark=allreduce")
    until(lambda: len(browser.execute_script(TITLES)), 1)
    for name in ("csv", "parquet"):
        browser.execute_script(f"document.getElementById('{name}').click()")
        until((tmp_path / f"omb-py.{name}").exists, True)
    tables = [
        pd.read_csv(io.StringIO((tmp_path / "omb-py.csv").read_text())),
        pd.read_parquet(tmp_path / "omb-py.parquet"),
    ]
    for made in tables:
        assert len(made) == 9 and set(made["library"]) == {"MPICH"}
        assert sorted(made["size_bytes"]) == [8] * 3 + [1024] * 3 + [65536] * 3
    assert tables[0]["median_us"].sum() == pytest.approx(tables[1]["median_us"].sum())


def test_a_click_on_the_legend_isolates(browser, address: str) -> None:
    browser.get(address + "?view=curves&benchmark=allreduce")
    until(lambda: browser.execute_script(TRACES), ["MPICH 5.0.2", "Open MPI 5.0.2"])
    until(lambda: browser.execute_script("return document.querySelectorAll('.legendtoggle').length"), 2)
    box = browser.execute_script(
        "const t = document.querySelector('.legendtoggle'); t.scrollIntoView({block: 'center', behavior: 'instant'});"
        "const b = t.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]"
    )
    for kind in ("mousePressed", "mouseReleased"):
        browser.execute_cdp_cmd(
            "Input.dispatchMouseEvent", {"type": kind, "x": box[0], "y": box[1], "button": "left", "clickCount": 1}
        )
    # and a new launch, which draws everything again, leaves it so
    visible = (
        "return [...new Set(document.querySelector('.js-plotly-plot').data.filter(t => t.visible === undefined || "
        "t.visible === true).map(t => t.legendgroup))].length"
    )
    until(lambda: browser.execute_script(visible), 1)


def test_new_launches_appear_by_themselves(browser, address: str, store: Path, cell) -> None:
    browser.get(address + "?view=curves&benchmark=latency&library=MPICH")
    about = "return (document.getElementById('about') || {}).textContent || ''"
    until(lambda: ": 4 cells of " in browser.execute_script(about), True)
    write(store, pd.DataFrame([cell(1.5, 60, run_id="z", launch_id="z", benchmark="latency", ranks=2, size_bytes=8)]))
    until(lambda: ": 5 cells of " in browser.execute_script(about), True)
    until(lambda: browser.execute_script(ROWS), 5)
    assert errors(browser) == []


WILD = "<b>x</b><img src=x onerror='window.bad=1'><script>window.bad=1</script>"


@pytest.mark.parametrize(
    ("kind", "search", "said"),
    [
        (
            "empty",
            "",
            "is empty; new launches are shown as they land. To measure something: omb-py allreduce -n 2 --store",
        ),
        ("newer", "", "None of the files of"),
        ("wild", "?library=none", "No cell fits these filters. Clear one of them; what there is: omb-py results list."),
        ("wild", "?view=scaling", "Nothing here was measured on more than one such number."),
    ],
)
def test_nothing_to_show_says_what_to_do_next(browser, odd_stores, kind: str, search: str, said: str) -> None:
    browser.get(odd_stores[kind] + search)
    until(
        lambda: said in browser.execute_script("return (document.querySelector('#note') || {}).textContent || ''"), True
    )
    assert browser.execute_script("return document.querySelectorAll('#figures section').length") == 0
    assert browser.execute_script("return location.search") == search
    assert errors(browser) == []


def test_markup_is_text_and_a_broken_file_is_named(browser, odd_stores) -> None:
    for view in ("curves", "distribution", "beside"):
        browser.get(f"{odd_stores['wild']}?view={view}")
        until(lambda: len(browser.execute_script(TITLES)) > 0, True)
        until(lambda: browser.execute_script("return document.querySelectorAll('.main-svg').length > 0"), True)
        assert browser.execute_script("return document.querySelectorAll('main b, main img, main script').length") == 0
        assert browser.execute_script("return window.bad") is None
    assert WILD in browser.execute_script("return document.querySelector('main').textContent")
    about = browser.execute_script("return document.querySelector('#about').textContent")
    assert "1 file could not be read" in about and "broken.parquet: not a readable Parquet file" in about
    assert errors(browser) == []


@pytest.fixture(scope="module")
def odd_stores(frame, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Addresses of explorers of stores that are not as they should be."""
    place = tmp_path_factory.mktemp("odd")
    (place / "empty").mkdir()
    wild = write(place / "wild", frame.assign(library=frame["library"].replace("MPICH", WILD)))
    (wild / "date=2026-11-20" / "broken.parquet").write_bytes(b"PAR1 no")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("omb_py.results.store.schema.SCHEMA_VERSION", 99)
        write(place / "newer", frame.head(3))
    with ExitStack() as stack:
        yield {name: stack.enter_context(served(place / name)) for name in ("empty", "wild", "newer")}


DRAWER = """
const drawer = document.getElementById('drawer');
const drawn = drawer && !drawer.hidden && drawer.querySelectorAll('.main-svg').length > 0;
return drawn ? drawer.querySelector('h2').textContent : '';
"""
POINT = """
const p = [...document.querySelectorAll('#figures .points path.point')][3];
if (!p) return null;
p.scrollIntoView({ block: 'center', behavior: 'instant' });
const b = p.getBoundingClientRect();
return [b.x + b.width / 2, b.y + b.height / 2];
"""
HOVERED = """
return [...document.querySelectorAll('#figures .js-plotly-plot')].some((plot) => (plot._hoverdata || []).length > 0);
"""


def opened(browser: Any) -> bool:
    """Click on a point as a reader does, unless its cell is open; whether it is.

    A figure that is drawn anew under the pointer takes no click, and one that has not yet seen the pointer takes none.
    """
    if not browser.execute_script("return document.getElementById('drawer').hidden"):
        return True
    point = browser.execute_script(POINT)
    if point is None:
        return False
    where = dict(zip("xy", point, strict=True))
    for shift in (3, 0):  # a pointer that does not move says nothing
        moved = {"type": "mouseMoved", "button": "none", "clickCount": 0, **where, "x": where["x"] + shift}
        browser.execute_cdp_cmd("Input.dispatchMouseEvent", moved)
    if not browser.execute_script(HOVERED):
        return False
    for kind in ("mousePressed", "mouseReleased"):
        pressed = {"type": kind, "button": "left", "clickCount": 1, **where}
        browser.execute_cdp_cmd("Input.dispatchMouseEvent", pressed)
    time.sleep(1)  # a second click at once would be a double click
    return False


def test_a_click_on_a_point_opens_its_cell_and_escape_closes_it(browser, address: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    browser.get(address + "?view=curves&benchmark=allreduce")
    until(lambda: browser.execute_script(TRACES), ["MPICH 5.0.2", "Open MPI 5.0.2"])
    until(
        lambda: browser.execute_script("return document.querySelectorAll('#figures .points path.point').length > 3"),
        True,
    )
    until(lambda: opened(browser), True)
    until(lambda: browser.execute_script(DRAWER).startswith("allreduce 8 B, mpi · Open MPI"), True)
    until(lambda: "&cell=" in browser.execute_script("return location.search"), True)
    link = browser.execute_script("return location.href")
    ActionChains(browser).send_keys(Keys.ESCAPE).perform()
    until(lambda: browser.execute_script("return document.getElementById('drawer').hidden"), True)
    until(lambda: "cell=" in browser.execute_script("return location.search"), False)
    browser.get(link)  # a link opens it too
    until(lambda: browser.execute_script(DRAWER).startswith("allreduce 8 B"), True)
    assert errors(browser) == []


def test_a_tab_is_reached_and_followed_by_the_keyboard(browser, address: str) -> None:
    from selenium.webdriver.common.keys import Keys

    browser.get(address + "?view=curves&benchmark=allreduce")
    until(lambda: browser.execute_script(TRACES), ["MPICH 5.0.2", "Open MPI 5.0.2"])
    link = browser.execute_script(
        "return [...document.querySelectorAll('#tabs a')].find(a => a.textContent === 'Time')"
    )
    link.send_keys(Keys.ENTER)
    until(lambda: browser.execute_script("return location.search"), "?view=history&benchmark=allreduce")
    chosen = "return document.querySelector('#tabs .chosen').textContent"
    until(lambda: browser.execute_script(chosen), "Time")
    until(lambda: browser.execute_script("return document.querySelector('#view input:checked').value"), "history")
