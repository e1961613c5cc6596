"""The options of a measuring command, made from a benchmark's declaration, with the defaults really used."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import Any

import click

from omb_py.backends.registry import capabilities_of
from omb_py.backends.registry import own_options as own_of_backends
from omb_py.cli.help import GluedOption, Grouped, debug_option
from omb_py.cli.param_types import Parsed, comma_list, joined, whole, word
from omb_py.engine.devices.filler import FILLERS
from omb_py.engine.measuring.async_timing import BATCH, MODES
from omb_py.engine.measuring.cache_rotation import CACHES
from omb_py.engine.measuring.process_sync import KINDS
from omb_py.engine.program.benchmark import LARGE_MESSAGE_BYTES, Benchmark, Cell
from omb_py.engine.program.buffers import BUFFERS, OBJECTS, ON_DEVICE
from omb_py.engine.program.dtypes import DTYPES, OMB_NAMES, OPS
from omb_py.engine.program.rma import SYNCS, WINDOWS
from omb_py.errors import UsageError, nearest
from omb_py.options.graphs import parse_neighborhood
from omb_py.options.layouts import parse_layout
from omb_py.options.request import DEFAULT_RANKS, DEFAULT_STORE, FORMATS, GRAPHS, LAUNCHERS, Request
from omb_py.options.traffic import parse_traffic
from omb_py.options.values import (
    DEFAULT_PERCENTILES,
    parse_counts,
    parse_duration,
    parse_fraction,
    parse_imbalance,
    parse_percentiles,
    parse_root,
    parse_warmup,
)
from omb_py.orchestrate.planning.plan import VARIED_WINDOWS, takes
from omb_py.orchestrate.planning.validation import BUFFER_NUMS, DEVICES, STAGINGS, THREAD_LEVELS
from omb_py.suites.pt2pt.two_ranks import MOST_IN_TURN

MANAGED = "managed"
"""OMB's word for a GPU with all buffers in managed memory."""
VALIDATION_LOG = "validation_output"
"""Folder of a bare ``-clog``, as in OMB."""
BARE_PERCENTILES = ",".join(map(str, DEFAULT_PERCENTILES))


def human(size: int) -> str:
    """A size as the size grammar reads it: ``8``, ``4K``, ``1M``."""
    for letter, power in (("G", 30), ("M", 20), ("K", 10)):
        if size and size % (1 << power) == 0:
            return f"{size >> power}{letter}"
    return str(size)


def measuring_options(benchmark: Benchmark) -> list[click.Parameter]:
    """Every option of a measuring command. What the benchmark does not take is hidden; the planner refuses it."""
    request = Request(benchmark.name)
    cell = benchmark.cell(request.backends[0], "native", 0)
    return [
        *_what(benchmark, request, cell),
        *_where(benchmark, request),
        *_how_often(benchmark, request),
        *_checks(benchmark, request),
        *_output(benchmark, request),
        *_storage(),
        *_other(),
    ]


def _syncs(benchmark: Benchmark) -> list[str]:
    """The synchronisations that mean something for a benchmark."""
    cells = [(kind, benchmark.cell("", "", 1, sync=kind)) for kind in SYNCS]
    return [kind for kind, cell in cells if not (benchmark.refuses and benchmark.refuses(cell))]


def _option(
    heading: str, names: str, metavar: str, text: str, default: str, type: Parsed, name: str | None = None, **more: Any
) -> click.Option:
    """An option with a value; `default` is what the help page calls the default."""
    decls = [*names.split(), *([name] if name else [])]
    return Grouped(decls, heading=heading, metavar=metavar, help=f"{text} (default: {default})", type=type, **more)


def _flag(heading: str, names: str, text: str, hidden: bool = False) -> click.Option:
    return Grouped(names.split(), heading=heading, is_flag=True, help=f"{text} (default: off)", hidden=hidden)


def ranks_option(heading: str, text: str = "Number of ranks.", unset: str = "") -> click.Option:
    """``-n N``. With `unset`, the words for what is meant without it, it has no default; else :data:`DEFAULT_RANKS`."""
    count = {} if unset else {"default": DEFAULT_RANKS}
    return Grouped(
        ["-n", "--ranks"],
        heading=heading,
        metavar="N",
        type=whole("ranks", 1),
        help=f"{text} (default: {unset or DEFAULT_RANKS})",
        **count,
    )


