"""Which tests ``make test`` leaves to ``make test-rest`` (docs/testing.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def few_quick(values: Iterable[Any], quick: int = 1) -> list[Any]:
    """Arguments of ``parametrize`` with one name: the first `quick` values as they are, the others marked slow."""
    return [
        value if place < quick else pytest.param(value, marks=pytest.mark.slow) for place, value in enumerate(values)
    ]
