"""JSON that every reader takes: one object, no number that is none, non-ASCII as it is."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given

from omb_py.printing.writers import to_json
from omb_py.results.document import Document
from omb_py.results.json_values import json_text
from tests.printing.writers.documents import DOCUMENTS


@pytest.mark.slow
@given(DOCUMENTS)
def test_any_data_loads(document: Document) -> None:
    read = json.loads(to_json(document), parse_constant=lambda name: f"no JSON: {name}")
    for key, value in document.data().items():
        assert read[key] == (None if isinstance(value, float) and not math.isfinite(value) else read[key])
        assert read[key] == value or isinstance(value, (float, list))


def test_text() -> None:
    assert json_text({"µ": [math.nan, (math.inf, 1.5)]}) == '{\n "µ": [\n  null,\n  [\n   null,\n   1.5\n  ]\n ]\n}\n'
