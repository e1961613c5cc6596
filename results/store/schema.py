"""The columns of the store: name, type and meaning of each.

The pyarrow schema, an empty row and the table in docs/store.md are derived from :data:`COLUMNS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA_VERSION = 2
"""Version of the columns; files of every older version stay readable. Version 2 added `parameters`."""

Kind = Literal["string", "int32", "int64", "float64", "bool", "time", "floats", "strings", "numbers", "texts"]
"""``time``: timestamp in µs, UTC; ``floats``: list of float32; ``strings``: list of string; ``numbers``: map of
string to float64; ``texts``: map of string to string."""

_ARROW_NAMES: Mapping[Kind, str] = {
    "time": "timestamp[us, UTC]",
    "floats": "list<float32>",
    "strings": "list<string>",
    "numbers": "map<string, float64>",
    "texts": "map<string, string>",
}

_WORDS: Mapping[Kind, str] = {
    "string": "text",
    "int32": "whole numbers of 32 bits",
    "int64": "whole numbers",
    "float64": "numbers",
    "bool": "true or false",
    "time": "times, as 2026-11-21 22:17:55",
    "floats": "lists of numbers",
    "strings": "lists of texts",
    "numbers": "numbers with names",
    "texts": "texts with names",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the store. Its name ends in its unit."""

    name: str
    kind: Kind
    doc: str
    """The meaning, for docs/store.md."""
    required: bool = False
    """Whether null is forbidden."""

    @property
    def arrow(self) -> str:
        """Name of the Arrow type, as shown to users."""
        return _ARROW_NAMES.get(self.kind, self.kind)

    @property
    def words(self) -> str:
        """What it holds, in words for a message."""
        return _WORDS[self.kind]


def _c(name: str, kind: Kind, doc: str) -> Column:
    return Column(name, kind, doc)


def _r(name: str, kind: Kind, doc: str) -> Column:
    return Column(name, kind, doc, required=True)


COLUMNS: tuple[Column, ...] = (
    _r("run_id", "string", "one invocation by the user"),
    _r("launch_id", "string", "one start of the rank set: `<run_id>-<launch_index>`; the name of the file"),
    _r("launch_index", "int32", "number of the launch within its run, from 0"),
    _r("started_at", "time", "when the launch started"),
    _r("schema_version", "int32", "version of these columns when the row was written"),
    _r("source", "string", "who measured: `omb-py`, or the tool a row was imported from"),
    _r("benchmark", "string", "name as in OMB, without `osu_`"),
    _c("family", "string", "`pt2pt`, `collective`, …"),
    _r("backend", "string", "`mpi`, `nccl`, `gloo`, `mock`"),
    _c("library", "string", "the communication library, for example `Open MPI`"),
    _c("library_version", "string", "its version, as it says itself"),
    _c("binding", "string", "which code issued the calls: `native`, `mpi4py`, …"),
    _c("binding_version", "string", "version of that code"),
    _c("device", "string", "where the buffers lived: `cpu`, `cuda`, `rocm`, `sim`"),
    _c("device_name", "string", "model of the device"),
    _c("buffer", "string", "what a user's program would hold: `numpy`, `bytearray`, …"),
    _c("dtype", "string", "element type: `char`, `int32`, …"),
    _c("op", "string", "reduction; null where nothing is reduced"),
    _c("in_place", "bool", "the result replaces the input"),
    _c("root", "int32", "root rank; -1 when it rotates; null where there is no root"),
    _c("process_sync", "string", "what keeps iterations apart: `barrier`, `dissemination`, `roundtime`, `none`"),
    _c(
        "timing",
        "string",
        "what a sample is: `local_max`, `global_span`, or a mode of `--timing`; different timings are never compared",
    ),
    _c("cache", "string", "`hot`: the same buffers every time; `rotate`: others in turn"),
    _c("thread_level", "string", "thread level that the library provided"),
    _c("window", "int32", "messages in flight; null where there is no window"),
    _c("threads", "int32", "communicating threads per rank"),
    _c("datatype_layout", "string", "derived datatype (`-D`); null when contiguous"),
    _c("batch", "int32", "operations that one sample times together"),
    _c("ranks", "int32", "ranks of the launch"),
    _c("nodes", "int32", "hosts of the launch"),
    _c("ranks_per_node", "int32", "ranks on each host; null when uneven"),
    _c("devices", "int32", "accelerators used"),
    _c("size_bytes", "int64", "message size as OMB prints it; null or 0 where there is none (barrier)"),
    _c("bytes_per_rank", "int64", "bytes that one rank contributes"),
    _c("bytes_total", "int64", "bytes of the whole operation: *size* of nccl-tests, what IMB's Mbytes/sec counts"),
    _c("count", "int64", "elements of `dtype` in `size_bytes`"),
    _r("metric", "string", "what `value` is: `latency`, `bandwidth`, …"),
    _r("unit", "string", "unit of `value`: `us`, `MB/s` (10^6 bytes), …"),
    _c("value", "float64", "the number OMB prints; null when nothing was timed"),
    _c("mean_us", "float64", "mean of `samples_us`"),
    _c("median_us", "float64", "median of `samples_us`: what verdicts use"),
    _c("min_us", "float64", "smallest sample"),
    _c("max_us", "float64", "largest sample"),
    _c("stddev_us", "float64", "standard deviation (n - 1); null under 2 samples"),
    _c("mad_us", "float64", "median absolute deviation, not scaled"),
    _c("p05_us", "float64", "5th percentile; percentiles are null when there are too few samples"),
    _c("p25_us", "float64", "25th percentile"),
    _c("p50_us", "float64", "50th percentile"),
    _c("p75_us", "float64", "75th percentile"),
    _c("p90_us", "float64", "90th percentile"),
    _c("p95_us", "float64", "95th percentile"),
    _c("p99_us", "float64", "99th percentile; needs 100 samples"),
    _c("p999_us", "float64", "99.9th percentile; needs 1000 samples"),
    _c(
        "ci_low_us",
        "float64",
        "lower end of the 95 % interval of the median, within this launch; null where none can be told",
    ),
    _c("ci_high_us", "float64", "upper end of it"),
    _c("ess", "float64", "effective number of samples, after autocorrelation"),
    _c("skew_us", "float64", "with what spread the ranks left a barrier in this launch (median)"),
    _c("sync_limited", "bool", "the median is under 3 times that skew: mostly skew was measured"),
    _c(
        "algbw_gbps",
        "float64",
        "algorithm bandwidth, 10^9 bytes/s; of a non-blocking collective from the time of call and wait alone",
    ),
    _c("busbw_gbps", "float64", "bus bandwidth, 10^9 bytes/s; null with one rank"),
    _c(
        "bw_formula",
        "string",
        "name of the formula of both; `…:pure` where its time is that of the communication alone",
    ),
    _c("metrics", "numbers", "what else the benchmark yields: `overall`, `overlap_pct`, `bytes_moved`, …"),
    _c("samples_us", "floats", "every sample: maximum over the timed ranks"),
    _c("samples_avg_us", "floats", "every sample: average over the timed ranks (OMB's percentiles are of these)"),
    _c("rank_mean_us", "floats", "mean of each timed rank"),
    _c("slowest_rank_share", "floats", "for each timed rank: the share of iterations in which it was the slowest"),
    _c("iterations", "int64", "samples taken"),
    _c("warmup", "int64", "iterations before them"),
    _c(
        "stop_reason",
        "string",
        "`fixed`, `precision`, `count`, `time`, or `unsettled`: as `count`, and no interval can be told",
    ),
    _c("validated", "bool", "every byte was right; null when not checked"),
    _c("wrong_bytes", "int64", "how many were wrong; null when not checked"),
    _c("comparability_key", "string", "equal where two rows measure the same thing"),
    _c("environment_key", "string", "equal where software, hardware and settings are the same"),
    _c("text_dialect", "string", "whose text the row can be printed as: `omb-7.5`"),
    _c("parameters", "texts", "options of the benchmark without a column of their own: `tests`, `neighborhood`, …"),
    _c("tags", "texts", "the user's `--tag K=V`"),
    _c("hosts", "strings", "host of each rank"),
)

