"""Command lines of nccl-tests and rccl-tests: ``all_reduce_perf -b 8 -e 128M -f 2 -g 1``, as omb-py's own words."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from omb_py.engine.rank.launcher_variables import joined_environment
from omb_py.errors import UsageError
from omb_py.grammar.values import parse_size, parse_whole

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
}
_LETTERS: Final = "".join(_LONG.values())
_LEFT_OUT: Final[Mapping[str, str]] = {
    "run_cycles": "N",
    "blocking": "z",
    "stream_null": "y",
    "cudagraph": "G",
    "report_cputime": "C",
    "output_file": "J",
    "report_timestamps": "S",
    "memory_report": "M",
    "unalign": "u",
    "cta_policy": "x",
}
_USUAL_BYTES: Final = "32M"
_BATCH: Final = 20
_TYPES: Final = {"f8e4m3": "float8e4m3", "f8e5m2": "float8e5m2", "fp8_e4m3": "float8e4m3", "fp8_e5m2": "float8e5m2"}
_ALL_TYPES: Final = "int8 uint8 int32 uint32 int64 uint64 half float double bfloat16".split()
_MOST_SIZES: Final = 1000


def program_of(word: str) -> str:
    """The benchmark that a program of nccl-tests measures; empty where the word is none of their names."""
    if not word.endswith("_perf"):
        return ""
    from omb_py.results.dialects.nccl.text import BENCHMARKS

    benchmark = BENCHMARKS.get(word.removesuffix("_perf"), "")
    return {"reduce_scatter": "reduce_scatter_block", "allreduce_bias": ""}.get(benchmark, benchmark)


def translated(words: Sequence[str], environ: Mapping[str, str] = os.environ) -> list[str]:
    """The words of omb-py that measure what a program of nccl-tests would, in its format and with its defaults.

    What it does not know is omb-py's own, as ``--store FOLDER``.

    >>> " ".join(translated(["all_reduce_perf", "-b", "8", "-e", "1M", "-f", "2", "-g", "2"], {}))
    'allreduce --format nccl-tests --backend nccl -n 2 -m 8:1M:2 --batch 20 -x 1 -c'

    Raises:
        UsageError: an option has no value, a wrong one, or nothing here that does the same.
    """
    given, own = _read(words[1:])
    took = _number(given, "n", _BATCH)
    backend = _backend(own)
    enqueued = backend in ("", "nccl")  # other libraries have no stream: each call of theirs is a sample
    line = [program_of(words[0]), "--format", "nccl-tests", *(() if backend else ("--backend", "nccl"))]
    ranks = _number(given, "t", 1) * _number(given, "g", 1)
    if joined_environment(environ) is None:
        line += ["-n", str(ranks)]
    elif ranks > 1:
        raise UsageError("a rank has one GPU here: start as many ranks as GPUs, with -g 1 and -t 1")
    warm_up = _number(given, "w", 1)
    line += ["-m", _sizes(given), "--batch" if enqueued else "-i", str(took)]
    # a warm-up is a sample: of a batch, so many calls
    line += ["-x", str(-(-warm_up // took) if enqueued else warm_up)]
    line += ["-c"] if _number(given, "c", 1) else []
    for letter, write in _WRITERS.items():
        if letter in given:
            line += write(given[letter])
    settings = [write(given[letter]) for letter, write in _SETTINGS.items() if letter in given]
    line += ["--nccl", ",".join(settings)] if settings else []
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
        if word.startswith("-") and (letter in _LEFT_OUT or letter in _LEFT_OUT.values()):
            raise UsageError(f"{word} of nccl-tests has nothing like it here: leave it out")
        if not word.startswith("-") or letter not in _LETTERS or len(letter) > 1:
            own.append(word)
            continue
        glued = value if equals else "" if word.startswith("--") else word[2:]
        if not glued and not rest:
            raise UsageError(f"{word} has no value")
        given[letter] = glued or rest.pop(0)
    return given, own


def _backend(own: Sequence[str]) -> str:
    """The value of ``--backend``; empty where it is not given."""
    for word, following in pairwise((*own, "")):
        name, equals, value = word.partition("=")
        if name == "--backend":
            return value if equals else following
    return ""


def _number(given: Mapping[str, str], letter: str, usual: int) -> int:
    error = f"-{letter} is a whole number of at least {{least}}, not {{text!r}}"
    return parse_whole(given.get(letter, str(usual)), 0 if letter in "wc" else 1, error=error)


def _sizes(given: Mapping[str, str]) -> str:
    first, last = given.get("b", _USUAL_BYTES), given.get("e", given.get("b", _USUAL_BYTES))
    if "f" in given or "b" not in given or "e" not in given:
        return f"{first}:{last}:{given.get('f', '2')}"
    low, high = parse_size(first), parse_size(last)
    step = parse_size(given.get("i", "1M"))
    sizes = range(low, high + 1, max(1, step))
    if len(sizes) > _MOST_SIZES:
        raise UsageError(f"-i {given.get('i', '1M')} makes {len(sizes)} sizes: a larger step, or -f 2")
    return ",".join(map(str, sizes))


def _types(text: str) -> list[str]:
    return ["-T", ",".join(_ALL_TYPES) if text == "all" else _TYPES.get(text, text)]


def _operation(text: str) -> list[str]:
    if text == "all":
        raise UsageError("-o all of nccl-tests: one of sum, prod, min, max, avg, mulsum at a time")
    return ["--op", text]


def _registration(text: str) -> str:
    kinds = {"0": "none", "1": "register", "2": "window"}
    if text not in kinds:
        raise UsageError(f"-R is one of {', '.join(kinds)}, not {text!r}")
    return f"registration={kinds[text]}"


def _average(text: str) -> list[str]:
    if text != "1":
        raise UsageError("-a is 1 here, the mean over the ranks: the store keeps the times of all")
    return []


_WRITERS: Final[Mapping[str, Callable[[str], list[str]]]] = {
    "d": _types,
    "o": _operation,
    "r": lambda text: ["-k", text],
    "T": lambda text: ["--timeout", text] if text != "0" else [],
    "a": _average,
}
_SETTINGS: Final[Mapping[str, Callable[[str], str]]] = {"m": lambda text: f"aggregate={text}", "R": _registration}
