"""Criteria in a suite's file: what they say, and what a bad line gets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.errors import UsageError
from omb_py.orchestrate.accept.criteria_file import CRITERION_KEYS, RULE_KEYS, read_accepting, read_criteria
from omb_py.orchestrate.suites.suite_file import parse_suite
from omb_py.results.accept.criteria import Criterion, Range
from tests.support.accepting import ENTRY, HEAD, criterion

BODY = HEAD + ENTRY


def one(lines: str) -> Criterion:
    (found,) = read_criteria(parse_suite(BODY + criterion(lines), "f.toml"))
    return found


def refusal(text: str) -> str:
    with pytest.raises(UsageError, match=r"^f\.toml:\d+: [^\n]+$") as caught:
        suite = parse_suite(BODY + text, "f.toml")
        read_accepting(suite)
        read_criteria(suite)
    return str(caught.value)


def test_bounds() -> None:
    found = one(
        'benchmark = "osu_allreduce"\nmessage-size = "8"\nmax = "5 us"\nranks = 4\ntype = "mpi_int"\ntext = "t"'
    )
    assert found.ranges == {None: Range(high=5.0)} and found.sizes == (8,) and found.metric == "median"
    assert found.where == {"ranks": 4, "dtype": "int32"} and found.at == "f.toml:9" and found.source == "contract"
    assert one('benchmark = "bw"\nmin = "1 GB/s"').metric == "bandwidth"
    assert one('benchmark = "allreduce"\nmin = "1 GB/s"').metric == "busbw"
    assert one('benchmark = "noise"\nmax = "5 %"').metric == "stolen"
    assert one('benchmark = "iallreduce"\nmin = "50 %"').metric == "overlap"
    assert one('benchmark = "latency"\nmax = { 8 = "5 us", 1K = "9 us" }').sizes == (8, 1024)
    given = one('benchmark = "latency"\nmin = "10 us"\nmax = "5ms"')
    assert given.bound_text(8) == "at least 10 us, at most 5 ms", "in the units that were written"
    assert given.bound_facts() == one('benchmark = "latency"\nmin = "10us"\nmax = "5000 us"').bound_facts()


def test_other_sources() -> None:
    for key, source in (
        ("baseline", "baseline"),
        ("efficiency", "lower bound"),
        ("drift", "drift"),
        ("interference", "interference"),
    ):
        found = one(f'benchmark = "allreduce"\n{key} = "20%"')
        assert (found.source, found.share) == (source, 0.2)
    found = one('benchmark = "allreduce"\nguideline = "reduce + osu_bcast"\ntolerance = "5%"')
    assert (found.source, found.program, found.mock_up) == ("guideline", "gl5_allreduce", "reduce + bcast")
    assert found.share == 0.05 and found.benchmark == "allreduce" and found.measured == "gl5_allreduce"
    assert one('benchmark = "reduce"\nguideline = "gl14"').mock_up == "allreduce"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            'benchmark = "latency"\nmaxi = "5 us"',
            "f.toml:12: [criterion 1] key 'maxi': there is no such key: did you mean max?",
        ),
        ('benchmark = "latincy"\nmax = "5 us"', "benchmark 'latincy' is unknown: did you mean latency?"),
        ('benchmark = "latency"\nmax = "-5 us"', "f.toml:12: [criterion 1] key 'max': '-5 us' is no bound"),
        ('benchmark = "latency"\nmax = 5', 'expected a text with a unit, as "5 us", or a table'),
        ('benchmark = "latency"\nmax = "5 us"\nmin = "6 GB/s"', "mixes rate and time"),
        ('benchmark = "bcast"\nmax = "5 us"\nbackend = "mok"', "f.toml:13: [criterion 1] key 'backend': 'mok' is unkn"),
        ('benchmark = "bcast"\nmax = "5 us"\nbackend = "mok"', "unknown: did you mean mock?"),
        ('benchmark = "bcast"\nmax = "5 us"\nbinding = "natve"', "'natve' is unknown: did you mean native?"),
        ('benchmark = "reduce"\nmax = "5 us"\nop = "summ"', "'summ' is unknown: did you mean sum?"),
        ('benchmark = "latency"\nmax = "5 us"\ndrift = "5%"', "key 'drift': stands beside 'max'"),
        ('max = "5 us"', "no key 'benchmark'"),
        ('benchmark = "latency"\nmetric = "busbw"\nmax = "5 us"', "busbw is a rate, and the bound '5 us' is a time"),
        ('benchmark = "bw"\nefficiency = "20%"', "key 'efficiency': is about times"),
        ('benchmark = "latency"\nmax = { 8 = "5 us" }\nmessage-size = "8"', "the sizes stand in 'max' already"),
        ('benchmark = "latency"\nmax = { 8 = "5 us" }\nmin = { 16 = "1 us" }', "other sizes than 'max'"),
        ('benchmark = "bcast"\nefficiency = "0%"', "out of range"),
        ('benchmark = "reduce"\nguideline = "alreduce"', "no mock-up of reduce is called 'alreduce': did you mean all"),
        ('benchmark = "reduce"\nguideline = "allreduce"\ntype = "float"', "elements of int32: leave it out"),
        ('benchmark = "reduce"\ndrift = "5%"\ntolerance = "5%"', "belongs to a guideline"),
        ('benchmark = "reduce"\ndrift = "5%"\nranks = 0', "expected a whole number from 1"),
        ('benchmark = "reduce"\ndrift = "5%"\ntype = "flaot32"', "float32"),
    ],
)
def test_a_bad_criterion(lines: str, said: str) -> None:
    assert said in refusal(criterion(lines))


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("launchs = 3", "key 'launchs': there is no such key: did you mean launches?"),
        ('repeat-for = "1h"', "key 'repeat-for': holds for what is measured: write it under [defaults]"),
        ("launches = 0", "from 1 to 1000, got 0"),
        ("allow-missing-nodes = 1", "expected true or false"),
        ('background-job = "alltoal -n 2"', "did you mean alltoall?"),
        ('background = "alltoall"', "did you mean background-job?"),
        ('background-job = "alltoal -n 3"', "did you mean alltoall?"),
        ('background-job = "alltoall \'"', "not a command line"),
        ("nodes = 0", "from 1"),
    ],
)
def test_a_bad_rule(lines: str, said: str) -> None:
    assert said in refusal(f"[accept]\n{lines}\n")


def test_two_of_one_id_and_a_bad_id() -> None:
    lines = 'benchmark = "reduce"\ndrift = "5%"'
    assert "'a' is the id of f.toml:9 already" in refusal(criterion(lines) + criterion(lines))
    assert "expected letters" in refusal(criterion(lines, "a b"))
    assert "expected tables [[criterion]]" in refusal("[criterion]\n")


def test_the_rule() -> None:
    text = '[accept]\nlaunches = 4\nmost-launches = 8\nconfidence = "99%"\nundecided = "fail"\nnodes = 2\n'
    text += 'allow-missing-nodes = true\nbaseline = "last"\nbackground-job = "omb-py alltoall -n 2"\n'
    how = read_accepting(parse_suite(BODY + text, "f.toml"))
    assert (how.rule.launches, how.rule.most, how.rule.confidence, how.rule.undecided) == (4, 8, 0.99, "fail")
    assert (how.nodes, how.allow_missing_nodes, how.baseline, how.background_job) == (
        2,
        True,
        "last",
        ("alltoall", "-n", "2"),
    )
    assert read_accepting(parse_suite(BODY, "f.toml")).rule.rounds == 3


def test_criteria_do_not_make_another_suite() -> None:
    """What is measured is the same, so --resume and stored rows stay with it."""
    with_them = parse_suite(BODY + criterion('benchmark = "reduce"\ndrift = "5%"') + "[accept]\nnodes = 2\n", "f.toml")
    assert with_them.digest == parse_suite(BODY, "f.toml").digest


VALUES = st.one_of(
    st.integers(-5, 5), st.booleans(), st.sampled_from(['"5 us"', '"5%"', '"x"', '"reduce"', '"8"', "[1]"])
)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(CRITERION_KEYS), VALUES), st.dictionaries(st.sampled_from(RULE_KEYS), VALUES))
def test_any_table_is_read_or_refused_in_one_line(made: dict[str, object], rule: dict[str, object]) -> None:
    def lines(table: dict[str, object]) -> str:
        return "".join(f"{k} = {str(v).lower() if isinstance(v, bool) else v}\n" for k, v in table.items())

    try:
        suite = parse_suite(f"{BODY}[accept]\n{lines(rule)}[[criterion]]\n{lines(made)}", "f.toml")
        read_accepting(suite)
        read_criteria(suite)
    except UsageError as error:
        assert str(error).startswith("f.toml:") and "\n" not in str(error)


def test_the_background_job_is_a_command_line() -> None:
    text = f'{BODY}[accept]\nbackground-job = "alltoall -n 2"\n'
    assert read_accepting(parse_suite(text, "f.toml")).background_job == ("alltoall", "-n", "2")


@pytest.mark.parametrize(
    ("written", "sizes"), [('"8"', (8,)), ("8", (8,)), ('":4"', (1, 2, 4)), ('"8,64"', (8, 64)), ('"8:16"', (8, 16))]
)
def test_a_single_size_is_this_size_in_a_criterion(written: str, sizes: tuple[int, ...]) -> None:
    assert one(f'benchmark = "latency"\nmessage-size = {written}\nmax = "5 us"').sizes == sizes