def _what(b: Benchmark, request: Request, cell: Cell) -> list[click.Parameter]:
    heading = "What is measured"
    kinds = ", ".join(capabilities_of())
    every = list(dict.fromkeys(binding for offer in capabilities_of().values() for binding in offer.bindings))
    smallest = max(b.minimum_size, b.unit_of(cell) * DTYPES[b.dtype].itemsize if b.unit_of else 0)
    sweep = f"{human(smallest)}:{human(b.sizes.maximum)}, doubling" if b.sizes else ""
    types = f"{', '.join(DTYPES)}; OMB's {', '.join(OMB_NAMES)}, and all (char, int32, float32)"
    return [
        _option(
            heading,
            "--backend",
            "LIST",
            f"Communication libraries: {kinds}. Several, with commas, take turns.",
            ",".join(request.backends),
            comma_list("backend", tuple(capabilities_of())),
        ),
        _option(
            heading,
            "--binding",
            "LIST",
            f"Who issues the calls: native is machine code that calls the library; all: {', '.join(every)}. "
            "Several take turns.",
            next(iter(capabilities_of()[request.backends[0]].bindings)),
            comma_list("binding", every),
        ),
        _option(
            heading,
            "-m --message-size",
            "SIZES",
            "Bytes: MAX, MIN:MAX, MIN:MAX:FACTOR or a list A,B,C, as 4K, 1MiB, 2^20. One size alone is 8:8.",
            sweep,
            Parsed("sizes", str),
            name="sizes",
            hidden=not takes(b, "sizes"),
        ),
        _option(
            heading,
            "-T --type",
            "TYPE",
            f"Element types: {types}. Repeat it or use commas for several.",
            b.dtype,
            comma_list("type", [*DTYPES, *OMB_NAMES, "all"]),
            name="dtypes",
            multiple=True,
            hidden=not takes(b, "type"),
        ),
        _option(
            heading,
            "--op",
            "OP",
            f"Reduction: {', '.join(OPS)}.",
            cell.op,
            Parsed("operation", lambda text: text.strip().lower().removeprefix("mpi_"), OPS),
            hidden=not takes(b, "op"),
        ),
        _option(
            heading,
            "-W --window-size",
            "N",
            "Messages in flight.",
            str(cell.window),
            whole("window size", 1),
            name="window",
            hidden=not takes(b, "window"),
        ),
        _option(
            heading,
            "-w --win-options",
            "KIND",
            f"How the window is made: {', '.join(WINDOWS)}.",
            cell.window_kind,
            word("window kind", tuple(WINDOWS)),
            name="window_kind",
            hidden=not takes(b, "window_kind"),
        ),
        _option(
            heading,
            "-s --sync-option",
            "KIND",
            f"What completes the operation: {', '.join(_syncs(b))}.",
            cell.sync,
            word("synchronisation", tuple(SYNCS)),
            name="sync",
            hidden=not takes(b, "sync"),
        ),
        _flag(heading, "-l --in-place", "Use MPI_IN_PLACE.", hidden=not takes(b, "in_place")),
        _option(
            heading,
            "-k --root-rank",
            "fixed:N|rotate",
            "The root; rotate: another one in every iteration.",
            f"fixed:{cell.root}",
            Parsed("root", parse_root),
            name="root",
            hidden=not takes(b, "root"),
        ),
        _flag(
            heading,
            "-V --vary-window",
            "Windows " + ", ".join(map(str, VARIED_WINDOWS)) + " in turn, in two tables.",
            hidden=not takes(b, "vary_window"),
        ),
        _option(
            heading,
            "-R --print-rate",
            "0|1",
            "Print the message rate.",
            str(cell.print_rate),
            Parsed("rate", parse_switch),
            name="print_rate",
            hidden=not takes(b, "print_rate"),
        ),
        _option(
            heading,
            "-b --buffer-num",
            "KIND",
            "single: one buffer to send and one to receive; multiple: one of each for every message of a window"
            f"{_IN_TURN if 'window' not in b.options else ''}.",
            cell.buffer_num,
            word("number of buffers", BUFFER_NUMS),
            name="buffer_num",
            hidden=not takes(b, "buffer_num"),
        ),
        _option(
            heading,
            "-D --ddt",
            "LAYOUT",
            "Derived datatype of a message: cont, vect:STRIDE:BLOCK, or indx:FILE with lines DISPLACEMENT, LENGTH; "
            "in elements, repeated as often as it fits.",
            "none, plain elements",
            Parsed("layout", parse_layout),
            hidden=not takes(b, "ddt"),
        ),
        _option(
            heading,
            "-q --partitions",
            "N",
            "Parts of a message.",
            str(cell.partitions),
            whole("number of partitions", 1),
            hidden=not takes(b, "partitions"),
        ),
        _on_t(b, cell, heading),
        _option(
            heading,
            "--imbalance",
            "F",
            "Blocks of different sizes: from (1 - F) times the size on rank 0 to (1 + F) times on the last.",
            "0, all the same, as in OMB",
            Parsed("fraction", parse_imbalance),
            hidden=not takes(b, "imbalance"),
        ),
        _option(
            heading,
            "--traffic",
            "FILE",
            "What each rank sends to each: a line of N numbers for each of N ranks; their mean is the message size.",
            "all the same",
            Parsed("traffic", parse_traffic),
            hidden=not takes(b, "traffic"),
        ),
        _option(
            heading,
            "-N --nhbr",
            "GRAPH",
            "Neighbors: cart:DIMENSIONS:RADIUS, or graph:FILE with lines SOURCE, TARGET.",
            cell.neighborhood,
            Parsed("neighborhood", parse_neighborhood),
            name="neighborhood",
            hidden=not takes(b, "neighborhood"),
        ),
        _option(
            heading,
            "--workload",
            "NAME:KEY=VALUE,…",
            "What a step asks for, as ddp:model=resnet50; omb-py workloads lists names and keys.",
            cell.workload,
            Parsed("workload", _workload),
            hidden=not takes(b, "workload"),
        ),
        _option(
            heading,
            "--cache",
            "KIND",
            "hot: the same buffers every time, as in OMB; rotate: others each time, over twice the last-level cache.",
            cell.cache,
            word("cache", CACHES),
            hidden=not takes(b, "cache"),
        ),
        _option(
            heading,
            "-r --cuda-target",
            "KIND",
            f"What computes meanwhile: {', '.join(FILLERS)} (both of them).",
            cell.filler,
            word("filler", FILLERS),
            name="filler",
            hidden=not takes(b, "tests"),
        ),
        _option(
            heading,
            "--timing",
            "MODE",
            f"With --backend nccl, where calls return before they are done: {', '.join(MODES)}.",
            "isolated",
            word("timing", MODES),
            hidden=b.family != "collective",
        ),
        _option(
            heading,
            "--batch",
            "N",
            "Calls of a sample that is pipelined, a graph or spin-gated.",
            str(BATCH),
            whole("batch", 1),
            hidden=b.family != "collective",
        ),
        *own_options(heading, run_wide=False),
        _option(
            heading,
            "--process-sync",
            "KIND",
            "Between iterations, untimed: barrier, dissemination (made of messages), roundtime (a common clock), none.",
            cell.process_sync,
            word("process synchronisation", KINDS),
            hidden=not takes(b, "process_sync"),
        ),
    ]


