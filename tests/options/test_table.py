"""The option table agrees with requests, cells, the store and the documentation; an option is one entry."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, make_dataclass
from typing import Any

import pytest

from omb_py.backends.registry import own_options
from omb_py.engine.program.benchmark import Sampling, cell_from
from omb_py.errors import UsageError
from omb_py.options import table
from omb_py.options.option import Defaults, Option
from omb_py.options.readers import whole, word
from omb_py.options.request import Request
from omb_py.options.table import (
    TABLE,
    cell_options,
    change_cell,
    check_ranges,
    check_taken,
    check_words,
    make_cell,
    options_of,
    request_from,
    usual_cell,
)
from omb_py.results.store.schema import BY_NAME
from omb_py.suites import BENCHMARKS, find

NO_OPTION = {"benchmark", "placement", "left_out", "validation_log", "part", "settings"}
"""Request fields that are the command, its positional words, part of -c, made by planning, or of backends."""
PLANNED = {"staging", "filler", "timing", "batch"}
"""Options of a cell that the planner makes from several options of the request."""


def test_every_request_field_has_one_entry() -> None:
    names = [option.name for option in TABLE]
    assert len(set(names)) == len(names)
    ignored = {option.name for option in TABLE if option.ignored}
    assert {*names} - {"no_store", *own_options(), *ignored} == {field.name for field in fields(Request)} - NO_OPTION


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
    "Pause between calls: none, short, long.",
    "KIND",
    word("pace", ("none", "short", "long")),
    key="full",
    lacks="calls that are paced",
    usual="none",
    cell="options",
)
DEPTH = Option("depth", "-y --depth", "Depth of a queue.", "N", whole("depth", 1), default="4")
MORE = (*TABLE, PACE, DEPTH)


@pytest.fixture
def request_type(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A request with the fields of two more options."""
    added: list[Any] = [("pace", str | None, None), ("depth", int | None, None)]
    more = make_dataclass("More", added, bases=(Request,), frozen=True)
    monkeypatch.setattr(table, "Request", more)
    return more


def test_an_option_is_one_entry_and_its_fields(request_type: Any) -> None:
    """Read, refused, checked and handed on to the cell: nothing but the entry knows the option."""
    bcast, latency = find("bcast"), find("latency")
    request: Any = request_from(bcast, {"pace": "short", "depth": 3}, MORE)
    assert (request.pace, request.depth) == ("short", 3)
    assert cell_options(request, MORE)["pace"] == "short" and "depth" not in cell_options(request, MORE)
    assert options_of(bcast, MORE)[-2:] == [PACE, DEPTH]
    assert (
        DEPTH.help_text(Defaults(bcast, ("mpi",), ("native",), usual_cell(bcast))) == "Depth of a queue. (default: 4)"
    )
    for check in (check_words, check_ranges):
        check(request, MORE)
    with pytest.raises(UsageError, match="unknown pace 'shrt': did you mean short"):
        check_words(request_type("bcast", pace="shrt"), MORE)
    with pytest.raises(UsageError, match="depth must be 1 or more, not 0"):
        check_ranges(request_type("bcast", depth=0), MORE)
    check_taken(request, bcast, MORE)
    with pytest.raises(UsageError, match="latency has no calls that are paced, so it takes no --pace: for "):
        check_taken(request_type("latency", pace="short"), latency, MORE)


def test_settings_of_several_backends_stand_beside_each_other() -> None:
    request = request_from(find("allreduce"), {"mock": "alpha=1us", "nccl": "aggregate=2"})
    assert request.settings == {"mock": "alpha=1us", "nccl": "aggregate=2"}
