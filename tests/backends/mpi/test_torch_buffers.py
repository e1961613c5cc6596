"""``--binding mpi4py --buffer torch`` over real processes: tensors of every type go out as what they are."""

from __future__ import annotations

import pytest

from tests.support.machines.mpi import report
from tests.support.optional import needs_torch
from tests.support.sessions.torch_buffers import BENCHMARKS, TYPES


@needs_torch
@pytest.mark.slow
@pytest.mark.mpi
def test_every_byte_of_a_tensor_is_right_in_every_type() -> None:
    said = report("tests.support.sessions.torch_buffers", 2)
    assert len(said) == len(TYPES) * len(BENCHMARKS)
    assert {what: wrong for what, wrong in said.items() if wrong} == {}
