"""The text of OMB 7.5, identical to the character, so that scripts that read OMB also read omb-py.

A table has a blank line (some benchmarks), the title, special lines, ``# Datatype:``, the head, and one row for each
size. The size takes 10 left-aligned places, a value 18, Iterations 12.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from omb_py import __version__
from omb_py.engine.devices.registry import HOST
from omb_py.engine.program.dtypes import reduction_dtype
from omb_py.engine.program.rma import ACTIVE, SYNCS, WINDOWS
from omb_py.errors import UsageError, nearest
from omb_py.grammar.graphs import dims_create
from omb_py.results.caveats import caveat_line, caveats, columns_line
from omb_py.results.dialects.omb.titles import (
    MPI_TYPES,
    NCCL_SYNCS,
    NCCL_WINDOWS,
    OWN,
    TITLED_LIBRARIES,
    TITLES,
    Layout,
    OmbVersion,
    Title,
    family,
    version_of,
)
from omb_py.results.statistics.bandwidth import shown_gbps
from omb_py.results.store.row import Row
from omb_py.results.store.schema import stored_floats

_FIELD = 18
_SIZE = 10
_RULE = "-" * 43
_COUNT = 12

_OVERLAP_LINES = ("# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait", "")

_OVERLAP = (("Overall(us)", "overall"), ("Compute(us)", "compute"))
_OVERLAP_FULL = (("Coll. Init(us)", "init"), ("MPI_Test(us)", "test"), ("MPI_Wait(us)", "wait"))
_OVERLAP_SPREAD = (("Min Comm.(us)", "min_comm"), ("Max Comm.(us)", "max_comm"))

_VALUE_HEAD: Mapping[Layout, str] = {
    "bandwidth": "Bandwidth (MB/s)",
    "barrier": "# Avg Latency(us)",
    "one_sided": "Latency (us)",
    "one_sided_bandwidth": "Bandwidth (MB/s)",
}
_STEP = (
    ("# Step(us)", "step"),
    ("Compute(us)", "compute_us"),
    ("Exposed(us)", "exposed_us"),
    ("Serial(us)", "serial_us"),
    ("In flight(us)", "flight_us"),
    ("Overlap(%)", "overlap_pct"),
)
"""Columns of a workload: the step, its computation, the time beyond it, all calls one by one, all calls in flight."""
_STARTUP = ("init", "hello")
"""Layouts that consist of one sentence instead of a table."""
_FIRST_WIDTH: Mapping[Layout, int] = {"barrier": 17, "overlap_barrier": 13, "step": 13}
"""Width of the first column in tables without a size: that of its head with the ``#``."""

_NARROW = {"latency_mp": 10}
"""Width of the value of a benchmark without ``-c``, where OMB forgets its own width."""

MPI = "MPI"
_XCCL = ("NCCL", "RCCL")
"""Libraries whose text names no datatype."""
_BACKENDS = ("mpi", "nccl")
"""Backends that OMB measures; of any other the text says what measured."""
_WITH_BUSBW = ("torch gloo",)


