"""What a step calls is what is tuned, and the step itself is compared with the files."""

from __future__ import annotations

import re

import pytest

from omb_py.backends.capabilities import Choice, Knob, LibraryKnobs
from omb_py.cli.commands import tune as command
from omb_py.options.request import Request
from omb_py.orchestrate.tune.workload import called, held_compute, requests_of, step_of
from omb_py.suites.workloads.families import parse_workload

from .conftest import VARIABLE, Tuned

DDP = "ddp:model=resnet50,scale=1/64,buffers=off"
MOCK = "--mock algorithm=tree:9us:1ns,algorithm=ring:7us:0.1ns,launch=0.01"


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two algorithms, chosen by a variable that holds for all collectives and sizes."""
    knob = Knob("algorithm", "enum", "tree", VARIABLE, (Choice("tree"), Choice("ring")), category="algorithm")
    known = LibraryKnobs("mock", "mock", "1.0", "this test", (knob,))
    monkeypatch.setattr(command, "library_of", lambda backend: known)


def test_the_sizes_and_types_are_those_of_the_steps_calls() -> None:
    (each,) = called(DDP, 2)
    calls = parse_workload(DDP).calls(0, 2)
    assert (each.benchmark, each.ranks, each.dtype, each.in_place) == ("allreduce", 2, "float32", True)
    assert each.sizes == tuple(sorted({call.nbytes for call in calls}))
    assert each.times == len(calls)
    assert sum(call.nbytes for call in calls) == sum(each.sizes)


def test_calls_of_a_part_of_the_ranks_are_tuned_on_as_many() -> None:
    wanted = called("three_d:tp=2,pp=2", 8)
    assert {each.ranks for each in wanted} == {2}
    assert "allreduce" in {each.benchmark for each in wanted}
    assert not {"latency", "barrier"} & {each.benchmark for each in wanted}


def test_a_step_calls_the_non_blocking_form() -> None:
    step = step_of(Request("step", ("mock",), ranks=2), DDP)
    (request,) = requests_of(step)
    assert request.benchmark.name == "iallreduce"
    assert (request.request.dtypes, request.request.options.in_place, request.request.ranks) == (("float32",), True, 2)
    (each,) = called(DDP, 2)
    assert request.request.sizes == ",".join(map(str, each.sizes))


@pytest.mark.slow
def test_the_step_gains_what_its_collectives_gain(tune_line: Tuned, library: None) -> None:
    code, report, err = tune_line(f"--workload {DDP} -n 2 -i 5 -x 0 {MOCK}")
    assert code == 0, err
    held = re.fullmatch(rf"{re.escape(DDP)},compute=(\d+)us", report["workload"])
    assert held and 1550 < int(held[1]) < 1700, "as long as the calls take one by one, 1607 µs without noise"
    assert report["collective"] == "iallreduce"
    (rule,) = report["rules"]
    assert (rule["first_bytes"], rule["last_bytes"], rule["setting"]["name"]) == (0, None, "ring")
    assert report["step"]["verdict"] == "FASTER"
    assert 0.5 < report["step"]["ratio"] < 1.0
    assert "its computing held" in err


@pytest.mark.slow
def test_what_knows_no_sizes_gets_one_setting_for_all_of_a_step(tune_line: Tuned, library: None) -> None:
    mock = "--mock algorithm=tree:100us:1ns,algorithm=low:5us:0.3ns,algorithm=ring:40us:0.15ns,launch=0.01"
    candidates = f"--candidate low={VARIABLE}=low --candidate ring={VARIABLE}=ring"
    code, report, err = tune_line(f"--workload {DDP} -n 2 -i 5 -x 0 {mock} {candidates}")
    assert code == 0, err  # low is the fastest of the two smallest sizes, ring of the others and of the sum
    assert {cell["setting"] for cell in report["proof"]} == {"ring"}
    assert [rule["setting"]["name"] for rule in report["rules"]] == ["ring"]
    assert report["step"]["verdict"] == "FASTER"


@pytest.mark.slow
def test_a_step_whose_computing_is_given_keeps_it(tune_line: Tuned) -> None:
    text = f"{DDP},compute=1ms"
    code, report, err = tune_line(f"--workload {text} -n 2 -i 5 -x 0 {MOCK} --candidate ring={VARIABLE}=ring")
    assert (code, report["workload"]) == (0, text), err
    assert report["step"]["verdict"] == "FASTER"


def test_faster_calls_do_not_shorten_the_computing() -> None:
    assert held_compute("ddp:model=mlp,compute=auto", 12.6) == "ddp:model=mlp,compute=13us"
    assert held_compute("ddp", 0.2) == "ddp:compute=1us"


@pytest.mark.parametrize(
    ("line", "code", "text"),
    [
        ("allreduce --workload ddp", 2, "leave 'allreduce' or --workload out"),
        ("--workload ddp -n 2,4", 2, "one number of -n"),
        ("--workload ddp --op max", 2, "neither --op nor --in-place"),
        ("--workload halo", 2, "calls no collective on 2 ranks"),
    ],
)
def test_a_workload_that_cannot_be_tuned_is_one_line(tune_line: Tuned, line: str, code: int, text: str) -> None:
    exit_code, _, err = tune_line(f"{line} {MOCK} --candidate ring={VARIABLE}=ring")
    assert (exit_code, err.count("\n")) == (code, 1)
    assert text in err
