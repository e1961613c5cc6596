"""Every byte of inference is right, in each of its forms, on few ranks and many; on real ones: tests/backends."""

from __future__ import annotations

import pytest

from tests.support.machines.simulated import measured
from tests.support.tiers import few_quick

_KEYS = "kv_transfer:layers=2,prompt=20,requests=5,scale=1/64"
_SERVING = "serving:layers=1,requests=3,tokens=2,prompt=7,dtype=float32,scale=1/32"
_EXPERTS = "moe:tokens=6,hidden=128,experts=12,top=3"
FORMS = {
    "layers": _KEYS,
    "pages": f"{_KEYS},pieces=page",
    "whole": f"{_KEYS},pieces=whole",
    "turns": _SERVING,
    "clock": f"{_SERVING},turn=20ms,rate=40,chunk=4,draft=2,head=on",
    "apart": f"{_SERVING},fused=off,slots=2",
    "normal": f"{_EXPERTS},mode=normal,dispatch=bf16",
    "drawn": f"{_EXPERTS},mode=normal,routing=drawn,micro=2,backward=on",
    "low latency": f"{_EXPERTS},mode=low_latency,micro=2",
}
WRITTEN = {f"{name}, written": f"{FORMS[name]},op=write" for name in ("layers", "pages", "whole")}
"""One-sided: over MPI and in the simulation."""
_INSTANCES = {3: "prefill_tp=2", 4: "prefill=2,decode_tp=2", 24: "prefill=6,prefill_tp=2,decode_tp=4"}
"""By ranks: instances of unequal tensor parallelism."""
MANY = {
    **{f"keys by {op}": f"kv_transfer:layers=1,prompt=20,requests=24,scale=1/64,op={op}" for op in ("send", "write")},
    "serving": f"{_SERVING},tp=4",
    "experts": "moe:tokens=2,hidden=128,experts=16,top=3,ep=8,mode=low_latency",
}


def instances_of(form: str, ranks: int) -> str:
    """The workload of a form, with instances for so many ranks."""
    instances = _INSTANCES.get(ranks) if form.startswith("kv_transfer") else None
    return f"{form},{instances}" if instances else form


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
