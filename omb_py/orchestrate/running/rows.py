"""From a finished cell, as a rank streams it, to a row of the store."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omb_py.backends.registry import capabilities
from omb_py.engine.program.benchmark import Benchmark, Volume
from omb_py.engine.program.buffers import OBJECT
from omb_py.engine.program.dtypes import DTYPES, reduction_dtype
from omb_py.grammar.rank_groups import Groups, by_group, groups_of_ranks
from omb_py.grammar.traffic import largest
from omb_py.options.table import parameters
from omb_py.orchestrate.running.soak import PASS
from omb_py.results.analysis.peaks import peak_metric
from omb_py.results.statistics.bandwidth import bandwidth, formula_column
from omb_py.results.statistics.summary import summarise
from omb_py.results.store.keys import comparability_key
from omb_py.results.store.schema import SCHEMA_VERSION, blank_row
from omb_py.suites.registry import find

TEXT_DIALECT = "omb-7.5"
SYNC_LIMIT = 3.0
"""A cell whose median is under this many barrier skews is limited by the synchronisation (docs/statistics.md)."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Fields that all rows of a launch share."""

    run_id: str
    launch_id: str
    launch_index: int
    started_at: str
    facts: Mapping[str, Any]
    environment_key: str
    tags: Mapping[str, str] = field(default_factory=dict)


def decode(value: Mapping[str, str]) -> NDArray[np.float64]:
    """Decode an array from base64 of little-endian float64."""
    return np.frombuffer(base64.b64decode(value["f8"]), "<f8")


def make_row(identity: Identity, message: Mapping[str, Any]) -> dict[str, Any]:
    """Make the row of one cell of one launch. Its columns are in docs/store.md; times are in µs."""
    cell, facts = message["cell"], identity.facts
    benchmark = find(cell["benchmark"])
    metric, ranks = benchmark.metric, int(facts["ranks"])
    series = message["series"]
    primary = metric.lap if metric.lap in series else next(iter(series))
    slowest, average = decode(series[primary]["max"]), decode(series[primary]["avg"])
    means: list[float] = message["laps"][primary]
    hosts = list(facts["hosts"])
    nodes = len(set(hosts))
    reduces = "op" in benchmark.options or benchmark.one_element
    dtype = reduction_dtype(cell["dtype"]) if reduces else cell["dtype"]
    mean = float(np.mean(means))
    if metric.beside and cell["mean"] == "loop":
        mean += float(np.mean(message["laps"].get(metric.beside, 0.0)))
    moved: Any = message.get("bytes_moved")
    value: float = moved / mean if metric.unit == "MB/s" else mean  # bytes per µs are MB/s, MB = 10^6 B
    groups = groups_of_ranks(cell.get("groups", ""), ranks, facts["hosts"])
    together = len(groups[0])
    total = benchmark.bytes_total(int(message.get("extra", {}).get("transmit_size", cell["size"])), together)
    if cell.get("traffic"):
        total = largest(cell["traffic"], cell["size"], DTYPES[dtype].itemsize)
    volume = benchmark.volume(cell["workload"], ranks) if benchmark.volume else None
    volume = volume or Volume(dtype, cell["size"], total)
    algbw, busbw, formula = _bandwidths(benchmark, message["laps"], primary, total, together)
    statistics = summarise(slowest)
    skew = message.get("skew_us")
    marks: Mapping[str, str] = message.get("marks", {})
    row = blank_row()
    row.update(
        run_id=identity.run_id,
        launch_id=identity.launch_id,
        launch_index=identity.launch_index,
        started_at=identity.started_at,
        schema_version=SCHEMA_VERSION,
        source="omb-py",
        benchmark=benchmark.name,
        family=benchmark.family,
        backend=cell["backend"],
        binding=cell["binding"],
        **{name: marks.get(name, facts[name]) for name in _VERSIONS},
        device=cell["device"],
        device_name=facts.get("device_name") or None,
        buffer="device" if cell["device"] != "cpu" and cell["buffer"] == "numpy" else cell["buffer"],
        dtype=volume.dtype,
        op=cell["op"] if "op" in benchmark.options else None,
        in_place=cell["in_place"],
        root=cell["root"] if benchmark.rooted and cell["root"] >= 0 else None,
        process_sync=cell["process_sync"] if "process_sync" in benchmark.options else "none",
        timing=_timing(cell),
        cache=cell["cache"],
        thread_level=facts["thread_level"],
        window=cell["window"] if "window" in benchmark.options else None,
        threads=max(map(int, cell["thread_counts"].split(":"))) if "thread_counts" in benchmark.options else 1,
        datatype_layout=cell["ddt"] or "contiguous",
        batch=cell["batch"],
        ranks=ranks,
        nodes=nodes,
        ranks_per_node=ranks // nodes if ranks % nodes == 0 else None,
        devices=len({(place["host"], place["identity"]) for place in facts.get("devices") or ()}),
        size_bytes=cell["size"],
        bytes_per_rank=volume.bytes_per_rank,
        bytes_total=volume.bytes_total,
        count=cell["size"] // DTYPES[dtype].itemsize,
        metric="bandwidth" if metric.unit == "MB/s" else "latency",
        unit=metric.unit,
        value=value,
        skew_us=skew,
        sync_limited=None
        if skew is None or benchmark.timed != "all"
        else bool(statistics["median_us"] < SYNC_LIMIT * skew),
        algbw_gbps=algbw,
        busbw_gbps=busbw,
        bw_formula=formula,
        metrics=_metrics(benchmark, message, moved),
        samples_us=slowest.tolist(),
        samples_avg_us=average.tolist(),
        rank_mean_us=means,
        slowest_rank_share=message["slowest_rank_share"],
        iterations=message["iterations"],
        warmup=message["warmup"],
        stop_reason=message["stop_reason"],
        validated=message["validated"],
        wrong_bytes=message["wrong_bytes"],
        environment_key=identity.environment_key,
        text_dialect=TEXT_DIALECT,
        tags=dict(identity.tags),
        hosts=hosts,
        parameters=_parameters(benchmark, cell, message),
        **statistics,
    )
    if cell.get("groups"):
        row["metrics"] |= _by_group(means, groups)
    if not capabilities(cell["backend"]).simulated:
        row["metrics"] |= peak_metric(row, facts.get("node_facts") or ())
    # the hash of its program has the types of a workload, and older rows, whose type is char, stay comparable
    compared = {**row, "dtype": dtype}
    row["comparability_key"] = comparability_key(compared, _version(row, message["program_hash"]))
    return row