@dataclass(frozen=True, slots=True)
class OsuText:
    """The text of one benchmark. Raises UsageError when OMB has no such table."""

    benchmark: str
    full: bool = False
    """Whether to print Min and Max (over ranks' means) and Iterations (``-f``)."""
    validation: bool = False
    """Whether to print Pass or Fail (``-c``)."""
    percentiles: Sequence[float] = ()
    """The percentiles to print, 0 to 100 (``-z``). Of non-blocking collectives they are of Overall, as in OMB."""
    accel: str = ""
    """The accelerator in the title: ``""``, ``"-CUDA"``, ``"-ROCM"``, …"""
    before: Sequence[str] = ()
    """The first lines, such as ``Dimensions size = 4 ``."""
    transmit: bool = False
    """Whether to print Transmit Size, the bytes of a message that are transferred (``-D``)."""
    rates: bool = True
    """Whether a table of rates has the column Messages/s (``-R``)."""
    details: Sequence[str] = ()
    """Special lines after the title, such as ``# [ pairs: 2 ] [ window size: 64 ]``."""
    layout: Layout | None = None
    """The layout of a benchmark that OMB does not have."""
    version: OmbVersion = OWN
    """The version of OMB whose text style is used."""
    library: str = MPI
    """What stands in the place of MPI in the title: ``NCCL`` or ``RCCL`` as in OMB's xccl benchmarks, or ``Gloo``."""
    busbw: bool = False
    """Whether to print the bus bandwidth. OMB has no text for Gloo, and those who train ask for it."""

    def __post_init__(self) -> None:
        if self.benchmark not in TITLES and self.layout is None:
            raise UsageError(f"OMB has no text for {self.benchmark!r}: {nearest(self.benchmark, TITLES)}")

    @property
    def _title(self) -> Title:
        return TITLES.get(self.benchmark) or Title("", self.layout or "latency")

    @property
    def title_line(self) -> str:
        """The title of the table; it names OSU only for OMB's benchmarks."""
        if self.benchmark in TITLES:
            line = TITLES[self.benchmark].line(self.accel, self.version.text)
            return line.replace("# OSU MPI", f"# OSU {self.library}", 1)
        return f"# omb-py {self.benchmark} Test v{__version__}"

    def header(self, dtype: str | None, first: bool = True) -> str:
        """The lines before the rows, each with a line end.

        Args:
            dtype: omb-py's name of the element type (``int32``); None leaves out the Datatype line.
            first: False for the second and later types of ``-T all``, which repeat only the Datatype line and the head,
                but in accumulates and atomics everything.
        """
        lines: list[str] = []
        if first or self._title.atomic:
            lines += self.before
            if self.version.blank_first(self._title, self._pt2pt):
                lines.append("")
            if self._title.layout != "init" or self.version.titled_init:
                lines.append(self.title_line)
            lines += self.details
            if self._title.layout in ("overlap", "overlap_barrier"):
                lines += _OVERLAP_LINES
        if self._title.layout in _STARTUP:
            return "".join(f"{line}\n" for line in lines)
        if dtype is not None and self._title.datatype_line and self.library not in _XCCL:
            name = reduction_dtype(dtype) if self._title.reduces else dtype
            plain = self._title.layout == "step"  # nobody looks for names of MPI beside layers and gradients
            lines.append(f"# Datatype: {name if plain else MPI_TYPES.get(name, name)}.")
        lines.append("".join(head for head, _ in self._columns()))
        if self.version.datatype_last(self._pt2pt) and lines[-2].startswith("# Datatype:"):
            lines[-2:] = [lines[-1], lines[-2]]
        return "".join(f"{line}\n" for line in lines)

    def row(self, row: Row) -> str:
        layout = self._title.layout
        if layout == "hello":
            return f"This is a test with {row['ranks']} processes\n"
        if layout == "init":
            ms = [round(us / 1000) for us in _spread(row)]
            unit = " ms" if self.version.titled_init else ""
            return f"nprocs: {row['ranks']}, min: {ms[0]}{unit}, max: {ms[1]}{unit}, avg: {ms[2]}{unit}\n"
        return "".join(cell(row) for _, cell in self._columns()) + "\n"

    def failure(self, row: Row, program: str = "omb-py") -> str:
        """The last line of a run after a row with Fail, with its line end."""
        return f"DATA VALIDATION ERROR: {program} exited with status 1 on message size {row.get('size_bytes') or 0}.\n"

    def footer(self, combinations: int, failed: int, sync: str = "") -> str:
        """The text after the last row of all types: a block for each rank after validated atomics, else nothing.

        Args:
            combinations: number of types that were checked.
            failed: number of those types with a wrong byte.
            sync: the synchronisation. In a passive accumulate rank 0 receives nothing, so OMB prints no result for it.
        """
        if not (self.validation and self._title.atomic):
            return ""
        idle = self.benchmark == "acc_latency" and sync not in ACTIVE
        verdict = (
            f"FAILED: {failed} of the {combinations} combinations of ops and datatypes tested failed."
            if failed
            else f"PASSED: All {combinations} combinations of ops and datatypes tested passed."
        )
        blocks = (
            [_RULE, f"Atomic Data Validation results for Rank={rank}:", *([verdict] if rank or not idle else []), _RULE]
            for rank in range(2)
        )
        return "".join(f"{line}\n" for block in blocks for line in block)

    @property
    def _pt2pt(self) -> bool:
        return family(self.benchmark) == "pt2pt"

    def _columns(self) -> list[tuple[str, Callable[[Row], str]]]:
        """The columns of the table: the head with its blanks, and the function from a row to its cell."""
        layout = self._title.layout
        columns: list[tuple[str, Callable[[Row], str]]] = []
        if layout not in _FIRST_WIDTH:
            columns.append((f"{'# Size':<{_SIZE}}", lambda row: f"{row['size_bytes'] or 0:<{_SIZE}d}"))
        for head, key in self._figures():
            first = not columns or (len(columns) == 1 and layout not in _FIRST_WIDTH)
            width = _FIRST_WIDTH.get(layout, _FIELD) if first else _FIELD
            narrow = width if self.validation else _NARROW.get(self.benchmark, width)
            align = "<" if first and layout == "step" else ">"  # a line that begins with # is no row
            columns.append((f"{head:{align}{width}}", partial(_figure, key, narrow)))
        if self.full and layout in ("latency", "barrier"):
            columns += [
                (f"{'Min Latency(us)':>{_FIELD}}", lambda row: f"{_spread(row)[0]:{_FIELD}.2f}"),
                (f"{'Max Latency(us)':>{_FIELD}}", lambda row: f"{_spread(row)[1]:{_FIELD}.2f}"),
                (f"{'Iterations':>{_COUNT}}", lambda row: f"{row['iterations'] or 0:>{_COUNT}d}"),
            ]
        if self.validation and layout not in ("barrier", "overlap_barrier"):
            verdict = partial(_verdict, self._title.atomic)
            columns.append((f"{'Validation':>{_FIELD}}", lambda row: f"{verdict(row.get('validated')):>{_FIELD}}"))
        if self.percentiles and layout != "step":
            columns.append(self._tails())
        if self.transmit:
            columns.append((f"{'Transmit Size':>{_FIELD}}", partial(_figure, "transmit_size", _FIELD, places=0)))
        if self.busbw:
            columns.append(
                (f"{'Bus BW(GB/s)':>{_FIELD}}", lambda row: f"{shown_gbps(row.get('busbw_gbps') or 0.0):>{_FIELD}}")
            )
        return columns

    def _figures(self) -> list[tuple[str, str]]:
        """Head and metric of each figure; ``value`` and ``message_rate`` are those of the row."""
        layout = self._title.layout
        if layout == "step":
            return list(_STEP)
        if layout in ("overlap", "overlap_barrier", "partitioned"):
            full = self.full and layout != "partitioned"
            figures = [*_OVERLAP, *(_OVERLAP_FULL if full else ()), ("Pure Comm.(us)", "pure")]
            figures += [*(_OVERLAP_SPREAD if full else ()), ("Overlap(%)", "overlap_pct")]
            return [(f"# {figures[0][0]}", figures[0][1]), *figures[1:]] if layout == "overlap_barrier" else figures
        if layout == "rate":
            rates = [("Messages/s", "message_rate")] if self.rates else []
            return [(self.version.rate_head, "value"), *rates]
        head = self.version.latency_head(self._pt2pt) if layout == "latency" else _VALUE_HEAD[layout]
        return [(head, "value")]

    def _tails(self) -> tuple[str, Callable[[Row], str]]:
        """The percentiles in one: as wide as OMB's, and wider for percentiles that OMB does not take.

        OMB counts two digits at most, so the head of P100 is one character wider than its values.
        """
        quantity = "BW(MB/s)" if self._is_bandwidth else "Lat(us)"
        heads = [f"P{p:.12g} Tail {quantity}" for p in self.percentiles]
        widths = [
            _FIELD if p == int(p) else max(_FIELD, len(head) + 1)
            for p, head in zip(self.percentiles, heads, strict=True)
        ]
        text = "".join(f"{h:>{w + (p == 100)}}" for h, w, p in zip(heads, widths, self.percentiles, strict=True))
        return text, lambda row: "".join(f"{v:{w}.2f}" for v, w in zip(self._tail(row), widths, strict=True))

    @property
    def _is_bandwidth(self) -> bool:
        return self._title.layout in ("bandwidth", "one_sided_bandwidth", "rate")

    def _tail(self, row: Row) -> list[float]:
        """OMB's percentiles of the average over ranks; for bandwidth, of each iteration's MB/s in ascending order."""
        import numpy as np

        from omb_py.engine.measuring.statistics import omb_percentile

        metrics = row.get("metrics") or {}
        if f"tail_p{self.percentiles[0]:.12g}" in metrics:  # imported, and without samples
            return [printed_number(metrics.get(f"tail_p{p:.12g}")) for p in self.percentiles]
        values = row.get("samples_avg_us")
        # what stored_floats does, of many numbers in less time
        samples = np.asarray([] if values is None else values, np.float32).astype(str).astype(np.float64)
        if samples.size == 0:
            return [math.nan] * len(self.percentiles)
        if self._is_bandwidth:
            moved = printed_number(metrics.get("bytes_moved")) * _share_counted(row)
            with np.errstate(divide="ignore", invalid="ignore"):
                samples = moved / samples  # bytes per µs are MB/s
        return [omb_percentile(samples, p) for p in self.percentiles]


