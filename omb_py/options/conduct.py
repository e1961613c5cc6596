"""Options on repetition, checks, output and storage."""

from __future__ import annotations

from pathlib import Path

from omb_py.engine.program.benchmark import LARGE_MESSAGE_BYTES
from omb_py.grammar.values import (
    DEFAULT_PERCENTILES,
    parse_count,
    parse_duration,
    parse_fraction,
    parse_percentiles,
    parse_tags,
    parse_warmup,
)
from omb_py.options.declared_options import backend_options, has_timed_loop, observer_options
from omb_py.options.option import Defaults, Option, under
from omb_py.options.readers import (
    VALIDATION_LOG,
    Reader,
    comma_list,
    human,
    parse_folder,
    parse_validation,
    whole,
    word,
)
from omb_py.options.request import DEFAULT_STORE, FORMATS, GRAPHS, SILENT
from omb_py.results.dialects.dialect import REPORTS
from omb_py.results.dialects.registry import OF_TRAININGS

BARE_PERCENTILES = ",".join(map(str, DEFAULT_PERCENTILES))


def _count_by_size(defaults: Defaults, small: int, large: int) -> str:
    """The count in words, with that of large messages for a benchmark with sizes."""
    return f"{small}, above {human(LARGE_MESSAGE_BYTES)} {large}" if defaults.benchmark.sizes else str(small)


def _iterations(defaults: Defaults) -> str:
    counts = defaults.benchmark.counts
    return f"{defaults.request.repetition.iterations}, at most {_count_by_size(defaults, counts.small, counts.large)}"


def _warmup(defaults: Defaults) -> str:
    counts = defaults.benchmark.counts
    return _count_by_size(defaults, counts.small_warmup, counts.large_warmup)


class Passes(int):
    """How often all sizes of a launch are measured, in place of seconds."""


def _parse_repetition(text: str) -> Passes | float:
    """A number of passes, as ``3x``, or seconds. Raises UsageError."""
    word = text.strip().lower()
    return Passes(parse_count(word[:-1], "passes", 1)) if word.endswith("x") else parse_duration(text)


def _validation(value: Path | bool) -> dict[str, object]:
    return {"validate": True, "validation_log": value if isinstance(value, Path) else None}


