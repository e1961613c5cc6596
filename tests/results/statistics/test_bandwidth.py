from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.results.statistics.bandwidth import FORMULAS, bandwidth, formula_column, formula_name, shown_gbps


@pytest.mark.parametrize(
    ("name", "algbw", "busbw"),
    [
        # 8 GB in 2 s on 4 ranks
        ("all_reduce", 4.0, 6.0),
        ("all_gather", 4.0, 3.0),
        ("reduce_scatter", 4.0, 3.0),
        ("alltoall", 4.0, 3.0),
        ("alltoallv", 4.0, 3.0),
        ("gather", 4.0, 3.0),
        ("scatter", 4.0, 3.0),
        ("broadcast", 4.0, 4.0),
        ("reduce", 4.0, 4.0),
        ("sendrecv", 4.0, 4.0),
        ("hypercube", 3.0, 3.0),
    ],
)
def test_the_formulas_of_nccl_tests(name: str, algbw: float, busbw: float) -> None:
    assert bandwidth(name, 8 * 10**9, 4, 2.0) == pytest.approx((algbw, busbw))


def test_every_formula_is_known_and_explained() -> None:
    assert len(FORMULAS) == 11
    assert all("algbw = S" in formula.text and "busbw" in formula.text for formula in FORMULAS.values())


@given(st.sampled_from(sorted(FORMULAS)), st.integers(0, 2**40), st.floats(1e-9, 1e3))
def test_one_rank_has_no_bus(name: str, size: int, seconds: float) -> None:
    assert bandwidth(name, size, 1, seconds)[1] is None
    algbw, busbw = bandwidth(name, size, 2, seconds)
    assert busbw is not None
    assert 0 <= busbw <= 2 * algbw


def test_no_time_and_no_such_formula() -> None:
    algbw, busbw = bandwidth("all_reduce", 8, 2, 0.0)
    assert math.isnan(algbw)
    assert busbw is None
    with pytest.raises(ValueError, match="no bandwidth formula 'allreduce'; there are all_reduce"):
        bandwidth("allreduce", 8, 2, 1.0)


@given(st.sampled_from(sorted(FORMULAS)), st.booleans())
def test_a_column_names_its_formula(name: str, pure: bool) -> None:
    column = formula_column(name, pure)
    assert column.endswith(":pure") == pure
    assert (formula_name(column), formula_name(name), formula_name(None)) == (name, name, "")


@pytest.mark.parametrize(
    ("value", "shown"),
    [(5.517e-05, "0.0000552"), (0.4567, "0.457"), (12.345, "12.35"), (0.0, "0.00"), (0.99999, "1.000")],
)
def test_small_bandwidths_keep_three_digits(value: float, shown: str) -> None:
    assert shown_gbps(value) == shown
