from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.rows import row_of

Row = dict[str, Any]


@pytest.fixture
def make_row() -> Callable[..., Row]:
    """Makes a row with what a store requires; more by keyword."""

    def make(**values: Any) -> Row:
        return {**row_of(started_at="2026-11-21T23:59:58.250000+00:00"), **values}

    return make