HOW_OFTEN = under(
    "How often",
    Option(
        "iterations",
        "-i --iterations",
        "N; omb, which is OMB's count; auto, which may stop earlier, once the median is known to --precision; or "
        "SIZE:N,…,0:N, with N for messages up to SIZE and the last for larger ones.",
        "COUNT",
        Reader("count", str),
        default=_iterations,
        column="iterations",
    ),
    Option(
        "warmup",
        "-x --warmup",
        "Iterations before the timed ones.",
        "N",
        Reader("warm-up", parse_warmup, smallest=0),
        default=_warmup,
        column="warmup",
    ),
    Option(
        "precision",
        "--precision",
        "Half-width of the 95 % interval of the median at which auto stops.",
        "P",
        Reader("fraction", parse_fraction),
        default=lambda d: f"{d.request.repetition.precision:.0%}",
        cell="sampling",
        rare=True,
    ),
    Option(
        "time_limit",
        "--time-limit",
        "Longest loop of one message size with auto: 30, 500ms, 2m.",
        "TIME",
        Reader("duration", parse_duration),
        default="none",
        cell="sampling",
        rare=True,
    ),
    Option(
        "repeat_for",
        "--repeat-for",
        "Soak: measure all sizes again and again in one launch: for 10m, 2h, or 3x, three times.",
        "TIME",
        Reader("duration", _parse_repetition),
        default="once",
        makes=lambda value: {"passes" if isinstance(value, Passes) else "repeat_for": value},
        rare=True,
    ),
    Option(
        "launches",
        "--launches",
        "Start the ranks N times; several backends or bindings take turns.",
        "N",
        whole("launches", 1),
        scope="run",
    ),
    Option(
        "seed",
        "--seed",
        "For everything random.",
        "N",
        whole("seed", 0),
        default="drawn, and stored",
        scope="run",
        rare=True,
    ),
)
CHECKS = under(
    "Checks",
    Option(
        "validate",
        "-c --validation",
        f"Check every byte. -clog:DIR writes what is wrong to a new folder ({VALIDATION_LOG}).",
        "log",
        Reader("log", parse_validation),
        default="",
        key="validation",
        lacks="data to validate",
        waived=True,
        cell="identity",
        column="validated",
        bare="on",
        is_glued=lambda text: text.startswith("log"),
        makes=_validation,
    ),
    Option(
        "energy",
        "--energy",
        "Energy per operation of hosts (RAPL) and GPUs (NVML, amdsmi), and whether they were throttled.",
        takers=has_timed_loop,
        lacks="timed loop whose energy could be read",
        cell="observers",
        rare=True,
    ),
    Option(
        "counters",
        "--counters",
        "What the network counts in the loop of each size: bytes on the wire, retransmits, errors.",
        takers=has_timed_loop,
        lacks="timed loop in which the network could count",
        cell="observers",
        rare=True,
    ),
    Option(
        "pvars",
        "--pvar",
        "What the library counts in the loop of each size; omb-py knobs --pvars lists names. Repeat it.",
        "NAME",
        Reader("performance variable", str),
        default="none",
        takers=has_timed_loop,
        lacks="timed loop in which the library could count",
        cell="observers",
        repeats=True,
        makes=lambda texts: {"pvars": ",".join(dict.fromkeys(",".join(texts).split(",")))},
        rare=True,
    ),
    *observer_options(),
    Option(
        "memory_limit",
        "-M --mem-limit",
        "Without effect, accepted for scripts.",
        "BYTES",
        Reader("memory limit", str),
        default="",
        scope="line",
        ignored="OMB has had none since 7.5: -m says how large messages become",
        hidden=True,
    ),
    Option(
        "validation_warmup",
        "-u --validation-warmup",
        "Without effect, accepted for scripts.",
        "N",
        whole("validation warm-up", 0),
        default="",
        scope="line",
        ignored="-c checks iterations of its own, so no timed one needs exchanges before it",
        hidden=True,
    ),
    Option(
        "timeout",
        "--timeout",
        "End the run when a rank makes no progress for so long.",
        "TIME",
        Reader("duration", parse_duration),
        default=lambda d: f"{d.request.launching.timeout:g}s",
        scope="run",
        rare=True,
    ),
)
OUTPUT = under(
    "Output",
    Option(
        "full",
        "-f --full",
        "Print minimum and maximum over ranks and iterations too.",
        key="full",
        lacks="minimum and maximum over ranks",
        waived=True,
    ),
    Option(
        "percentiles",
        "-z --tail-lat",
        f"Print percentiles, as -z50,99.9; a bare -z means {BARE_PERCENTILES}.",
        "P,P",
        Reader("percentiles", parse_percentiles),
        default="",
        bare=BARE_PERCENTILES,
        is_glued=lambda text: text[0].isdigit(),
    ),
    Option(
        "format",
        "--format",
        f"Form of the results: {', '.join(FORMATS)}.",
        "FORM",
        word("format", FORMATS),
        default=lambda d: f"{d.request.printing.format}; table with several backends or bindings",
        scope="line",
        also=(SILENT, OF_TRAININGS.name),
    ),
    Option(
        "graph",
        "-G --graph",
        f"Draw the results too: {', '.join(GRAPHS)}: the curve in this terminal, or as BENCHMARK-RUN.png or .pdf in "
        "this folder by a browser.",
        "FORM",
        word("graph", GRAPHS),
        default="none",
        rare=True,
    ),
    Option(
        "json",
        "--json",
        "Write the results to a new file too, as JSON: with --format nccl-tests as its -J does.",
        "FILE",
        Reader("file", str),
        default="none",
        scope="line",
        rare=True,
    ),
    Option(
        "report",
        "--report",
        f"With --format nccl-tests, as its -C, -S, -M and -a: {', '.join(REPORTS)}.",
        "LIST",
        comma_list("report", REPORTS, closed=True),
        default="the mean over the ranks",
        scope="line",
        rare=True,
    ),
    Option("quiet", "--quiet", "No progress and no notes on stderr.", scope="line"),
)
PROGRAM_MARK = "OMB_PY_PROGRAM_MARK"
"""Variable of all processes of a program that ``compare --run`` has started, which stores what the program prints."""
STORAGE = under(
    "Storage",
    Option(
        "store",
        "--store",
        "Folder of the Parquet files.",
        "DIR",
        Reader("folder", parse_folder),
        default=f"./{DEFAULT_STORE}",
        scope="line",
        envvar="OMB_PY_STORE",
    ),
    Option(
        "no_store",
        "--no-store",
        "Store nothing.",
        scope="line",
        makes=lambda value: {"store": None},
    ),
    Option(
        "tags",
        "--tag",
        "Store a tag with every row; repeat it for several.",
        "K=V",
        Reader("tag", str),
        default="",
        column="tags",
        scope="run",
        repeats=True,
        makes=lambda texts: {"tags": parse_tags(texts)},
    ),
)
OTHER = under(
    "Other options",
    *backend_options(run_wide=True),
    Option(
        "inject",
        "--inject",
        "Faults to inject.",
        "TEXT",
        Reader("text", str),
        default="none",
        scope="line",
        hidden=True,
    ),
    Option("debug", "--debug", "Show tracebacks of errors.", default="", scope="line", rare=True),
)
