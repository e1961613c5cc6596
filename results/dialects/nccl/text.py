"""The table of nccl-tests, identical to the character.

After a head of three lines, each line has 13 words, with the out-of-place and in-place halves side by side. Sizes are
those of the whole operation; bandwidths follow nccl-tests' formulas (``statistics.bandwidth``), with GB = 10^9 bytes.
Widths and rounding are those of nccl-tests 2.19. A value that was not measured is N/A.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

from omb_py import __version__
from omb_py.engine.program.dtypes import DTYPES
from omb_py.errors import UsageError
from omb_py.grammar.rank_groups import groups_of_row
from omb_py.results.caveats import MEASURED, caveat_line, caveats, columns_line
from omb_py.results.dialects.dialect import Provenances, TextOptions, Transcript
from omb_py.results.statistics.bandwidth import FORMULAS, formula_name
from omb_py.results.store.row import Row
from omb_py.results.store.schema import stored_floats, value_of

if TYPE_CHECKING:
    from omb_py.engine.rank.launch_facts import LaunchFacts

TYPES: Final[Mapping[str, str]] = {
    "char": "int8",
    "int8": "int8",
    "uint8": "uint8",
    "int32": "int32",
    "uint32": "uint32",
    "int64": "int64",
    "uint64": "uint64",
    "float16": "half",
    "float32": "float",
    "float64": "double",
    "bfloat16": "bfloat16",
    "float8e4m3": "f8e4m3",
    "float8e5m2": "f8e5m2",
}
"""Our types -> nccl-tests' names."""
BENCHMARKS: Final[Mapping[str, str]] = {
    "all_reduce": "allreduce",
    "all_gather": "allgather",
    "reduce_scatter": "reduce_scatter",
    "alltoall": "alltoall",
    "alltoallv": "alltoallv",
    "broadcast": "bcast",
    "reduce": "reduce",
    "gather": "gather",
    "scatter": "scatter",
    "sendrecv": "sendrecv",
    "hypercube": "hypercube",
    "all_reduce_bias": "allreduce_bias",
}
"""nccl-tests' collectives -> our benchmarks."""
NO_ROOT: Final = -1
UNKNOWN: Final = "N/A"

_ALONE: Final = "# each call was timed alone, not in a batch as nccl-tests do\n"
REMARKS: Final[Mapping[str, str]] = {
    "local_max": _ALONE,
    "global_span": _ALONE,
    "isolated": "# Blocking Enabled: each call was waited for\n",
    "graph": "# the calls of a sample were captured as a graph and launched once\n",
}
"""Timings besides nccl-tests' usual one -> the comment above the rows."""
REPLAYS: Final = "nccl_replays"
"""Parameter of rows whose graph was launched more than once."""
_SCATTERED: Final = ("reduce_scatter", "reduce_scatter_block")
_NAMES = {benchmark: collective for collective, benchmark in BENCHMARKS.items()}
_NAMES["reduce_scatter_block"] = "reduce_scatter"
_OWN = "omb-py"
_TOOLS: Final = ("nccl-tests", "rccl-tests")
SAID: Final = (*MEASURED, "timing", "ranks")
"""Columns that the comment above a table says, where omb-py measured."""
_ONE_TABLE = tuple(
    ("benchmark launch_id backend library_version binding device buffer process_sync cache ranks threads").split()
)
"""Rows that are equal in these columns share a table."""
_BOTH_HALVES = ("launch_id", "benchmark", "binding", "dtype", "size_bytes")
"""Columns in which the halves of a line are equal."""
AVERAGE: Final = "avg_busbw_gbps"
"""What a launch that was imported has of the mean busbw in its footer."""
_TIMESTAMP: Final = "%Y-%m-%d %H:%M:%S"


def header(report: Sequence[str] = ()) -> str:
    """The head of a table: two lines of names and one of units."""
    half = f"{'cputime' if 'cputime' in report else 'time':>7}   algbw   busbw  #wrong"
    stamp, form = (f"{word:>19}" if "timestamps" in report else "" for word in ("timestamp", _TIMESTAMP))
    return (
        "#\n"
        f"#{'out-of-place':>74}{'in-place':>31}          \n"
        f"#       size         count      type   redop    root  {half}  {half} {stamp}\n"
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)"
        f"             (us)  (GB/s)  (GB/s)         {form}\n"
    )


_OF_RANKS: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "rank0": lambda means: means[0],
    "fastest": min,
    "slowest": max,
}
"""Word of a report -> the time of the ranks' that it shows."""


def has_collective(benchmark: str) -> bool:
    """Whether nccl-tests have the operation of one of our benchmarks."""
    return benchmark in _NAMES