def accelerator_of(device: object) -> str:
    """The accelerator in OMB's title; that of the host is empty."""
    return f"-{device.upper()}" if isinstance(device, str) and device not in ("", HOST) else ""


def text_of(row: Row, full: bool, validation: bool, percentiles: Sequence[float], sized: bool = False) -> OsuText:
    """The text of a row's table; a benchmark that OMB does not have gets a table in the same style.

    `sized` says that other rows of the table have a size where this one has 0 bytes.
    """
    if row.get("source", "omb-py") != "omb-py":
        full, percentiles = printed(row)  # an imported row shows what its tool printed
    parameters, library = parameters_of(row), row.get("library")
    layout: Layout = "bandwidth" if row["unit"] == "MB/s" else "latency" if row["size_bytes"] or sized else "barrier"
    if row["family"] == "one-sided":
        layout = "one_sided"
    if row["family"] == "workload":
        layout = "step"
    return OsuText(
        row["benchmark"],
        full,
        validation,
        percentiles,
        before=lines_before(row),
        details=details(row),
        rates=parameters.get("print_rate") != "0",
        layout=layout,
        transmit="transmit_size" in (row.get("metrics") or {}),
        accel=parameters.get("accelerator") or accelerator_of(row.get("device")),
        version=version_of(row.get("text_dialect")),
        library=TITLED_LIBRARIES.get(str(library), ("", MPI))[1],
        busbw=library in _WITH_BUSBW and row.get("busbw_gbps") is not None,
    )


