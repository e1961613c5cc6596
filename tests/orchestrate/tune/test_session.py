"""A whole tuning on simulated ranks: planted algorithms are found and proved, faulty ones excluded, nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omb_py.backends.capabilities import Choice, Knob, LibraryKnobs
from omb_py.cli import main
from omb_py.cli.commands import tune as command
from omb_py.errors import Interrupted
from omb_py.orchestrate.compare.stored import compare_stored
from omb_py.orchestrate.running import run as running
from omb_py.orchestrate.tune import launches
from omb_py.results.compare.false_alarm_rate import read_kept
from omb_py.results.compare.judge import CompareRules

VARIABLE = "MOCK_COLL_ALGORITHM"
TREE_AND_RING = "algorithm=tree:2us:1ns,algorithm=ring:10us:0.1ns"
BASE = "tune allreduce --backend mock -n 4 -m 64,1K,4K,16K,64K -i 5 -x 0 --seed 1 --no-guidelines"
Run = Callable[..., tuple[int, dict[str, Any], str]]


def tuned(folder: Path, candidates: str, mock: str, more: str) -> tuple[int, dict[str, Any]]:
    """Run a tuning with its store and files in a folder; its exit code, and its report as data."""
    words = [*BASE.split(), "--mock", f"{mock},launch=0.01", *more.split()]
    for name in candidates.split():
        words += ["--candidate", f"{name}={VARIABLE}={name}"]
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    code = main([*words, "--store", str(folder / "s"), "--folder", str(folder / "tuned"), "--output", str(report)])
    return code, json.loads(report.read_text()) if report.exists() else {}


@pytest.fixture
def tune(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a tuning; its exit code, its report as data, and stderr."""

    def call(candidates: str = "ring", mock: str = TREE_AND_RING, more: str = "") -> tuple[int, dict[str, Any], str]:
        capsys.readouterr()
        code, report = tuned(tmp_path, candidates, mock, more)
        return code, report, capsys.readouterr().err

    return call


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The report of a tuning that nothing has interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    code, report = tuned(folder, "ring", TREE_AND_RING, "")
    assert code == 0
    return report


@pytest.mark.slow
def test_a_planted_crossover_becomes_a_rule_that_is_proved(whole: dict[str, Any]) -> None:
    (rule,) = whole["rules"]
    assert (rule["first_bytes"], rule["last_bytes"], rule["setting"]["name"]) == (16384, 65536, "ring")
    assert rule["ratio"] == pytest.approx((11.6384 / 18.384 * 16.5536 / 67.536) ** 0.5, rel=0.03)
    assert {cell["verdict"] for cell in whole["proof"]} == {"FASTER"}
    (file,) = whole["files"]
    table = json.loads(Path(file).read_text())
    assert table["rules"][0]["setting"]["variables"] == {VARIABLE: "ring"}
    assert table["library"] == "mock 1.0"
    assert set(table["who"]) == {"hosts", "time", "command", "version", "run"}
    assert whole["share_of_full_grid"] < 0.4


@pytest.mark.slow
def test_compare_shows_the_proof_again_with_the_same_verdicts(whole: dict[str, Any]) -> None:
    (run,) = whole["proofs"]
    store = Path(whole["files"][0]).parents[1] / "s"
    report = compare_stored([run], store, CompareRules())
    (kept_report,) = read_kept(store)
    assert kept_report["run_id"] == run and kept_report["verdicts"]["FASTER"] == len(whole["proof"])
    answers = {
        c.base["size_bytes"]: j.answers["median"] for c, j in zip(report.matched.cells, report.judged, strict=True)
    }
    for cell in whole["proof"]:
        answer = answers[cell["size_bytes"]]
        assert (answer.verdict, answer.ratio, answer.low) == (cell["verdict"], cell["ratio"], cell["low"])


@pytest.mark.slow
def test_each_of_several_proofs_is_shown_again_with_its_part_of_the_error_rate(tune: Run, tmp_path: Path) -> None:
    _, report, _ = tune("ring flat", f"{TREE_AND_RING},algorithm=flat:1us:4ns", "-m 64,64K")
    assert len(report["proofs"]) == 2
    for run in report["proofs"]:
        again = compare_stored([run], tmp_path / "s", CompareRules())
        (judged,) = again.judged
        size = again.matched.cells[0].base["size_bytes"]
        proved = next(cell for cell in report["proof"] if cell["size_bytes"] == size)
        assert again.rules.alpha == 0.005
        assert (judged.answers["median"].low, judged.answers["median"].high) == (proved["low"], proved["high"])


