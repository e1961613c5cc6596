"""A comparison that was interrupted ends with the report that it would have had."""

from __future__ import annotations

import fcntl
import gc
import json
from pathlib import Path

import pytest

from omb_py.cli import main
from omb_py.errors import Interrupted, LaunchFailed, UsageError
from omb_py.orchestrate.compare import session
from omb_py.orchestrate.running import run as running
from omb_py.orchestrate.running.resume import COMPARISON, check_same_design
from omb_py.results.store.paths import REPORTS
from omb_py.results.store.runs import runs

NOISE = "launch=0.005,noise=0.01"
LINE = (
    f"compare --option BASE:mock={NOISE} --option NEW:mock=alpha=1.1us,{NOISE} --seed 7 --launches 8 --rounds 1 "
    "allreduce --backend mock -n 2 -m 8:64:8 -i 20 -x 1"
)


@pytest.fixture
def run(tmp_path, capsys):
    def call(line: str, store: str = "s") -> tuple[int, dict, str]:
        out = tmp_path / f"{store}.json"
        out.unlink(missing_ok=True)
        code = main([*line.split(), "--store", str(tmp_path / store), "--output", str(out)])
        gc.collect()  # a command of its own would end here, and with it its lock
        return code, json.loads(out.read_text()) if out.exists() else {}, capsys.readouterr().err

    return call


@pytest.fixture
def interrupt(monkeypatch):
    """Interrupts the launch of a number, after its first `cells` cells."""

    def plant(number: int, cells: int = 0) -> None:
        made = []

        def start(run, launch):
            made.append(launch)
            if len(made) < number:
                return running.start(run, launch)
            if cells:
                running.start(run, launch.__class__(**{**_fields(launch), "cells": launch.cells[:cells]}))
            raise Interrupted("interrupted")

        monkeypatch.setattr(session, "start_on_nodes", start)

    return plant


def _fields(launch):
    return {name: getattr(launch, name) for name in launch.__dataclass_fields__}


def numbers(report: dict) -> list:
    return [
        {key: value for key, value in cell.items() if key != "comparability_key"}
        for cell in sorted(report["cells"], key=lambda cell: cell["size_bytes"])
    ]


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> tuple[int, dict, int]:
    """Exit code and report of a comparison that nothing interrupted, and how many files it stored."""
    folder = tmp_path_factory.mktemp("whole")
    code = main([*LINE.split(), "--store", str(folder / "s"), "--output", str(folder / "r.json")])
    gc.collect()
    return code, json.loads((folder / "r.json").read_text()), len(list((folder / "s").glob("date=*/*.parquet")))


@pytest.mark.slow
@pytest.mark.parametrize("number", [4, 1, 16])
def test_ends_with_the_same_report(run, interrupt, monkeypatch, number, tmp_path, whole) -> None:
    code, uncut, files = whole
    interrupt(number)
    stopped, nothing, err = run(LINE)
    assert stopped == 130 and nothing == {} and "\nomb-py: to go on: omb-py compare --resume=" in err
    (noted,) = runs(tmp_path / "s") or [None]
    assert noted is None if number == 1 else noted.state == "interrupted"
    monkeypatch.undo()
    again, report, err = run(f"{LINE} --resume")
    assert again == code == 1 and numbers(report) == numbers(uncut)
    assert f"is resumed: {number - 1} launches are in the store" in err
    assert not list((tmp_path / "s" / ".reports").glob("*.begun"))
    assert [run.state for run in runs(tmp_path / "s")] == [None]
    # the stored launches give the same verdicts, and no launch was made twice
    assert len(list((tmp_path / "s").glob("date=*/*.parquet"))) == files


@pytest.mark.slow
def test_what_was_measured_before_an_interruption_can_be_judged(run, interrupt, monkeypatch, capsys) -> None:
    for number, judges in ((3, False), (13, True)):
        interrupt(number)
        _, _, err = run(LINE, f"s{number}")
        monkeypatch.undo()
        assert (" judges them; --resume=" in err) == judges
    line = err.partition("omb-py compare ")[2].partition(" judges them")[0]
    assert main(["compare", *line.split()]) in (0, 1) and "NEW is " in capsys.readouterr().out


