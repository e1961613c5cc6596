"""The acceptance report in a headless Chromium, from ``file://``: no word on the console, nothing too wide."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from omb_py.cli.suite_options import CommandLine
from omb_py.dashboards.report.acceptance import acceptance_page
from omb_py.orchestrate.accept.session import AcceptRequest, accept
from omb_py.orchestrate.suites.suite_file import parse_suite
from tests.support.accepting import ENTRY, HEAD, criterion
from tests.support.browser import NEEDS_BROWSER, OVERLAPS, chromium, draw_all, errors, resize, until

pytestmark = NEEDS_BROWSER

TEXT = HEAD.replace("iterations = 5", 'iterations = 5\nmock = "launch=0.1"') + ENTRY
TEXT += '[[entry]]\nbenchmarks = ["latency"]\nranks = 2\nmessage-size = "64K"\n'
TEXT += '[[entry]]\nbenchmarks = ["allreduce"]\nranks = 4\nmessage-size = "8,1K"\n'
TEXT += criterion('benchmark = "latency"\nmessage-size = "8"\nmax = "1 us"\ntext = "<script>window.bad=1</script>"')
TEXT += criterion('benchmark = "allreduce"\nmax = "0.1 us"', "missed-by-far-and-with-a-name-that-takes-its-place")
TEXT += criterion('benchmark = "allreduce"\nguideline = "reduce + bcast"', "guideline")
TEXT += criterion('benchmark = "allreduce"\nefficiency = "10%"', "efficiency")


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The browser, with the report of an acceptance that has every kind of verdict but ERROR, all of it drawn."""
    command = f"omb-py accept ./mine.toml --hosts {','.join(f'node{k}' for k in range(40))}"
    asked = AcceptRequest(CommandLine(), {"seed": 1, "quiet": True}, quiet=True, command=command)
    found = accept(parse_suite(TEXT, "f.toml"), asked, tmp_path_factory.mktemp("store"))
    assert {"FAIL", "MARGINAL", "PASS"} <= set(found.words)
    file = tmp_path_factory.mktemp("page") / "acceptance.html"
    file.write_text(acceptance_page(found), encoding="utf-8")
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        driver.get(file.as_uri())
        draw_all(driver)
        yield driver


@pytest.mark.slow
def test_all_parts_are_shown_and_nothing_is_said_on_the_console(opened: Any) -> None:
    assert errors(opened) == []
    shown = opened.execute_script("return [...document.querySelectorAll('main')].map(m => m.id)")
    assert len(shown) == 14 and shown[0] == "cover" and shown[-1] == "again"
    drawn = opened.execute_script(
        "return [...document.querySelectorAll('.plot')]"
        ".map(p => [p.querySelectorAll('.main-svg').length, p.data.length])"
    )
    assert drawn and all(svgs > 0 and traces > 0 for svgs, traces in drawn)
    assert opened.execute_script("return window.bad") is None
    assert opened.execute_script("return document.body.innerText").count("MARGINAL") >= 1


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_overlaps_or_sticks_out(opened: Any, width: int) -> None:
    resize(opened, width)
    opened.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    draw_all(opened)
    until(lambda: opened.execute_script(OVERLAPS), [])
    assert errors(opened) == []
