"""Command lines of nccl-tests and rccl-tests: ``all_reduce_perf -b 8 -e 128M -f 2 -g 1``, as omb-py's own words."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, takewhile
from typing import Final

from omb_py.engine.rank.launcher_variables import joined_environment
from omb_py.errors import UsageError
from omb_py.grammar.rank_groups import groups_of_ranks, needs_hosts, parse_groups
from omb_py.grammar.values import parse_size, parse_whole
from omb_py.results.dialects.nccl.text import BENCHMARKS

_LONG: Final[Mapping[str, str]] = {
    "nthreads": "t",
    "ngpus": "g",
    "minbytes": "b",
    "maxbytes": "e",
    "stepbytes": "i",
    "stepfactor": "f",
    "iters": "n",
    "agg_iters": "m",
    "warmup_iters": "w",
    "parallel_init": "p",
    "check": "c",
    "op": "o",
    "datatype": "d",
    "root": "r",
    "timeout": "T",
    "average": "a",
    "local_register": "R",
    "cta_policy": "x",
    "run_cycles": "N",
    "report_cputime": "C",
    "report_timestamps": "S",
    "memory": "M",
    "memory_report": "M",
    "stream_null": "y",
    "device_implementation": "D",
    "device_cta_count": "V",
    "per_iter_timing": "I",
    "per_iter_skip": "K",
    "memory_type": "Y",
    "stress_cycles": "s",
    "out_of_place": "O",
    "cache_flush": "F",
    "rotating_tensor": "E",
    "blocking": "z",
    "cudagraph": "G",
    "hipgraph": "G",
    "unalign": "u",
    "output_file": "J",
}
_LETTERS: Final = frozenset({*_LONG.values(), "q"})
_LEFT_OUT: Final[Mapping[str, tuple[str, str]]] = {
    "y": ("0", "calls have a stream of their own"),
    "D": ("0", "kernels of the device API are programs of their own"),
    "V": ("", "it is for the kernels of -D"),
    "I": ("0", "--timing event times each call on the device, and the store keeps all times"),
    "K": ("0", "-w has calls that are not timed"),
    "Y": ("coarse", "buffers are the device's usual memory: --device managed with --backend mpi has another"),
    "s": ("1", "-N repeats the sizes"),
    "O": ("", "both placements are measured: --format table measures one, in place with --in-place"),
    "F": ("0", "--cache rotate measures with buffers that no cache holds"),
    "E": ("0", "--cache rotate measures with buffers that no cache holds"),
    "q": ("", "placements follow each other at once"),
}
"""Letters without an equal -> the value that asks for nothing, and what to do or why."""
_VARIABLES: Final[Mapping[str, str]] = {
    "NCCL_TESTS_DEVICE": "name the GPUs in CUDA_VISIBLE_DEVICES",
    "NCCL_TESTS_MIN_BW": "omb-py accept has criteria",
    "NCCL_TESTS_ALLTOALLV_MATRIX_FILE": "--traffic FILE, with -b and -e for the bytes that a rank sends on average",
    "NCCL_TESTS_ALLTOALLV_PRINT_SUMMARY": "the store keeps the time of each rank",
}
"""Variables of nccl-tests without an equal -> what to do."""
_SPREAD: Final = "NCCL_TESTS_ALLTOALLV_SPREAD"
_USUAL_BYTES: Final = "32M"
_BATCH: Final = 20
_TYPES: Final = {"f8e4m3": "float8e4m3", "f8e5m2": "float8e5m2", "fp8_e4m3": "float8e4m3", "fp8_e5m2": "float8e5m2"}
_ALL_TYPES: Final = "int8 uint8 int32 uint32 int64 uint64 half float double bfloat16".split()
"""Of ``-d all``; fp8 is reduced by some GPUs alone, so it is asked for by name."""
_ALL_OPS: Final = "sum prod max min avg mulsum".split()
_OF_BLOCKS: Final = ("allgather", "alltoall", "alltoallv", "gather", "scatter", "hypercube")
"""Benchmarks whose message is a rank's block."""
_REDUCING: Final = ("allreduce", "reduce", "reduce_scatter_block")
_MOST_SIZES: Final = 1000
_WAITED: Final = ["--timing", "isolated"]
"""omb-py never times the barrier behind a call, so ``-z 1`` is ``-z 3``."""
_BLOCKING: Final = {"0": [], "1": _WAITED, "2": [*_WAITED, "--process-sync", "none"], "3": _WAITED}


def benchmark_of(program: str) -> str:
    """The benchmark that a program of nccl-tests measures; empty where the word is none of their names.

    >>> benchmark_of("./build/all_gather_perf")
    'allgather'
    """
    name, is_program, _ = program.rpartition("/")[2].partition("_perf")  # _perf_mpi, where it was built so
    benchmark = BENCHMARKS.get(name, "") if is_program else ""
    return {"reduce_scatter": "reduce_scatter_block", "allreduce_bias": ""}.get(benchmark, benchmark)


