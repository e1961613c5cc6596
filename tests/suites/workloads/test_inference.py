"""Every byte of inference is right, in each of its forms, on few ranks and many; on real ones: tests/backends."""

from __future__ import annotations

import pytest

from tests.support.machines.simulated import measured
from tests.support.small_workloads import FORMS, SERVING, WRITTEN, instances_of
from tests.support.tiers import few_quick

MANY = {
    **{f"keys by {op}": f"kv_transfer:layers=1,prompt=20,requests=24,scale=1/64,op={op}" for op in ("send", "write")},
    "serving": f"{SERVING},tp=4",
    "experts": "moe:tokens=2,hidden=128,experts=16,top=3,ep=8,mode=low_latency",
}


@pytest.mark.parametrize("ranks", few_quick([2, 3, 4]))
@pytest.mark.parametrize("form", (FORMS | WRITTEN).values(), ids=(FORMS | WRITTEN).keys())
def test_every_byte_is_right(form: str, ranks: int) -> None:
    done = measured("step", ranks, workload=instances_of(form, ranks), iterations=1, validate=True)
    assert done.wrong_bytes == 0


@pytest.mark.slow
@pytest.mark.parametrize("form", MANY.values(), ids=MANY.keys())
def test_every_byte_is_right_on_many_ranks(form: str) -> None:
    done = measured("step", 24, workload=instances_of(form, 24), iterations=1, validate=True)
    assert done.wrong_bytes == 0 and len(done.laps["step"]) == 24
