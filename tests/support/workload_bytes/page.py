"""The page of the published bytes, with what the workloads really move."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from omb_py.suites.workloads.families import parse_workload
from tests.support.workload_bytes.published import PUBLISHED, Published
from tests.support.workload_bytes.recorded import Recording, of_workload, recordings, summary

FILE = Path(__file__).parents[2] / "lab" / "evidence" / "workload_bytes.md"

HEAD = """# Bytes of every workload

Each row is what one rank puts into the calls of a step: the formula as it was published, the same in numbers, and the
bytes of the workload. `tests/suites/workloads/test_published_bytes.py` computes the fourth column and compares it with
the workload call by call. This page is made by `python -m tests.support.workload_bytes`; a test holds it to the code.

| workload | rank of n | published | in numbers: calls × bytes | bytes in all | source |
|---|--:|---|---|--:|---|
"""

RECORDED = """
## Recorded steps

What frameworks called in a step over Gloo, beside the workload that stands for it. `python -m tests.lab.frameworks`
records them anew and writes this page; a test holds each workload to its recording.

Not recorded, because they do not run here: Horovod (its last release does not compile with PyTorch since 2.1),
ring-flash-attention (it needs flash-attn on a GPU), Megatron-LM, vLLM and DeepEP (GPUs), MPI4DL (a PyTorch built with
MPI). Their families are held to publication or source above.

TensorFlow trains from PyTorch's parameters and batches. Losses of ResNet-50 are PyTorch's in the first step alone: of
two images of 33 pixels float32 gradients of both are 2 to 3 % from PyTorch's in float64, and PyTorch's own losses in
float32 and float64 part as far. In float64 six losses of both are equal to 2e-8, so no module differs.

| workload | rank of n | framework | recorded | workload's | |
|---|--:|---|---|---|---|
"""


UNEXPLAINED = "differs, and nobody says why"


def counted(entry: Published) -> dict[int, int]:
    """Bytes of a call -> number of such calls that the rank makes in a step; what it only receives is not counted."""
    calls = parse_workload(entry.text).calls(entry.rank, entry.ranks)
    return Counter(call.sent for call in calls if call.sent)


def page() -> str:
    """The whole page."""
    rows = []
    for entry in PUBLISHED:
        total = sum(nbytes * count for nbytes, count in counted(entry).items())
        numbers = "; ".join(entry.numbers)
        rank = f"{entry.rank} of {entry.ranks}"
        rows.append(f"| `{entry.text}` | {rank} | {entry.symbols} | {numbers} | {total:,} | {entry.source} |\n")
    return HEAD + "".join(rows) + RECORDED + "".join(map(_row, recordings()))


def outcome(recording: Recording) -> str:
    """How a recording compares with its workload: equal, or why not."""
    calls, own = list(recording.calls), of_workload(recording)
    if calls == own:
        return "equal, in this order"
    return "equal" if Counter(calls) == Counter(own) else recording.differs or UNEXPLAINED


def _row(recording: Recording) -> str:
    rank = f"{recording.rank} of {recording.ranks}"
    framework = f"{recording.framework} ({recording.version})"
    both = f"{summary(recording.calls)} | {summary(of_workload(recording))}"
    return f"| `{recording.workload}` | {rank} | {framework} | {both} | {outcome(recording)} |\n"
