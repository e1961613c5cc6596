"""From a finished cell, or a finished round of pairs, to rows of the store."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, cast

from omb_py.backends.registry import capabilities
from omb_py.engine.measuring.cell_result import CellResult, LapSeries, PairRound, Samples
from omb_py.engine.measuring.statistics import median_of
from omb_py.engine.program.benchmark import Benchmark, Cell, Volume
from omb_py.engine.program.buffers import OBJECT
from omb_py.engine.program.datatype_layouts import message_bytes, volume_of
from omb_py.engine.program.dtypes import DTYPES
from omb_py.grammar.rank_groups import Groups, by_group, groups_of_ranks
from omb_py.grammar.traffic import largest
from omb_py.options.table import parameters
from omb_py.orchestrate.running.run_notes import PASS
from omb_py.results.analysis.peaks import peak_metric
from omb_py.results.dialects.registry import USUAL
from omb_py.results.statistics.bandwidth import bandwidth, formula_column
from omb_py.results.statistics.summary import summarise
from omb_py.results.store.keys import comparability_key
from omb_py.results.store.row import Row
from omb_py.results.store.schema import SCHEMA_VERSION, blank_row
from omb_py.suites.registry import find

if TYPE_CHECKING:
    from omb_py.engine.rank.launch_facts import LaunchFacts

SYNC_LIMIT = 3.0
"""A cell whose median is under this many barrier skews is limited by the synchronisation (docs/statistics.md)."""
_APART = ("ranks_per_device", "staging", "placement", "filler", "side", "rotation")
"""Marks that make a row incomparable to others, besides those of its backend's own option."""
_VERSIONS = ("library", "binding_version", "library_version")
"""Marks that replace the launch's versions, for a binding or training that has a library of its own."""


@dataclass(frozen=True, slots=True)
class LaunchIdentity:
    """Values that all rows of a launch share."""

    run_id: str
    launch_id: str
    launch_index: int
    started_at: str
    facts: LaunchFacts
    environment_key: str
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RowSource:
    """What the columns of a row are made of, with what several of them need."""

    launch: LaunchIdentity
    result: CellResult

    @property
    def cell(self) -> Cell:
        return self.result.cell

    @cached_property
    def benchmark(self) -> Benchmark:
        return find(self.cell.benchmark)

    @cached_property
    def primary(self) -> str:
        """The lap that is the sample."""
        lap, series = self.benchmark.metric.lap, self.result.series
        return lap if lap in series else next(iter(series))

    @cached_property
    def slowest(self) -> Samples:
        """The samples: maxima over the timed ranks, in µs."""
        return self.result.series[self.primary]["max"]

    @property
    def rank_means(self) -> list[float]:
        return self.result.laps[self.primary]

    @cached_property
    def dtype(self) -> str:
        return self.benchmark.sent_dtype(self.cell.dtype)

    @cached_property
    def groups(self) -> Groups:
        facts = self.launch.facts
        return groups_of_ranks(self.cell.options.groups, facts["ranks"], facts["hosts"])

    @cached_property
    def volume(self) -> Volume:
        """Types and bytes that moved; of uneven traffic the total is its busiest rank's."""
        together = len(self.groups[0])
        volume = volume_of(self.benchmark, self.cell, together)
        if not self.cell.options.traffic:
            return volume
        total = largest(self.cell.options.traffic, message_bytes(self.cell), DTYPES[self.dtype].itemsize, together)
        return replace(volume, bytes_total=total)

    @cached_property
    def statistics(self) -> Row:
        return cast(Row, summarise(self.slowest))


def _launch_columns(source: RowSource) -> Row:
    launch, facts = source.launch, source.launch.facts
    hosts = list(facts["hosts"])
    ranks, nodes = facts["ranks"], len(set(hosts))
    return {
        "run_id": launch.run_id,
        "launch_id": launch.launch_id,
        "launch_index": launch.launch_index,
        "started_at": launch.started_at,
        "schema_version": SCHEMA_VERSION,
        "source": "omb-py",
        "device_name": facts.get("device_name") or None,
        "thread_level": facts["thread_level"],
        "ranks": ranks,
        "nodes": nodes,
        "ranks_per_node": ranks // nodes if ranks % nodes == 0 else None,
        "devices": len({(place["host"], place["identity"]) for place in facts.get("devices") or ()}),
        "hosts": hosts,
        "tags": dict(launch.tags),
        "environment_key": launch.environment_key,
        "text_dialect": USUAL.stored_as,
    }


