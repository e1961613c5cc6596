from __future__ import annotations

import math

import numpy as np
import pandas as pd

from omb_py.results.json_values import plain


def test_plain_makes_python_values_of_all_kinds() -> None:
    assert plain(pd.NA) is None
    assert plain(pd.NaT) is None
    assert plain(np.float32(0.5)) == 0.5
    assert plain(np.array([1, 2])) == [1, 2]
    assert plain(pd.Timestamp("2026-11-21", tz="UTC")) == "2026-11-21T00:00:00+00:00"
    assert plain({"a": np.int64(1), "b": (math.inf,)}) == {"a": 1, "b": [None]}
    assert plain(True) is True
    assert plain(object).startswith("<class")
