"""Every synchronise is needed: without it there is wrong data, a wrong time, or a device that complains."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest

from tests.support.machines.mpi import ROOT
from tests.support.machines.standin import needs_compiler, report

DELAY_US = 40_000
"""No operation of the simulated device begins earlier: a sample that is shorter did not wait. So long that no busy
machine takes it for one that waits for nothing."""
SYNCHRONISES = {
    "result": "a call is done before its sample ends",
    "lap": "a blocking call is done before the lap that stands behind it ends",
    "wait": "a non-blocking call that is waited for is done",
    "barrier": "all ranks have come before anything follows",
    "body": "nothing is left over from an iteration",
    "settled": "managed memory is where it is wanted before the next iteration begins",
    "filler": "the device has computed as long as it should",
    "copied out": "staged: bytes have come before MPI sends them",
    "copied in": "staged: bytes have gone before MPI receives others, and before the sample ends",
}
"""Every step that waits for a device, and why."""
CASES: dict[str, dict[str, Any]] = {
    "result": {"benchmark": "allreduce", "size": 64},
    "lap": {"benchmark": "allreduce", "size": 64, "timing": ""},
    "wait": {"benchmark": "iallreduce", "size": 64},
    "barrier": {"benchmark": "barrier", "process_sync": "none"},
    "body": {"benchmark": "latency", "size": 64},
    "read": {"benchmark": "allreduce", "size": 64},
}
"""What shows that a synchronise is missing."""
OF_STAGING = {"copied out", "copied in", "settled", "filler"}
"""In tests/backends/mpi/test_staging.py."""
PRIMARY = {"iallreduce": "pure.time"}


def problems(words: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """What a test of the cell would complain about."""
    if "refused" in found:
        return [found["refused"]]
    out = []
    if found["wrong"]:
        out.append(f"{found['wrong']} wrong bytes")
    if found["busy"]:
        out.append("work is left over after the loop")
    took = found["means"][PRIMARY.get(words["benchmark"], "time")]
    if words.get("timing") != "spin-gated" and took * (2 if words["benchmark"] == "latency" else 1) < DELAY_US:
        out.append(f"{took} us: it did not wait")
    return out


@cache
def launched() -> list[dict[str, Any]]:
    cells = [*CASES.values(), *({**cell, "without": why} for why, cell in CASES.items())]
    found: list[dict[str, Any]] = report(
        "tests.support.sessions.nccl_cells", 2, cells, OMB_PY_SIM_DELAY_US=str(DELAY_US)
    )
    return found


@pytest.mark.slow
@needs_compiler
@pytest.mark.mpi
@pytest.mark.parametrize("why", CASES)
def test_nothing_is_wrong_with_it_and_something_without(why: str) -> None:
    place = list(CASES).index(why)
    assert problems(CASES[why], launched()[place]) == []
    assert problems(CASES[why], launched()[len(CASES) + place]) != []


def test_no_synchronise_of_the_code_is_left_untested() -> None:
    assert set(SYNCHRONISES) | {"read"} == {*CASES, *OF_STAGING}
    named = set()
    for folder in ("omb_py", "backends"):
        for file in (ROOT / folder).rglob("*.py"):
            text = file.read_text() if file.name != "synchronises.py" else ""
            named |= set(re.findall(r'synchronised?\("([a-z ]+)"\)', text)) | set(re.findall(r'[Ww]hy="(\w+)"', text))
            if file.name != "memory.py" and "devices" not in file.parts:
                assert 'call("synchronise"' not in text, f"{file}: give it a name in SYNCHRONISES"
    assert named == set(SYNCHRONISES)
