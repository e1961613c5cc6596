"""Stored sweeps over all pairs: judged again from rows, they say what the sweep said."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from omb_py.cli import main
from omb_py.results.checks.pair_sweeps import COLUMNS, PARTS, as_dict, document_of, is_row, matrix, names_of, sweep_of
from omb_py.results.compare.tags import LINKS_PART
from omb_py.results.store.read import load
from tests.support.tiers import few_quick

QUICK = "links --backend mock -n 6 --passes 3 -i 10 --windows 2 -W 2 --seed 1 --quiet"


@pytest.fixture(scope="module", params=few_quick([2, 3]), ids=["launches of 2 passes and of 1", "one for each pass"])
def swept(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Stored rows of a sweep with a slow link, and what the command said of it."""
    place = tmp_path_factory.mktemp("links")
    words = [*QUICK.split(), "--launches", str(request.param), "--store", str(place / "s")]
    words += ["--mock", "noise=0.03,link=1-2:3"]
    assert main([*words, "--output", str(place / "said.json")]) == 1
    rows = load(place / "s", columns=COLUMNS).to_dict("records")
    return [{str(k): v for k, v in row.items()} for row in rows], json.loads((place / "said.json").read_text())


@pytest.mark.slow
def test_the_rows_say_what_the_sweep_said(swept) -> None:
    rows, said = swept
    again = as_dict(sweep_of(rows))
    assert again["run_id"] == said["run_id"] and again["nodes"] == said["nodes"]
    (link,), (there,) = again["found"], said["found"]
    assert (link["name"], link["state"]) == (there["name"], there["state"]) == ("node1 - node2", "confirmed")
    for metric, told in there["metrics"].items():
        assert link["metrics"][metric] == {
            **told,
            "slower": pytest.approx(told["slower"], rel=1e-5),
            "limit": pytest.approx(told["limit"], rel=1e-4),
        }
    assert len(again["pairs"]) == 15
    for mine, theirs in zip(again["pairs"], said["pairs"], strict=True):
        assert mine == {k: pytest.approx(v, rel=1e-5) if isinstance(v, float) else v for k, v in theirs.items()}


@pytest.mark.slow
def test_every_pass_that_was_asked_for_is_made(swept) -> None:
    rows, _ = swept
    made = {part: {row["parameters"]["pass"] for row in rows if row["tags"][LINKS_PART] == part} for part in PARTS}
    assert {part: len(passes) for part, passes in made.items()} == {"sweep": 3, "repeat": 3}
    first = sweep_of(rows).first
    assert (sum(first.shares), len(first.shares)) == (3, len({row["launch_index"] for row in rows}) // 2)


def test_a_sweep_that_was_cut_short_has_its_matrix_and_no_verdict(swept) -> None:
    rows, _ = swept
    kept = [row for row in rows if row["launch_index"] == 0 and row["parameters"]["pair"] not in ("0-3", "3-0")]
    sweep = sweep_of(kept)
    assert sweep.suspects == () and sweep.repeat is None and not sweep.first.complete
    rates = matrix(sweep)
    assert len(rates) == 2 * 14 and np.isfinite(rates["value"]).all()
    assert document_of(sweep).headline == "6 nodes, 15 links: nothing is judged, since not all were measured"


@pytest.mark.parametrize(("column", "key"), [("tags", LINKS_PART), ("parameters", "pass")])
def test_rows_that_no_sweep_wrote(swept, column: str, key: str) -> None:
    """They would take the explorer's first screen from its reader."""
    rows, _ = swept
    foreign = [{**row, column: {k: v for k, v in dict(row[column]).items() if k != key}} for row in rows]
    with pytest.raises(ValueError, match=f"no sweep wrote these rows: '{key}' is not theirs"):
        sweep_of(foreign)


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="without rows"):
        sweep_of([])
    assert not is_row(None) and not is_row({"pair": "0-1"})
    assert is_row({"pair": "0-1", "pass": "0", "direction": "forward"})
    assert names_of(["a", "b", "a"]) == ("a:0", "b:0", "a:1")
