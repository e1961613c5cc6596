"""The option table agrees with requests, cells, the store and the documentation; an option is one entry."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, fields

import numpy
import pytest

from omb_py.backends.registry import own_options
from omb_py.engine.program.benchmark import Sampling, cell_from
from omb_py.errors import UsageError
from omb_py.options import table
from omb_py.options.option import Defaults, Option
from omb_py.options.readers import comma_list, parse_folder, parse_hosts, whole
from omb_py.options.request import Launching, Printing, Repetition, Request, usual_device
from omb_py.options.table import (
    TABLE,
    cell_options,
    change_cell,
    check_ranges,
    check_taken,
    check_words,
    kept_in,
    make_cell,
    options_of,
    request_from,
)
from omb_py.results.store.schema import BY_NAME
from omb_py.suites import BENCHMARKS, find

PLANNED = {"staging", "filler", "timing", "batch"}
"""Options of a cell that the planner makes from several options of the request."""


def test_every_option_has_one_entry_and_a_place_in_a_request() -> None:
    names = [option.name for option in TABLE]
    assert len(set(names)) == len(names)
    parts = (Request, Launching, Repetition, Printing)
    held = [*kept_in("options"), *kept_in("observers"), *(field.name for part in parts for field in fields(part))]
    assert len(set(held)) == len(held)
    assert {*names} - {*held} == {"no_store", "own_mpi", *own_options(), *(o.name for o in TABLE if o.ignored)}
    with pytest.raises(TypeError, match=r"a request has no option 'windw': did you mean window\?"):
        Request("bw", windw=4)


def test_a_request_takes_values_by_name() -> None:
    request = Request("bw", window=4, iterations="7", energy=True, in_place=False, hosts=("a",))
    assert (request.options, request.observers) == ({"window": 4}, {"energy": ""})
    assert (request.repetition.iterations, request.launching.hosts, request.options.op) == ("7", ("a",), None)
    assert request.changed(window=None, energy=False) == Request("bw", iterations="7", hosts=("a",))


def test_every_part_of_a_cell_has_its_options() -> None:
    parts = {part: {option.name for option in TABLE if option.cell == part} for part in ("options", "sampling")}
    assert parts["options"] | PLANNED == {option.name for option in TABLE if option.usual is not None}
    assert parts["sampling"] < set(Sampling.__dataclass_fields__)


def test_entries_without_a_value_make_no_difference() -> None:
    """A request of no option is the default one, and fills no option of a cell."""
    for name in BENCHMARKS:
        assert request_from(find(name), {}) == Request(name)
        usual = make_cell(find(name), "", "", 0)
        assert change_cell(usual, **cell_options(Request(name))) == usual


def test_a_cell_takes_values_by_name() -> None:
    cell = make_cell(find("bw"), "mpi", "native", 8, window=2, warmup=1, energy=True, pvars="a,b", counters=False)
    assert (cell.dtype, cell.options.window, cell.options.op, cell.sampling.warmup) == ("char", 2, "sum", 1)
    assert cell.observers == {"energy": "", "pvars": "a,b"}
    assert cell_from(json.loads(json.dumps(asdict(cell)))) == cell
    with pytest.raises(TypeError, match="colour"):
        make_cell("bw", "mpi", "native", 8, colour="red")
    with pytest.raises(AttributeError, match="the cell has no option 'colour'"):
        cell.options.colour  # noqa: B018


def test_columns_are_those_of_the_store() -> None:
    assert {option.column for option in TABLE if option.column} <= set(BY_NAME)
    for option in TABLE:
        assert option.column or option.name not in BY_NAME or option.cell == "", option.name


def test_flags_are_told_apart() -> None:
    """In the command of any benchmark no two options have the same flag."""
    for benchmark in BENCHMARKS.values():
        flags = [flag for option in options_of(benchmark) for flag in option.flags.split()]
        assert len(set(flags)) == len(flags), benchmark.name
    assert len({option.long for option in TABLE}) == len(TABLE)


def test_every_word_of_a_benchmark_is_an_option() -> None:
    keys = {option.key for option in TABLE if option.key}
    assert {word for benchmark in BENCHMARKS.values() for word in benchmark.options} == keys


PACE = Option(
    "pace",
    "--pace",
    "Pause between calls.",
    "N",
    whole("pace", 1),
    key="full",
    lacks="calls that are paced",
    usual=1,
    cell="options",
)


def test_an_option_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read, refused, checked and handed on to the cell: nothing but the entry knows the option."""
    monkeypatch.setattr(table, "TABLE", (*TABLE, PACE))
    monkeypatch.setattr(table, "kept_in", table.kept_in.__wrapped__)
    bcast, latency = find("bcast"), find("latency")
    request = request_from(bcast, {"pace": 3})
    assert request.options.pace == 3 and cell_options(request)["pace"] == 3
    assert make_cell(bcast, "", "", 8).options.pace == 1
    assert make_cell(bcast, "", "", 8, **cell_options(request)).options.pace == 3
    assert options_of(bcast)[-1] == PACE
    assert PACE.help_text(Defaults(bcast, ("mpi",), ("native",), make_cell(bcast, "", "", 8))).endswith("(default: 1)")
    check_ranges(request)
    with pytest.raises(UsageError, match="pace must be 1 or more, not 0"):
        check_ranges(Request("bcast", pace=0))
    check_taken(request, bcast)
    with pytest.raises(UsageError, match="latency has no calls that are paced, so it takes no --pace: for "):
        check_taken(Request("latency", pace=2), latency)


