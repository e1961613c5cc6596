"""The calls of ``fsdp`` against steps that were recorded of FSDP2 itself.

``omb-py train MODEL -n N --parallel fsdp --trace step.json`` with torch 2.13.0 over Gloo, then ``omb-py workloads
replay:trace=@step.json -n N``, recorded these on 2026-11-23; tests/backends/gloo/test_training.py records one anew.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.suites.workloads.data_parallel import shard_bytes
from omb_py.suites.workloads.models import Tensor
from tests.suites.workloads.test_families import calls

GPT2_OF_ONE_LAYER = "custom:layers=1,hidden=768,heads=12,vocabulary=50257,seq=1024"
RECORDED = {
    ("mlp", 2): "g803840 g525312 g10260 g10260 g525312 r20520 g803840 r1050624 r1607680",
    ("mlp", 3): "g536940 g350892 g8208 g8208 g350892 r24624 g536940 r1052676 r1610820",
    (GPT2_OF_ONE_LAYER, 3): "g52517888 g9450496 g9450496 r28351488 r157553664",
}
"""(model, ranks) -> all-gathers and reduce-scatters in their order, with the bytes that a rank puts in."""


@pytest.mark.parametrize(("name", "ranks"), RECORDED)
def test_calls_bytes_and_order_are_the_recorded_ones(name: str, ranks: int) -> None:
    for own in calls(f"fsdp:model={name}", ranks):
        letters = {"allgather": "g", "reduce_scatter_block": "r"}
        assert " ".join(f"{letters[call.op]}{call.nbytes}" for call in own) == RECORDED[name, ranks]


@given(st.integers(1, 50), st.integers(1, 50), st.integers(1, 16))
def test_shards_hold_everything_and_at_most_a_row_a_rank_more(rows: int, columns: int, n: int) -> None:
    whole = n * shard_bytes([Tensor("unit", rows, columns)], n, "float32")
    assert 0 <= whole - 4 * rows * columns < 4 * n * columns


def test_a_gather_is_complete_before_its_unit_computes() -> None:
    """With prefetch one more call may start, the gather after it; then come those that reduce the unit before."""
    own = calls("fsdp:model=mlp,replica=2", 4)[0]
    backward = [c.until for c in own if c.label == "gather backward"]
    assert backward == [1, 3, 2]
    assert {c.until for c in calls("fsdp:prefetch=off", 2)[0] if c.op == "allgather"} == {0}