def itemsize(dtype: str | None) -> int | None:
    """Bytes of an element; None for an unknown type."""
    return DTYPES[dtype].itemsize if dtype in DTYPES else None


def check(row: Row) -> None:
    """Raise UsageError for a row that nccl-tests cannot show or would have measured differently."""
    name = f"{row['benchmark']} {row['size_bytes']} B"
    if not str(row["bw_formula"] or "").startswith("nccl-tests:"):
        raise UsageError(f"{name}: nccl-tests have no such operation: --format table")
    if row["timing"] not in ("pipelined", *REMARKS):
        raise UsageError(
            f"{name} was timed {row['timing']}, nccl-tests time pipelined: measure with --format nccl-tests or "
            "--timing pipelined, or show it with --format table"
        )
    if row["dtype"] not in TYPES:
        raise UsageError(f"{name}: nccl-tests have no type {row['dtype']}: --format table")


def line(outside: Row | None, inside: Row | None, report: Sequence[str] = ()) -> str:
    """The line of one cell.

    Args:
        report: what it shows besides or instead, of ``REPORTS``.
        outside: the row that was measured out of place, or None.
        inside: the row that was measured in place, or None. A broadcast that omb-py measured has one buffer, as in
            MPI, so it stands in this half when it is given alone.

    Raises:
        ValueError: both rows are None.
    """
    row = outside or inside
    if row is None:
        raise ValueError("a line of no row")
    if inside is None and row.get("source", _OWN) == _OWN and row["benchmark"] == "bcast":
        outside, inside = None, row
    type_name = TYPES.get(str(row.get("dtype")), str(row.get("dtype")))
    root = row.get("root")
    root = NO_ROOT if root is None else root
    head = f"{total_bytes(row):12d}  {element_count(row):12d}  {type_name:>8}  {row.get('op') or 'none':>6}  {root:>6}"
    moment = time.strftime(_TIMESTAMP) if "timestamps" in report else ""
    return f"{head}{_half(outside, report)}{_half(inside, report)}{moment:>{21 * bool(moment)}}\n"


def program_name(benchmark: str) -> str:
    """nccl-tests' program for one of our benchmarks."""
    return f"{_NAMES.get(benchmark, benchmark)}_perf"


def measured_by(row: Row) -> str:
    """The comment that says what measured a row, where nccl-tests did not: their text means NCCL on GPUs."""
    if row.get("source") in _TOOLS:
        return ""
    return f"# omb-py {__version__} in the layout of nccl-tests{columns_line(row, SAID).removeprefix('#')}\n"


def starting(benchmark: str) -> str:
    """The first line of a test's output."""
    return f"# Collective test starting: {program_name(benchmark)}\n"


def gpu_addresses(facts: LaunchFacts) -> dict[str, str]:
    """UUID -> PCI address of the GPUs of a launch."""
    return {
        str(gpu["uuid"]).removeprefix("GPU-").replace("-", "").lower(): str(gpu["pci"]).rpartition(".")[0]
        for node in facts.get("node_facts") or ()
        for gpu in (node.get("gpus") or {}).get("gpus") or ()
    }


def devices(facts: LaunchFacts, row: Row) -> str:
    """The lines of the devices, one a rank with its group, from the facts of a launch; empty where ranks have none.

    ``[?]`` stands for a PCI address that no driver told.
    """
    group_of = {rank: number for number, group in enumerate(groups_of_row(row)) for rank in group}
    addresses = gpu_addresses(facts)
    pids = {fact["rank"]: int(fact["pid"]) for fact in facts.get("rank_facts") or ()}
    lines = [
        f"#  Rank {place['rank']:2d} Group {group_of.get(place['rank'], 0):2d} Pid {pids.get(place['rank'], 0):6d} "
        f"on {place['host']:>10} device {int(str(place['device']).rpartition(':')[2]):2d} "
        f"[{addresses.get(str(place['identity']).lower()) or '?'}] "
        f"{place['name']}\n"
        for place in facts.get("devices") or ()
    ]
    return "".join(["#\n# Using devices\n", *lines]) if lines else ""


def concluded(benchmark: str) -> str:
    """The last line of a test's output."""
    return f"# Collective test concluded: {program_name(benchmark)}\n"


def memory_usage(facts: LaunchFacts) -> str:
    """The line on the memory of a device, of the rank that uses most; empty where nobody measured it.

    nccl-tests read the driver alone. What the library itself counts, where it does, is a second line of the same form.
    """
    used = facts.get("device_memory") or {}
    if not used:
        return ""
    named = {"Initialization": "communicators", "User-Allocated": "buffers", "Collective": "calls"}
    text = _memory_line("GPU memory usage", {name: used[key] for name, key in named.items()})
    if "library" in used:
        own = {"Persistent": used["persistent"], "Suspendable": used["suspendable"]}
        text += _memory_line("Library's own memory", own, used["library"])
    return f"{text}#\n"


