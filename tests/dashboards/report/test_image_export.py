"""Pictures, printed by the browser that is there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omb_py.cli import main
from omb_py.dashboards.report import image_export
from omb_py.errors import EnvironmentProblem
from tests.support.browser import PATIENCE_S, TEST_S, missing

WORDS = ["allreduce", "--backend", "mock", "-n", "2", "-m", "8:1024:16", "-i", "5", "--no-store", "--quiet"]


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.skipif(bool(missing()), reason=missing() or "there is one")
@pytest.mark.timeout(TEST_S)
def test_a_picture_of_what_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """As PNG; the other forms are those of omb-py plot (test_picture.py)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(image_export, "PATIENCE_S", PATIENCE_S)
    assert main([*WORDS, "-G", "png"]) == 0
    (made,) = tmp_path.glob("allreduce-*.png")
    assert made.read_bytes().startswith(b"\x89PNG") and made.stat().st_size > 10_000
    assert capsys.readouterr().err == f"omb-py: drawn: {made.name}\n"


@pytest.mark.parametrize("form", ["png", "pdf"])
def test_without_a_browser_nothing_is_measured(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(image_export, "BROWSERS", ())
    monkeypatch.delenv(image_export.VARIABLE, raising=False)
    assert main([*WORDS, "-G", form]) == 3
    said = capsys.readouterr()
    assert said.out == "" and said.err == (
        "omb-py: error: a picture is drawn by a browser, and no Chromium or Chrome is on the PATH: apt-get install "
        "chromium, or set BROWSER_PATH; -G tty needs none\n"
    )


def program(tmp_path: Path, text: str) -> str:
    path = tmp_path / "browser"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.slow
def test_a_browser_that_draws_nothing(frame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (view,) = image_export.views_of(frame.drop(columns="date").to_dict("records"))
    monkeypatch.setenv(image_export.VARIABLE, program(tmp_path, "echo no display >&2; exit 1"))
    with pytest.raises(EnvironmentProblem, match=r"browser drew nothing: no display$"):
        image_export.save(view, tmp_path / "x.png")
    monkeypatch.setattr(image_export, "PATIENCE_S", 0.2)
    monkeypatch.setenv(image_export.VARIABLE, program(tmp_path, "exec sleep 20"))
    with pytest.raises(EnvironmentProblem, match=r"drew nothing: .*timed out"):
        image_export.save(view, tmp_path / "x.png")
    assert not (tmp_path / "x.png").exists()


def test_the_rows_of_a_printer_are_drawn_as_those_of_a_store(frame) -> None:
    rows = json.loads(frame.drop(columns="date").to_json(orient="records", date_format="iso", date_unit="us"))
    (view,) = image_export.views_of(rows)
    assert view.title == "allreduce, 4 ranks: MPICH 5.0.2 is fastest at 64 KiB; up to 2× apart, at 64 KiB"
    assert view.caption.endswith("2026-11-20 to 2026-11-21") or view.caption.endswith("2026-11-20")