def _version_columns(source: RowSource) -> Row:
    marks, facts = source.result.marks, source.launch.facts
    return {
        "library": marks.get("library", facts["library"]),
        "library_version": marks.get("library_version", facts["library_version"]),
        "binding_version": marks.get("binding_version", facts["binding_version"]),
    }


def _option_columns(source: RowSource) -> Row:
    benchmark, cell = source.benchmark, source.cell
    options = benchmark.options
    return {
        "benchmark": benchmark.name,
        "family": benchmark.family,
        "backend": cell.backend,
        "binding": cell.binding,
        "device": cell.device,
        "buffer": "device" if cell.device != "cpu" and cell.buffer == "numpy" else cell.buffer,
        "op": cell.options.op if "op" in options else None,
        "in_place": cell.options.in_place,
        "root": cell.options.root if benchmark.rooted and cell.options.root >= 0 else None,
        "process_sync": cell.options.process_sync if "process_sync" in options else "none",
        "timing": _timing(cell),
        "cache": cell.options.cache,
        "window": cell.options.window if "window" in options else None,
        "threads": max(map(int, cell.options.thread_counts.split(":"))) if "thread_counts" in options else 1,
        "datatype_layout": cell.options.ddt or "contiguous",
        "batch": cell.options.batch,
        "metric": "bandwidth" if benchmark.metric.unit == "MB/s" else "latency",
        "unit": benchmark.metric.unit,
        "parameters": _parameters(source),
    }


def _size_columns(source: RowSource) -> Row:
    size, volume = source.cell.size, source.volume
    return {
        "dtype": volume.dtype,
        "size_bytes": size,
        "bytes_per_rank": volume.bytes_per_rank,
        "bytes_total": volume.bytes_total,
        "count": size // DTYPES[source.dtype].itemsize,
    }


def _value_columns(source: RowSource) -> Row:
    metric, result = source.benchmark.metric, source.result
    mean = _mean(source.rank_means)
    if metric.beside in result.laps and source.cell.options.mean == "loop":
        mean += _mean(result.laps[metric.beside])
    rate = metric.unit == "MB/s"
    return {"value": (result.bytes_moved or 0) / mean if rate else mean}  # bytes per µs are MB/s, MB = 10^6 B


def _bandwidth_columns(source: RowSource) -> Row:
    """From the time of the communication alone; null where that is unknown."""
    benchmark = source.benchmark
    pure = benchmark.metric.communication
    times = source.result.laps.get(pure or source.primary)
    if not benchmark.bandwidth or not times:
        return {}
    seconds = _mean(times) * 1e-6
    algbw, busbw = bandwidth(benchmark.bandwidth, source.volume.bytes_total, len(source.groups[0]), seconds)
    return {"algbw_gbps": algbw, "busbw_gbps": busbw, "bw_formula": formula_column(benchmark.bandwidth, bool(pure))}


def _sample_columns(source: RowSource) -> Row:
    result = source.result
    return {
        "samples_us": source.slowest.tolist(),
        "samples_avg_us": result.series[source.primary]["avg"].tolist(),
        "rank_mean_us": source.rank_means,
        "slowest_rank_share": result.slowest_rank_share,
        "iterations": result.iterations,
        "warmup": source.cell.sampling.warmup,
        "stop_reason": result.stop_reason,
        "validated": result.validated,
        "wrong_bytes": result.wrong_bytes,
    }


def _skew_columns(source: RowSource) -> Row:
    skew = source.result.skew_us
    if skew is None:
        return {}
    limited = bool(source.statistics["median_us"] < SYNC_LIMIT * skew) if source.benchmark.timed == "all" else None
    return {"skew_us": skew, "sync_limited": limited}