def test_an_unknown_word_is_named() -> None:
    with pytest.raises(UsageError, match="unknown cache 'ht': did you mean hot"):
        check_words(Request("bcast", cache="ht"))


def test_settings_of_several_backends_stand_beside_each_other() -> None:
    request = request_from(find("allreduce"), {"mock": "alpha=1us", "nccl": "aggregate=2"})
    assert request.settings == {"mock": "alpha=1us", "nccl": "aggregate=2"}


def test_a_request_takes_what_a_backend_reads_of_its_own() -> None:
    request = Request("bw", settings={"nccl": "aggregate=2"}, mock="alpha=1us")
    assert request.settings == {"nccl": "aggregate=2", "mock": "alpha=1us"}


def test_a_misspelt_option_is_an_error() -> None:
    options = Request("bw", window=3).options
    assert (options.window, options.root) == (3, None)
    with pytest.raises(AttributeError, match="there is no option 'windw'"):
        _ = options.windw


def test_a_value_may_be_written_as_in_python_or_as_a_text() -> None:
    texts = {
        "ranks": "4",
        "hosts": "a,b",
        "launcher_args": "--bind-to 'a b'",
        "repeat_for": "2m",
        "percentiles": "50,99",
    }
    request = Request("bw", backends="mock", sizes=range(8, 32, 8), iterations=10, tags={"n": 1}, window="2", **texts)
    assert (request.backends, request.ranks, request.sizes, request.options.window) == (("mock",), 4, "8,16,24", 2)
    assert (request.launching.hosts, request.launching.launcher_args) == (("a", "b"), ("--bind-to", "a b"))
    assert (request.repetition.iterations, request.repetition.repeat_for) == ("10", 120.0)
    assert (request.printing.percentiles, request.tags) == ((50, 99), {"n": "1"})
    same = request.changed(backends=["mock"], percentiles=[50, 99], ranks=numpy.int64(4))
    assert same == request and type(same.ranks) is int
    assert [Request("bw", sizes=sizes).sizes for sizes in (8, numpy.array([8]), "8", (8 * k for k in (1, 2)))] == [
        *("8:8", "8:8", "8", "8,16"),
    ]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"ranks": 2.5}, "ranks 2.5 is not a whole number"),
        ({"ranks": "two"}, "ranks 'two' is not a whole number"),
        ({"timeout": "long"}, "'long' is not a duration"),
        ({"timeout": -1}, "a duration must be greater than 0, not -1"),
        ({"precision": math.nan}, "nan is not between 0 and 1"),
        ({"tags": "a=b"}, "tags 'a=b' are no mapping: write them as {'cluster': 'alps'}"),
    ],
)
def test_a_value_that_cannot_be_read_is_named(values: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        Request("bw", **values)


@pytest.mark.parametrize(
    ("backends", "here", "device"),
    [
        (("nccl",), "/dev/nvidia0", "cuda"),
        (("nccl",), "/dev/kfd", "rocm"),
        (("nccl",), "", "cuda"),  # the rule that a GPU must be here says so
        (("mpi", "nccl"), "/dev/kfd", "cpu"),
        (("mpi",), "/dev/nvidia0", "cpu"),
        (("nobody",), "/dev/nvidia0", "cpu"),
    ],
)
def test_without_a_device_a_backend_of_gpus_takes_the_one_that_is_here(
    backends: tuple[str, ...], here: str, device: str
) -> None:
    assert usual_device(backends, lambda path: str(path) == here) == device


def test_a_device_that_is_given_stays() -> None:
    assert Request("allreduce", backends=("nccl",), device="cpu").device == "cpu"
    assert request_from(find("allreduce"), {"backends": ("nccl",)}).device == Request("bw", ("nccl",)).device == "cuda"


def test_a_closed_list_refuses_other_words() -> None:
    reader = comma_list("report", ("rank0", "memory"), closed=True)
    assert reader.parse("Rank0,memory") == ("rank0", "memory")
    with pytest.raises(UsageError, match="unknown report 'bogus': valid: memory, rank0"):
        reader.parse("rank0,bogus")


def test_a_forgotten_folder_is_not_the_next_option() -> None:
    with pytest.raises(UsageError, match=r"--store needs a folder, not the option --quiet: .* is \./--quiet$"):
        parse_folder("--quiet")
    assert str(parse_folder("./--quiet")) == "--quiet"


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("n1,n2", ["n1", "n2"]),
        ("n1, n2:4", ["n1", "n2:4"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[08-10,12]:2,login", ["n08:2", "n09:2", "n10:2", "n12:2", "login"]),
        ("r[1-2]n[3, 5]", ["r1n3", "r1n5", "r2n3", "r2n5"]),
        ("me@n1.lab.local:02", ["me@n1.lab.local:02"]),
        ("fd00::1,fe80::1%eth0", ["fd00::1", "fe80::1%eth0"]),
    ],
)
def test_hosts_are_listed_as_batch_systems_write_them(text: str, hosts: list[str]) -> None:
    assert parse_hosts(text) == tuple(hosts)


@pytest.mark.parametrize(
    "text", ["n1;n2", "n1(x2)", "n1*2", "n1/2", "n[4-1]", "n[1-", "n[a]", "[::1]:2", "n1:0", "n1:x"]
)
def test_what_no_launcher_can_start_on_is_refused(text: str) -> None:
    """MPICH's mpiexec divided by such a number of slots, and a shell ended at such a name."""
    with pytest.raises(UsageError, match=r"^host '.*': hosts are written as n1,n2 or n\[1-4\], with slots as n1:2"):
        parse_hosts(f"n0,{text}")