def _by_group(means: Sequence[float], groups: Groups) -> dict[str, float]:
    """The mean time of each group in µs, from the means of the timed ranks, which are in the order of their numbers."""
    return {f"group_{k}_us": float(np.mean(of_group)) for k, of_group in enumerate(by_group(means, groups))}


def _bandwidths(
    benchmark: Benchmark, laps: Mapping[str, list[float]], primary: str, total: int, ranks: int
) -> tuple[float | None, float | None, str | None]:
    """(algbw, busbw, bw_formula) from the time of the communication alone; None where that is unknown."""
    pure = benchmark.metric.communication
    times = laps.get(pure or primary)
    if not benchmark.bandwidth or not times:
        return None, None, None
    algbw, busbw = bandwidth(benchmark.bandwidth, total, ranks, float(np.mean(times)) * 1e-6)
    return algbw, busbw, formula_column(benchmark.bandwidth, bool(pure))


def _timing(cell: Mapping[str, Any]) -> str:
    """The definition of a sample. A call that is waited for at once is timed like a blocking call."""
    if cell["timing"] in ("", "isolated"):
        return "global_span" if cell["process_sync"] == "roundtime" else "local_max"
    return str(cell["timing"])


_APART = ("ranks_per_device", "staging", "placement", "filler", "side", "rotation")
"""Marks that make a row incomparable to others, besides those of its backend's own option."""
_VERSIONS = ("library", "binding_version", "library_version")
"""Marks that replace the launch's versions, for a binding or training that has a library of its own."""


def _version(row: Mapping[str, Any], program_hash: str) -> str:
    """The version of the program for the comparability key: its hash, and the marks that the hash does not cover."""
    parameters = row["parameters"]
    kind = (parameters["object"], parameters["out_of_band"]) if row["buffer"] == OBJECT else ()
    option = capabilities(row["backend"]).option
    marks = (*_APART, *option.marks) if option else _APART
    apart = (f"{mark} {parameters[mark]}" for mark in marks if parameters.get(mark, "1") != "1")
    return ":".join((program_hash, *kind, *apart))


def _parameters(benchmark: Benchmark, cell: Mapping[str, Any], message: Mapping[str, Any]) -> dict[str, str]:
    """Options and marks that have no column, and the number of the pass of a soak."""
    out = parameters(benchmark, cell)
    if cell["buffer"] == OBJECT:
        out |= {"object": cell["object_kind"], "out_of_band": str(cell["out_of_band"])}
    if cell["session"]:
        out["session"] = "True"
    if "root" in benchmark.options and cell["root"] < 0:
        out["root"] = "rotate"
    if message.get("number"):
        out[PASS] = str(message["number"])
    marks = message.get("marks", {})
    return out | {name: value for name, value in marks.items() if name not in _VERSIONS}


def _metrics(benchmark: Benchmark, message: Mapping[str, Any], moved: int | None) -> dict[str, float]:
    """Values that the benchmark's text needs besides its samples: means of the other laps in µs, bytes moved.

    Laps with the prefix :attr:`Metric.medians` have their medians too, those over the iterations of the mean over the
    ranks. One that no rank made is left out.
    """
    prefix = benchmark.metric.medians
    every: Mapping[str, list[float]] = message["laps"]
    typical = [name for name in every if prefix and name.startswith(prefix)]
    laps = {name: us for name, us in every.items() if name not in typical or any(us)}
    out = {name: float(np.mean(per_rank)) for name, per_rank in laps.items() if len(laps) > 1}
    medians = [name for name in typical if name in laps]
    out |= {f"{name}.median": float(np.median(decode(message["series"][name]["avg"]))) for name in medians}
    if "enqueue" in out and "synchronise" in out:
        out["end_to_end"] = out["enqueue"] + out["synchronise"]
    if message.get("marks", {}).get("timing_mode") in ("event", "spin-gated"):
        out["device"] = out["time"]
    if benchmark.metric.derive:
        out |= benchmark.metric.derive(laps)
    if moved is not None:
        out["bytes_moved"] = float(moved)
    more: Mapping[str, float] = message.get("extra", {})
    if "flop" in more and out.get("compute_us"):
        out["gflops"] = more["flop"] / out["compute_us"] / 1000
    return {**out, **more}
