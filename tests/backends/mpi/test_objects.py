"""Python objects over real processes: one launch, every kind and step."""

from __future__ import annotations

import pytest

from tests.support.machines.mpi import report
from tests.support.sessions.object_session import SIZE

pytestmark = [pytest.mark.mpi, pytest.mark.each_library]


@pytest.mark.slow
def test_objects_arrive_as_they_were_sent_and_a_wrong_byte_is_found() -> None:
    said = report("tests.support.sessions.object_session", 2, OMPI_MCA_mpi_yield_when_idle="1")
    assert len(said) == 8 * 6 + 6 + 2 * 4
    for what, (validated, wrong, pickled, beside) in said.items():
        if what.endswith("wrong"):
            assert validated is False and wrong > 0, what
            continue
        assert (validated, wrong) == (True, 0), what
        if what.endswith("beside"):
            assert beside == SIZE and SIZE < pickled < SIZE + 300, what
        else:
            assert pickled > (4096 if "int" not in what and "reduce" not in what else 240) and beside is None, what
