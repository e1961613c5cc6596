"""Prometheus' own parser reads what we write."""

from __future__ import annotations

import math

from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse

from omb_py.printing.export import export


def test_the_parser_of_prometheus_reads_it(make_row) -> None:
    rows = [
        make_row(
            size_bytes=8,
            value=2.5,
            ranks=2,
            median_us=2.0,
            iterations=100,
            validated=True,
            busbw_gbps=1.5,
            library='say "hi" \\ \n',
            tags={"a": "b"},
            parameters={"tests": "0"},
        ),
        make_row(size_bytes=8, value=2.5, ranks=2),
        make_row(size_bytes=8, value=2.5, ranks=2),
        make_row(benchmark="bw", size_bytes=8, unit="MB/s", metric="bandwidth", value=12.0, in_place=False),
        make_row(size_bytes=16, value=math.nan),
        make_row(benchmark="train", size_bytes=None, unit="img/sec", value=170.5),
    ]
    families = {family.name: family for family in parse(export(rows, "openmetrics"))}
    latency = families["omb_py_latency_seconds"]
    assert (latency.type, latency.unit, len(latency.samples)) == ("gauge", "seconds", 3)
    first, second, third = latency.samples
    assert math.isclose(first.value, 2.5e-6) and math.isclose(float(first.timestamp), 1795305598.25)
    assert first.labels["library"] == 'say "hi" \\ \n' and first.labels["options"] == "tests=0"
    assert "repeat" not in second.labels and third.labels["repeat"] == "2"
    [rate] = families["omb_py_bandwidth_bytes_per_second"].samples
    assert rate.value == 12e6 and rate.labels["in_place"] == "false" and "library" not in rate.labels
    [other] = families["omb_py_value"].samples
    assert other.value == 170.5 and other.labels["unit"] == "img/sec" and "unit" not in rate.labels
    assert families["omb_py_valid"].samples[0].value == 1.0
    assert families["omb_py_busbw_bytes_per_second"].samples[0].value == 1.5e9


def test_of_nothing() -> None:
    assert export([], "openmetrics") == "# EOF\n"
