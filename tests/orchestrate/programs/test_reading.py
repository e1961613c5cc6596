"""Which reader reads an output."""

from __future__ import annotations

import pytest

from omb_py.errors import UsageError
from omb_py.orchestrate.programs.execution import Execution
from omb_py.orchestrate.programs.reading import reading_of
from omb_py.results.dialects.named_metrics import parse_metric

OSU = b"# OSU MPI Latency Test v7.5\n# Datatype: MPI_CHAR.\n# Size          Avg Latency(us)\n8                1.25\n"


def ended(output: bytes) -> Execution:
    return Execution(output, b"", 0, 1.0, 1)


def test_the_reader_is_found_by_the_content() -> None:
    (table,) = reading_of("", ()).tables(ended(OSU))
    assert (table.benchmark, table.rows[0]["value"]) == ("latency", 1.25)


def test_only_the_named_tool_is_read() -> None:
    assert reading_of("osu", ()).tables(ended(OSU))
    with pytest.raises(UsageError, match="IMB text"):
        reading_of("imb", ()).tables(ended(OSU))
    assert reading_of("hyperfine", ()).readers


def test_an_unknown_tool_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="--read nccl-test: did you mean nccl-tests"):
        reading_of("nccl-test", ())


def test_a_tool_and_a_number_exclude_each_other() -> None:
    with pytest.raises(UsageError, match="give one of them"):
        reading_of("osu", [parse_metric("t s lower ([0-9]+)")])
    with pytest.raises(UsageError, match="--metric t is given twice"):
        reading_of("", [parse_metric("t s lower ([0-9]+)"), parse_metric("t s lower took ([0-9]+)")])