BY_NAME: Mapping[str, Column] = {c.name: c for c in COLUMNS}
NAMES: tuple[str, ...] = tuple(BY_NAME)
FLOAT_LISTS: tuple[str, ...] = tuple(c.name for c in COLUMNS if c.kind == "floats")
SCALARS: tuple[str, ...] = tuple(c.name for c in COLUMNS if c.kind not in ("floats", "strings", "numbers", "texts"))

_UNKNOWN = "not a column of the store: "


def blank_row() -> dict[str, Any]:
    """A row in which every column is None."""
    return dict.fromkeys(NAMES)


def checked(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with all columns; absent ones are None.

    Raises ValueError when a column does not exist or a required one is missing. Either is a fault of the program.
    """
    unknown = [name for name in row if name not in BY_NAME]
    if unknown:
        raise ValueError(_UNKNOWN + ", ".join(unknown))
    missing = [c.name for c in COLUMNS if c.required and row.get(c.name) is None]
    if missing:
        raise ValueError("a row lacks " + ", ".join(missing))
    return {name: row.get(name) for name in NAMES}


@cache
def _arrow_types() -> Mapping[Kind, pa.DataType]:
    import pyarrow as pa

    return {
        "string": pa.string(),
        "int32": pa.int32(),
        "int64": pa.int64(),
        "float64": pa.float64(),
        "bool": pa.bool_(),
        "time": pa.timestamp("us", tz="UTC"),
        "floats": pa.list_(pa.float32()),
        "strings": pa.list_(pa.string()),
        "numbers": pa.map_(pa.string(), pa.float64()),
        "texts": pa.map_(pa.string(), pa.string()),
    }


def arrow_type(kind: Kind) -> pa.DataType:
    """The Arrow type of the columns of this kind."""
    return _arrow_types()[kind]


@cache
def arrow_schema() -> pa.Schema:
    """The schema of a launch's file. Every field is nullable, so that files of other versions can be read."""
    import pyarrow as pa

    return pa.schema([pa.field(c.name, arrow_type(c.kind)) for c in COLUMNS])


def fitted(table: pa.Table, target: pa.Schema) -> pa.Table:
    """The table with exactly the columns of `target`; those that it lacks, as files of older versions do, are null."""
    import pyarrow as pa

    present = dict(zip(table.column_names, table.columns, strict=True))
    columns = [present[f.name] if f.name in present else pa.nulls(table.num_rows, f.type) for f in target]
    return pa.table(columns, schema=target)


def markdown_table() -> str:
    """The table of docs/store.md."""
    lines = ["| column | type | null | meaning |", "|---|---|---|---|"]
    lines += [f"| `{c.name}` | {c.arrow} | {'no' if c.required else 'yes'} | {c.doc} |" for c in COLUMNS]
    return "\n".join(lines) + "\n"