@pytest.mark.slow
def test_equal_algorithms_give_no_rule_and_no_file(tune: Run, tmp_path: Path) -> None:
    code, report, _ = tune("same", "algorithm=tree:2us:1ns,algorithm=same:2us:1ns")
    assert (code, report["rules"], report["files"]) == (0, [], [])
    assert not (tmp_path / "tuned").exists()


@pytest.mark.slow
def test_what_is_wrong_hangs_or_dies_is_named_and_excluded_and_the_rest_goes_on(tune: Run) -> None:
    faulty = "algorithm=bad:1us:0.1ns:flip,algorithm=stuck:1us:0.1ns:hang,algorithm=dead:1us:0.1ns:die"
    code, report, err = tune("ring bad stuck dead typo", f"{TREE_AND_RING},{faulty}")
    assert code == 0
    assert {"bad", "stuck", "dead", "typo"} == set(report["excluded"])
    assert "wrong bytes at" in report["excluded"]["bad"]
    assert "hangs in step" in report["excluded"]["stuck"]
    assert "died in step" in report["excluded"]["dead"]
    assert "no algorithm 'typo'" in report["excluded"]["typo"]
    assert "stuck is excluded: rank 3" in err
    assert [rule["setting"]["name"] for rule in report["rules"]] == ["ring"]


def test_a_library_that_fails_as_it_is_cannot_be_tuned(tune: Run) -> None:
    code, report, err = tune("ring", "algorithm=tree:2us:1ns:die,algorithm=ring:10us:0.1ns")
    assert (code, report) == (3, {})
    assert "the library as it is cannot be tuned: rank 3" in err


@pytest.mark.slow
def test_a_budget_that_is_too_small_is_marginal_and_resumed_to_the_same_end(tune: Run, whole: dict[str, Any]) -> None:
    code, report, _ = tune(more="--budget 1ms --strict")
    assert (code, report["rules"]) == (4, [])
    assert "more launches, about" in report["needed"]
    assert [(size["size_bytes"], size["launches"]) for size in report["undecided"]] == [(64, 0), (65536, 0)]
    code, report, err = tune(more="--resume --strict")
    assert code == 0
    assert "is resumed: " in err
    assert report["rules"][0]["setting"] == whole["rules"][0]["setting"]
    code, _, err = tune(more="--resume=nothing")
    assert (code, "no interrupted tuning has this id" in err) == (2, True)


@pytest.fixture
def interrupt(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[str]]:
    """Interrupts one launch, counted from 1; the chosen algorithm of each launch that is made."""

    def plant(number: int) -> list[str]:
        made: list[str] = []

        def start(run: Any, launch: Any) -> None:
            made.append(run.where.variables.get(VARIABLE, "default"))
            if len(made) == number:
                raise Interrupted("interrupted")
            running.start(run, launch)

        monkeypatch.setattr(launches, "start_on_nodes", start)
        return made

    return plant


@pytest.mark.slow
def test_an_interrupted_tuning_ends_as_it_would_have(
    tune: Run, interrupt: Callable[[int], list[str]], whole: dict[str, Any]
) -> None:
    made = interrupt(9)
    code, _, err = tune()
    assert (code, "--resume=" in err) == (130, True)
    code, report, _ = tune(more="--resume")
    assert code == 0
    assert len(made) == whole["launches"] + 1
    alike = ("rules", "launches", "share_of_full_grid")
    assert {k: report[k] for k in alike} == {k: whole[k] for k in alike}


@pytest.mark.slow
def test_a_resumed_tuning_has_the_same_options_and_remembers_failures(
    tune: Run, interrupt: Callable[[int], list[str]]
) -> None:
    mock = f"{TREE_AND_RING},algorithm=dead:1us:0.1ns:die"
    made = interrupt(6)
    assert tune("ring dead", mock)[0] == 130
    assert "dead" in made[:5]
    code, _, err = tune("ring", mock, "--resume")
    assert (code, "was begun with " in err) == (2, True)
    made = interrupt(2)
    code, _, err = tune("ring dead", mock, "--resume")
    assert (code, "dead is excluded: rank 3" in err, "dead" in made) == (130, True, False)


