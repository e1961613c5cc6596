"""Timelines of recorded steps: what is exposed is communication without computing beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.cli import main
from omb_py.cli.commands.train import draw_timeline
from omb_py.errors import UsageError
from omb_py.suites.workloads.traces.timeline import read_timeline, timeline_of


def event(name: str, begin: float, dur: float, cat: str = "cpu_op") -> dict[str, Any]:
    return {"ph": "X", "name": name, "cat": cat, "ts": begin, "dur": dur, "pid": 1, "tid": 1}


STEP = [
    event("aten::linear", 100, 50),
    event("aten::mm", 110, 30),  # within it
    event("gloo:all_reduce", 140, 30, "user_annotation"),
    event("c10d::allreduce_", 138, 1),
    event("aten::mul", 160, 5),
    event("gloo:all_reduce", 165, 15, "user_annotation"),
]


def test_exposed_is_what_no_computing_hides() -> None:
    timeline = timeline_of(STEP)
    assert [span[:2] for span in timeline.computing] == [(0, 50), (60, 65)]
    assert [span[:2] for span in timeline.communication] == [(40, 70), (65, 80)]
    assert [span[:2] for span in timeline.exposed] == [(50, 60), (65, 80)]
    assert (timeline.end, timeline.busy("exposed"), timeline.busy("communication")) == (80, 25, 40)


def test_kernels_of_a_gpu_count_where_there_are_any() -> None:
    kernels = [
        event("sgemm", 10, 10, "kernel"),
        event("ncclDevKernel_AllReduce", 15, 10, "kernel"),
        event("aten::mm", 0, 99),
    ]
    assert [span[:2] for span in timeline_of(kernels).exposed] == [(10, 15)]


SPANS = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), min_size=1, max_size=12)


@given(SPANS, SPANS)
def test_every_moment_of_communication_is_hidden_or_exposed(computing: Any, communication: Any) -> None:
    events = [event("aten::mm", *span) for span in computing] + [event("gloo:x", *span) for span in communication]
    timeline = timeline_of(events)
    zero = min(begin for begin, _ in [*computing, *communication])
    sent = {t - zero for begin, dur in communication for t in range(begin, begin + dur)}
    busy = {t - zero for begin, dur in computing for t in range(begin, begin + dur)}
    exposed = {t for begin, end, _ in timeline.exposed for t in range(int(begin), int(end))}
    assert exposed == sent - busy and timeline.busy("exposed") == len(exposed)


def test_it_is_drawn_as_a_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("plotly", reason="figures need the extra dashboard")
    trace = tmp_path / "step.json"
    trace.write_text(json.dumps({"traceEvents": [{**e, "ts": e["ts"] * 1000, "dur": e["dur"] * 1000} for e in STEP]}))
    draw_timeline(trace, tmp_path / "line.html")
    assert (tmp_path / "line.html").read_text().count("of it is exposed communication<") == 1
    said = capsys.readouterr().err
    assert f"a step of 80.00 ms, computing 55.00 ms, communication 40.00 ms, exposed 25.00 ms: {tmp_path}" in said
    assert main(["replay", str(trace), "--timeline", str(tmp_path / "line.json")]) == 2
    assert "a figure, so write FILE.html" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("trace", "said"),
    [
        ({"traceEvents": [event("aten::mm", 0, 1)]}, "no communication with times"),
        ([{"comms": "allreduce"}], "no Kineto trace"),
        ({"traceEvents": [{"ph": "X", "name": "gloo:x"}]}, "an entry is not as it should be"),
    ],
)
def test_a_trace_without_times_is_refused(trace: Any, said: str, tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_text(json.dumps(trace))
    with pytest.raises(UsageError, match=said):
        read_timeline(file)
