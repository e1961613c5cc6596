"""The explorer in a headless Chromium."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from omb_py.dashboards.explorer.app import make
from omb_py.dashboards.explorer.data import Data
from tests.dashboards.stores import write
from tests.support.browser import OVERLAPS, chromium, errors, missing, resize

pytestmark = [pytest.mark.browser, pytest.mark.skipif(bool(missing()), reason=missing() or "there is one")]

TITLES = "return [...document.querySelectorAll('#figures h3')].map(h => h.textContent)"
TRACES = (
    "return [...document.querySelectorAll('.js-plotly-plot')].flatMap(p => p.data.filter(t => t.mode === "
    "'lines+markers').map(t => t.name))"
)


@pytest.fixture(scope="module")
def address(frame, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    from werkzeug.serving import make_server

    app = make(Data(write(tmp_path_factory.mktemp("s") / "store", frame)))
    server = make_server("127.0.0.1", 0, app.server, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join(10)
    server.server_close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


def until(found: Callable[[], Any], wanted: Any, patience_s: float = 30.0) -> None:
    """Wait until the page shows what is wanted; the last thing seen is in the failure."""
    end = time.monotonic() + patience_s
    while (seen := found()) != wanted:
        assert time.monotonic() < end, f"{seen!r} instead of {wanted!r}"
        time.sleep(0.1)


def test_a_filter_changes_the_figure_and_the_link_restores_it(browser, address: str) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    browser.get(address)
    until(lambda: browser.execute_script(TRACES), ["MPICH", "Open MPI"])
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
    until(lambda: browser.execute_script("return location.search"), "?library=Open+MPI")
    title = browser.execute_script(TITLES)
    assert title == ["allreduce: 1.01 µs at 8 B, 133 µs at 64 KiB"]

    browser.get("about:blank")
    browser.get(address + "?library=Open+MPI")
    until(lambda: browser.execute_script(TITLES), title)
    assert browser.execute_script("return location.search") == "?library=Open+MPI"
    assert errors(browser) == []


@pytest.mark.parametrize("width", [1280, 390])
def test_side_by_side_from_a_link_fits_the_window(browser, address: str, width: int) -> None:
    resize(browser, width)
    browser.get(address + "?view=beside")
    until(lambda: browser.execute_script(TITLES), ["allreduce: Open MPI took up to 2× the time of MPICH, at 64 KiB"])
    until(
        lambda: browser.execute_script("return document.querySelectorAll('.js-plotly-plot .main-svg').length > 0"), True
    )
    until(lambda: browser.execute_script(OVERLAPS), [])
    assert errors(browser) == []


def test_the_grid_has_the_cells(browser, address: str) -> None:
    resize(browser, 1280)
    browser.get(address + "?library=MPICH")
    until(
        lambda: browser.execute_script(
            "return document.querySelectorAll('#cells .ag-center-cols-container [role=row]').length"
        ),
        9,
    )
