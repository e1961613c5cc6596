"""A headless Chromium for tests, and why there is none.

A test acts, and then waits with :func:`until` for what it wants to see, never for a time: on a slow machine it only
takes longer.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PATIENCE_S = 120.0
"""Seconds that a page may take for one step."""
TEST_S = 600
"""Seconds that a test with many steps may take."""
FLAGS = tuple(
    (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync --disable-dev-shm-usage --force-color-profile=srgb"
    ).split()
)


def missing() -> str:
    """Why no browser can be driven here; empty where one can."""
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        return "no chromium and chromedriver here: apt-get install chromium chromium-driver"
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "selenium is not installed: pip install selenium"
    return ""


NEEDS_BROWSER = [
    pytest.mark.browser,
    pytest.mark.skipif(bool(missing()), reason=missing() or "there is one"),
    pytest.mark.timeout(TEST_S),
]
"""Marks of the tests that drive a browser."""


@contextmanager
def chromium(profile: Path, width: int = 1280, height: int = 900) -> Iterator[Any]:
    """A driver with a fresh profile and a viewport of this size; the browser ends with the block."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    for flag in (*FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"):
        options.add_argument(flag)
    options.binary_location = shutil.which("chromium") or ""
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        resize(driver, width, height)
        driver.set_script_timeout(PATIENCE_S)
        yield driver
    finally:
        driver.quit()


def until(look: Callable[[], Any], wanted: Any, patience_s: float = PATIENCE_S) -> None:
    """Wait until something is as wanted; the failure says what it was at last.

    A script that fails and an element that is gone are "not yet": the page is between two states.
    """
    from selenium.common.exceptions import JavascriptException, StaleElementReferenceException

    end = time.monotonic() + patience_s
    while True:
        try:
            seen = look()
        except (JavascriptException, StaleElementReferenceException) as error:
            seen = error.msg
        if seen == wanted:
            return
        assert time.monotonic() < end, f"{seen!r} instead of {wanted!r}"
        time.sleep(0.05)


def resize(driver: Any, width: int, height: int = 900) -> None:
    """Give the viewport exactly this size, also one narrower than a window may be."""
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
    )
    until(lambda: driver.execute_script("return [window.innerWidth, window.innerHeight]"), [width, height])


def draw_all(driver: Any) -> None:
    """Have a report draw all its figures, also those out of sight, and wait until they are there."""
    driver.execute_script(
        "window.ready = false; drawAll().then(() => requestAnimationFrame(() => { window.ready = true; }));"
    )
    until(lambda: driver.execute_script("return window.ready"), True)


def mouse(driver: Any, kind: str, x: float, y: float) -> None:
    """Move the pointer, or press or release the left button; returns when the page has had the event."""
    button = {"button": "none", "clickCount": 0} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
    driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, **button})


AIM = """
const wanted = (() => { %s })();
if (!wanted) return null;
window.met = [];
for (const kind of ["mousedown", "mouseup"])
  window.addEventListener(kind, (event) => met.push(event.target === wanted), { capture: true, once: true });
wanted.scrollIntoView({ block: "center", behavior: "instant" });
const box = wanted.getBoundingClientRect();
return [box.x + box.width / 2, box.y + box.height / 2];
"""


def press(driver: Any, find: str) -> bool:
    """Click on the element that a script returns; False where it was not there, or moved away under the pointer.

    So the next try is no second click on the same element: ``until(lambda: press(driver, find), True)`` clicks once.
    """
    if (place := driver.execute_script(AIM % find)) is None:
        return False
    for kind in ("mousePressed", "mouseReleased"):
        mouse(driver, kind, *place)
    if driver.execute_script("return met") == [True, True]:
        return True
    time.sleep(0.5)  # a press that is tried again sooner would be a double click
    return False


