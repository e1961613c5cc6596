"""``omb-py guidelines`` on simulated ranks: forms, files, rows, exit codes, and what bad input gets."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from omb_py.cli import main
from omb_py.orchestrate.running.progress import Tally
from omb_py.results.store.read import load

RunLine = Callable[[str], tuple[int, str, str]]
"""Runs a command line with a store of its own: exit code, stdout, stderr."""
SMALL = "guidelines gl5 gl9 --backend mock -n 4 -m 8:8 -i 4 -x 0 --launches 10"


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> RunLine:
    def call(line: str) -> tuple[int, str, str]:
        code = main([*line.split(), "--store", str(tmp_path)])
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.mark.slow
def test_what_holds(run: RunLine, tmp_path: Path) -> None:
    code, out, err = run(
        f"{SMALL} -c --tag a=1 --output {tmp_path}/g.xml --output {tmp_path}/g.json -o {tmp_path}/g.html"
    )
    assert code == 0 and "0 violated, 0 unclear, 2 hold" in out
    assert "2 guidelines, 2 cells a launch, 10 launches" in err
    frame = load(tmp_path)
    assert len(frame) == 40 and set(frame["family"]) == {"guideline"} and frame["validated"].all()
    assert {(r["benchmark"], r["parameters"]["side"]) for _, r in frame.iterrows()} == {
        (name, side) for name in ("gl5_allreduce", "gl9_bcast") for side in ("left", "right")
    }
    assert frame["comparability_key"].nunique() == 4 and frame["run_id"].nunique() == 1
    assert (tmp_path / "g.xml").read_text().count("<testcase") == 2
    assert json.loads((tmp_path / "g.json").read_text())["verdicts"] == {"HOLDS": 2}
    page = (tmp_path / "g.html").read_text()
    assert page.count("HOLDS</td>") == 2 and "SIMULATED" in page


@pytest.mark.slow
def test_the_heap_is_settled_in_each_launch_and_not_for_benchmarks(
    run: RunLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled: list[int] = []
    monkeypatch.setattr("omb_py.engine.measuring.host_memory.settle_heap", lambda: settled.append(1))
    run(SMALL)
    assert len(settled) == 10
    run("allreduce --backend mock -n 4 -m 8:8 -i 4 -x 0 --launches 3")
    assert len(settled) == 10


@pytest.mark.slow
def test_a_planted_wait_is_found_and_costs_what_was_planted(run: RunLine) -> None:
    code, out, _ = run(f"{SMALL} --mock noise=0.01 --inject busy:0:50000 --format json --quiet")
    told = json.loads(out)
    assert code == 1 and told["verdicts"] == {"VIOLATED": 2}
    for cell in told["cells"]:
        assert cell["lost_us"] == pytest.approx(50, rel=0.15)


@pytest.mark.slow
@pytest.mark.parametrize(("launches", "made"), [(4, 4), (5, 20)])
def test_a_round_that_can_decide_nothing_is_not_made(run: RunLine, launches: int, made: int, tmp_path: Path) -> None:
    line = f"{SMALL} --launches {launches} --mock noise=0.01 --inject busy:0:50000"
    code, out, err = run(line)
    assert load(tmp_path)["launch_id"].nunique() == made
    assert (code, "2 unclear" in out, "round 2" in err) == ((0, True, False) if made == 4 else (1, False, True))
    assert made > 4 or "unclear with fewer than 10 launches in a round" in out


def test_gloo_has_a_subset(monkeypatch: pytest.MonkeyPatch) -> None:
    from omb_py.backends.registry import capabilities_of
    from omb_py.options.request import Request
    from omb_py.orchestrate.checks.guidelines import able, chosen

    assert capabilities_of()["gloo"].lacks
    fit, skipped = able(chosen(["patterns"]), Request("gl1_allgather", backends=("gloo",)))
    numbers = {each.benchmark.name.partition("_")[0] for each in fit}
    assert numbers >= {"gl1", "gl5", "gl6", "gl9", "gl11", "gl13", "gl14", "gl15", "gl17", "gl19", "gl22"}
    assert dict(skipped)["gl2_allgather"].startswith("Gloo's alltoall") and "gl4_allgather" in dict(skipped)


def test_a_setting_that_only_the_backend_knows_to_be_wrong_is_bad_input(run: RunLine) -> None:
    code, out, err = run("guidelines gl5 --backend mock --mock foo=3 --quiet")
    assert code == 2 and out == "" and err.count("\n") == 1
    assert "mock: unknown setting 'foo': valid: " in err


def test_progress_counts_a_cell_once_though_it_has_sides(run: RunLine, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[tuple[int, int]] = []
    count = Tally.cell

    def counted(tally: Tally) -> None:
        count(tally)
        counts.append((tally.cells, tally.of_cells))

    monkeypatch.setattr(Tally, "cell", counted)
    run("guidelines gl5 --backend mock -n 4 -m 8,64 -i 4 -x 0 --launches 2 --rounds 1")
    assert counts == [(1, 2), (2, 2)] * 2