_IN_TURN = f", or for up to {MOST_IN_TURN} iterations in turn"


def _workload(text: str) -> str:
    from omb_py.suites.workloads.families import parse_workload

    return parse_workload(text).text


def _on_t(b: Benchmark, cell: Cell, heading: str) -> click.Option:
    """OMB's ``-t``: test calls, threads or processes, by benchmark."""
    if takes(b, "thread_counts"):
        return _option(
            heading,
            "-t --num-threads",
            "[S:]R",
            "Threads that send on rank 0 and that receive on rank 1.",
            cell.thread_counts,
            Parsed("threads", partial(parse_counts, sender=1)),
            name="thread_counts",
        )
    if takes(b, "process_counts"):
        return _option(
            heading,
            "-t --num-processes",
            "[S:]R",
            "Forked children that sleep beside rank 0 and beside rank 1.",
            cell.process_counts,
            Parsed("processes", partial(parse_counts, sender=2)),
            name="process_counts",
        )
    return _option(
        heading,
        "-t --num-test-calls",
        "N",
        "Calls of MPI_Test between pieces of the computing.",
        str(cell.tests),
        whole("number of test calls", 0),
        name="tests",
        hidden=not takes(b, "tests"),
    )


def parse_switch(text: str) -> int:
    """0 or 1. Raises UsageError."""
    if text.strip() not in ("0", "1"):
        raise UsageError(f"-R/--print-rate takes 0 or 1, not {text!r}")
    return int(text)