def _memory_line(title: str, parts: Mapping[str, int], total: int | None = None) -> str:
    """Amounts of bytes by name, and their total, which is their sum unless it is counted apart."""
    amounts = "| ".join(f"{name} {_binary(nbytes)} " for name, nbytes in parts.items())
    return f"# {title:<20} : {amounts}| Total  {_binary(sum(parts.values()) if total is None else total)}\n"


def _binary(nbytes: int) -> str:
    """Bytes as nccl-tests write them: three digits, and units of 1024."""
    amount, unit = float(nbytes), "B"
    for larger in ("KB", "MB", "GB"):
        if abs(amount) >= 1024:
            amount, unit = amount / 1024, larger
    digits = 2 if abs(amount) < 10 else 1 if abs(amount) < 100 else 0
    return f"{amount:.{digits}f} {unit}"


def footer(rows: Sequence[Row], printed: float | None = None) -> str:
    """The last lines of a table: the number of wrong results, and the mean of busbw over all lines and placements.

    `printed` is the mean that another tool printed of numbers that it had not rounded; it holds where it is that of
    these rows.
    """
    wrong = sum(bool(wrong_elements(row)) for row in rows)
    mean = sum(bus_bandwidth(row) or 0.0 for row in rows) / len(rows) if rows else 0.0
    if printed is not None and math.isclose(printed, mean, rel_tol=5e-5, abs_tol=0.005):
        mean = printed
    return f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}\n# Avg bus bandwidth    : {mean:g} \n#\n"


def real(value: float, width: int) -> str:
    """A number in `width` places, with as many decimals as fit, at most two."""
    if not math.isfinite(value):
        return f"{value:{width}f}"
    digits = 0
    while digits < 19 and value >= 10**digits:
        digits += 1
    if digits < width - 2:
        return f"{value:{width}.2f}"
    if digits < width - 1:
        return f"{value:{width}.1f}"
    if digits < width + 1:
        return f"{value:{width}.0f}"
    return f"{value:{width}.1e}" if width >= 7 else f"{value:{width}.0e}"


def to_nccl(rows: Iterable[Row], provenance: Provenances = lambda launch_id: {}) -> str:
    """Rows of the store as nccl-tests would print them, with a table for each launch, collective and number of ranks.

    The timing mode is not checked. Rows of other benchmarks are left out, so the text
    may be empty.

    Args:
        rows: rows of the store.
        provenance: the facts of a launch, which name its devices for the lines above the table.
    """
    return "".join(_table(table, provenance) for table in pair_halves(rows))


def pair_halves(rows: Iterable[Row]) -> list[list[dict[bool, Row]]]:
    """The lines of each table, as rows by whether they were measured in place; without rows of other benchmarks.

    A cell that stands there twice begins a further table, so that no row takes the place of another.
    """
    tables: dict[tuple[object, ...], list[dict[tuple[object, ...], dict[bool, Row]]]] = {}
    for row in filter(is_shown, rows):
        groups = (row.get("parameters") or {}).get("groups")
        alike = tables.setdefault((*(row.get(key) for key in _ONE_TABLE), groups, remarks(row)), [])
        named = (row.get(key) for key in ("dtype", "op", "root"))
        cell = (total_bytes(row), element_count(row), *named, _repeat(row))
        half = bool(row.get("in_place"))
        table = next((table for table in alike if half not in table.get(cell, ())), None)
        if table is None:
            table = {}
            alike.append(table)
        table.setdefault(cell, {})[half] = row
    return [[*table.values()] for alike in tables.values() for table in alike]


def is_shown(row: Row) -> bool:
    """Whether nccl-tests' table can show a row of the store: each has a type and a time."""
    timed = row.get("unit") == "us" and row.get("value") is not None
    return row["benchmark"] in _NAMES and timed and row.get("dtype", "") is not None


def remarks(row: Row) -> str:
    """Comments on how a row was measured, with line ends: its caveats, and calls that were timed alone."""
    own = caveats(row)
    text = f"{caveat_line(own)}\n" if own else ""
    # a call that was waited for on a stream is stored as all that are timed alone
    mode = (row.get("parameters") or {}).get("timing_mode") or row.get("timing")
    replays = (row.get("parameters") or {}).get(REPLAYS, "")
    remark = REMARKS.get(str(mode), "")
    return text + (remark.replace("launched once", f"launched {replays} times") if replays else remark)