def translate(words: Sequence[str], environ: Mapping[str, str] = os.environ) -> list[str]:
    """The words of omb-py that measure what a program of nccl-tests would, in its format and with its defaults.

    What it does not know is omb-py's own, as ``--store FOLDER``.

    >>> " ".join(translate(["all_reduce_perf", "-b", "8", "-e", "1M", "-f", "2", "-g", "2"], {}))
    'allreduce --format nccl-tests --backend nccl -n 2 -m 8:1M:2 --batch 20 -x 1 -c'

    Raises:
        UsageError: an option has no value, a wrong one, or nothing here that does the same.
    """
    given, own = _read(words[1:])
    if unknown := next((name for name in _VARIABLES if environ.get(name)), ""):
        raise UsageError(f"{unknown} of nccl-tests has nothing like it here: unset it; {_VARIABLES[unknown]}")
    took, warm_up = _number(given, "n", _BATCH), _number(given, "w", 1)
    backend = _find_own(own, "--backend")
    # other libraries have no stream: each call of theirs is a sample
    enqueued = backend in ("", "nccl")
    blocking = _choose("z", given.get("z", "0"), _BLOCKING) if enqueued else []
    together = enqueued and not blocking
    line = [benchmark_of(words[0]), "--format", "nccl-tests", *(() if backend else ("--backend", "nccl"))]
    ranks = _number(given, "t", 1) * _number(given, "g", 1)
    joined = joined_environment(environ)
    if joined is None:
        line += ["-n", str(ranks)]
    elif ranks > 1:
        raise UsageError("a rank is a process with one GPU here: start as many ranks as GPUs, with -g 1 and -t 1")
    asked = _find_own(own, "--ranks")  # stronger than -g, and a wrong one is refused later
    ranks = (joined.size or ranks) if joined else max(1, int(asked)) if asked.isdecimal() else ranks
    own_groups = _find_own(own, "--groups")
    groups = parse_groups(own_groups) if own_groups else _groups(environ)
    together_ranks = len(groups_of_ranks("" if needs_hosts(groups) else groups, ranks)[0])
    line += ["-m", _sizes(given, line[0], together_ranks), "--batch" if together else "-i", str(took)]
    # a warm-up is a sample: of a batch, so many calls
    line += ["-x", str(-(-warm_up // took) if together else warm_up)]
    line += ["-c"] if _number(given, "c", 1) else []
    line += [*blocking, *(["--groups", groups] if groups and not own_groups else [])]
    if line[0] == "alltoallv" and not any(word.partition("=")[0] == "--traffic" for word in own):
        line += ["--traffic", f"spread:{_spread(environ.get(_SPREAD, ''))}"]
    if line[0] not in _REDUCING:
        given.pop("o", "")  # as nccl-tests, whose other programs do not look at it
    for letter, write in _WRITERS.items():
        if letter in given:
            line += write(given[letter])
    reports = [word for letter, words in _REPORTS.items() if letter in given for word in words(given[letter])]
    line += ["--report", ",".join(reports)] if reports else []
    settings = {k: text for k, write in _SETTINGS.items() if k in given and (text := write(given[k]))}
    if settings and not enqueued:
        letter = next(iter(settings))
        raise UsageError(f"-{letter} {given[letter]} is for NCCL: leave it out, or --backend {backend}")
    line += ["--nccl", ",".join(settings.values())] if settings else []
    return [*line, *own]


def _read(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The options of nccl-tests by letter, and the words that are omb-py's own."""
    given: dict[str, str] = {}
    own: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.lstrip("-").partition("=")
        name = name if word.startswith("--") else name[:1]
        letter = _LONG.get(name, name)
        is_short = word.startswith("-") and not word.startswith("--")
        if letter not in _LETTERS and is_short and name:
            raise UsageError(f"nccl-tests have no -{name}; options of omb-py are written long here, as --store")
        if not word.startswith("-") or letter not in _LETTERS or len(letter) > 1:
            own.append(word)
            continue
        glued = value if equals else "" if word.startswith("--") else word[2:]
        if not glued and not rest:
            raise UsageError(f"{word} has no value")
        value = glued or rest.pop(0)
        nothing, advice = _LEFT_OUT.get(letter, (value, ""))
        if value != nothing:
            raise UsageError(f"{word} {value} of nccl-tests has nothing like it here: {advice}")
        if not advice:
            given[letter] = value
    return given, own


def _find_own(own: Sequence[str], option: str) -> str:
    """The value of an option of omb-py's own; empty where it is not given."""
    for word, following in pairwise((*own, "")):
        name, equals, value = word.partition("=")
        if name == option:
            return value if equals else following
    return ""


def _number(given: Mapping[str, str], letter: str, usual: int) -> int:
    error = f"-{letter} is a whole number of at least {{least}}, not {{text!r}}"
    return parse_whole(given.get(letter, str(usual)), 0 if letter in "wc" else 1, error=error)


def _choose(letter: str, text: str, meanings: Mapping[str, list[str]]) -> list[str]:
    if text not in meanings:
        raise UsageError(f"-{letter} is one of {', '.join(meanings)} here, not {text!r}")
    return meanings[text]


def _groups(environ: Mapping[str, str]) -> str:
    """The text of ``--groups`` for NCCL_TESTS_SPLIT or NCCL_TESTS_SPLIT_MASK; empty where neither is set."""
    mask, split = environ.get("NCCL_TESTS_SPLIT_MASK"), environ.get("NCCL_TESTS_SPLIT", "")
    if mask:
        split = f"and:0x{mask.strip().lower().removeprefix('0x')}"
    return parse_groups(split) if split else ""


def _spread(text: str) -> str:
    """A spread from 0 to 1, as nccl-tests take it: what lies beyond is the nearest, and what is no number is 1."""
    try:
        return f"{min(1.0, max(0.0, float(text))):g}"
    except ValueError:
        return "1"


def _sizes(given: Mapping[str, str], benchmark: str, ranks: int) -> str:
    """Bytes of messages. nccl-tests' are those of the whole operation, which may be blocks of all ranks together."""
    first, last = given.get("b", _USUAL_BYTES), given.get("e", _USUAL_BYTES)
    low, high, step = parse_size(first), parse_size(last), max(1, parse_size(given.get("i", "1M")))
    if low > high:
        raise UsageError(f"-b {first} is above -e {last}, which is {_USUAL_BYTES} where it is not given")
    factor = parse_whole(given.get("f", "1"), 0, error="-f is a whole number of at least {least}, not {text!r}")
    if factor > 1 and benchmark not in _OF_BLOCKS:
        return f"{first}:{last}:{factor}"
    if factor > 1:
        powers = (max(1, low) * factor**power for power in range(64))
        sizes: Sequence[int] = list(takewhile(lambda size: size <= high, powers))
    else:
        sizes = range(low, high + 1, step)
    if len(sizes) > _MOST_SIZES:
        raise UsageError(f"-i {given.get('i', '1M')} makes {len(sizes)} sizes: a larger step, or -f 2")
    blocks = (size // ranks for size in sizes) if benchmark in _OF_BLOCKS else sizes
    texts = [str(block) for block in dict.fromkeys(blocks) if block] or [str(high)]
    return ",".join(texts) if len(texts) > 1 else f"{texts[0]}:{texts[0]}"  # one number alone is the end of a sweep


def _types(text: str) -> list[str]:
    return ["-T", ",".join(_ALL_TYPES) if text == "all" else _TYPES.get(text, text)]


def _graph(text: str) -> list[str]:
    return ["--timing", "graph"] if parse_whole(text, 0, error="-G is {least} or more, not {text!r}") else []


def _cycles(text: str) -> list[str]:
    cycles = parse_whole(text, 0, error="-N is {least} or more, not {text!r}")
    if not cycles:
        raise UsageError("-N 0 would never end: --repeat-for 24h, or a number of cycles")
    return ["--repeat-for", f"{cycles}x"] if cycles > 1 else []


def _policy(text: str) -> str:
    """The policy; a negative number asks for none."""
    return "" if text.startswith("-") else f"cta_policy={_choose('x', text, _POLICIES)[0]}"


_REGISTRATIONS: Final = {"0": ["none"], "1": ["register"], "2": ["window"]}
_POLICIES: Final = {"0": ["default"], "1": ["efficiency"], "2": ["zero"]}
_AVERAGES: Final[Mapping[str, list[str]]] = {"0": ["rank0"], "1": [], "2": ["fastest"], "3": ["slowest"]}
_WRITERS: Final[Mapping[str, Callable[[str], list[str]]]] = {
    "d": _types,
    "o": lambda text: ["--op", ",".join(_ALL_OPS) if text == "all" else text],
    "r": lambda text: ["-k", "rotate" if text == "all" else text],
    "T": lambda text: ["--timeout", text] if text != "0" else [],
    "G": _graph,
    "J": lambda text: ["--json", text],
    "N": _cycles,
}
_REPORTS: Final[Mapping[str, Callable[[str], list[str]]]] = {
    "C": lambda text: _choose("C", text, {"0": [], "1": ["cputime"]}),
    "S": lambda text: _choose("S", text, {"0": [], "1": ["timestamps"]}),
    "M": lambda text: _choose("M", text, {"0": [], "1": ["memory"]}),
    "a": lambda text: _choose("a", text, _AVERAGES),
}
_SETTINGS: Final[Mapping[str, Callable[[str], str]]] = {
    "m": lambda text: f"aggregate={text}",
    "R": lambda text: f"registration={_choose('R', text, _REGISTRATIONS)[0]}",
    "u": lambda text: f"unaligned={text}",
    "x": _policy,
    "G": lambda text: f"replays={text}" if text not in ("0", "1") else "",
}
