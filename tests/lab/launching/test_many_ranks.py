"""Many real ranks on few cores, which others load meanwhile."""

from __future__ import annotations

import pytest

from tests.lab.computing import beside
from tests.lab.launching.many_ranks import launch

pytestmark = [pytest.mark.mpi, pytest.mark.slow, pytest.mark.each_library, pytest.mark.timeout(900)]


@pytest.mark.parametrize("agent", [False, True])
def test_more_ranks_than_cores_start_and_end_under_load(agent: bool) -> None:
    """A number that a busy machine bears; `python -m tests.lab.launching.many_ranks` goes further."""
    with beside(2):
        marks, notes = launch(16, iterations=1, timeout=600.0, agent=agent)
    assert notes == ()
    assert 0 < marks.first_hello <= marks.last_hello <= marks.joined <= marks.cell <= marks.ended