@pytest.mark.slow
def test_an_interruption_between_launches_says_how_to_go_on(run, monkeypatch) -> None:
    made = []

    def begins(measurer, *_: object) -> None:
        made.append(measurer)
        raise KeyboardInterrupt

    monkeypatch.setattr(session.Measurer, "begins", begins)
    code, _, err = run(LINE)
    assert code == 130 and made and "interrupted" in err and f"--resume={made[0].run_id} measures the rest" in err


@pytest.mark.slow
def test_launches_of_a_benchmark_that_reduces_nothing_are_taken(run, interrupt, monkeypatch, tmp_path) -> None:
    line = LINE.replace("allreduce", "latency")
    interrupt(5)
    run(line)
    monkeypatch.undo()
    assert "is resumed: 4 launches are in the store" in run(f"{line} --resume")[2]
    assert len(list((tmp_path / "s").glob("date=*/*.parquet"))) == 16  # none was made twice


PLANNED = LINE.replace("--launches 8", "--budget 1h")


@pytest.mark.slow
def test_what_a_pilot_chose_holds_after_an_interruption(run, interrupt, monkeypatch, tmp_path) -> None:
    code, whole, err = run(PLANNED, "whole")
    assert "3 launches a side to plan by, which are not judged" in err and "--budget TIME chooses" not in err
    interrupt(2 * 3 + 5)
    run(PLANNED)
    monkeypatch.undo()
    again, report, err = run(f"{PLANNED} --resume")
    assert again == code == 1 and numbers(report) == numbers(whole)
    assert "is resumed: 4 launches are in the store" in err and "to plan by" not in err


@pytest.mark.slow
def test_an_interrupted_pilot_is_made_again(run, interrupt, monkeypatch, tmp_path) -> None:
    interrupt(4)
    run(PLANNED)
    monkeypatch.undo()
    code, report, err = run(f"{PLANNED} --resume")
    assert code == 1 and report["verdicts"]["SLOWER"] >= 1
    assert "is resumed: 0 launches" in err and "to plan by" in err


@pytest.mark.slow
def test_another_budget_does_not_resume(run, interrupt, monkeypatch, tmp_path) -> None:
    interrupt(4)
    run(PLANNED)
    monkeypatch.undo()
    code, _, err = run(f"{PLANNED.replace('1h', '2h')} --resume=last")
    assert code == 2 and "was begun with budget 3600.0, and is resumed with 7200.0" in err


@pytest.mark.slow
def test_cells_of_a_cut_launch_are_not_measured_again(run, interrupt, monkeypatch, tmp_path) -> None:
    interrupt(3, cells=2)
    run(LINE)
    monkeypatch.undo()
    code, report, _ = run(f"{LINE} --resume")
    assert code == 1 and report["verdicts"]["SLOWER"] >= 1
    assert {tuple(cell["median"]["launches"]) for cell in report["cells"]} == {(8, 8)}


@pytest.mark.slow
def test_by_the_beginning_of_an_id(run, interrupt, monkeypatch, tmp_path) -> None:
    interrupt(4)
    run(LINE)
    monkeypatch.undo()
    (begun,) = (tmp_path / "s" / ".reports").glob("*.begun")
    code, report, _ = run(f"{LINE} --resume={begun.stem[:18]}")
    assert code == 1 and report["run_id"] == begun.stem


@pytest.mark.slow
def test_a_comparison_that_another_process_measures_is_refused(run, interrupt, monkeypatch, tmp_path) -> None:
    """Between two of its launches, when there is no journal."""
    interrupt(4)
    run(LINE)
    monkeypatch.undo()
    gc.collect()  # the interrupted run of this process has ended
    (begun,) = (tmp_path / "s" / REPORTS).glob(f"*{COMPARISON}")
    run_id = begun.stem
    journals = tmp_path / "s" / ".journal"
    with (journals / f"{run_id}.run").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        code, report, err = run(f"{LINE} --resume=last")
    assert (code, report) == (2, {}) and f"run {run_id} is still running" in err
    assert run(f"{LINE} --resume=last")[0] == 1