def _metric_columns(source: RowSource) -> Row:
    metrics = _metrics_of_laps(source)
    if source.result.bytes_moved is not None:
        metrics["bytes_moved"] = float(source.result.bytes_moved)
    extra = source.result.extra
    if "flop" in extra and metrics.get("compute_us"):
        metrics["gflops"] = extra["flop"] / metrics["compute_us"] / 1000
    metrics |= extra
    if source.cell.options.groups:  # the means of the timed ranks are in the order of their numbers
        means = by_group(source.rank_means, source.groups)
        metrics |= {f"group_{k}_us": _mean(of_group) for k, of_group in enumerate(means)}
    return {"metrics": metrics}


OF_SAMPLES: tuple[Callable[[RowSource], Row], ...] = (
    _value_columns,
    _bandwidth_columns,
    _sample_columns,
    _skew_columns,
    _metric_columns,
    lambda source: source.statistics,
)
"""Makers of the columns that follow from the samples."""
COLUMNS: tuple[Callable[[RowSource], Row], ...] = (
    _launch_columns,
    _version_columns,
    _option_columns,
    _size_columns,
    *OF_SAMPLES,
)
"""Makers of the columns. Together they know all columns but the comparability key, which covers the others."""


def _mean(values: Sequence[float] | Samples) -> float:
    return math.fsum(values) / len(values)


def expected_row(cell: Cell, ranks: int) -> Row:
    """The row of a cell as far as it is known before it is measured: the columns that say what is measured."""
    from omb_py.engine.measuring.measure import version_of  # of what is measured the ranks tell it

    launch = LaunchIdentity("", "", 0, "", {"ranks": ranks, "hosts": [""] * ranks, "thread_level": ""}, "")
    version = version_of(find(cell.benchmark), cell, ranks)
    source = RowSource(launch, CellResult(cell, 0, "", version))
    row = blank_row()
    for columns in (_launch_columns, _option_columns, _size_columns):
        row.update(columns(source))
    return _add_key(row, source)


def make_row(launch: LaunchIdentity, result: CellResult) -> Row:
    """Make the row of one cell of one launch. Its columns are in docs/store.md; times are in µs."""
    source = RowSource(launch, result)
    row = blank_row()
    for columns in COLUMNS:
        row.update(columns(source))
    _add_peaks(row, source)
    return _add_key(row, source)


def _add_key(row: Row, source: RowSource) -> Row:
    # the hash of its program has the types of a workload, so the key takes the type of its elements
    compared: Row = {**row, "dtype": source.dtype}
    version = _program_version(row, source.result.program_hash)
    return {**row, "comparability_key": comparability_key(compared, version)}


def _copy_for_pair(row: Row, source: RowSource) -> Row:
    """The row of a pair that differs from another's in its ranks, its samples, and what follows from those."""
    other: Row = {**row, "parameters": row["parameters"] | source.result.marks}
    for columns in (_launch_columns, *OF_SAMPLES):
        other.update(columns(source))
    _add_peaks(other, source)
    return other


def _add_peaks(row: Row, source: RowSource) -> None:
    if not capabilities(source.cell.backend).simulated:
        row["metrics"] |= peak_metric(row, source.launch.facts.get("node_facts") or ())


def _timing(cell: Cell) -> str:
    """The definition of a sample. A call that is waited for at once is timed like a blocking call."""
    if cell.options.timing in ("", "isolated"):
        return "global_span" if cell.options.process_sync == "roundtime" else "local_max"
    return str(cell.options.timing)


def _program_version(row: Row, program_hash: str) -> str:
    """The version of the program for the comparability key: its hash, and the marks that the hash does not cover."""
    marks = row["parameters"]
    kind = (marks["object"], marks["out_of_band"]) if row["buffer"] == OBJECT else ()
    option = capabilities(row["backend"]).option
    names = (*_APART, *option.marks) if option else _APART
    apart = (f"{name} {marks[name]}" for name in names if marks.get(name, "1") != "1")
    return ":".join((program_hash, *kind, *apart))