def printed(row: Row) -> tuple[bool, tuple[float, ...]]:
    """The options with which an imported row was printed: (full, percentiles)."""
    metrics: Mapping[str, float] = row.get("metrics") or {}
    tails = tuple(float(key.removeprefix("tail_p")) for key in metrics if key.startswith("tail_p"))
    return "rank_min_us" in metrics or "min_comm" in metrics, tails


def message_rate(row: Row) -> float:
    """Messages per second, for a row whose value is in MB/s."""
    metrics = row.get("metrics") or {}
    if "message_rate" in metrics:  # imported: the value that its tool printed
        return printed_number(metrics["message_rate"])
    size = metrics.get("transmit_size") or row["size_bytes"] or 0
    return printed_rate(row) * 1e6 / size if size else math.nan


def printed_rate(row: Row) -> float:
    """MB/s as C OMB counts them: by the size, of which only whole elements move."""
    return printed_number(row.get("value")) * _share_counted(row)


def _share_counted(row: Row) -> float:
    """The bytes that C OMB counts over those that move: 1 where the size is a multiple of the element."""
    moved, size = row.get("bytes_per_rank"), row.get("size_bytes")
    if not moved or not size or "transmit_size" in (row.get("metrics") or {}):
        return 1.0
    return size / moved


def parameters_of(row: Row) -> Mapping[str, str]:
    """The options of a row that have no column of their own."""
    return dict(row.get("parameters") or {})