@pytest.mark.slow
def test_with_nothing_interrupted_it_begins_and_says_so(tune: Run, interrupt: Callable[[int], list[str]]) -> None:
    interrupt(1)
    code, _, err = tune(more="--resume")
    assert (code, err.count("--resume: no interrupted tuning in ")) == (130, 1)
    code, _, err = tune(more="--resume")
    assert "is resumed: " in err and "--resume: no " not in err


@pytest.mark.slow
def test_several_numbers_of_ranks_have_rules_of_their_own(tune: Run) -> None:
    code, report, _ = tune(more="-n 2,4 -m 64,64K")
    assert code == 0
    assert sorted(rule["ranks"] for rule in report["rules"]) == [2, 4]


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ("-T int32,float64", "one backend, binding and type"),
        ("--candidate ring=A=1", "candidate 'ring' is given twice"),
        ("--candidate other=MOCK_COLL_ALGORITHM=ring", "set the same"),
        ("--candidate default=A=1", "is a candidate already"),
        ("--candidate ring", "--candidate takes NAME=VARIABLE=VALUE"),
        ("--candidate ring=A", "is no VARIABLE=VALUE"),
        ("--candidate ring2=A=1,A=2", "A is given twice"),
        ("-n 0", "not a whole number from 1 on"),
    ],
)
def test_bad_input_is_one_line(tune: Run, more: str, text: str) -> None:
    code, _, err = tune(more=more)
    assert code == 2
    assert text in err
    assert err.count("\n") == 1


def test_a_library_without_knobs_says_what_it_lacks(tune: Run) -> None:
    code, _, err = tune("")
    assert code == 3
    instead = "use --backend mpi, nccl or gloo, or name settings with --candidate NAME=VARIABLE=VALUE"
    assert err == f"omb-py: error: backend mock has no library, so no knobs: {instead}\n"
    assert main(["tune", "latency", "--backend", "mock"]) == 2
    assert main(["tune"]) == 2


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("osu_latency", "latency is no collective: tune one, as allreduce"),
        ("barrier", "barrier has no message size, and rules are for sizes: tune one with, as allreduce"),
        ("alreduce", "no collective 'alreduce': did you mean allreduce?"),
    ],
)
def test_what_is_not_tuned_is_named(word: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", word, "-n", "2", "--backend", "mock", "--candidate", "a=X=1"]) == 2
    assert capsys.readouterr().err == f"omb-py: error: {said}\n"


@pytest.fixture
def knobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted algorithms as the one knob of a library whose variables hold for all sizes."""
    words = (Choice("tree"), Choice("ring"), Choice("slow"))
    knob = Knob("algorithm", "enum", "tree", VARIABLE, words, category="algorithm")
    library = LibraryKnobs("mock", "mock", "1.0", "this test", (knob,))
    monkeypatch.setattr(command, "library_of", lambda backend: library)


@pytest.mark.slow
def test_the_candidates_are_those_of_the_library_and_its_file_is_proved(tune: Run, tmp_path: Path, knobs: None) -> None:
    mock = "algorithm=tree:9us:1ns,algorithm=ring:7us:0.1ns,algorithm=slow:30us:2ns"
    code, report, _ = tune("", mock)
    assert (code, report["candidates"]) == (0, 3)
    assert {cell["size_bytes"] for cell in report["proof"]} >= {64, 65536}
    names = {Path(file).name for file in report["files"]}
    assert names == {"rules.json", "tuned.env", "tuned.lua"}
    assert f"export {VARIABLE}=ring" in (tmp_path / "tuned" / "tuned.env").read_text()
    assert not (tmp_path / "tuned" / "unproven").exists()


@pytest.mark.slow
def test_a_file_that_does_not_hold_up_is_not_written_under_its_name(tune: Run, tmp_path: Path, knobs: None) -> None:
    code, report, _ = tune("", f"{TREE_AND_RING},algorithm=slow:30us:2ns")
    assert code == 1  # ring is faster for large messages, and the variables of this library hold for small ones too
    assert {cell["verdict"] for cell in report["proof"]} == {"FASTER", "SLOWER"}
    assert report["files"] == []
    assert [path.name for path in (tmp_path / "tuned").iterdir()] == ["unproven"]
