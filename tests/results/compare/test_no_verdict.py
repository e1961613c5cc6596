"""What of a comparison was not measured."""

from __future__ import annotations

from omb_py.results.compare.judge import CompareRules
from omb_py.results.compare.match import Matched
from omb_py.results.compare.no_verdict import of_programs, unmeasured
from omb_py.results.compare.tags import COMPARE_PAIR
from omb_py.results.store.row import Row


def row(size: int, source: str = "OMB", **tags: str) -> Row:
    return {"source": source, "benchmark": "latency", "size_bytes": size, "tags": tags}


def named(row: Row) -> str:
    return f"{row['size_bytes']} B"


def test_rows_of_programs_have_another_source_and_a_pair() -> None:
    assert of_programs([row(8, **{COMPARE_PAIR: "0"})])
    assert not of_programs([row(8)])
    assert not of_programs([row(8, "omb-py", **{COMPARE_PAIR: "0"})])


def test_lost_cells_are_named_and_many_are_counted() -> None:
    base = [row(8 << k, **{COMPARE_PAIR: "0"}) for k in range(6)]
    matched = Matched(only={"BASE": base, "NEW": []})
    assert unmeasured(base, [], matched, CompareRules(), named) == ["NEW lacks 8 B, 16 B, 32 B, 64 B and 2 more"]


def test_nothing_in_common_is_said() -> None:
    base = [row(8, **{COMPARE_PAIR: "0"})]
    assert unmeasured(base, base, Matched(), CompareRules(), named) == ["no cell was measured on both sides"]


def test_our_own_benchmarks_are_not_asked() -> None:
    own = [row(8, "omb-py", **{COMPARE_PAIR: "0"})]
    assert unmeasured(own, [], Matched(only={"BASE": own, "NEW": []}), CompareRules(), named) == []
