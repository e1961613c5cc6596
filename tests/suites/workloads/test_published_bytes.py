"""What every workload moves is what was published, or recorded of the framework itself."""

from __future__ import annotations

import pytest

from omb_py.suites.workloads.families import FAMILIES
from tests.support.workload_bytes.page import FILE, counted, page
from tests.support.workload_bytes.published import PUBLISHED, Published


@pytest.mark.parametrize("entry", PUBLISHED, ids=lambda entry: f"{entry.text}@{entry.rank}")
def test_calls_and_bytes_are_the_published_ones(entry: Published) -> None:
    assert counted(entry) == entry.expected()


def test_every_family_is_held_to_a_source() -> None:
    assert {entry.text.partition(":")[0] for entry in PUBLISHED} == set(FAMILIES)
    assert all(entry.source and entry.symbols and entry.numbers for entry in PUBLISHED)


def test_the_page_is_as_generated() -> None:
    assert FILE.read_text() == page(), "run python -m tests.support.workload_bytes"


def test_numbers_are_read_as_they_are_written() -> None:
    entry = Published("", 2, "", ("2 × 3·(4 + 4)/2", "1 × 12"), "")
    assert entry.expected() == {12: 3}
