"""A headless Chromium for tests, and why there is none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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
        driver.set_script_timeout(60)
        yield driver
    finally:
        driver.quit()


def resize(driver: Any, width: int, height: int = 900) -> None:
    """Give the viewport exactly this size, also one narrower than a window may be."""
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
    )


def errors(driver: Any) -> list[str]:
    """What the page has written to the console as an error or a warning, and has not been read yet."""
    return [entry["message"] for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


DRAW = "const done = arguments[0]; window.drawAll().then(() => requestAnimationFrame(() => done(true)));"

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
