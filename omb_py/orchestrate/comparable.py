"""Sides without a verdict to be had: why, and the command that would make them comparable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from omb_py.errors import UsageError
from omb_py.results.matching import PROGRAM, Row
from omb_py.results.report import Report, fields_text, name

_LAUNCHES = 10
Words = Callable[[Any], str]
_FLAGS: Mapping[str, Words] = {
    "ranks": lambda v: f"-n {v}",
    "size_bytes": lambda v: f"-m {v}:{v}",
    "dtype": lambda v: f"-T {v}",
    "op": lambda v: f"--op {v}",
    "in_place": lambda v: "--in-place" if v else "",
    "root": lambda v: f"-k fixed:{v}",
    "window": lambda v: f"-W {v}",
    "device": lambda v: f"-d {v}",
    "buffer": lambda v: f"--buffer {v}",
    "cache": lambda v: f"--cache {v}",
    "process_sync": lambda v: f"--process-sync {v}",
    "datatype_layout": lambda v: "" if v == "contiguous" else f"-D {v}",
    "ranks_per_node": lambda v: "",
}
"""Column of the comparability key -> the option that sets it."""


def check_common(report: Report) -> None:
    """Raises UsageError where nothing at all can be said: no cell in common, or a single launch."""
    matched = report.matched
    if not matched.cells:
        raise UsageError(_nothing_in_common(report))
    for side in (report.base, report.new):
        if side.count == 1:
            run = _command(side.rows)
            raise UsageError(
                f"{side.word} is one launch, which says nothing about the next: {run} --launches {_LAUNCHES}, and "
                "compare the runs; or omb-py compare --env BASE=… --env NEW=… measures both in turn"
            )


def _nothing_in_common(report: Report) -> str:
    sides = f"{report.base.word} and {report.new.word}"
    if report.matched.incomparable:
        one = report.matched.incomparable[0]
        if one.fields == (PROGRAM,):
            return (
                f"{sides} are not comparable: {name(one.base)} was measured by another program of steps or placement: "
                f"measure {report.new.word} again with this omb-py: {_command([one.base])} --launches {_LAUNCHES}"
            )
        told = fields_text(one.base, one.new, one.fields)
        return (
            f"{sides} are not comparable: {name(one.base)} was measured with {told}: measure {report.new.word} again "
            f"with {_command([one.base])} --launches {_LAUNCHES}"
        )
    benchmarks = [", ".join(sorted({str(r["benchmark"]) for r in s.rows})) for s in (report.base, report.new)]
    sizes = [{r["size_bytes"] for r in side.rows} for side in (report.base, report.new)]
    if benchmarks[0] == benchmarks[1]:
        spans = [f"{min(s)} to {max(s)} B" if s - {None} else "none" for s in sizes]
        what = f"{benchmarks[0]} of {spans[0]} against {spans[1]}"
    else:
        what = f"{benchmarks[0]} against {benchmarks[1]}"
    return (
        f"{sides} have no cell in common: {what}: measure {report.new.word} again with {_command(report.base.rows)} "
        f"--launches {_LAUNCHES}"
    )


def _command(rows: Sequence[Row]) -> str:
    """The command line that measures what the rows of a side are."""
    first = rows[0]
    sizes = sorted({int(r["size_bytes"]) for r in rows if r["benchmark"] == first["benchmark"] and r["size_bytes"]})
    words = ["omb-py", str(first["benchmark"]), f"--backend {first['backend']}"]
    for column, flag in _FLAGS.items():
        value = first.get(column)
        if column == "size_bytes":
            words.append(_sizes(sizes))
        elif value is not None and value != _USUAL.get(column):
            words.append(flag(value))
    return " ".join(filter(None, words))


def _sizes(sizes: Sequence[int]) -> str:
    if len(sizes) < 2:
        return "".join(f"-m {size}:{size}" for size in sizes)
    return f"-m {','.join(map(str, sizes))}"


_USUAL: Mapping[str, Any] = {
    "device": "cpu", "buffer": "numpy", "cache": "hot", "in_place": False, "root": 0, "window": 64, "op": "sum",
}  # fmt: skip
"""Values that need no option."""
