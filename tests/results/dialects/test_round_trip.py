"""Text into rows and back, for every benchmark of OMB with any columns and numbers; and texts that end anywhere."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omb_py.errors import UsageError
from omb_py.results.dialects.omb.titles import TITLES, family
from omb_py.results.dialects.omb.transcript import to_osu
from omb_py.results.dialects.parse import parse
from omb_py.results.dialects.reading import Context, Parsed
from omb_py.results.store.schema import blank_row
from tests.results.dialects import imb_texts, nccl_texts
from tests.results.dialects.test_ombpy import BW, LATENCY
from tests.results.dialects.texts import OMB
from tests.support.tiers import few_quick

_SIZED = sorted(set(TITLES) - {"init", "hello"})
NAMES = {(TITLES[name].layout, family(name), TITLES[name].reduces): name for name in _SIZED}
"""A benchmark of each layout of OMB's tables, as its family fills it."""
OVERLAP = ("overlap", "overlap_barrier", "partitioned")
numbers = st.integers(0, 10**9).map(lambda n: n / 100)


@st.composite
def tables(draw: st.DrawFn, name: str) -> list[dict[str, Any]]:
    """Rows of one table as an import makes them: one to three sizes, any of the columns that the layout has."""
    title, kind = TITLES[name], family(name)
    full, checked, moved = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    tails = draw(st.sampled_from([(), (50,), (50, 90, 99)]))
    sync = draw(st.sampled_from(["fence", "lock"]))
    sized = "barrier" not in title.layout
    rows = []
    for size in sorted(draw(st.sets(st.integers(1, 2**40), min_size=1, max_size=3))) if sized else [None]:
        metrics: dict[str, float] = {}
        if title.layout in OVERLAP:
            more = ("init", "test", "wait", "min_comm", "max_comm") if full and title.layout != "partitioned" else ()
            metrics |= {key: draw(numbers) for key in ("overall", "compute", "pure", "overlap_pct", *more)}
        elif full and title.layout in ("latency", "barrier"):
            metrics |= {"rank_min_us": draw(numbers), "rank_max_us": draw(numbers)}
        if title.layout not in OVERLAP:
            metrics |= {f"tail_p{p}": draw(numbers) for p in tails}
        if moved and kind == "pt2pt":
            metrics["transmit_size"] = float(draw(st.integers(1, 2**40)))
        if title.layout == "rate":
            metrics["message_rate"] = draw(numbers)
        parameters = {"window_kind": "create", "sync": sync} if kind == "one-sided" else {}
        if kind == "neighborhood":
            parameters["neighborhood"], metrics["topology_us"] = "cart:2", 12.25
        if title.layout == "partitioned":
            parameters["partitions"] = "8"
        rows.append(
            blank_row()
            | {
                "source": "OMB",
                "benchmark": name,
                "family": kind,
                "backend": "mpi",
                "text_dialect": "omb-7.5",
                "unit": "MB/s" if "band" in title.layout else "us",
                "metrics": metrics,
                "parameters": parameters,
                "ranks": 4 if kind == "neighborhood" or name == "mbw_mr" else 2,
                "size_bytes": size,
                "value": draw(numbers),
                "iterations": draw(st.integers(1, 10**6)),
                "dtype": "int8" if title.reduces else "char",
                "window": 64 if name == "mbw_mr" else None,
                "validated": True if checked and sized else None,
            }
        )
    return rows


@pytest.mark.parametrize("name", NAMES.values())
@given(data=st.data())
@settings(max_examples=8)
def test_every_benchmark_with_any_columns(name: str, data: st.DataObject) -> None:
    text = to_osu(data.draw(tables(name)))
    found = parse(text.encode(), Context(benchmark=name))
    assert not found.problems
    assert [table.benchmark for table in found.tables] == [name]
    assert to_osu([{**blank_row(), **row} for row in found.tables[0].rows]) == text


NCCL = [nccl_texts.FIRST, nccl_texts.SECOND, nccl_texts.THIRD, nccl_texts.FOURTH]
CUT = {
    **OMB,
    **{f"nccl-tests {i}": text for i, text in enumerate(NCCL)},
    "rccl csv": nccl_texts.RCCL_CSV,
    "rccl json": nccl_texts.RCCL_JSON,
    "rccl lines": nccl_texts.RCCL_JSON_LINES,
    "imb": imb_texts.MPI1,
    "nbc": imb_texts.NBC,
    "omb-py": LATENCY + BW,
}


def read(text: str) -> Parsed:
    try:
        return parse(text.encode(), Context("all_reduce.log"))
    except UsageError:  # nothing that is a table is left
        return Parsed()


@pytest.mark.parametrize("kind", few_quick(CUT, 12))
def test_a_text_that_ends_anywhere_gives_no_wrong_number(kind: str) -> None:
    text = CUT[kind]
    whole = [row for table in read(text).tables for row in table.rows]
    for end in range(max(0, len(text) - 200), len(text)):
        rows = [row for table in read(text[:end]).tables for row in table.rows]
        assert [numbers_of(row) for row in rows] == [numbers_of(row) for row in whole[: len(rows)]], end


def numbers_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """What a row measured; the verdict and rates may stand further down."""
    metrics = {key: value for key, value in (row.get("metrics") or {}).items() if key != "message_rate"}
    return row["benchmark"], row["size_bytes"], row["value"], row.get("iterations"), metrics


def test_the_type_of_imb_s_messages_comes_back_as_omb_s_text() -> None:
    rows = [{"launch_id": "a-0", **row} for table in read(imb_texts.MPI1).tables[:1] for row in table.rows]
    [table] = read(to_osu([blank_row() | row for row in rows])).tables
    assert {row["dtype"] for row in (*rows, *table.rows)} == {"byte"}


def test_the_step_of_a_workload_comes_back() -> None:
    text = (
        "# omb-py step Test v0.1.0\n"
        "# [ backend: mock ] [ library: mock ] [ library_version: 1.0 ] [ binding: native ] [ device: cpu ]\n"
        "# [ workload: ddp:model=resnet50,compute=5ms ] [ ranks: 4 ]\n"
        "# Datatype: float32.\n"
        "# Step(us)          Compute(us)       Exposed(us)        Serial(us)     In flight(us)        Overlap(%)\n"
        "      5654.98           5000.00            654.98            809.82            745.15             20.18\n"
    )
    [table] = read(text).tables
    [row] = table.rows
    assert (row["value"], row["ranks"], row["metrics"]["exposed_us"]) == (5654.98, 4, 654.98)
    assert to_osu([blank_row() | {"launch_id": "a-0", **row}]).splitlines()[2:6] == text.splitlines()[2:]
