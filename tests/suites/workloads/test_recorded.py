"""Workloads make the calls that frameworks were recorded to make (tests/lab/frameworks), or a reason is given."""

from __future__ import annotations

from collections import Counter

import pytest

from omb_py.suites.training.frameworks import OURS
from tests.support.workload_bytes.recorded import Recording, of_workload, recordings

RECORDINGS = recordings()


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.name)
def test_calls_bytes_and_types_are_the_recorded_ones(recording: Recording) -> None:
    equal = Counter(of_workload(recording)) == Counter(recording.calls)
    assert equal != bool(recording.differs), "write the reason where they differ, and none where they are equal"


def test_each_framework_that_runs_here_is_recorded() -> None:
    families = {recording.workload.partition(":")[0] for recording in RECORDINGS}
    assert families == {"ddp", "fsdp", "zero", "tensor", "prefill", "ulysses", "pipeline", "kmeans", "horovod"}


def test_one_small_gpt_is_recorded_in_every_layout_that_train_has() -> None:
    """On two ranks, and equal in calls and bytes."""
    of_gpt = [recording for recording in RECORDINGS if ":model=custom:" in recording.workload and recording.ranks == 2]
    layouts = {
        layout: framework.workload(layout, "custom:layers=2,hidden=64,heads=4,seq=32,vocabulary=256")
        for framework in OURS.values()
        for layout in framework.layouts
    }
    equal = {recording.workload for recording in of_gpt if not recording.differs}
    assert not set(layouts.values()) - equal
