from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from omb_py.engine.program.benchmark import LARGE_MESSAGE_BYTES, Counts, cell_from
from omb_py.engine.program.dtypes import DTYPES
from omb_py.engine.session import StepFailed
from omb_py.options.table import make_cell
from omb_py.suites.registry import BENCHMARKS


@pytest.mark.parametrize(("size", "expected"), [(0, (7, 3)), (8192, (7, 3)), (8193, (5, 2)), (1 << 30, (5, 2))])
def test_counts_switch_above_8192_bytes(size: int, expected: tuple[int, int]) -> None:
    assert LARGE_MESSAGE_BYTES == 8192
    assert Counts(small=7, small_warmup=3, large=5, large_warmup=2).of(size) == expected


def test_a_cell_survives_json() -> None:
    cell = make_cell("bw", "mpi", "native", 64, dtype="int32", window=3, time_limit=1.5, validate=True)
    assert cell_from(json.loads(json.dumps(asdict(cell)))) == cell


def test_a_cell_of_another_version_is_not_taken_silently() -> None:
    with pytest.raises(TypeError, match="colour"):
        cell_from({**asdict(make_cell("bw", "mpi", "native", 64)), "colour": "red"})


def test_a_cell_s_default_type_is_one_of_ours() -> None:
    assert make_cell("bw", "mpi", "native", 64).dtype in DTYPES


def test_the_smallest_size_of_a_benchmark_without_sizes_is_0() -> None:
    assert BENCHMARKS["barrier"].minimum_size == 0
    assert BENCHMARKS["allreduce"].minimum_size == 4


def test_a_failed_step_says_which_and_why() -> None:
    failure = StepFailed(3, 6, "invalid rank")
    assert (failure.step, failure.code, failure.text) == (3, 6, "invalid rank")
    assert str(failure) == "step 3: invalid rank (code 6)"
