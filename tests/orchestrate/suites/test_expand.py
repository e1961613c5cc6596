"""A suite, multiplied out into requests with the command line's own options."""

from __future__ import annotations

from typing import Any

import pytest

from omb_py.cli.suite_options import CommandLine
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.options.request import Request
from omb_py.orchestrate.suites import expand as suites
from omb_py.orchestrate.suites.expand import Expanded, Ranks, expand, load_suite
from omb_py.orchestrate.suites.suite_file import parse_suite
from omb_py.results.skip import Skip

HEAD = 'name = "m"\ndescription = "d"\n'


def expanded(text: str, given: dict[str, Any] | None = None, ranks: Ranks | None = None) -> Expanded:
    return expand(parse_suite(HEAD + text, "f.toml"), CommandLine(), given, ranks)


def requests(text: str, given: dict[str, Any] | None = None, ranks: Ranks | None = None) -> list[Request]:
    return expanded(text, given, ranks).requests


def refusal(text: str, given: dict[str, Any] | None = None) -> str:
    with pytest.raises(UsageError, match=r"^[^\n]+$") as caught:
        expanded(text, given)
    return str(caught.value)


def entry(*lines: str, benchmarks: str = '"bw"') -> str:
    return "\n".join(["[[entry]]", f"benchmarks = [{benchmarks}]", *lines, ""])


def test_lists_are_multiplied_out() -> None:
    made = requests(
        entry('message-size = "8:16"', "window-size = [1, 2]", 'binding = ["native", "mpi4py"]', "ranks = 2")
    )
    assert [(r.benchmark, r.options.window, r.bindings, r.ranks, r.sizes) for r in made] == [
        ("bw", 1, ("native",), 2, "8:16"),
        ("bw", 1, ("mpi4py",), 2, "8:16"),
        ("bw", 2, ("native",), 2, "8:16"),
        ("bw", 2, ("mpi4py",), 2, "8:16"),
    ]
    assert {r.part.entry for r in made if r.part} == {1}


def test_a_text_is_one_value_in_the_command_lines_grammar() -> None:
    (made,) = requests(entry('binding = "native,mpi4py"', 'type = "char,mpi_int"', 'iterations = "8:3,0:1"'))
    assert (made.bindings, made.dtypes, made.repetition.iterations) == (
        ("native", "mpi4py"),
        ("char", "int32"),
        "8:3,0:1",
    )


def test_values_are_read_as_on_the_command_line() -> None:
    lines = (
        "iterations = 7",
        "warmup = 0",
        'precision = "2%"',
        "time-limit = 1.5",
        "validation = true",
        'tail-lat = "50,99"',
        'type = ["char", "float64"]',
    )
    first, second = requests(entry(*lines))
    assert (
        first.repetition.iterations,
        first.repetition.warmup,
        first.repetition.precision,
        first.repetition.time_limit,
    ) == ("7", 0, 0.02, 1.5)
    assert (first.validate, first.printing.percentiles, first.dtypes, second.dtypes) == (
        True,
        (50, 99),
        ("char",),
        ("float64",),
    )
    (bare,) = requests(entry("tail-lat = true", "full = [true]", benchmarks='"allreduce"'))
    assert (bare.printing.percentiles, bare.printing.full) == ((50, 90, 99), True)


def test_who_wins() -> None:
    """Entry over command line over defaults over the benchmark."""
    text = '[defaults]\nwarmup = 1\nwindow-size = 8\nprecision = "5%"\n' + entry("warmup = 3")
    (made,) = requests(text, {"warmup": 2, "window-size": 16})
    assert (made.repetition.warmup, made.options.window, made.repetition.precision) == (3, 16, 0.05)
    (made,) = requests("[defaults]\nfull = true\n" + entry("full = false", benchmarks='"bcast"'))
    assert not made.printing.full


def test_defaults_hold_where_they_mean_something() -> None:
    allreduce, bw = requests("[defaults]\nwindow-size = 8\nfull = true\n" + entry(benchmarks='"allreduce", "bw"'))
    assert [(r.options.window, r.printing.full) for r in (allreduce, bw)] == [(None, True), (8, False)]


