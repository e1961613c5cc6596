"""Options on what is measured: sizes, types, windows, layouts, roots and the like."""

from __future__ import annotations

from functools import partial

from omb_py.engine.devices.placement import FILLERS
from omb_py.engine.measuring.async_timing import BATCH, MODES
from omb_py.engine.measuring.cache_rotation import CACHES
from omb_py.engine.measuring.process_sync import KINDS
from omb_py.engine.program.benchmark import MEANS, Benchmark
from omb_py.engine.program.dtypes import DTYPES, MPI_OPS, OMB_ALL, OMB_NAMES, OPS, parse_dtype, parse_reductions
from omb_py.engine.program.rma import SYNCS, WINDOWS
from omb_py.grammar.graphs import parse_neighborhood
from omb_py.grammar.layouts import parse_layout
from omb_py.grammar.rank_groups import parse_groups
from omb_py.grammar.traffic import parse_traffic
from omb_py.grammar.values import parse_counts, parse_imbalance, parse_root
from omb_py.options.declared_options import backend_options
from omb_py.options.option import Defaults, Option, declared, under
from omb_py.options.readers import Reader, comma_list, human, parse_switch, parse_workload, whole, word
from omb_py.suites.collective.forms import ROTATE
from omb_py.suites.pt2pt.two_ranks import MOST_IN_TURN

VARIED_WINDOWS = (1, 2, 4, 8, 16, 32, 64, 128)
"""The windows of ``-V``."""
BUFFER_NUMS = ("single", "multiple")


def moves_data(benchmark: Benchmark) -> bool:
    """Has the benchmark message sizes?"""
    return benchmark.sizes is not None


def blocking_collective(benchmark: Benchmark) -> bool:
    """Can the calls of this benchmark be timed in several ways on a device?"""
    return benchmark.family == "collective"


def _sweep(defaults: Defaults) -> str:
    b = defaults.benchmark
    smallest = max(b.minimum_size, b.unit_of(defaults.cell) * DTYPES[b.dtype].itemsize if b.unit_of else 0)
    return f"{human(smallest)}:{human(b.sizes.maximum)}, doubling" if b.sizes else ""


def _syncs(defaults: Defaults) -> str:
    b = defaults.benchmark
    cells = [(kind, defaults.cell.with_options(sync=kind)) for kind in SYNCS]
    return ", ".join(kind for kind, cell in cells if not (b.refuses and b.refuses(cell)))


def _buffer_num(defaults: Defaults) -> str:
    turns = "" if "window" in defaults.benchmark.options else f", or for up to {MOST_IN_TURN} iterations in turn"
    return f"single: one buffer to send and one to receive; multiple: one of each for every message of a window{turns}."


