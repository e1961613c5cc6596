"""What recorded steps of FSDP2 do not show (test_recorded.py): shards that do not divide, and who waits for what."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from omb_py.suites.workloads.data_parallel import shard_bytes
from omb_py.suites.workloads.models import Tensor
from tests.suites.workloads.test_families import calls


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
