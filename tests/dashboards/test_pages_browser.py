"""Report and explorer of the three kinds of stores in Chromium: from a phone to a wide screen, light and dark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from omb_py.dashboards.base.reading import parse
from omb_py.dashboards.base.theme import THEMES
from omb_py.dashboards.report.build import report
from omb_py.dashboards.report.html_page import page
from tests.dashboards.stores import write
from tests.support.browser import CONTRASTS, DRAWN, NEEDS_BROWSER, SHAPED, chromium, draw_all, errors, resize, until
from tests.support.explorer_server import served

pytestmark = [pytest.mark.slow, *NEEDS_BROWSER]
WIDTHS = ((390, 768), (1280, 1920))
"""A page is opened at the first of two and made wider: what a phone has is decided when it opens the page."""
KINDS = ("suite", "accepted", "imported", "huge")
PAPER = "return document.documentElement.dataset.theme"
DASH = [".dash-dropdown-wrapper", ".dash-dropdown", ".dash-options-list", ".ag-root-wrapper", ".modebar"]
"""Markup that Dash, AG Grid and Plotly write: axe finds lists without names and roles inside each other there."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


def leave(browser: Any) -> None:
    """A page that goes on asking a server that has ended writes to the console of the next one."""
    browser.get("about:blank")
    errors(browser)


@pytest.fixture(scope="module")
def huge(frame: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which a library, a version and a tag have names of 300 letters without a blank."""
    names = {"library": "L" * 300, "library_version": "5" * 300}
    longer = frame.assign(**names, tags=[{"machine": "m" * 300}] * len(frame))
    return write(tmp_path_factory.mktemp("huge"), pd.concat([frame, longer.assign(run_id="huge")]))


def test_the_explorer(browser: Any, huge: Path) -> None:
    """Of the store with the longest names; the report has the others."""
    with served(huge) as address:
        for theme, (opened, wider) in zip(THEMES, WIDTHS, strict=True):
            resize(browser, opened)
            browser.get(f"{address}?view=curves&theme={theme}")
            until(lambda: browser.execute_script(DRAWN), True)
            until(lambda theme=theme: browser.execute_script(PAPER) == theme, True)
            for width in (opened, wider):
                resize(browser, width)
                until(lambda: browser.execute_script(SHAPED), [])
                until(lambda: browser.execute_script(CONTRASTS), [])
        assert errors(browser) == []
        leave(browser)


@pytest.mark.parametrize("kind", KINDS)
def test_the_report(browser: Any, kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(page(report(request.getfixturevalue(kind), parse([]))), encoding="utf-8")
    for theme, (opened, wider) in zip(THEMES, WIDTHS, strict=True):
        resize(browser, opened)
        browser.get(file.as_uri())
        if browser.execute_script(PAPER) != theme:
            browser.execute_script("document.getElementById('theme').click()")
        draw_all(browser)
        for width in (opened, wider):
            resize(browser, width)
            draw_all(browser)
            until(lambda: browser.execute_script(SHAPED), [])
            until(lambda: browser.execute_script(CONTRASTS), [])
    assert errors(browser) == []


def test_the_page_of_an_acceptance(browser: Any, accepted: Path) -> None:
    for width in (390, 1280):
        resize(browser, width)
        browser.get((accepted.parent / "a.html").as_uri())
        draw_all(browser)
        until(lambda: browser.execute_script(SHAPED), [])
    assert errors(browser) == []


def test_axe_finds_nothing_in_what_is_ours(browser: Any, suite: Path) -> None:
    """The rules of WCAG 2.2 A and AA in axe-core, in the explorer with its drawer open, in both themes."""
    from selenium_axe_python import Axe

    resize(browser, 1280)
    with served(suite) as address:
        browser.get(f"{address}?view=curves")
        until(lambda: browser.execute_script(DRAWN), True)
        cell = "return document.querySelector('.js-plotly-plot').data.find((t) => t.customdata).customdata[0]"
        browser.get(f"{address}?view=curves&cell={browser.execute_script(cell)}")
        until(lambda: browser.execute_script("return document.querySelectorAll('#drawer .main-svg').length > 0"), True)
        axe = Axe(browser)
        axe.inject()
        for theme in THEMES:
            browser.execute_script(f"document.querySelector('#theme input[value={theme}]').click()")
            until(lambda theme=theme: browser.execute_script(PAPER) == theme, True)
            until(lambda: browser.execute_script(DRAWN), True)
            found = axe.run(
                json.dumps({"exclude": [[name] for name in DASH]}),
                json.dumps({"runOnly": ["wcag2a", "wcag2aa", "wcag22aa"]}),
            )
            assert [(rule["id"], rule["nodes"][0]["html"]) for rule in found["violations"]] == [], theme
            assert any(rule["id"] == "color-contrast" for rule in found["passes"])
        leave(browser)