_PLACES = {"H": "HOST (H)", "D": "DEVICE (D)", "M": "MANAGED (M)", "MD": "MANAGED (MD)", "MH": "MANAGED (MH)"}


def details(row: Row) -> list[str]:
    """Special lines after the title of a row's table; the first says what measured, the last one its caveats."""
    special, own = _special_lines(row), caveats(row)
    measured = [] if row.get("backend") in (None, *_BACKENDS) else [columns_line(row)]
    if any(line.startswith("# Send Buffer on") for line in special):
        own.pop("buffers", None)
    return [*measured, *special, *([caveat_line(own)] if own else [])]


def _special_lines(row: Row) -> list[str]:
    if row["benchmark"] == "mbw_mr":
        window = "varied" if parameters_of(row).get("vary_window") == "True" else row.get("window")
        # a log whose head was cut off says no number of ranks
        return [f"# [ pairs: {int(row['ranks']) // 2} ] [ window size: {window} ]"] if row.get("ranks") else []
    parameters = parameters_of(row)
    if "workload" in parameters:
        return [f"# [ workload: {parameters['workload']} ] [ ranks: {row['ranks']} ]"]
    if "buffers" in parameters:
        return ["# Send Buffer on {} and Receive Buffer on {}".format(*parameters["buffers"].split(", "))]
    if row["family"] == "pt2pt" and "placement" in parameters:
        source, destination = (_PLACES[place] for place in parameters["placement"].split())
        return [f"# Send Buffer on {source} and Receive Buffer on {destination}"]
    if row["benchmark"] == "multi_lat" and row.get("window") and row.get("ranks"):  # 8.0
        return [f"# [ pairs: {int(row['ranks']) // 2} ] [ window size: {row['window']} ]"]
    if "window_kind" in parameters:
        windows, syncs = (NCCL_WINDOWS, NCCL_SYNCS) if row.get("backend") == "nccl" else (WINDOWS, SYNCS)
        lines = [f"# Window creation: {windows[parameters['window_kind']]}"]
        return [*lines, f"# Synchronization: {syncs[parameters['sync']]}"] if "sync" in parameters else lines
    return [f"# Partitions: {parameters['partitions']}\t"] if "partitions" in parameters else []


def lacks_ranks(row: Row) -> bool:
    """Whether a row has a number of ranks that no other line of its table says."""
    said = ("[ pairs: ", "[ ranks: ", "Dimensions size", "#Using ")
    lines = (*_special_lines(row), *lines_before(row))
    return (
        bool(row.get("ranks")) and row.get("family") != "startup" and not any(w in text for text in lines for w in said)
    )


_SIDES = {
    "thread_counts": ("# Number of Sender threads: {} ", "# Number of Receiver threads: {}"),
    "process_counts": ("# Number of forked processes in sender: {}", "# Number of forked processes in receiver: {}"),
}


def _has_equal_sides(row: Row) -> bool:
    """Whether every rank has as many threads as the receivers: in IMB-MT."""
    from omb_py.results.dialects.imb.names import FORMS  # where there are threads; others start without

    form = FORMS.get(row["benchmark"])
    return form is not None and form.part == "MT"


def closing(text: OsuText, rows: Sequence[Row]) -> str:
    """The text after the last row of a table: a workload's calls, and :meth:`OsuText.footer`."""
    passed_types: dict[object, bool] = {}
    for row in rows:
        passed_types[row.get("dtype")] = passed_types.get(row.get("dtype"), True) and row.get("validated") is not False
    sync = (rows[0].get("parameters") or {}).get("sync", "") if rows else ""
    table = calls_of(rows[-1]) if rows and rows[-1].get("family") == "workload" else ""
    return table + text.footer(len(passed_types), sum(not passed for passed in passed_types.values()), sync)