def _parameters(source: RowSource) -> dict[str, str]:
    """Options and marks that have no column, and the number of the pass of a soak."""
    benchmark, cell = source.benchmark, source.cell
    out = parameters(benchmark, cell.options)
    if cell.buffer == OBJECT:
        out |= {"object": cell.options.object_kind, "out_of_band": str(cell.options.out_of_band)}
    if cell.options.session:
        out["session"] = "True"
    if "root" in benchmark.options and cell.options.root < 0:
        out["root"] = "rotate"
    if source.result.number:
        out[PASS] = str(source.result.number)
    return out | {name: value for name, value in source.result.marks.items() if name not in _VERSIONS}


def _metrics_of_laps(source: RowSource) -> dict[str, float]:
    """Means of the laps in µs where there are several, and what the benchmark derives from them.

    Laps with the prefix :attr:`Metric.medians` have their medians too, those over the iterations of the mean over the
    ranks. One that no rank made is left out.
    """
    metric, result = source.benchmark.metric, source.result
    with_median = [name for name in result.laps if metric.medians and name.startswith(metric.medians)]
    laps = {name: us for name, us in result.laps.items() if name not in with_median or any(us)}
    out = {name: _mean(per_rank) for name, per_rank in laps.items() if len(laps) > 1}
    out |= {f"{name}.median": median_of(result.series[name]["avg"].tolist()) for name in with_median if name in laps}
    if "enqueue" in out and "synchronise" in out:
        out["end_to_end"] = out["enqueue"] + out["synchronise"]
    if result.marks.get("timing_mode") in ("event", "spin-gated"):
        out["device"] = out["time"]
    of_cell = metric.derive_of_cell(source.cell, len(source.groups[0]), out) if metric.derive_of_cell else {}
    return out | of_cell | (metric.derive(laps) if metric.derive else {})


def pair_rows(launch: LaunchIdentity, finished: PairRound) -> Iterator[Row]:
    """The rows of a round: one for each pair, as if it had been measured alone.

    ``hosts`` are the two hosts of the pair. ``parameters`` hold ``pair`` (the rank that sends first, then the one that
    answers), ``pass``, ``round``, ``rounds`` (parallel or serial), ``direction`` and ``of_ranks``, the launch's size.
    """
    from omb_py.engine.program.pair_schedule import parse_schedule  # for pairs alone

    cell, facts = finished.cell, launch.facts
    schedule, hosts = parse_schedule(cell.pairs), facts["hosts"]
    marks = {
        "pass": str(cell.sweep),
        "round": str(finished.number),
        "rounds": schedule.kind,
        "direction": schedule.direction,
        "of_ranks": str(len(schedule.ranks) or len(hosts)),
    }
    first_of: dict[int, Row] = {}
    """The first row with so many nodes: others like it have its comparability key."""
    for (first, second), times in zip(finished.pairs, finished.samples, strict=True):
        samples = array("d", times)
        of_pair: LaunchFacts = {**facts, "ranks": 2, "hosts": [hosts[first], hosts[second]]}
        if places := facts.get("devices"):
            of_pair["devices"] = [places[first], places[second]]
        result = CellResult(
            cell,
            cell.sampling.iterations,
            "fixed",
            # pairs that are measured at once share the network, so their rows compare with rows of that kind only
            f"{finished.program_hash}:{schedule.kind}",
            series={"time": LapSeries(max=samples, avg=samples)},
            laps={"time": [_mean(samples)]},
            slowest_rank_share=[1.0],
            bytes_moved=finished.bytes_moved,
            marks={"pair": f"{first}-{second}", **marks},
            skew_us=finished.skew_us,
        )
        own = replace(launch, facts=of_pair)
        nodes = len(set(of_pair["hosts"]))
        if nodes in first_of:
            yield _copy_for_pair(first_of[nodes], RowSource(own, result))
        else:
            yield first_of.setdefault(nodes, make_row(own, result))
