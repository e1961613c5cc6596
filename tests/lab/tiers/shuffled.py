"""Tests in another order: ``OMB_PY_TEST_ORDER=7 python -m pytest -p tests.lab.tiers.shuffled PATH…``.

Files change places, and so do the tests within a file; a file's tests stay together, as its fixtures want. The same number
gives the same order. Without one, Python draws it and says which.
"""

from __future__ import annotations

import os
import random

import pytest

VARIABLE = "OMB_PY_TEST_ORDER"


def pytest_report_header() -> str:
    """Say which order it is."""
    os.environ.setdefault(VARIABLE, str(random.randrange(1 << 31)))
    return f"order of the tests: {VARIABLE}={os.environ[VARIABLE]}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Shuffle in place."""
    order = random.Random(os.environ.setdefault(VARIABLE, str(random.randrange(1 << 31))))
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    for tests in files.values():
        order.shuffle(tests)
    groups = list(files.values())
    order.shuffle(groups)
    items[:] = [item for tests in groups for item in tests]
