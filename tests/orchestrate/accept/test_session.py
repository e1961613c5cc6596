"""Acceptance on simulated ranks: correctness first, rounds, faults, baselines, and once on real ranks."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import junitparser
import pytest

from omb_py.cli.suite_options import CommandLine
from omb_py.errors import CannotDecide, EnvironmentProblem, UsageError
from omb_py.orchestrate.accept.session import AcceptRequest, accept
from omb_py.orchestrate.suites.suite_file import parse_suite
from omb_py.printing.writers import to_junit
from omb_py.results.accept.report import AcceptReport, document_of, exit_code
from omb_py.results.store.read import load
from tests.support.accepting import ENTRY, HEAD, at_night, criterion
from tests.support.jenkins import violations

LAX = criterion('benchmark = "latency"\nmax = "5 us"')


def accepted(text: str, store: Path, ranks: int | None = None, **more: Any) -> AcceptReport:
    values = {"quiet": True, **more.pop("values", {})}
    return accept(parse_suite(text, "f.toml"), AcceptRequest(CommandLine(), values, ranks, quiet=True, **more), store)


def words(found: AcceptReport) -> dict[str, str]:
    return {verdict.case.name: verdict.word for verdict in found.verdicts}


def phases(store: Path) -> Counter[str]:
    frame = load(store)
    tags = [(launch, tag["accept_phase"]) for launch, tag in zip(frame["launch_id"], frame["tags"], strict=True)]
    return Counter(phase for _, phase in dict.fromkeys(tags))


@pytest.mark.slow
def test_correctness_then_performance(tmp_path: Path) -> None:
    text = HEAD.replace("iterations = 5", 'iterations = 5\nmock = "launch=0.1"') + ENTRY + LAX
    text += criterion('benchmark = "allreduce"\nmessage-size = "8"\nmax = "0.1 us"', "b")
    found = accepted(text, tmp_path)
    assert words(found) == {"a, 8 B": "PASS", "a, 1 KiB": "PASS", "b, 8 B": "FAIL"}
    assert [one.word for one in found.checked] == ["PASS", "PASS"] and exit_code(found) == 1
    assert phases(tmp_path) == {"correctness": 1, "performance": 8} and found.launches == 9
    assert load(tmp_path)["run_id"].unique().tolist() == [found.run_id]
    first = load(tmp_path).sort_values("launch_index").iloc[0]
    assert first["tags"]["accept_phase"] == "correctness" and first["validated"]
    assert len(found.files) == 9 and all(len(digest) == 64 for _, digest in found.files)


@pytest.mark.parametrize(("fault", "named"), [(",straggler=2:2us", True), ("", False)])
def test_a_rank_that_is_late_is_named(fault: str, named: bool, tmp_path: Path) -> None:
    """A bound that is missed says nothing of where: the report of a late rank names its node."""
    head = HEAD.replace("iterations = 5", f'iterations = 100\nmock = "nodes=4,noise=0.05{fault}"')
    text = head + '[[entry]]\nbenchmarks = ["allreduce"]\nmessage-size = "8:16"\n'
    found = accepted(text + criterion('benchmark = "allreduce"\nmax = "1 ms"'), tmp_path, 4)
    late = [line for line in document_of(found).facts if "finished last in" in line]
    assert [line.startswith("allreduce: rank 2 (node2) finished last in ") for line in late] == [True] * named
    assert found.late_ranks == late


def test_a_run_of_which_nothing_is_stored_is_not_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = HEAD.replace("iterations = 5", 'iterations = 5\nmock = "die=1"') + ENTRY + LAX
    accept(parse_suite(text, "f.toml"), AcceptRequest(CommandLine()), tmp_path)
    assert "stored as run" not in capsys.readouterr().err


@pytest.mark.slow
def test_marginal_gets_launches_up_to_the_maximum_and_all_are_kept(tmp_path: Path) -> None:
    """The bound is what is measured: undecided to the end, and only that cell is launched again."""
    text = HEAD.replace("iterations = 5", 'iterations = 5\nmock = "launch=0.1"') + ENTRY
    text += criterion('benchmark = "latency"\nmessage-size = "8"\nmax = "1 us"') + criterion(
        'benchmark = "allreduce"\nmax = "1 s"', "b"
    )
    found = accepted(text, tmp_path, values={"seed": 1})
    made = next(verdict for verdict in found.verdicts if verdict.case.name == "a, 8 B")
    assert made.word == "MARGINAL" and [one.launches for one in made.rounds] == [8, 16, 24] and made.launches == 24
    assert len({launch for launch, _ in made.values}) == 24
    frame = load(tmp_path)
    again = frame[[int(tags["accept_look"]) > 1 for tags in frame["tags"]]]
    assert set(again["benchmark"]) == {"latency"} and set(again["size_bytes"]) == {8}
    assert exit_code(found) == 0 and exit_code(found, strict=True) == 4
    ruled = accepted(text + '[accept]\nundecided = "fail"\n', tmp_path / "ruled", values={"seed": 1})
    assert words(ruled)["a, 8 B"] == "FAIL" and exit_code(ruled) == 1


@pytest.mark.slow
def test_launches_that_get_slower_one_after_another_decide_later(tmp_path: Path) -> None:
    text = HEAD.replace("iterations = 5", 'iterations = 5\nmock = "drift=0.01"') + ENTRY
    text += criterion('benchmark = "latency"\nmessage-size = "8"\nmax = "1.2 us"')
    found = accepted(text + "[accept]\nmost-launches = 16\n", tmp_path)
    (verdict,) = found.verdicts
    assert verdict.word == "MARGINAL" and [judged.launches for judged in verdict.rounds] == [8, 16]
    assert verdict.evidence == "0 of 16 launches beyond"
    (said,) = [fact for fact in document_of(found).facts if "resemble" in fact]
    assert said.startswith("launches may resemble the one before (correlation up to 0.95), so verdicts take more")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
def test_simulated_launches_know_nothing_of_each_other(seed: int, tmp_path: Path) -> None:
    """Six of the first ten took 16 launches, since eight values of one cell cannot show that they are independent."""
    text = HEAD.replace("iterations = 5", 'iterations = 5\nmock = "noise=0.02"') + ENTRY
    text += criterion('benchmark = "latency"\nmessage-size = "8"\nmax = "1 ms"')
    (verdict,) = accepted(text, tmp_path, values={"seed": seed}, correctness=False).verdicts
    assert (verdict.word, verdict.launches, verdict.beyond) == ("PASS", 8, 0)


@pytest.mark.slow
def test_wrong_bytes_are_a_failure_and_are_not_timed(tmp_path: Path) -> None:
    text = HEAD.replace("iterations = 5", 'iterations = 5\nmock = "flip=1:1024"') + ENTRY + LAX
    text += criterion('benchmark = "allreduce"\nmax = "1 s"', "b")
    found = accepted(text, tmp_path)
    assert {one.word for one in found.checked} == {"FAIL"} and exit_code(found) == 1
    assert set(words(found).values()) == {"ERROR"}
    assert "its results are wrong" in found.verdicts[0].note
    assert phases(tmp_path) == {"correctness": 1}
    unchecked = accepted(text, tmp_path / "unchecked", correctness=False)
    assert unchecked.checked == [] and set(words(unchecked).values()) == {"PASS"}


@pytest.mark.slow
def test_ranks_that_hang_are_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    text = HEAD.replace("iterations = 5", 'iterations = 5\nmock = "hang=1:1024"') + ENTRY + LAX
    text += criterion('benchmark = "allreduce"\nmessage-size = "8"\nmax = "1 s"', "b")
    found = accepted(text, tmp_path, correctness=False)
    assert words(found) == {"a, 8 B": "PASS", "a, 1 KiB": "ERROR", "b, 8 B": "PASS"} and exit_code(found) == 3
    lost = next(verdict for verdict in found.verdicts if verdict.word == "ERROR")
    assert "rank 1" in lost.note
    failed = [one for one in found.incidents if one.failed]
    assert {one.what for one in failed} == {"latency", "allreduce"}
    hung = sum(one.what == "latency" for one in failed)
    assert hung == 1, "what hangs is not tried again and again"


@pytest.mark.slow
def test_a_benchmark_that_cannot_run_here_is_an_error(tmp_path: Path) -> None:
    text = HEAD + '[[entry]]\nbenchmarks = ["latency", "bcast"]\nmessage-size = "8:8"\n' + LAX
    found = accepted(text, tmp_path, ranks=3)
    assert words(found) == {"a": "ERROR"} and "exactly 2 ranks" in found.verdicts[0].note and exit_code(found) == 3
    (suite,) = junitparser.JUnitXml.fromstring(to_junit(document_of(found)).encode())
    assert suite.errors == 1 and suite.skipped == 1


BASELINE = HEAD + ENTRY + criterion('benchmark = "latency"\nbaseline = "5%"')


@pytest.mark.slow
def test_a_baseline_of_several_nights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noisy = BASELINE.replace("iterations = 5", 'iterations = 20\nmock = "launch=0.01"')
    first = noisy.replace('baseline = "5%"', 'max = "1 s"') + "[accept]\nmost-launches = 8\n"
    for night in range(5):
        at_night(monkeypatch, night)
        accepted(first, tmp_path, values={"seed": night}, correctness=False)
    at_night(monkeypatch, 6)
    same = accepted(noisy, tmp_path, baseline="tag=suite=mine", values={"seed": 7})
    assert set(words(same).values()) == {"PASS"} and same.baseline == "tag=suite=mine"
    assert all("40 launches in 5 nights" in verdict.note for verdict in same.verdicts)
    slower = noisy.replace("launch=0.01", "launch=0.01,alpha=2us")
    assert set(words(accepted(slower, tmp_path, baseline="tag=suite=mine")).values()) == {"FAIL"}


@pytest.mark.slow
def test_a_baseline_of_one_night_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    """It took 18 launches to say MARGINAL of everything, with exit code 0."""
    first = accepted(HEAD + ENTRY + LAX, tmp_path, correctness=False)
    with pytest.raises(
        CannotDecide, match=r"is one night, so .*: on 4 more nights, omb-py run .*f\.toml --launches 8 --tag K=V"
    ):
        accepted(BASELINE, tmp_path, baseline=first.run_id)
    assert set(load(tmp_path)["run_id"]) == {first.run_id} and CannotDecide.exit_code == 4
    with pytest.raises(CannotDecide, match="--tag suite=mine"):
        accepted(BASELINE, tmp_path, baseline="tag=suite=mine")


@pytest.mark.slow
def test_a_whole_acceptance_that_is_repeated_is_recorded(tmp_path: Path) -> None:
    text = HEAD + ENTRY + criterion('benchmark = "latency"\nmax = "0.1 us"')
    first = accepted(text, tmp_path)
    other = accepted(text.replace('name = "mine"', 'name = "other"'), tmp_path)
    moved = accepted(text, tmp_path, values={"mock": "nodes=2"})
    assert first.earlier == other.earlier == moved.earlier == []
    second = accepted(text.replace("0.1 us", "5 us"), tmp_path)
    assert [(one.run_id, one.verdict) for one in second.earlier] == [(first.run_id, "FAIL")]
    assert any(
        "second acceptance of this suite on these hosts; before: FAIL on" in f for f in document_of(second).facts
    )
    assert any("other bounds)" in fact for fact in document_of(second).facts)
    again = accepted(text.replace("0.1 us", "5 us"), tmp_path, resume=second.run_id)
    assert [one.run_id for one in again.earlier] == [first.run_id], "judging a run again is no repetition"


@pytest.mark.slow
def test_a_baseline_that_is_not_there_or_measured_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"f\.toml:9: criterion a needs a baseline: --baseline tag=K=V"):
        accepted(BASELINE, tmp_path)
    with pytest.raises(UsageError, match="asks for a baseline: leave --baseline out"):
        accepted(HEAD + ENTRY + LAX, tmp_path, baseline="last")
    for night in (0, 1):
        at_night(monkeypatch, night)
        accepted(HEAD + ENTRY + LAX, tmp_path, values={"buffer": "bytearray"})
    with pytest.raises(UsageError, match="no run 'nothing'"):
        accepted(BASELINE, tmp_path, baseline="nothing")
    with pytest.raises(UsageError, match=r"tag=suite=mine is not comparable .*: buffer bytearray against numpy"):
        accepted(BASELINE, tmp_path, baseline="tag=suite=mine")


@pytest.mark.slow
def test_a_baseline_with_which_nothing_can_be_judged_is_refused_before_it_is_measured(tmp_path: Path) -> None:
    bcast = HEAD + ENTRY.replace('"latency", ', "").replace("allreduce", "bcast") + LAX.replace("latency", "bcast")
    other = accepted(bcast, tmp_path / "a")
    allreduce = HEAD + ENTRY + criterion('benchmark = "allreduce"\nbaseline = "5%"')
    with pytest.raises(UsageError, match=r"has none of the cells .*: it has bcast, not allreduce"):
        accepted(allreduce, tmp_path / "a", baseline=other.run_id)
    eight = accepted(HEAD + ENTRY + LAX, tmp_path / "a", ranks=8)
    with pytest.raises(UsageError, match=r"has none of the cells .*: allreduce: ranks 8 against 2"):
        accepted(allreduce, tmp_path / "a", baseline=eight.run_id)
    one = accepted(HEAD + ENTRY + LAX + "[accept]\nlaunches = 1\nmost-launches = 8\n", tmp_path / "b")
    launches = set(load(tmp_path / "b")["launch_id"])
    for launch in sorted(launches)[2:]:
        next((tmp_path / "b").rglob(f"{launch}.parquet")).unlink()
    with pytest.raises(UsageError, match="is only one launch of each cell; at least two are needed"):
        accepted(allreduce, tmp_path / "b", baseline=one.run_id)
    assert len({row["run_id"] for _, row in load(tmp_path / "a").iterrows()}) == 2, "nothing was measured for it"


@contextlib.contextmanager
def job(words: Sequence[str], timeout: float) -> Iterator[Callable[[], str]]:
    assert words == ("alltoall", "-n", "2")
    yield lambda: ""


@contextlib.contextmanager
def dying(words: Sequence[str], timeout: float) -> Iterator[Callable[[], str]]:
    yield lambda: "exit code 3"


BESIDE = HEAD + ENTRY + criterion('benchmark = "latency"\ninterference = "5%"')


@pytest.mark.slow
def test_interference_takes_turns(tmp_path: Path) -> None:
    text = BESIDE + '[accept]\nbackground-job = "alltoall -n 2"\n'
    found = accepted(text, tmp_path, job=job)
    assert set(words(found).values()) == {"PASS"} and found.beside == "alltoall -n 2"
    frame = load(tmp_path).drop_duplicates("launch_id").sort_values("launch_index")
    order = [tags["accept_phase"] for tags in frame["tags"]][1:]
    assert order == ["performance", "beside", "beside", "performance"] * 4
    beside = load(tmp_path)
    assert set(beside[[t["accept_phase"] == "beside" for t in beside["tags"]]]["benchmark"]) == {"latency"}


@pytest.mark.slow
def test_without_the_other_job_it_was_no_test(tmp_path: Path) -> None:
    found = accepted(BESIDE + '[accept]\nbackground-job = "alltoall -n 2"\n', tmp_path, job=dying)
    assert set(words(found).values()) == {"ERROR"} and exit_code(found) == 3
    assert "the other job did not run all the time: exit code 3" in found.incidents[0].reason
    with pytest.raises(UsageError, match="needs another job: write background-job"):
        accepted(BESIDE, tmp_path)


def test_drift_over_passes(tmp_path: Path) -> None:
    text = HEAD.replace("iterations = 5", 'iterations = 5\nrepeat-for = "200ms"')
    text += '[accept]\nlaunches = 1\nmost-launches = 1\n[[entry]]\nbenchmarks = ["barrier"]\n'
    found = accepted(text + criterion('benchmark = "barrier"\ndrift = "5%"'), tmp_path)
    assert words(found) == {"a": "PASS"} and "passes" in found.verdicts[0].note
    with pytest.raises(UsageError, match=r"needs most-launches = 8 or more under .* 1 launch cannot show at 95% where"):
        accepted(text + criterion('benchmark = "barrier"\nmax = "1 s"'), tmp_path)
    with pytest.raises(UsageError, match="needs passes: write repeat-for"):
        accepted(HEAD + ENTRY + criterion('benchmark = "latency"\ndrift = "5%"'), tmp_path)


@pytest.mark.slow
def test_fewer_nodes_than_asked(tmp_path: Path) -> None:
    text = HEAD + ENTRY + LAX + "[accept]\nnodes = 3\n"
    with pytest.raises(EnvironmentProblem, match=r"asks for 3 nodes, and the ranks ran on 1 \(node0\)"):
        accepted(text, tmp_path)
    found = accepted(text + "allow-missing-nodes = true\n", tmp_path)
    assert found.deviations == ["1 of 3 nodes took part"] and exit_code(found) == 0


def test_a_suite_without_criteria(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no \[\[criterion\]\], so nothing can be accepted: omb-py run f.toml"):
        accepted(HEAD + ENTRY, tmp_path)


def test_inside_a_launcher_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("PMI_SIZE", "2")
    with pytest.raises(UsageError, match="starts ranks itself"):
        accepted(HEAD.replace('backend = "mock"\n', "") + ENTRY + LAX, tmp_path)


REAL = """name = "real"
description = "d"
[defaults]
iterations = 20
ranks = 2
[accept]
launches = 2
most-launches = 2
confidence = "60%"
[[entry]]
benchmarks = ["latency", "allreduce"]
message-size = "8,64K"
[[entry]]
benchmarks = ["noise"]
[[criterion]]
id = "latency"
benchmark = "latency"
max = "1 s"
[[criterion]]
id = "impossible"
benchmark = "latency"
message-size = "64K"
max = "1 ns"
[[criterion]]
id = "efficiency"
benchmark = "allreduce"
efficiency = "0.1%"
[[criterion]]
id = "noise"
benchmark = "noise"
max = "100000 %"
"""


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.alone
def test_on_real_ranks(tmp_path: Path) -> None:
    """One process start a launch: correctness, then two."""

    found = accept(parse_suite(REAL, "f.toml"), AcceptRequest(CommandLine(), quiet=True), tmp_path)
    told = words(found)
    assert told["latency, 8 B"] == "PASS" and told["impossible, 64 KiB"] in ("FAIL", "MARGINAL")
    assert told["noise"] in ("PASS", "MARGINAL") and "ERROR" not in told.values()
    assert [one.word for one in found.checked] == ["PASS", "PASS"] and found.launches == 3
    xml = to_junit(document_of(found))
    assert violations(xml) == []
    (parsed,) = junitparser.JUnitXml.fromstring(xml.encode())
    assert parsed.tests == len(found.verdicts) + 2
