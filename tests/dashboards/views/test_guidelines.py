"""Stored guidelines in the report: judged again, and kept from the curves."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.cli import main
from omb_py.dashboards.base.reading import parse
from omb_py.dashboards.report.build import report

LINE = "guidelines gl5 gl9 --backend mock -n 4 -m 8:64:8 -i 4 -x 0 --launches 10 --quiet --mock noise=0.01"


@pytest.mark.slow
def test_a_store_with_guidelines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = str(tmp_path)
    assert main([*LINE.split(), "--inject", "busy:0:50000", "--store", store]) == 1
    alone = report(tmp_path, parse([]))
    (view,) = alone.tabs["Health"].views
    assert alone.odd[0].startswith("Guidelines: 4 violations of 2 guidelines; the worst: ")
    assert not alone.problem and view.kind == "guidelines"
    assert view.title.startswith("4 violations of 2 guidelines; the worst: ")
    assert "4 violated, 0 unclear, 0 hold" in view.notes[0]
    assert (
        main(["allreduce", "--backend", "mock", "-n", "4", "-m", "8:64", "-i", "5", "--quiet", "--store", store]) == 0
    )
    both = report(tmp_path, parse([]))
    assert [v.kind for v in both.views].count("guidelines") == 1
    assert not any("gl5" in v.title for v in both.tabs["Compare"].views)