def _where(b: Benchmark, request: Request) -> list[click.Parameter]:
    heading = "Where"
    return [
        ranks_option(
            heading,
            f"Number of ranks; {b.name} takes {b.ranks.text}.",
            f"{DEFAULT_RANKS}, or what the launcher around it started",
        ),
        _option(
            heading,
            "-d --device",
            "LIST",
            f"Where buffers live: {', '.join(DEVICES)}; managed is managed memory of the GPU. Several take turns.",
            request.device,
            joined("device", (*DEVICES, MANAGED)),
        ),
        _flag(heading, "--share-device", "Let several ranks use one device; rows are labelled."),
        _option(
            heading,
            "--staging",
            "KIND",
            "MPI on a device: auto copies through the host where the library takes no device buffers; never: exit 3.",
            request.staging,
            word("staging", STAGINGS),
        ),
        _option(
            heading,
            "--buffer",
            "KIND",
            f"What holds the bytes: {', '.join(BUFFERS)} (pickled); on a device also {', '.join(ON_DEVICE)}.",
            request.buffer,
            word("buffer", tuple(dict.fromkeys((*BUFFERS, *ON_DEVICE)))),
        ),
        _option(
            heading,
            "--object",
            "KIND",
            f"With --buffer object: what is pickled: {', '.join(OBJECTS)}.",
            OBJECTS[0],
            word("object", OBJECTS),
            name="object_kind",
            hidden=not takes(b, "object"),
        ),
        _flag(
            heading,
            "--out-of-band",
            "With --buffer object: send large buffers beside the pickle (mpi4py.util.pkl5).",
            hidden=not takes(b, "out_of_band"),
        ),
        _option(
            heading,
            "--hosts",
            "LIST",
            "Hosts to start ranks on, with commas.",
            "this one, or those of the batch job",
            comma_list("host", keep_case=True),
        ),
        _option(
            heading,
            "--launcher",
            "NAME",
            f"What starts the ranks: {', '.join(LAUNCHERS)}.",
            request.launcher,
            word("launcher", LAUNCHERS),
        ),
        _option(
            heading,
            "--launcher-args",
            "TEXT",
            "Words for the launcher, as one text: '--bind-to none'.",
            "none",
            Parsed("text", _shell_words),
        ),
        _option(
            heading,
            "--thread-level",
            "LEVEL",
            f"MPI thread level to ask for: {', '.join(THREAD_LEVELS)}.",
            f"{b.needs.thread_level}; with binding mpi4py multiple",
            word("thread level", THREAD_LEVELS),
        ),
        _flag(heading, "-I --session", "Begin with an MPI session (MPI-4) instead of MPI_Init."),
    ]


def _how_often(b: Benchmark, request: Request) -> list[click.Parameter]:
    heading = "How often"
    count = b.counts
    above = f"above {human(LARGE_MESSAGE_BYTES)} "
    most = f"{count.small}, {above}{count.large}" if b.sizes else str(count.small)
    warmup = f"{count.small_warmup}, {above}{count.large_warmup}" if b.sizes else str(count.small_warmup)
    return [
        _option(
            heading,
            "-i --iterations",
            "COUNT",
            "auto may stop before OMB's count, once the median is known to --precision. omb is exactly OMB's count, N "
            "exactly N; so is SIZE:N,…,0:N, with N for messages up to SIZE and the last for larger ones.",
            f"{request.iterations}, at most {most}",
            Parsed("count", str),
        ),
        _option(
            heading, "-x --warmup", "N", "Iterations before the timed ones.", warmup, Parsed("count", parse_warmup)
        ),
        _option(
            heading,
            "--precision",
            "P",
            "Half-width of the 95 % interval of the median at which auto stops.",
            f"{request.precision:.0%}",
            Parsed("fraction", parse_fraction),
        ),
        _option(
            heading,
            "--time-limit",
            "TIME",
            "Longest loop of one message size with auto: 30, 500ms, 2m.",
            "none",
            Parsed("duration", parse_duration),
        ),
        _option(
            heading,
            "--repeat-for",
            "TIME",
            "Soak: measure all sizes again and again in one launch: for 10m, 2h.",
            "once",
            Parsed("duration", parse_duration),
        ),
        _option(
            heading,
            "--launches",
            "N",
            "Start the ranks N times; several backends or bindings take turns.",
            str(request.launches),
            whole("launches", 1),
        ),
        _option(heading, "--seed", "N", "For everything random.", "drawn, and stored", whole("seed", 0)),
    ]