def calls_of(row: Row) -> str:
    """The lines below a workload's table: serial time, share and rate of each kind of call, rate of matrix products.

    The serial time of a kind is the sum over its calls, each made alone; its rate is payload over time.
    """
    metrics: Mapping[str, float] = row.get("metrics") or {}
    means = {name: us for name, us in metrics.items() if name.startswith("serial.") and not name.endswith(".median")}
    rows = {name.removeprefix("serial."): us for name, us in means.items()}
    total = sum(rows.values()) or math.nan
    lines = []
    for name, us in rows.items():
        if us:
            nbytes = metrics.get(f"payload.{name}", 0.0)
            moved = f"{nbytes / us / 1000:{_COUNT}.2f} GB/s" if nbytes else ""
            lines.append(f"# {name:<40}{us:{_FIELD}.2f} us{us / total:8.1%} of serial{moved}\n")
    if "compute=" not in str((row.get("parameters") or {}).get("workload", "compute=")):
        lines.append("# Compute(us) is assumed: as long as the calls one by one; compute=50ms in --workload sets it\n")
    if float(metrics.get("exposed_us", 0.0)) > total:
        lines.append("# Overlap 0: beside computing the calls took longer than one by one (exposed > serial)\n")
    if row.get("bytes_total") and metrics.get("flight_us"):
        rate = row["bytes_total"] / metrics["flight_us"] / 1000
        lines.append(f"# {'payload of all ranks over In flight(us)':<40}{rate:{_FIELD}.2f} GB/s\n")
    for key, what in (("ttft", "to first token (TTFT)"), ("tpot", "of a later token (TPOT)")):
        if f"{key}_p50_us" in metrics:
            p50, p99 = metrics[f"{key}_p50_us"], metrics[f"{key}_p99_us"]
            lines.append(f"# {f'communication {what}':<40}{p50:{_FIELD}.2f} us p50{p99:{_COUNT}.2f} us p99\n")
    if "gflops" in metrics:
        lines.append(f"# {'matrix products':<40}{metrics['gflops']:{_FIELD}.2f} GFLOP/s a rank\n")
    return "".join(lines)


def lines_before(row: Row) -> list[str]:
    """The lines before a row's table, derived from its options."""
    parameters = parameters_of(row)
    lines = []
    if row.get("source") == "OMB" and row.get("backend") == "nccl":  # every rank prints it
        lines += [f"#Using {row.get('library')}"] * int(row.get("ranks") or 0)
    for key, texts in _SIDES.items():
        if key in parameters:
            counts = parameters[key].split(":")
            counts = counts[-1:] * 2 if _has_equal_sides(row) else counts
            lines += [text.format(n) for text, n in zip(texts, counts, strict=False)]
    kind, _, rest = parameters.get("neighborhood", "").partition(":")
    if kind == "cart":
        dims = dims_create(int(row["ranks"]), int(rest.partition(":")[0]))
        lines.append(f"Dimensions size = {' '.join(map(str, dims))} ")
    if kind:
        lines.append(f"Time took to create topology graph:{(row.get('metrics') or {}).get('topology_us', 0):.2f} us.")
    return lines


def printed_number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _spread(row: Row) -> tuple[float, float, float]:
    """Smallest, largest and mean of the ranks' times, in µs."""
    metrics, mean = row.get("metrics") or {}, printed_number(row.get("value"))
    if "rank_min_us" in metrics:  # imported: the ranks' own means are not known
        return printed_number(metrics["rank_min_us"]), printed_number(metrics.get("rank_max_us")), mean
    means = stored_floats(row.get("rank_mean_us")) or [mean]
    return min(means), max(means), sum(means) / len(means)


def _figure(key: str, width: int, row: Row, places: int = 2) -> str:
    """A number of a row; ``value`` and ``message_rate`` are no metrics."""
    if key == "value":
        number = printed_rate(row) if row.get("unit") == "MB/s" else printed_number(row.get("value"))
    elif key == "message_rate":
        number = message_rate(row)
    else:
        number = printed_number((row.get("metrics") or {}).get(key))
    return f"{number:{width}.{places}f}"


def _verdict(atomic: bool, validated: bool | None) -> str:
    if validated is None:
        return "-"
    if atomic:
        return "passed" if validated else "failed"
    return "Pass" if validated else "Fail"