def _table(lines: Sequence[Mapping[bool, Row]], provenance: Provenances) -> str:
    rows = [row for halves in lines for row in halves.values()]
    first = rows[0]
    head = measured_by(first) + remarks(first) + starting(first["benchmark"])
    facts = provenance(first["launch_id"])
    head += devices(facts, first)
    body = "".join(line(halves.get(False), halves.get(True)) for halves in lines)
    printed = cast(float | None, (facts.get("imported") or {}).get(AVERAGE))
    return head + header() + body + footer(rows, printed) + concluded(first["benchmark"])


def _repeat(row: Row) -> tuple[str, ...]:
    """The pass of a soak and the cycle of rccl-tests, which tell repeated cells apart."""
    parameters = row.get("parameters") or {}
    return tuple(parameters.get(key, "") for key in ("pass", "cycle"))


def total_bytes(row: Row) -> int:
    """Bytes of the whole operation."""
    total = row.get("bytes_total")
    return int(row.get("size_bytes") or 0) if total is None else int(total)


def element_count(row: Row) -> int:
    """Number of elements as passed to NCCL: those of a block for reduce_scatter, else those of the message."""
    reported = (row.get("metrics") or {}).get("nccl_count")
    if reported is not None:
        return int(reported)
    count = int(row.get("size_bytes") or 0) // (itemsize(row.get("dtype")) or 1)
    return count // int(row.get("ranks") or 1) if row["benchmark"] in _SCATTERED else count


def bus_bandwidth(row: Row) -> float | None:
    """busbw in GB/s; with one rank, where no byte crosses a link, what nccl-tests' formula gives all the same."""
    value, formula = row.get("busbw_gbps"), FORMULAS.get(formula_name(row.get("bw_formula")))
    if value is None and row.get("ranks") == 1:
        return (row.get("algbw_gbps") or 0.0) * formula.bus(1) if formula else 0.0
    return value


def wrong_elements(row: Row) -> float | None:
    """Number of wrong elements; for omb-py's own rows, which count bytes, the least possible number."""
    reported, wrong_bytes = (row.get("metrics") or {}).get("wrong_elements"), row.get("wrong_bytes")
    if reported is not None or wrong_bytes is None:
        return reported
    return math.ceil(wrong_bytes / (itemsize(row.get("dtype")) or 1))


def _half(row: Row | None, report: Sequence[str] = ()) -> str:
    if row is None:
        return f"  {UNKNOWN:>7}  {UNKNOWN:>6}  {UNKNOWN:>6}  {UNKNOWN:>6}"
    shown, bandwidths = row.get("value"), [row.get("algbw_gbps"), bus_bandwidth(row)]
    which, means = next((word for word in _OF_RANKS if word in report), ""), stored_floats(row.get("rank_mean_us"))
    if which and means and shown:
        mean, shown = float(shown), _OF_RANKS[which](means)
        bandwidths = [None if value is None else value * mean / shown for value in bandwidths]
    if "cputime" in report:
        shown = (row.get("metrics") or {}).get("enqueue", shown)
    cells = ((shown, 7), *((value, 6) for value in bandwidths))
    words = [f"{UNKNOWN:>{width}}" if value is None else real(float(value), width) for value, width in cells]
    wrong = wrong_elements(row)
    return f"  {words[0]}  {words[1]}  {words[2]}  {UNKNOWN if wrong is None else f'{wrong:g}':>6}"


def _are_halves(row: Row, other: Row) -> bool:
    return all(value_of(row, name) == value_of(other, name) for name in _BOTH_HALVES)


class NcclTranscript(Transcript):
    """The text of nccl-tests: a line when both its halves are there. Raises on rows that were measured otherwise."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._waiting: Row | None = None
        self._begun = False
        self._remarks = ""
        """The comment above the rows that are being printed."""
        self._facts: LaunchFacts = {}
        self._report: Sequence[str] = ()

    def launch(self, facts: LaunchFacts) -> None:
        self._facts = facts

    def row(self, row: Row, options: TextOptions) -> str:
        check(row)
        text, self._report = "" if self._begun else measured_by(row), options.report
        if (above := remarks(row)) != self._remarks:
            text, self._remarks = text + self._flush() + above, above
        if not self._begun:
            text += starting(row["benchmark"]) + devices(self._facts, row) + header(options.report)
        self._begun = True
        self._rows.append(row)
        other, self._waiting = self._waiting, None
        if other is not None and row["in_place"] and _are_halves(other, row):
            return text + line(other, row, self._report)
        self._waiting = other
        text += self._flush()
        self._waiting = row
        return text

    def _flush(self) -> str:
        row, self._waiting = self._waiting, None
        if row is None:
            return ""
        return line(None, row, self._report) if row["in_place"] else line(row, None, self._report)

    def end(self) -> str:
        text = self._flush()
        if self._rows:
            text += footer(self._rows) + concluded(self._rows[-1]["benchmark"])
            text += memory_usage(self._facts) if "memory" in self._report else ""
        self._rows = []
        return text
