"""What MPI cannot measure, though each option alone is one of MPI's."""

from __future__ import annotations

import pytest

from omb_py.backends.mpi.capabilities import CAPABILITIES
from omb_py.options.table import make_cell
from omb_py.suites.registry import find

ALLREDUCE = find("allreduce")


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"buffer": "object", "process_sync": "dissemination"}, "sends no Python objects: take barrier or none"),
        ({"buffer": "object", "process_sync": "roundtime"}, "sends no Python objects: take barrier or none"),
        ({"device": "cuda", "process_sync": "roundtime"}, "needs buffers on the host: take barrier or dissemination"),
        ({"device": "cuda", "process_sync": "dissemination"}, ""),
        ({"buffer": "object", "process_sync": "barrier"}, ""),
        ({"process_sync": "roundtime"}, ""),
    ],
)
def test_a_synchronisation_that_its_buffers_do_not_have_is_refused(fields: dict[str, str], says: str) -> None:
    why = CAPABILITIES.refuses(ALLREDUCE, make_cell(ALLREDUCE, "mpi", "native", 8, **fields))
    assert why.endswith(says) and bool(why) == bool(says)
