"""IMB's names of benchmarks, typed as commands."""

from __future__ import annotations

import pytest

from omb_py.errors import UsageError
from omb_py.results.dialects.imb import Imb
from omb_py.results.dialects.imb.names import FORMS, benchmark_of
from omb_py.suites.registry import BENCHMARKS


def test_each_is_a_benchmark_here() -> None:
    for name in {form.name for form in FORMS.values()}:
        ours = benchmark_of(name)
        assert ours in BENCHMARKS and FORMS[ours].name == name
        assert Imb().translate_line([name.upper(), "-n", "2"]) == [ours, "-n", "2"]


def test_a_variant_without_a_form_is_the_benchmark_that_it_varies() -> None:
    assert Imb().translate_line(["PingPongSpecificSource"]) == ["latency"]


def test_a_program_of_imb_is_told_its_benchmark() -> None:
    with pytest.raises(UsageError, match="as omb-py Sendrecv --format imb"):
        Imb().translate_line(["IMB-MPI1", "-iter", "10", "Sendrecv"])
    assert Imb().translate_line(["alreduce"]) is None