def errors(driver: Any) -> list[str]:
    """What the page has written to the console as an error or a warning, and has not been read yet."""
    return [entry["message"] for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


DRAWN = """
// whether the explorer has all its answers, and each figure is drawn as they say
const graphs = [...document.querySelectorAll("#figures .dash-graph, #drawer:not([hidden]) .dash-graph")];
return !window.store.getState().isLoading && document.querySelector("#figures section, #note:not(:empty)") !== null
  && !document.querySelector(".dash-graph--pending") && graphs.every((graph) => graph.querySelector(".main-svg"));
"""

OVERLAPS = """
// texts of each figure whose boxes overlap by more than two pixels, and what sticks out of the page
const found = [];
for (const plot of document.querySelectorAll('.js-plotly-plot')) {
  const frame = plot.getBoundingClientRect();
  const texts = [...plot.querySelectorAll('.main-svg text')].filter((t) => {
    const style = getComputedStyle(t);
    return t.textContent.trim() && style.opacity !== '0' && style.visibility !== 'hidden' && style.display !== 'none';
  }).map((t) => [t.textContent.trim(), t.getBoundingClientRect()]).filter(([, b]) => b.width > 0 && b.height > 0);
  for (const [text, b] of texts)
    if (b.right > frame.right + 2 || b.left < frame.left - 2 || b.bottom > frame.bottom + 2 || b.top < frame.top - 2)
      found.push(`"${text}" sticks out of its figure`);
  for (let i = 0; i < texts.length; i++) for (let j = i + 1; j < texts.length; j++) {
    const [a, b] = [texts[i][1], texts[j][1]];
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (wide > 2 && high > 4) found.push(`"${texts[i][0]}" overlaps "${texts[j][0]}"`);
  }
}
const over = document.documentElement.scrollWidth - window.innerWidth;
if (over > 0) found.push(`the page is ${over} px wider than the window`);
return found;
"""

CONTRASTS = """
// texts under 4.5:1 (large ones under 3:1) and lines and points of figures under 3:1 against what lies behind them,
// from computed styles; text on the coloured cells of a map is left out: its background is an image
const rgba = (text) => {
  const [r, g, b, a] = (text.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const scale = text.startsWith("color(srgb") ? 255 : 1;  // what color-mix() gives
  return [r * scale, g * scale, b * scale, a ?? 1];
};
const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
const luminance = (c) => {
  const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const [r, g, b] = c.slice(0, 3).map((v) => linear(v / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ratio = (a, b) => {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
};
const faded = (element) => {
  let opacity = 1;
  for (let e = element; e; e = e.parentElement) opacity *= Number(getComputedStyle(e).opacity);
  return opacity;
};
const behind = (element) => {
  const layers = [];
  for (let e = element; e; e = e.parentElement) {
    const plot = e.classList?.contains("js-plotly-plot") ? e._fullLayout.paper_bgcolor : "";
    const probe = document.createElement("i");
    if (plot) { probe.style.color = plot; document.body.append(probe); }
    const colour = rgba(plot ? getComputedStyle(probe).color : getComputedStyle(e).backgroundColor);
    probe.remove();
    if (colour[3] > 0 && !(e instanceof SVGElement)) layers.push(colour);
    if (colour[3] === 1 && !(e instanceof SVGElement)) break;
  }
  return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
};
const drawn = (e) => e.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true });
const seen = (e) => drawn(e) && e.getBoundingClientRect().width > 1;
const found = new Set();
const judge = (what, element, colour, least) => {
  const below = behind(element), top = rgba(colour);
  top[3] *= faded(element);
  if (top[3] === 0) return;
  const value = ratio(over(top, below), below);
  if (value < least - 0.005) found.add(`${what}: ${value.toFixed(2)} of ${least}`);
};
const words = new Set();
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode())
  if (walker.currentNode.textContent.trim()) words.add(walker.currentNode.parentElement);
const apart = "script, style, .hoverlayer, .infolayer .annotation, [disabled], .heatmaplayer";
for (const e of words) {
  if (!seen(e) || e.closest(apart)) continue;
  const style = getComputedStyle(e), size = parseFloat(style.fontSize);
  const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
  const svg = e instanceof SVGElement && !(e instanceof SVGSVGElement);
  judge(`"${e.textContent.trim().slice(0, 40)}"`, e, svg ? style.fill : style.color, large ? 3 : 4.5);
}
for (const e of document.querySelectorAll(".scatterlayer .js-line, .scatterlayer .point")) {
  if (!seen(e)) continue;
  const style = getComputedStyle(e), isLine = e.classList.contains("js-line");
  const filled = !isLine && style.fill !== "none" && rgba(style.fill)[3] > 0;
  if (isLine && !(parseFloat(style.strokeWidth) > 0)) continue;  // the edge of a band
  judge(`${e.classList} of ${e.closest("section, figure")?.dataset.kind}`, e, filled ? style.fill : style.stroke, 3);
}
return [...found];
"""

SHAPED = """
// what a page must be at any width: nothing wider than the window, every figure drawn
const wide = document.documentElement.scrollWidth - window.innerWidth;
const plots = [...document.querySelectorAll(".js-plotly-plot")].filter((p) => p.checkVisibility());
const empty = plots.filter((p) => !p.querySelector(".main-svg")).length;
return [...(wide > 0 ? [`${wide} px wider than the window`] : []), ...(empty ? [`${empty} figures not drawn`] : [])];
"""
