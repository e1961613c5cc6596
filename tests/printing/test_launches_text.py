"""The table over the launches of one run."""

from __future__ import annotations

from omb_py.printing.launches_text import launches_text


def cell(launch: int, value: float | None, size: int | None = 8, **more: object) -> dict[str, object]:
    row = {"benchmark": "allreduce", "backend": "mpi", "binding": "native", "device": "cpu", "dtype": "int32"}
    fixed = {"metric": "latency", "unit": "us", "comparability_key": f"k{size}", "launch_id": f"r-{launch}"}
    return {**row, **fixed, "size_bytes": size, "value": value, **more}


def test_each_size_has_its_least_middle_and_largest_value() -> None:
    rows = [cell(n, value, size) for size in (8, 1024) for n, value in enumerate((3.0 * size, 1.0 * size, 2.0 * size))]
    assert launches_text(rows).splitlines() == [
        "",
        "# allreduce: latency (us) over 3 launches",
        "# bytes                min      median         max",
        "# 8                   8.00       16.00       24.00",
        "# 1024             1024.00     2048.00     3072.00",
    ]


def test_what_differs_within_the_run_is_named() -> None:
    rows = [cell(n, 1.0, binding=binding, comparability_key="k") for n in range(2) for binding in ("native", "mpi4py")]
    heads = [line for line in launches_text(rows).splitlines() if "over" in line]
    assert heads == [
        "# allreduce, native: latency (us) over 2 launches",
        "# allreduce, mpi4py: latency (us) over 2 launches",
    ]


def test_benchmarks_without_sizes() -> None:
    lines = launches_text([cell(n, float(n), None) for n in range(4)]).splitlines()
    assert lines[2:] == [
        "#                      min      median         max",
        "#                     0.00        1.50        3.00",
    ]


def test_one_launch_has_no_table() -> None:
    assert launches_text([cell(0, 1.0), cell(0, 2.0, 16), cell(1, None)]) == ""
