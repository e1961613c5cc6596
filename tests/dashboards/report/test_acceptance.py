"""The acceptance report: fourteen parts on one offline page, retests and all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from omb_py.cli.suite_options import CommandLine
from omb_py.dashboards.report import html_page
from omb_py.dashboards.report.acceptance import acceptance_page, board, shortened
from omb_py.dashboards.report.html_page import plotly_script
from omb_py.orchestrate.accept.session import AcceptRequest, accept
from omb_py.orchestrate.suites.suite_file import parse_suite
from omb_py.results.accept.report import AcceptReport
from tests.support.accepting import ENTRY, HEAD, criterion
from tests.support.plotly_figures import plotly_figure

PARTS = tuple(
    (
        "cover criteria scope configuration curves pairs guidelines efficiency stability correctness "
        "incidents method data again"
    ).split()
)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> AcceptReport:
    text = HEAD.replace("iterations = 5", 'iterations = 5\nmock = "launch=0.1"') + ENTRY
    text += criterion('benchmark = "latency"\nmessage-size = "8"\nmax = "1 us"\ntext = "<script>alert(1)</script>"')
    text += criterion('benchmark = "allreduce"\nmax = "0.1 us"', "missed")
    asked = AcceptRequest(CommandLine(), {"seed": 1}, quiet=True, command="omb-py accept mine.toml")
    return accept(parse_suite(text, "f.toml"), asked, tmp_path_factory.mktemp("store"))


@pytest.mark.slow
def test_a_busy_machine_stands_on_the_cover(found: AcceptReport) -> None:
    said = "busy machine: other programs use 1.5 of 2 cores"
    page = acceptance_page(replace(found, machine={"warnings": [said]}))
    assert page.count(said) == 1
    assert page.index('<main id="cover">') < page.index(f"warning: {said}") < page.index('<main id="criteria">')


@pytest.mark.slow
def test_every_part_is_there(found: AcceptReport) -> None:
    page = acceptance_page(found)
    assert [page.index(f'<main id="{name}">') for name in PARTS] == sorted(
        page.index(f'<main id="{name}">') for name in PARTS
    )
    own = page.replace(plotly_script(), "")
    assert "http://" not in own and "https://" not in own and "<script>alert" not in own
    assert "FAIL: 2 fail, 1 marginal of 3 verdicts" in own and "omb-py accept mine.toml" in own
    assert '<p class="label">SIMULATED: nothing was measured</p>' in own
    assert own.count('<td class="bad">FAIL</td>') == 3, "on paper too: the cover, and two criteria"
    assert "node_facts.kernel" in own and "kernel_command_line" not in own, "it names disks and hosts"
    for path, digest in found.files:
        assert digest in own and Path(path).name in own


@pytest.mark.slow
def test_every_launch_is_shown(found: AcceptReport) -> None:
    page = acceptance_page(found)
    undecided = next(verdict for verdict in found.verdicts if verdict.word == "MARGINAL")
    assert len(undecided.values) == 24 and "round 2: MARGINAL" in page and "round 3: MARGINAL" in page
    assert all(launch in page for launch, _ in undecided.values)


@pytest.mark.slow
def test_without_plotly_its_tables_are_there_and_it_says_what_is_missing(
    found: AcceptReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html_page, "find_spec", lambda name: None)
    page = acceptance_page(found)
    assert "figures need plotly, which is not installed: pip install" in page
    assert 'id="packed"' not in page and page.count('<td class="bad">FAIL</td>') == 3
    assert all(launch in page for verdict in found.verdicts for launch, _ in verdict.values)


def test_the_board_is_a_valid_figure(found: AcceptReport) -> None:
    view = board(found)
    assert {trace.name for trace in plotly_figure(view).data} == {"fail", "marginal"} and len(view.rows) == 3
    assert shortened("a" * 30 + ", 1 KiB, 4 ranks") == "aaaaaaaaa…, 1 KiB, 4 ranks" and shortened("short") == "short"
    assert view.rows[0][6] == "FAIL", "worst first"
    undecided = next(trace for trace in plotly_figure(view).data if trace.name == "marginal")
    low = undecided.x[0] - undecided.error_x.arrayminus[0]
    high = undecided.x[0] + undecided.error_x.array[0]
    assert low < 1 < high, "the ends of the interval, as shares of the limit"
    assert any("right of 1 for what has a lower one" in note for note in view.notes), "which side of 1 is good"
