"""nccl-tests' JSON (``-J``), version 2, of rows that were measured here. :mod:`.whole_files` reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from statistics import fmean
from typing import TYPE_CHECKING, Final

from omb_py import __version__
from omb_py.grammar.json_values import JsonObject
from omb_py.grammar.rank_groups import groups_of_row
from omb_py.results.dialects.nccl.text import (
    NO_ROOT,
    REPLAYS,
    SAID,
    TYPES,
    bus_bandwidth,
    element_count,
    gpu_addresses,
    pair_halves,
    program_name,
    total_bytes,
    wrong_elements,
)
from omb_py.results.store.row import Row

if TYPE_CHECKING:
    from omb_py.engine.rank.launch_facts import LaunchFacts

_VERSION: Final = 2
_TIME: Final = "%Y-%m-%d %H:%M:%S"


def rows_to_json(rows: Sequence[Row], facts: LaunchFacts) -> str:
    """The file of one run; `facts` are those of its first launch. Empty where there is no row."""
    if not rows:
        return ""
    first, wrong = rows[0], sum(bool(wrong_elements(row)) for row in rows)
    name = program_name(first["benchmark"])
    document: JsonObject = {
        "version": _VERSION,
        "start_time": _time(first["started_at"]),
        "args": [name],
        "env": [],
        "nccl_version": _version_code(str(first.get("library_version") or "")),
        "config": _config(rows, facts),
        "results": [_result(halves, name) for table in pair_halves(rows) for halves in table],
        "out_of_bounds": {"count": wrong, "okay": _word(not wrong)},
        "average_bus_bandwidth": {"bandwidth": fmean(bus_bandwidth(row) or 0.0 for row in rows), "okay": "unchecked"},
        "errors": [],
        "omb_py": {"version": __version__, **{key: str(first[key]) for key in SAID if first.get(key) is not None}},
    }
    return json.dumps(document, allow_nan=False) + "\n"


def _config(rows: Sequence[Row], facts: LaunchFacts) -> JsonObject:
    first, sizes = rows[0], [total_bytes(row) for row in rows]
    mode = first["timing"]
    aggregated = (first.get("parameters") or {}).get("nccl_aggregate", "1")
    return {
        "nthreads": 1,
        "ngpus": 1,
        "minimum_bytes": min(sizes),
        "maximum_bytes": max(sizes),
        "warmup_iters": _calls(first, "warmup"),
        "iterations": _calls(first, "iterations"),
        "aggregated_iterations": int(aggregated),
        "validation": int(first.get("wrong_bytes") is not None),
        "graph": int((first.get("parameters") or {}).get(REPLAYS, "1")) if mode == "graph" else 0,
        "blocking_collectives": _word(mode not in ("pipelined", "graph")),
        "per_iter_timing": _word(False),
        "parallel_init": _word(False),
        "devices": _devices(first, facts),
    }


def _devices(row: Row, facts: LaunchFacts) -> list[JsonObject]:
    """The device of each rank; where ranks have none, the rank with its host."""
    group_of = {rank: number for number, group in enumerate(groups_of_row(row)) for rank in group}
    addresses = gpu_addresses(facts)
    pids = {fact["rank"]: int(fact["pid"]) for fact in facts.get("rank_facts") or ()}
    places = {place["rank"]: place for place in facts.get("devices") or ()}
    hosts = row.get("hosts") or [""] * int(row.get("ranks") or 0)
    return [
        {
            "rank": rank,
            "group": group_of.get(rank, 0),
            "pid": pids.get(rank, 0),
            "hostname": host,
            "device": int(str(places[rank]["device"]).rpartition(":")[2]) if rank in places else 0,
            "device_hex": addresses.get(str(places[rank]["identity"]).lower(), "") if rank in places else "",
            "device_info": str(places[rank]["name"]) if rank in places else "",
        }
        for rank, host in enumerate(hosts)
    ]


def _result(halves: Mapping[bool, Row], name: str) -> JsonObject:
    row = next(iter(halves.values()))
    root = row.get("root")
    return {
        "size": total_bytes(row),
        "count": element_count(row),
        "type": TYPES.get(str(row.get("dtype")), str(row.get("dtype"))),
        "redop": row.get("op") or "none",
        "root": f"{NO_ROOT if root is None else root:6d}",
        "out_of_place": _half(halves.get(False)),
        "in_place": _half(halves.get(True)),
        "actual_iterations": _calls(row, "iterations"),
        "experiment_name": name,
    }


def _half(row: Row | None) -> JsonObject | None:
    if row is None:
        return None
    return {
        "time": row["value"],
        "alg_bw": row.get("algbw_gbps"),
        "bus_bw": bus_bandwidth(row) or 0.0,
        "nwrong": wrong_elements(row),
    }


def _calls(row: Row, column: str) -> int:
    """The calls of a number of samples."""
    count = row["iterations"] if column == "iterations" else row["warmup"]
    return int(count or 0) * int(row.get("batch") or 1)


def _version_code(text: str) -> int:
    """A version as ``ncclGetVersion`` gives it: 23007 for 2.30.7; 0 for what is none of NCCL.

    >>> _version_code("2.30.7")
    23007
    """
    numbers = text.split(".")
    if len(numbers) != 3 or not all(number.isdecimal() for number in numbers):
        return 0
    major, minor, patch = map(int, numbers)
    return major * 10000 + minor * 100 + patch


def _time(value: object) -> str:
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return moment.strftime(_TIME)


def _word(value: bool) -> str:
    return "true" if value else "false"
