"""The type of a row of the store. Each column is declared here, once: its name, its type, its meaning.

`schema` derives the Arrow types and the table of docs/store.md from this declaration.
"""

# Without `from __future__ import annotations`: `schema` reads the annotations of Row as they stand here.
from collections.abc import Sequence
from typing import Annotated, TypedDict


class Row(TypedDict, total=False):
    """One cell of one launch, as the store holds it. At run time a row is a plain dict.

    Use it in place of ``Mapping[str, Any]`` wherever a row is read, so that mypy checks the names of columns and the
    types of values::

        def slowest(rows: Iterable[Row]) -> Row:
            return max(rows, key=lambda row: row["median_us"])

    The type also serves rows of which only some columns were loaded. The types of values are those of a row that
    omb-py measured. A row of another tool may lack more: there each column that is not in :data:`REQUIRED` can be None.
    A column whose name is known only at run time is read with :func:`omb_py.results.store.schema.value_of`.

    A new column is one line here: a type, ``"int32"`` where it is no int64, and its meaning for docs/store.md.
    """

    run_id: Annotated[str, "one invocation by the user"]
    launch_id: Annotated[str, "one start of the rank set: `<run_id>-<launch_index>`; the name of the file"]
    launch_index: Annotated[int, "int32", "number of the launch within its run, from 0"]
    started_at: Annotated[str, "time", "when the launch started"]
    schema_version: Annotated[int, "int32", "version of these columns when the row was written"]
    source: Annotated[str, "who measured: `omb-py`, or the tool a row was imported from"]
    benchmark: Annotated[str, "name as in OMB, without `osu_`"]
    family: Annotated[str, "`pt2pt`, `collective`, …"]
    backend: Annotated[str, "`mpi`, `nccl`, `gloo`, `mock`"]
    library: Annotated[str, "the communication library, for example `Open MPI`"]
    library_version: Annotated[str, "its version, as it says itself"]
    binding: Annotated[str, "which code issued the calls: `native`, `mpi4py`, …"]
    binding_version: Annotated[str, "version of that code"]
    device: Annotated[str, "where the buffers lived: `cpu`, `cuda`, `rocm`, `sim`"]
    device_name: Annotated[str | None, "model of the device"]
    buffer: Annotated[str, "what a user's program would hold: `numpy`, `bytearray`, …"]
    dtype: Annotated[str, "element type: `char`, `int32`, …"]
    op: Annotated[str | None, "reduction; null where nothing is reduced"]
    in_place: Annotated[bool, "the result replaces the input"]
    root: Annotated[int | None, "int32", "root rank; -1 when it rotates; null where there is no root"]
    process_sync: Annotated[str, "what keeps iterations apart: `barrier`, `dissemination`, `roundtime`, `none`"]
    timing: Annotated[
        str,
        "what a sample is: `local_max`, `global_span`, or a mode of `--timing`; different timings are never compared",
    ]
    cache: Annotated[str, "`hot`: the same buffers every time; `rotate`: others in turn"]
    thread_level: Annotated[str, "thread level that the library provided"]
    window: Annotated[int | None, "int32", "messages in flight; null where there is no window"]
    threads: Annotated[int, "int32", "communicating threads per rank"]
    datatype_layout: Annotated[str, "derived datatype (`-D`); null when contiguous"]
    batch: Annotated[int, "int32", "operations that one sample times together"]
    ranks: Annotated[int, "int32", "ranks of the launch"]
    nodes: Annotated[int, "int32", "hosts of the launch"]
    ranks_per_node: Annotated[int | None, "int32", "ranks on each host; null when uneven"]
    devices: Annotated[int, "int32", "accelerators used"]
    size_bytes: Annotated[int, "message size as OMB prints it; null or 0 where there is none (barrier)"]
    bytes_per_rank: Annotated[int, "bytes that one rank contributes"]
    bytes_total: Annotated[int, "bytes of the whole operation: *size* of nccl-tests, what IMB's Mbytes/sec counts"]
    count: Annotated[int, "elements of `dtype` in `size_bytes`"]
    metric: Annotated[str, "what `value` is: `latency`, `bandwidth`, …"]
    unit: Annotated[str, "unit of `value`: `us`, `MB/s` (10^6 bytes), …"]
    value: Annotated[float, "the number OMB prints; null when nothing was timed"]
    mean_us: Annotated[float, "mean of `samples_us`"]
    median_us: Annotated[float, "median of `samples_us`: what verdicts use"]
    min_us: Annotated[float, "smallest sample"]
    max_us: Annotated[float, "largest sample"]
    stddev_us: Annotated[float | None, "standard deviation (n - 1); null under 2 samples"]
    mad_us: Annotated[float, "median absolute deviation, not scaled"]
    p05_us: Annotated[float | None, "5th percentile; percentiles are null when there are too few samples"]
    p25_us: Annotated[float | None, "25th percentile"]
    p50_us: Annotated[float | None, "50th percentile"]
    p75_us: Annotated[float | None, "75th percentile"]
    p90_us: Annotated[float | None, "90th percentile"]
    p95_us: Annotated[float | None, "95th percentile"]
    p99_us: Annotated[float | None, "99th percentile; needs 100 samples"]
    p999_us: Annotated[float | None, "99.9th percentile; needs 1000 samples"]
    ci_low_us: Annotated[
        float | None, "lower end of the 95 % interval of the median, within this launch; null where none can be told"
    ]
    ci_high_us: Annotated[float | None, "upper end of it"]
    ess: Annotated[float | None, "effective number of samples, after autocorrelation"]
    skew_us: Annotated[float | None, "with what spread the ranks left a barrier in this launch (median)"]
    sync_limited: Annotated[bool | None, "the median is under 3 times that skew: mostly skew was measured"]
    algbw_gbps: Annotated[
        float | None,
        "algorithm bandwidth, 10^9 bytes/s; of a non-blocking collective from the time of call and wait alone",
    ]
    busbw_gbps: Annotated[float | None, "bus bandwidth, 10^9 bytes/s; null with one rank"]
    bw_formula: Annotated[
        str | None, "name of the formula of both; `…:pure` where its time is that of the communication alone"
    ]
    metrics: Annotated[dict[str, float], "what else the benchmark yields: `overall`, `overlap_pct`, `bytes_moved`, …"]
    samples_us: Annotated[Sequence[float], "every sample: maximum over the timed ranks"]
    samples_avg_us: Annotated[
        Sequence[float], "every sample: average over the timed ranks (OMB's percentiles are of these)"
    ]
    rank_mean_us: Annotated[Sequence[float], "mean of each timed rank"]
    slowest_rank_share: Annotated[
        Sequence[float] | None, "for each timed rank: the share of iterations in which it was the slowest"
    ]
    iterations: Annotated[int, "samples taken"]
    warmup: Annotated[int, "iterations before them"]
    stop_reason: Annotated[
        str, "`fixed`, `precision`, `count`, `time`, or `unsettled`: as `count`, and no interval can be told"
    ]
    validated: Annotated[bool | None, "every byte was right; null when not checked"]
    wrong_bytes: Annotated[int | None, "how many were wrong; null when not checked"]
    comparability_key: Annotated[str, "equal where two rows measure the same thing"]
    environment_key: Annotated[str, "equal where software, hardware and settings are the same"]
    text_dialect: Annotated[str, "whose text the row can be printed as: `omb-7.5`"]
    parameters: Annotated[
        dict[str, str], "options of the benchmark without a column of their own: `tests`, `neighborhood`, …"
    ]
    tags: Annotated[dict[str, str], "the user's `--tag K=V`"]
    hosts: Annotated[Sequence[str], "host of each rank"]


REQUIRED = frozenset(
    {
        "run_id",
        "launch_id",
        "launch_index",
        "started_at",
        "schema_version",
        "source",
        "benchmark",
        "backend",
        "metric",
        "unit",
    }
)
"""Columns in which null is forbidden."""
