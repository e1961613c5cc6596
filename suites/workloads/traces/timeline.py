"""When a recorded step computed and when it communicated, from a Kineto trace of PyTorch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from omb_py.errors import UsageError
from omb_py.suites.workloads.traces.forms import KinetoEvent

Span = tuple[float, float, str]
"""Begin and end in us, and what it was."""
_GPU = ("kernel", "gpu_memcpy", "gpu_memset")


@dataclass(frozen=True, slots=True)
class Timeline:
    """The spans of a step, which begins at 0."""

    computing: tuple[Span, ...]
    communication: tuple[Span, ...]
    exposed: tuple[Span, ...]
    """Communication without computing beside it."""

    @property
    def lanes(self) -> dict[str, tuple[Span, ...]]:
        """The spans by the name of their line."""
        return {"computing": self.computing, "communication": self.communication, "exposed": self.exposed}

    @property
    def end(self) -> float:
        """Time of the step in us."""
        return max((end for spans in self.lanes.values() for _, end, _ in spans), default=0.0)

    def busy(self, lane: str) -> float:
        """Time of a line in us, what overlaps counted once."""
        return sum(end - begin for begin, end, _ in _merge(self.lanes[lane]))


def _merge(spans: Iterable[Span]) -> list[Span]:
    """The times in which any span lasts, with the name of the first one."""
    merged: list[Span] = []
    for begin, end, name in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]), merged[-1][2])
        else:
            merged.append((begin, end, name))
    return merged


def _subtract(spans: Iterable[Span], others: Iterable[Span]) -> list[Span]:
    left: list[Span] = []
    taken = list(others)
    for begin, end, name in spans:
        for other_begin, other_end, _ in taken:
            if other_end <= begin or other_begin >= end:
                continue
            if other_begin > begin:
                left.append((begin, other_begin, name))
            begin = max(begin, other_end)
        if begin < end:
            left.append((begin, end, name))
    return left


def timeline_of(events: Iterable[KinetoEvent]) -> Timeline:
    """The timeline of the events of a Kineto trace.

    Computing are kernels of a GPU, or without any the operators ``aten::`` of all threads; communication are kernels of
    NCCL, or what Gloo's threads note.

    Raises:
        UsageError: the trace has no communication.
    """
    spans = [(e, float(e["ts"]), float(e["ts"]) + float(e.get("dur") or 0)) for e in events if e.get("ph") == "X"]
    kernels = [(e["name"], begin, end) for e, begin, end in spans if e.get("cat") in _GPU]
    if kernels:
        computing = [(b, e, n) for n, b, e in kernels if "nccl" not in n.lower()]
        communication = [(b, e, n) for n, b, e in kernels if "nccl" in n.lower()]
    else:
        computing = [(b, e, x["name"]) for x, b, e in spans if str(x.get("name", "")).startswith("aten::")]
        communication = [(b, e, x["name"]) for x, b, e in spans if str(x.get("name", "")).startswith("gloo:")]
    if not communication:
        raise UsageError("no communication with times: a trace of torch.profiler with collectives has them")
    zero = min(begin for begin, _, _ in [*computing, *communication])
    merged, calls = _merge(computing), sorted(communication)
    exposed = _subtract(_merge(calls), merged)

    def shifted(spans: Iterable[Span]) -> tuple[Span, ...]:
        return tuple((begin - zero, end - zero, name) for begin, end, name in spans)

    return Timeline(shifted(merged), shifted(calls), shifted(exposed))


def read_timeline(file: Path) -> Timeline:
    """The timeline of a Kineto trace. Raises UsageError where it is none."""
    from omb_py.suites.workloads.traces.replay import load_trace

    try:
        trace = load_trace(file)
        if not (isinstance(trace, dict) and isinstance(trace.get("traceEvents"), list)):
            raise UsageError("no Kineto trace (traceEvents), and others have no times")
        return timeline_of(trace["traceEvents"])
    except UsageError as error:
        raise UsageError(f"trace {file}: {error}") from None
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"trace {file}: an entry is not as it should be: {str(error)[:200]}") from None
