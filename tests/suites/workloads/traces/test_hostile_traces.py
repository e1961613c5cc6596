"""Traces from strangers: one line says what is wrong, nothing is misread, and memory stays bounded."""

from __future__ import annotations

import copy
import gzip
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.errors import OmbError, UsageError
from omb_py.suites.workloads.traces.replay import MOST_CALLS, inline_file, read_calls
from tests.suites.workloads.traces.test_replay import BASIC, CHAKRA, KINETO

TRACES: tuple[Any, ...] = (BASIC, KINETO, CHAKRA)
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from([[], {}, [[]], [1, [2]], {"name": 1}, "1e999", "-3", "0x10", "²"]),
)


def text_of(trace: Any) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        path.write_text(trace if isinstance(trace, str) else json.dumps(trace))
        return inline_file(f"@{path}")


def places(node: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in a trace."""
    if at:
        yield at
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield from places(value, (*at, key))


def replaced(trace: Any, at: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(trace)
    node = changed
    for key in at[:-1]:
        node = node[key]
    node[at[-1]] = value
    return changed


@pytest.mark.slow
@given(st.sampled_from(TRACES), st.data(), ODD)
def test_a_changed_value_is_refused_in_one_line_or_read_as_it_stands(trace: Any, data: Any, value: Any) -> None:
    at = data.draw(st.sampled_from(list(places(trace))))
    try:
        calls = read_calls(text_of(replaced(trace, at, value)))
    except OmbError as error:
        assert "\n" not in str(error) and len(str(error)) < 1000
        return
    before = {entry[1] for _, entry in read_calls(text_of(trace))}
    fresh = {entry[1] for _, entry in calls} - before
    # a count that was not there before is the value that was put in, or nothing
    assert fresh <= {0} | ({int(float(value))} if isinstance(value, (int, float, str)) and fresh - {0} else set())


@pytest.mark.parametrize(
    ("trace", "says"),
    [
        ({"traceEvents": [1]}, "an entry is not as it should be"),
        ({"traceEvents": [{"ts": float("inf"), "name": "x"}]}, "a time is 'inf'"),
        ({"traceEvents": [{"ts": float("nan"), "name": "x"}]}, "a time is 'nan'"),
        ([{"comms": "all_reduce", "in_msg_size": 3.7}], "a count is '3.7': it should be a whole number"),
        ([{"comms": "all_reduce", "in_msg_size": -1}], "a count is '-1'"),
        ([{"comms": "all_reduce", "in_msg_size": True}], "a count is 'True'"),
        ('{"traceEvents": [{"ts": 1e999}]}', "a time is 'inf'"),
        ("[" * 200_000, "nested too deeply"),
        ('[{"comms": "all_reduce", "in_msg_size": ' + "9" * 5000 + "}]", "a number in it is too long"),
    ],
    ids=range(9),
)
def test_a_trace_that_is_wrong_is_refused_in_one_line(trace: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        text_of(trace)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 500


@pytest.mark.slow
def test_a_packed_trace_does_not_fill_the_memory(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.gz"
    bomb.write_bytes(gzip.compress(b" " * (65 << 20)))
    with pytest.raises(UsageError, match="it unpacks to more than 64 MiB, as no trace does"):
        inline_file(f"@{bomb}")


@pytest.mark.parametrize(
    "text", ["999999999*allreduce/1/float32/0", f"{MOST_CALLS}*allreduce/1/char/0;1*bcast/1/char/0"]
)
def test_a_step_has_a_bounded_number_of_calls(text: str) -> None:
    with pytest.raises(UsageError, match="a trace has at most 1,000,000 calls, not"):
        read_calls(text)
    assert read_calls("2*allreduce/1/float32/0") == ((2, ("allreduce", 1, "float32", 0)),)
