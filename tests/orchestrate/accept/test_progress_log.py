"""An acceptance that is cut off at any launch goes on as if it had not been; what failed stays failed."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omb_py.cli.suite_options import CommandLine
from omb_py.errors import Interrupted, UsageError
from omb_py.orchestrate.accept import launches as module
from omb_py.orchestrate.accept.progress_log import FOLDER, ProgressLog
from omb_py.orchestrate.accept.session import AcceptRequest, accept
from omb_py.orchestrate.planning import resolution
from omb_py.orchestrate.running.suite_run import run_suite
from omb_py.orchestrate.suites.expand import expand
from omb_py.orchestrate.suites.suite_file import parse_suite
from omb_py.results.accept.report import AcceptReport
from omb_py.results.store.read import load
from tests.support.accepting import ENTRY, HEAD, at_night, criterion

MOCK = 'iterations = 5\nmock = "launch=0.05"'
TEXT = HEAD.replace("iterations = 5", MOCK) + ENTRY
TEXT += criterion('benchmark = "latency"\nmessage-size = "8"\nmax = "1 us"') + criterion(
    'benchmark = "allreduce"\nguideline = "reduce + bcast"', "g"
)


def accepted(
    store: Path, text: str = TEXT, resume: str | None = None, mock: str = "", values: Any = None, **more: Any
) -> AcceptReport:
    values = {"seed": 1, "quiet": True, **({"mock": mock} if mock else {}), **(values or {})}
    asked = AcceptRequest(CommandLine(), values, resume=resume, **{"quiet": True, **more})
    return accept(parse_suite(text, "f.toml"), asked, store)


@contextlib.contextmanager
def cut_off(monkeypatch: pytest.MonkeyPatch, after: int, within: int = 0) -> Iterator[None]:
    """Killed before launch number `after`, or after so many cells of it."""
    made: list[int] = []
    real = module.make_launches

    def make(run: Any, launches: Any, skips: Any, tell: Any) -> int:
        if len(made) == after:
            if within:
                launches = [launch for launch in launches[:1]]
                launches[0] = module.replace(launches[0], cells=launches[0].cells[:within])
                real(run, launches, skips, tell)
            raise Interrupted("killed")
        made.append(1)
        return real(run, launches, skips, tell)

    with monkeypatch.context() as patched:
        patched.setattr(module, "make_launches", make)
        kept = r"what was measured is kept in .*; --resume=\S+ measures" if after or within else "nothing was measured"
        with pytest.raises(Interrupted, match=f"killed: {kept}"):
            yield


def facts(found: AcceptReport) -> list[Any]:
    return [(v.case.name, v.word, v.measured, [value for _, value in v.values], v.rounds) for v in found.verdicts]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, AcceptReport]:
    """An acceptance that nothing cut off, and its store."""
    store = tmp_path_factory.mktemp("whole") / "s"
    return store, accepted(store)


@pytest.mark.slow
@pytest.mark.parametrize("after", [2, 4])
def test_it_goes_on_where_it_was(
    after: int, whole: tuple[Path, AcceptReport], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole_store, uncut = whole
    assert len(uncut.verdicts[0].rounds) > 1, "several rounds, so that launches depend on verdicts"
    with cut_off(monkeypatch, after):
        accepted(tmp_path)
    again = accepted(tmp_path, resume="last")
    assert facts(again) == facts(uncut) and again.launches == uncut.launches
    assert [(one.name, one.word) for one in again.checked] == [(one.name, one.word) for one in uncut.checked]
    assert again.deviations[0].startswith("interrupted; resumed at ") and len(again.files) == len(uncut.files)
    frame = load(tmp_path)
    assert set(frame["run_id"]) == {again.run_id} and len(frame) == len(load(whole_store))


@pytest.mark.slow
def test_cells_of_a_launch_that_was_cut_off_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with cut_off(monkeypatch, 2, within=2):
        accepted(tmp_path)
    before = load(tmp_path)
    again = accepted(tmp_path, resume=str(before["run_id"].iloc[0])[:20])
    after = load(tmp_path)
    kept = before[["launch_id", "benchmark", "size_bytes", "median_us"]]
    assert len(kept.merge(after)) == len(kept)
    second = after[[dict(tags)["accept_look"] == "1" for tags in after["tags"]]]
    turns = second.groupby(["benchmark", "size_bytes", "launch_id"]).size().groupby(level=[0, 1]).size()
    assert set(turns) == {8} and all(len(v.values) >= 8 for v in again.verdicts)


@pytest.mark.slow
def test_an_acceptance_that_is_over_is_judged_again(tmp_path: Path) -> None:
    whole = accepted(tmp_path)
    again = accepted(tmp_path, resume=whole.run_id)
    assert facts(again) == facts(whole) and again.launches == whole.launches


@pytest.mark.slow
def test_bare_resume_after_the_end_begins_a_new_run(tmp_path: Path) -> None:
    first = accepted(tmp_path)
    second = accepted(tmp_path, resume="last")
    assert second.run_id != first.run_id and second.deviations == [] and second.launches == first.launches
    (judged,) = accepted(tmp_path, resume=first.run_id).deviations
    assert judged.startswith("judged at ") and "; judged again at " in judged


def test_with_nothing_interrupted_it_begins_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for resume, said in ((None, 0), ("last", 1)):
        with cut_off(monkeypatch, 0):
            accepted(tmp_path, values={"quiet": False}, resume=resume, quiet=False)
        assert capsys.readouterr().err.count("--resume: no interrupted acceptance of mine in ") == said


@pytest.mark.slow
def test_it_goes_on_with_the_same_nodes_and_the_same_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # simulated ranks have no launcher, so the hosts would be refused; what is tested is that they are compared
    rules = [rule for rule in resolution.RULES if rule.name != "launcher where none starts ranks"]
    monkeypatch.setattr(resolution, "RULES", rules)
    with cut_off(monkeypatch, 2):
        accepted(tmp_path, values={"hosts": ("a", "b")})
    with pytest.raises(UsageError, match="was begun with --hosts a b, and is resumed with a c: its launches"):
        accepted(tmp_path, values={"hosts": ("a", "c")}, resume="last")
    assert accepted(tmp_path, values={"hosts": ("a", "b")}, resume="last").deviations[0].startswith("interrupted")


@pytest.mark.slow
def test_nodes_that_come_in_later_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with cut_off(monkeypatch, 2):
        accepted(tmp_path, mock="nodes=1")
    told = accepted(tmp_path, mock="nodes=2", resume="last").deviations
    assert "before it was cut off it ran on node0, then on node0, node1" in told


def test_another_library_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module was loaded in between: its launches are judged with those before."""
    with cut_off(monkeypatch, 2):
        accepted(tmp_path)
    told = accepted(tmp_path, mock="version=2.0", resume="last").deviations
    assert "before it was cut off it ran with mock 1.0, then with mock 2.0" in told


