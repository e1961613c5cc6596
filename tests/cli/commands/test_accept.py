"""``omb-py accept``: forms, files, exit codes, refusals."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import junitparser
import pytest

from omb_py.cli import main
from tests.support.accepting import ENTRY, HEAD, criterion
from tests.support.jenkins import violations


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mine.toml"
    file.write_text(HEAD + ENTRY + criterion('benchmark = "latency"\nmax = "5 us"'))
    return file


@pytest.mark.slow
def test_every_form(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [f"a.{ending}" for ending in ("xml", "json", "md", "html")]
    words = [word for file in files for word in ("--output", file)]
    assert main(["accept", "mine.toml", "--quiet", *words]) == 0
    out, err = capsys.readouterr()
    assert "PASS: 2 pass of 2 verdicts; correctness: 2 of 2 right" in out and err == ""
    xml = Path("a.xml").read_text()
    assert violations(xml) == [] and junitparser.JUnitXml.fromfile("a.xml").tests == 4
    told = json.loads(Path("a.json").read_text())
    assert told["verdict"] == "PASS" and told["command"].startswith("omb-py ")
    assert "| a, 8 B | contract | at most 5 us |" in Path("a.md").read_text()
    assert '<main id="cover">' in Path("a.html").read_text()


@pytest.mark.slow
def test_names_of_tests_are_unique(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Entries that differ in an option alone."""
    bw = '[[entry]]\nbenchmarks = ["bw"]\nmessage-size = "8:8"\nwindow-size = [1, 64]\n'
    both = '[[entry]]\nbenchmarks = ["allreduce"]\nmessage-size = "8:8"\ntype = ["float64", "int32"]\n'
    suite.write_text(
        HEAD
        + bw
        + both
        + criterion('benchmark = "bw"\nmin = "1 B/s"', "b")
        + criterion('benchmark = "allreduce"\nmax = "1 s"')
    )
    assert main(["accept", "mine.toml", "--quiet", "--output", "a.xml", "-n", "2"]) == 0
    cases = [(one.classname, one.name) for tests in junitparser.JUnitXml.fromfile("a.xml") for one in tests]
    performance = {name for where, name in cases if where.endswith(".contract")}
    assert performance == {"b, 8 B, window-size 1", "b, 8 B, window-size 64", "a, 8 B, float64", "a, 8 B, int32"}
    right = {name for where, name in cases if where.endswith(".correctness")}
    assert right >= {"allreduce (type: float64), 2 ranks", "allreduce (type: int32), 2 ranks"}
    (told,) = junitparser.JUnitXml.fromfile("a.xml")
    assert {"b, 8 B, window-size 1: measured", "b, 8 B, window-size 64: measured"} <= {
        p.name for p in told.properties()
    }


@pytest.mark.slow
@pytest.mark.parametrize(("form", "begins"), [("json", "{"), ("markdown", "**FAIL"), ("junit", "<?xml")])
def test_stdout_and_a_missed_criterion(suite: Path, form: str, begins: str, capsys: pytest.CaptureFixture[str]) -> None:
    suite.write_text(suite.read_text().replace("5 us", "1 ns"))
    assert main(["accept", "mine.toml", "--quiet", "--format", form, "--no-correctness"]) == 1
    assert capsys.readouterr().out.startswith(begins)


def test_check_and_show_know_criteria(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suite", "check", "mine.toml"]) == 0
    assert "2 benchmarks, 2 sweeps, 1 criterion" in capsys.readouterr().out
    assert main(["suite", "show", "mine.toml"]) == 0
    assert "criterion a: latency: at most 5 us" in capsys.readouterr().out
    suite.write_text(suite.read_text().replace('benchmark = "latency"', 'benchmark = "bcast"'))
    assert main(["suite", "check", "mine.toml"]) == 2
    assert "no entry of the suite measures bcast" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["suite", "check"], ["accept"], ["accept", "--print-script"]])
def test_the_other_jobs_words_are_read_before_anything_is_measured(
    suite: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    beside = '[accept]\nbackground-job = "latency -n 2 --backend mock --type nonsense"\n'
    suite.write_text(HEAD + ENTRY + criterion('benchmark = "latency"\ninterference = "5%"') + beside)
    assert main([command[0], *command[1:2], "mine.toml"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert "mine.toml: [accept] key 'background-job': unknown type 'nonsense'" in err
    suite.write_text(suite.read_text().replace("nonsense", "char"))
    assert main(["suite", "check", "mine.toml"]) == 0


def test_run_passes_criteria_over(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite.write_text(suite.read_text().replace("5 us", "1 ns"))
    assert main(["run", "mine.toml", "--quiet"]) == 0


def test_a_file_that_cannot_be_written_is_said_before_anything_is_measured(
    suite: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["accept", "mine.toml", "--output", "gone/a.xml"]) == 3
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "there is no folder gone" in err
    assert not Path("omb-results").exists()


def test_a_wrong_entry_is_named_before_the_missing_criterion(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite.write_text(HEAD + '[[entry]]\nbenchmarks = ["latenc"]\n')
    assert main(["accept", "mine.toml"]) == 2
    err = capsys.readouterr().err
    assert "benchmark 'latenc' is unknown: did you mean latency?" in err and "mine.toml:" in err
    assert "criterion" not in err


@pytest.mark.slow
def test_a_damaged_file_of_the_baseline_is_one_line(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite.write_text(HEAD + ENTRY + criterion('benchmark = "latency"\nbaseline = "10 %"'))
    for night in range(2):
        assert main(["run", "mine.toml", "--quiet", "--store", "nights", "--tag", f"night={night}"]) == 0
    (Path("nights") / "junk.parquet").write_bytes(b"no Parquet")
    capsys.readouterr()
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        main(["accept", "mine.toml", "--quiet", "--baseline", "nights"])
    damaged, one_night = capsys.readouterr().err.splitlines()
    assert damaged.startswith("omb-py: skipped nights/junk.parquet: not a readable Parquet file")
    assert "the baseline nights is one night" in one_night


def test_the_command_that_makes_a_baseline_is_one_that_works(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For the shipped suite it named a file nightly.toml, which is not there."""
    assert main(["accept", "nightly", "--backend", "mock"]) == 2
    assert "omb-py run nightly --launches 8 --tag K=V" in capsys.readouterr().err
    suite.write_text(HEAD + ENTRY + criterion('benchmark = "latency"\nbaseline = "10 %"'))
    assert main(["accept", "mine.toml"]) == 2
    assert "omb-py run mine.toml --launches 8 --tag K=V" in capsys.readouterr().err


@pytest.mark.slow
def test_a_baseline_of_one_night_ends_at_once_as_undecided(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite.write_text(HEAD + ENTRY + criterion('benchmark = "latency"\nbaseline = "10 %"'))
    assert main(["run", "mine.toml", "--quiet", "--launches", "8", "--tag", "baseline=spring"]) == 0
    capsys.readouterr()
    assert main(["accept", "mine.toml", "--baseline", "tag=baseline=spring"]) == 4
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert "on 4 more nights, omb-py run mine.toml --launches 8 --tag baseline=spring" in err