def _checks(b: Benchmark, request: Request) -> list[click.Parameter]:
    heading = "Checks"
    return [
        GluedOption(
            ["-c", "--validation"],
            "on",
            lambda text: text.startswith("log"),
            heading=heading,
            metavar="log[:DIR]",
            hidden=not takes(b, "validation"),
            type=Parsed("log", parse_validation),
            help=f"Check every byte of every message. log writes what was wrong to DIR ({VALIDATION_LOG}), which must "
            "not exist. (default: off)",
        ),
        _option(
            heading,
            "--timeout",
            "TIME",
            "End the run when a rank makes no progress for so long.",
            f"{request.timeout:g}s",
            Parsed("duration", parse_duration),
        ),
    ]


def full_option(hidden: bool = False) -> click.Option:
    """``-f``."""
    return _flag("Output", "-f --full", "Print minimum and maximum over ranks and iterations too.", hidden)


def tails_option() -> click.Option:
    """``-z``."""
    return GluedOption(
        ["-z", "--tail-lat", "percentiles"],
        BARE_PERCENTILES,
        lambda text: text[0].isdigit(),
        heading="Output",
        metavar="P,P",
        type=Parsed("percentiles", parse_percentiles),
        help=f"Print percentiles, at most five; a bare -z means {BARE_PERCENTILES}. (default: off)",
    )


def _output(b: Benchmark, request: Request) -> list[click.Parameter]:
    heading = "Output"
    return [
        full_option(not takes(b, "full")),
        tails_option(),
        _option(
            heading,
            "--format",
            "FORM",
            f"Form of the results: {', '.join(FORMATS)}.",
            f"{request.format}; table with several backends or bindings",
            word("format", FORMATS),
        ),
        _option(
            heading,
            "-G --graph",
            "FORM",
            f"Draw the results too: {', '.join(GRAPHS)}: the curve in this "
            "terminal, or as BENCHMARK-RUN.png or .pdf in this folder by a browser.",
            "none",
            word("graph", GRAPHS),
        ),
        _flag(
            heading,
            "--predict",
            "Print the time of each call as the stored sweeps predict it, beside the measured.",
            hidden=not takes(b, "predict"),
        ),
        _flag(heading, "--quiet", "No progress and no notes on stderr."),
    ]


def _storage() -> list[click.Parameter]:
    heading = "Storage"
    return [
        store_option(heading),
        _flag(heading, "--no-store", "Store nothing."),
        _option(
            heading,
            "--tag",
            "K=V",
            "Store a tag with every row; repeat it for several.",
            "none",
            Parsed("tag", str),
            name="tags",
            multiple=True,
        ),
    ]


def own_options(heading: str, run_wide: bool) -> list[click.Parameter]:
    """The options that backends declare for themselves, such as ``--nccl`` and ``--mock``."""
    return [
        _option(heading, f"--{name}", option.metavar, option.help, option.default, Parsed(name, option.read))
        for name, option in own_of_backends().items()
        if option.run_wide == run_wide
    ]


def _other() -> list[click.Parameter]:
    heading = "Other options"
    return [
        *own_options(heading, run_wide=True),
        _option(heading, "--inject", "TEXT", "Faults to inject.", "none", Parsed("text", str), hidden=True),
        debug_option(),
    ]


def store_option(heading: str = "Storage") -> click.Option:
    """``--store DIR``."""
    return _option(
        heading,
        "--store",
        "DIR",
        "Folder of the Parquet files.",
        f"./{DEFAULT_STORE}",
        Parsed("folder", _folder),
        envvar="OMB_PY_STORE",
    )


def parse_validation(text: str) -> Path | bool:
    """True for a bare ``-c``, else the folder of ``log`` or ``log:DIR``. Raises UsageError."""
    if text == "on":
        return True
    kind, colon, folder = text.partition(":")
    if kind != "log" or (colon and not folder):
        raise UsageError(f"-c{text}: {nearest(kind, ['log'])} write -c, -clog or -clog:DIR")
    path = Path(folder or VALIDATION_LOG)
    if path.exists():
        raise UsageError(f"-c{text}: folder {path} exists already: choose another with -clog:DIR")
    return path


def _folder(text: str) -> Path:
    if not text.strip():
        raise UsageError(f"--store needs a folder, as ./{DEFAULT_STORE}; to store nothing, --no-store")
    return Path(text).expanduser()


def _shell_words(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"launcher arguments {text!r}: {error}") from None