BASELINE = HEAD + ENTRY + criterion('benchmark = "latency"\nbaseline = "5%"')


@pytest.mark.slow
@pytest.mark.parametrize("word", ["library_version=simulated", "tag=suite=mine"])
def test_a_run_that_goes_on_is_no_baseline_of_itself(
    word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mock = "launch=0.001"
    for night in (0, 1):
        at_night(monkeypatch, night)
        first = accepted(tmp_path, BASELINE.replace('baseline = "5%"', 'max = "1 s"'), mock=mock)
    at_night(monkeypatch, 2)
    version = str(load(tmp_path)["library_version"].iloc[0])
    word = word.replace("simulated", version)
    with cut_off(monkeypatch, 3):
        accepted(tmp_path, BASELINE, mock=f"{mock},alpha=2us", baseline=word)
    again = accepted(tmp_path, BASELINE, mock=f"{mock},alpha=2us", baseline=word, resume="last")
    assert {v.note for v in again.verdicts} == {f"baseline {word}: 16 launches in 2 nights"}
    with pytest.raises(UsageError, match="was begun with --baseline"):
        accepted(tmp_path, BASELINE, baseline=first.run_id, resume=again.run_id)


@pytest.mark.slow
def test_what_failed_before_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks that hung: not measured until they do not hang, and the incident is shown."""
    with cut_off(monkeypatch, 2):
        accepted(tmp_path, mock="launch=0.05,hang=1:1024", correctness=False)
    healed = accepted(tmp_path, resume="last", correctness=False)
    assert [one.reason for one in healed.incidents if one.failed and "rank 1" in one.reason]
    lost = [v for v in healed.verdicts if v.case.size == 1024]
    assert lost and {v.word for v in lost} == {"ERROR"}


BESIDE = (
    HEAD
    + ENTRY
    + criterion('benchmark = "latency"\ninterference = "5%"')
    + '[accept]\nbackground-job = "alltoall -n 2"\n'
)


@contextlib.contextmanager
def job(words: Any, timeout: float) -> Iterator[Any]:
    yield lambda: ""


@pytest.mark.slow
def test_an_interference_test_that_was_cut_off_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with cut_off(monkeypatch, 2, within=1):
        accepted(tmp_path, BESIDE, job=job)
    (log,) = (tmp_path / FOLDER).iterdir()
    begun, *ended = map(json.loads, log.read_text().splitlines())
    assert "begun" in begun and [line["ended"] for line in ended] == [["correctness", 0], ["performance", 0]]
    again = accepted(tmp_path, BESIDE, resume="last", job=job)
    assert {v.word for v in again.verdicts} == {"PASS"}
    frame = load(tmp_path)
    beside = frame[[dict(tags)["accept_phase"] == "beside" for tags in frame["tags"]]]
    assert beside["launch_id"].nunique() == 9 and all(len(v.values) == 8 for v in again.verdicts)


@pytest.mark.slow
def test_the_line_at_which_it_was_cut_off_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with cut_off(monkeypatch, 2):
        accepted(tmp_path)
    (log,) = (tmp_path / FOLDER).iterdir()
    log.write_text(log.read_text() + '{"ended": ["perf')
    assert accepted(tmp_path, resume="last").verdicts


def test_a_line_that_was_cut_off_does_not_swallow_the_next(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text('{"ended": ["perf')
    log = ProgressLog(path)
    log.end(("perf", 0))
    log.end(("perf", 1))
    torn, *whole = path.read_text().splitlines()
    assert torn == '{"ended": ["perf'
    assert [json.loads(line)["ended"] for line in whole] == [["perf", 0], ["perf", 1]]


@pytest.mark.slow
def test_runs_that_cannot_be_gone_on_with(tmp_path: Path) -> None:
    assert accepted(tmp_path / "mine", resume="last").deviations == [], "there is none: a new one"
    expanded = expand(parse_suite(TEXT, "f.toml"), CommandLine(), {"store": tmp_path / "run", "quiet": True})
    run_suite(expanded)
    (plain,) = set(load(tmp_path / "run")["run_id"])
    with pytest.raises(UsageError, match="was not begun by omb-py accept: omb-py run --resume"):
        accepted(tmp_path / "run", resume=plain)
    with pytest.raises(UsageError, match="no run 'nothing'"):
        accepted(tmp_path / "mine", resume="nothing")
    with pytest.raises(UsageError, match="is not one of suite other"):
        accepted(
            tmp_path / "mine",
            TEXT.replace('name = "mine"', 'name = "other"'),
            resume=load(tmp_path / "mine")["run_id"].iloc[0],
        )
    (mine,) = set(load(tmp_path / "mine")["run_id"])
    with pytest.raises(UsageError, match="was begun by omb-py accept"):
        run_suite(expand(parse_suite(TEXT, "f.toml"), CommandLine(), {"store": tmp_path / "mine", "quiet": True}), mine)