def test_numbers_of_ranks() -> None:
    text = (
        "[defaults]\nranks = [3, 4]\n"
        + entry(benchmarks='"bcast"')
        + entry('ranks = [2, "max"]', benchmarks='"barrier"')
    )
    usual = Ranks(2, 6)
    assert [r.ranks for r in requests(text, ranks=usual)] == [3, 4, 2, 6]
    given = Ranks(5, 5, given=True)
    assert [r.ranks for r in requests(text, ranks=given)] == [5, 2, 5], "-n is stronger than the defaults only"
    assert [r.ranks for r in requests(entry(benchmarks='"bcast"'), ranks=usual)] == [2]
    assert [r.ranks for r in requests(entry('ranks = [2, "max"]'), ranks=Ranks())] == [2], "max may be one of them"


def test_what_a_launcher_has_not_started_is_skipped() -> None:
    found = expanded(entry() + entry("ranks = [2, 4]", benchmarks='"bcast"'), ranks=Ranks(4, 4, True, True))
    assert [(r.benchmark, r.ranks) for r in found.requests] == [("bcast", 4)]
    assert found.skips == [
        Skip("bw", "bw needs exactly 2 ranks, not 4: use -n 2"),
        Skip("bcast", "it is to be measured on 2 ranks, and this job has 4"),
    ]


def test_what_cannot_be_had_here_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    found = expanded(entry('device = ["cpu", "cuda"]'))
    assert len(found.requests) == 1
    (skip,) = found.skips
    assert skip.what == "bw" and "--device cuda" in skip.reason

    def broken(name: str) -> Any:
        raise EnvironmentProblem(f"benchmark {name} cannot be loaded: no module")

    monkeypatch.setattr(suites, "find", broken)
    assert expanded(entry()).skips == [Skip("bw", "benchmark bw cannot be loaded: no module")]


def test_what_differs_stands_above_a_table() -> None:
    text = entry("window-size = [1, 2]") + entry(
        "window-size = 1", "ranks = 2", 'process-sync = "none"', benchmarks='"bw"'
    )
    assert "takes no --process-sync" in refusal(text)
    text = entry('op = ["sum", "max"]', "ranks = [2, 3]", benchmarks='"allreduce"') + entry(benchmarks='"bcast"')
    varies = [dict(r.part.varies) for r in requests(text) if r.part]
    assert varies[0] == {"ranks": "2", "op": "sum"} and varies[3] == {"ranks": "3", "op": "max"}
    assert varies[4] == {}


def test_an_option_that_fits_nothing_is_refused_as_it_was_given() -> None:
    assert refusal(entry(), {"op": "sum"}) == "no benchmark of suite m takes --op: leave it out"
    assert refusal(entry(), {"binding": ("nativ",)}).startswith("unknown binding 'nativ'")


def test_run_wide_defaults_reach_every_request() -> None:
    text = '[defaults]\ntag = ["a=1", "b=2"]\ntimeout = "9s"\nlaunches = 2\n' + entry() + entry(benchmarks='"bcast"')
    for request in requests(text):
        assert (dict(request.tags), request.launching.timeout, request.repetition.launches) == (
            {"a": "1", "b": "2"},
            9.0,
            2,
        )


def test_names_of_suites(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        UsageError, match=r"no suite 'quik' \(a file is given by its path, as ./quik.toml\): did you me"
    ):
        load_suite("quik")
    (tmp_path / "here.toml").write_text(HEAD + entry())
    monkeypatch.chdir(tmp_path)
    assert load_suite("here.toml").name == load_suite("./here.toml").name == "m"


@pytest.mark.parametrize(
    ("written", "sizes"), [('"64"', "64:64"), ("64", "64:64"), ('":64"', ":64"), ('"8,64"', "8,64")]
)
def test_a_single_size_is_this_size_in_an_entry(written: str, sizes: str) -> None:
    """As in a criterion, and unlike ``-m 64``, which is OMB's 1 to 64."""
    (request,) = requests(entry(f"message-size = {written}"))
    assert request.sizes == sizes


def test_a_description_is_optional() -> None:
    assert parse_suite('name = "m"\n' + entry(), "f.toml").description == ""


def test_a_file_without_its_path_is_named_with_it(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "o.json").touch()
    with pytest.raises(UsageError, match=r"no suite 'o\.json' \(a file is given by its path, as \./o\.json\)"):
        load_suite("o.json")