def _dtypes(lists: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    """The types of repeated comma lists by our names; ``all`` means OMB's three."""
    words = (word for words in lists for word in words)
    return tuple(name for text in words for name in (OMB_ALL if text == "all" else (parse_dtype(text),)))


MEASURED = under(
    "What is measured",
    Option(
        "backends",
        "--backend",
        lambda d: f"Communication libraries: {', '.join(d.backends)}; several take turns.",
        "LIST",
        comma_list("backend"),
        offers=lambda d: d.backends,
    ),
    Option(
        "bindings",
        "--binding",
        lambda d: f"Who issues the calls: {', '.join(d.bindings)}; several take turns.",
        "LIST",
        comma_list("binding"),
        offers=lambda d: d.bindings,
        default=lambda d: d.bindings[0],
    ),
    Option(
        "sizes",
        "-m --message-size",
        "Bytes: MAX, MIN:MAX, MIN:MAX:FACTOR or A,B,C, as 4K, 1MiB, 2^20; 8:8 is one size.",
        "SIZES",
        Reader("sizes", str),
        default=_sweep,
        takers=moves_data,
        lacks="message size",
        waived=True,
    ),
    Option(
        "dtypes",
        "-T --type",
        "Element types: char, int8 to int64, uint8 to uint64, float16 to float64, bfloat16, float8e4m3, float8e5m2, "
        "complex64, complex128, mpi_int, …; all: char, int32, float32.",
        "TYPE",
        comma_list("type", [*DTYPES, *OMB_NAMES, "all"]),
        default=lambda d: d.benchmark.dtype,
        key="type",
        lacks="element type",
        waived=True,
        column="dtype",
        repeats=True,
        makes=lambda lists: {"dtypes": _dtypes(lists)},
    ),
    declared(
        "op",
        "--op",
        f"Reductions: {', '.join(MPI_OPS)}; NCCL's avg, mulsum; Gloo's avg.",
        "OP",
        Reader("operation", lambda text: ",".join(parse_reductions(text)), OPS),
        usual="sum",
        lacks="reduction operation",
        column="op",
    ),
    declared(
        "window",
        "-W --window-size",
        "Messages in flight.",
        "N",
        whole("window size", 1),
        usual=64,
        lacks="window of messages in flight",
        column="window",
    ),
    declared(
        "window_kind",
        "-w --win-options",
        f"How the window is made: {', '.join(WINDOWS)}.",
        "KIND",
        word("window kind", tuple(WINDOWS)),
        usual="allocate",
        lacks="window of memory that peers access",
    ),
    declared(
        "sync",
        "-s --sync-option",
        lambda d: f"What completes the operation: {_syncs(d)}.",
        "KIND",
        word("synchronisation", tuple(SYNCS)),
        usual="flush",
        lacks="synchronisation of a window",
    ),
    declared(
        "mean",
        "--mean",
        "What the printed mean holds: loop, the whole loop with two readings of the clock an iteration, as in OMB; "
        "lap, the operation with one.",
        "KIND",
        word("mean", MEANS),
        usual="loop",
        lacks="mean of a whole loop",
        rare=True,
    ),
    declared(
        "in_place",
        "-l --in-place",
        "Use MPI_IN_PLACE.",
        usual=False,
        lacks="in-place form",
        column="in_place",
    ),
    declared(
        "root",
        "-k --root-rank",
        "The root; rotate: another one in every iteration.",
        "fixed:N|rotate",
        Reader("root rank", parse_root, smallest=ROTATE),
        default=lambda d: f"fixed:{d.cell.options.root}",
        usual=0,
        lacks="choice of a root",
        column="root",
    ),
    declared(
        "vary_window",
        "-V --vary-window",
        f"Windows {', '.join(map(str, VARIED_WINDOWS))} in turn, in two tables.",
        usual=False,
        lacks="sweep over windows",
        rare=True,
    ),
    declared(
        "print_rate",
        "-R --print-rate",
        "Print the message rate.",
        "0|1",
        Reader("rate", parse_switch),
        usual=1,
        lacks="message rate",
        rare=True,
    ),
    Option(
        "num_pairs",
        "-p --num-pairs",
        "Without effect, accepted for scripts.",
        "N",
        whole("pairs", 1),
        default="",
        takers=lambda benchmark: "print_rate" in benchmark.options,
        scope="line",
        ignored="as in OMB, half of the ranks send to the other half whatever it says: -n chooses their number",
        hidden=True,
    ),
    declared(
        "buffer_num",
        "-b --buffer-num",
        _buffer_num,
        "KIND",
        word("number of buffers", BUFFER_NUMS),
        usual="single",
        lacks="choice of one or several buffers",
        rare=True,
        waived=True,
    ),
    declared(
        "ddt",
        "-D --ddt",
        "Derived datatype of a message: cont, vect:STRIDE:BLOCK, or indx:FILE with lines DISPLACEMENT, LENGTH; in "
        "elements, repeated as often as it fits. once:FILE has each piece once, as OMB's indx.",
        "LAYOUT",
        Reader("layout", parse_layout),
        default="none, plain elements",
        usual="",
        lacks="derived datatypes",
        column="datatype_layout",
        rare=True,
    ),
    declared(
        "partitions",
        "-q --partitions",
        "Parts of a message.",
        "N",
        whole("number of partitions", 1),
        usual=8,
        lacks="partitions",
    ),
    declared(
        "thread_counts",
        "-t --num-threads",
        "Threads that send on rank 0 and that receive on rank 1; in IMB-MT's benchmarks R on every rank.",
        "[S:]R",
        Reader("threads", partial(parse_counts, sender=1)),
        usual="1:2",
        lacks="threads",
    ),
    declared(
        "process_counts",
        "-t --num-processes",
        "Forked children that sleep beside rank 0 and beside rank 1.",
        "[S:]R",
        Reader("processes", partial(parse_counts, sender=2)),
        usual="2:2",
        lacks="forked processes",
    ),
    declared(
        "tests",
        "-t --num-test-calls",
        "Calls of MPI_Test between pieces of the computing.",
        "N",
        whole("number of test calls", 0),
        usual=0,
        lacks="MPI_Test calls",
        waived=True,
    ),
    Option(
        "array_size",
        "-a --array-size",
        "Without effect, accepted for scripts.",
        "N",
        whole("array size", 1),
        default="",
        scope="line",
        ignored="the computing beside a non-blocking call has a size of its own",
        hidden=True,
    ),
    declared(
        "imbalance",
        "--imbalance",
        "Blocks of different sizes: from (1 - F) times the size on rank 0 to (1 + F) times on the last.",
        "F",
        Reader("fraction", parse_imbalance),
        default="0, all the same, as in OMB",
        usual=0.0,
        lacks="blocks of different sizes",
        rare=True,
    ),
    declared(
        "traffic",
        "--traffic",
        "What each rank sends to each: a line of N numbers for each of N ranks; their mean is the message size. "
        "spread:F, from 0 to 1, is the pattern of nccl-tests.",
        "FILE|spread:F",
        Reader("traffic", parse_traffic),
        default="all the same",
        usual="",
        lacks="blocks that a matrix gives",
        rare=True,
    ),
    declared(
        "groups",
        "--groups",
        "Several groups of ranks run at once, each on a communicator of its own: 4x2 (four of two ranks), mod:8, "
        "div:8, and:0x7, or:0x7, node, gpu, or each rank's color, as color:0,0,1,1.",
        "GROUPS",
        Reader("groups", parse_groups),
        default="one of all ranks",
        usual="",
        lacks="ranks that can be divided",
        rare=True,
    ),
    declared(
        "neighborhood",
        "-N --nhbr",
        "Neighbors: cart:DIMENSIONS:RADIUS, or graph:FILE with lines SOURCE, TARGET.",
        "GRAPH",
        Reader("neighborhood", parse_neighborhood),
        usual="cart:1:1",
        lacks="graph of neighbors",
    ),
    declared(
        "workload",
        "--workload",
        "What a step asks for, as ddp:model=resnet50; omb-py workloads lists names and keys.",
        "NAME:KEY=VALUE,…",
        Reader("workload", parse_workload),
        usual="",
        lacks="choice of a workload",
    ),
    Option(
        "cache",
        "--cache",
        "hot: the same buffers every time, as in OMB; rotate: others each time, over twice the last-level cache.",
        "KIND",
        word("cache", CACHES),
        usual="hot",
        takers=moves_data,
        lacks="data",
        cell="options",
        column="cache",
        rare=True,
    ),
    Option(
        "filler",
        "-r --cuda-target",
        f"What computes meanwhile: {', '.join(FILLERS)} (both of them).",
        "KIND",
        word("filler", FILLERS),
        usual="cpu",
        key="tests",
        rare=True,
    ),
    Option(
        "timing",
        "--timing",
        f"With --backend nccl, where calls return before they are done: {', '.join(MODES)}.",
        "MODE",
        word("timing", MODES),
        default=MODES[0],
        usual="",
        takers=blocking_collective,
        rare=True,
    ),
    Option(
        "batch",
        "--batch",
        "Calls of a sample that is pipelined, a graph or spin-gated.",
        "N",
        whole("batch", 1),
        default=str(BATCH),
        usual=1,
        takers=blocking_collective,
        rare=True,
    ),
    *backend_options(run_wide=False),
    declared(
        "process_sync",
        "--process-sync",
        "Between iterations, untimed: barrier, dissemination (made of messages), roundtime (a common clock), none.",
        "KIND",
        word("process synchronisation", KINDS),
        usual="barrier",
        lacks="synchronisation after each call",
        column="process_sync",
        rare=True,
    ),
)