@pytest.mark.slow
def test_with_nothing_interrupted_it_begins(run) -> None:
    code, report, err = run(f"{LINE} --resume")
    assert code == 1 and report["cells"] and "is resumed" not in err
    assert err.count("--resume: no interrupted comparison in ") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "words"),
    [
        (LINE.replace("--launches 8", "--launches 9"), "was begun with launches 8, and is resumed with 9"),
        (LINE.replace("8:64:8", "8:8"), "was begun with"),
        (LINE.replace("alpha=1.1us", "alpha=1.2us"), "was begun with other sides"),
    ],
)
def test_another_design_is_refused(run, interrupt, monkeypatch, line, words) -> None:
    interrupt(3)
    run(LINE)
    monkeypatch.undo()
    code, _, err = run(f"{line} --resume")
    assert code == 2 and words in err and "without --resume" in err


@pytest.mark.slow
def test_an_unknown_run_is_refused(run) -> None:
    code, _, err = run(f"{LINE} --resume=2020")
    assert code == 2 and "no interrupted comparison has this id" in err


@pytest.mark.slow
def test_a_finished_comparison_says_so(run) -> None:
    finished = run(LINE)[1]["run_id"]
    code, report, err = run(f"{LINE} --resume={finished}")
    assert (code, report) == (2, {})
    assert f"--resume={finished}: run {finished} is finished: leave --resume out to measure anew" in err


class TestLaunchThatDoesNotBegin:
    """Simulated ranks that join late: the launch fails before its first cell."""

    @pytest.fixture
    def late(self, monkeypatch):
        def plant(*numbers: int) -> list[int]:
            attempts: list[int] = []
            here = running._run_here

            def attempt(run, launch, failed=()):
                attempts.append(launch.index)
                if len(attempts) in numbers:
                    raise LaunchFailed("1 of 2 ranks did not join within 60 s. What to do: look")
                return here(run, launch, failed)

            monkeypatch.setattr(running, "_run_here", attempt)
            return attempts

        return plant

    @pytest.mark.slow
    def test_is_made_again_and_said(self, run, late) -> None:
        attempts = late(3)
        code, report, err = run(LINE)
        assert code == 1 and attempts[:5] == [0, 1, 2, 2, 3]
        assert "launching again, attempt 2 of 3: 1 of 2 ranks did not join within 60 s" in err
        (sentence,) = report["repeated"]
        assert sentence == "launch 3 did not begin and was made again: 1 of 2 ranks did not join within 60 s"

    @pytest.mark.slow
    def test_is_stored_with_its_reason(self, run, late, tmp_path) -> None:
        from omb_py.results.store.provenance import read_provenance

        late(3)
        run(LINE)
        (path,) = (tmp_path / "s").glob("date=*/*-2.parquet")
        launch = read_provenance(path)["launch"]
        assert launch["attempt"] == 2 and launch["failed_attempts"] == ["1 of 2 ranks did not join within 60 s"]

    @pytest.mark.slow
    def test_at_most_three_times(self, run, late) -> None:
        attempts = late(3, 4, 5)
        code, _, err = run(LINE)
        assert code == 3 and attempts == [0, 1, 2, 2, 2] and "--resume=" in err

    @pytest.mark.slow
    def test_not_where_no_launch_ever_began(self, run, late) -> None:
        attempts = late(1)
        code, _, _ = run(LINE)
        assert code == 3 and attempts == [0]


@pytest.mark.slow
def test_the_newest_of_the_same_design_is_resumed(run, interrupt, monkeypatch, tmp_path) -> None:
    interrupt(4)
    run(LINE)
    (mine,) = (tmp_path / "s" / ".reports").glob("*.begun")
    run(LINE.replace("--launches 8", "--launches 9"))
    monkeypatch.undo()
    _, report, _ = run(f"{LINE} --resume")
    assert report["run_id"] == mine.stem and not mine.exists()


@pytest.mark.slow
def test_the_design_is_a_file_beside_the_reports(run, interrupt, tmp_path: Path) -> None:
    interrupt(2)
    run(LINE)
    (begun,) = (tmp_path / "s" / ".reports").glob("*.begun")
    design = json.loads(begun.read_text())
    assert design["launches"] == 8 and design["seed"] == 7 and set(design["sides"]) == {"BASE", "NEW"}


@pytest.mark.parametrize("began", ["mpi", "x" * 80])
def test_only_what_is_short_on_both_sides_is_quoted(began: str) -> None:
    with pytest.raises(UsageError, match="was begun with other sides: "):
        check_same_design("r1", {"sides": began}, {"sides": "y" * 80 if began == "mpi" else "mock"})
