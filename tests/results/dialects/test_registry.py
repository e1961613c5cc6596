"""Dialects of installed packages stand after ours, and replace none; what a run prints is what is exported."""

from __future__ import annotations

from array import array
from collections.abc import Callable

import pytest

from omb_py.results.dialects import registry
from omb_py.results.dialects.dialect import Dialect, TextOptions
from omb_py.results.store.row import Row
from tests.support.entries import forget_plug_ins, install_entries


def named(name: str) -> Dialect:
    return type("Theirs", (Dialect,), {"name": name})()


def test_a_dialect_of_a_package_replaces_none_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    install_entries(monkeypatch, registry.ENTRY_POINTS, {name: named(name) for name in ("imb", "pipes")})
    try:
        assert [*registry.installed().loaded] == ["pipes"]
    finally:
        forget_plug_ins()


@pytest.mark.parametrize(
    ("form", "benchmark", "options", "us", "digits"),
    [
        ("imb", "sendrecv_call", TextOptions(), 123456.785, ["123456.78", "16200001.33"]),
        ("osu", "allreduce", TextOptions(full=True), 123456.785, ["123456.78"]),
        ("nccl-tests", "allreduce", TextOptions(report=("slowest",)), 1234.56499, ["1234.57"]),
    ],
)
def test_a_run_prints_the_numbers_of_its_export(
    make_row: Callable[..., Row], form: str, benchmark: str, options: TextOptions, us: float, digits: list[str]
) -> None:
    """The store has the ranks' means in 32 bits: 123456.785 µs are 123456.78 there."""
    what = {"benchmark": benchmark, "dtype": "int32", "size_bytes": 10**12, "bytes_total": 10**12, "ranks": 2}
    bandwidths = {"bw_formula": "nccl-tests:AllReduce", "timing": "pipelined", "algbw_gbps": 1.0, "busbw_gbps": 1.0}
    row = make_row(**what, **bandwidths, value=us, iterations=9, parameters={}, family="collective")

    def line(means: list[float]) -> str:
        text = registry.dialect_of(form).transcript()
        return (text.row({**row, "rank_mean_us": means}, options) + text.end()).partition(f"{10**12} ")[2]

    printed = line([1.0, us])
    assert printed == line(array("f", [1.0, us]).tolist())
    assert all(word in printed.splitlines()[0].split() for word in digits)
