"""Suites in TOML: each option that was read stands on its line, with its value."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

from omb_py.orchestrate.suites.suite_file import Suite, parse_suite
from tests.lab.oracles.inputs import Judge, changed
from tests.lab.torture.workloads import CRITERION, SUITE

SEEDS = [
    (SUITE + CRITERION).encode(),
    b"""name = "several"
description = 'one # no comment'
[defaults]
iterations = 1_000
warmup = 0x10
ranks = [2, "max"]
[[entry]]
benchmarks = [
  "osu_Latency",   # a comment = 3
  "bw",
]
window-size = [32, 64]
message-size = "8:64"
validation = true
[[entry]]
benchmarks = ["allreduce"]
cache = '''rotate'''
"set" = { library = "x", node = "y = 5" }
""",
]
WORDS = (
    *(
        b'"',
        b"'",
        b"'''",
        b'"""',
        b"#",
        b"=",
        b"[",
        b"]",
        b"[[",
        b"]]",
        b"{",
        b"}",
        b",",
        b"\n",
        b"\r",
        b"\t",
        b"\\",
        b".",
    ),
    *(
        b"[[entry]]\n",
        b"[defaults]\n",
        b"[defaults.x]\n",
        b"ranks = 3\n",
        b"true",
        b"nan",
        b"inf",
        b"-0",
        b"1e999",
        b"0b1",
    ),
    *(b"\\u0000", b"\\u00e9", b"\xff", b"\0", b"9" * 30, b"9" * 5000, b"[" * 3000, b"1979-05-27", b"entry", b"ranks"),
)


def scalars(value: Any) -> Iterator[Any]:
    """The words and numbers of a value."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from scalars(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from scalars(inner)
    else:
        yield value


def numbers(text: str) -> set[float]:
    """All numbers that TOML could read in a text, whatever stands around them."""
    found = set()
    for word in re.findall(r"0x[0-9a-fA-F_]+|0o[0-7_]+|0b[01_]+|[-+]?\d[\d_]*(?:\.\d+)?(?:[eE][-+]?\d+)?", text):
        plain = word.replace("_", "")
        found.add(float(int(plain, 0)) if plain[1:2] in ("x", "o", "b") else float(plain))
    return found


def stands(value: Any, text: str) -> bool:
    """Whether a text has a value: a word as it is, a number in any notation."""
    if isinstance(value, bool):
        return str(value).lower() in text
    if isinstance(value, (int, float)):
        return value in numbers(text) or value != value or value in (float("inf"), float("-inf"))
    # escapes make other letters; what is left between them must be there
    return not isinstance(value, str) or "\\" in text or all(part in text for part in value.split())


def misread(suite: Suite, text: str) -> tuple[int, list[str]]:
    """How many values a suite has, and those that do not stand where it says they do."""
    lines, read, wrong = text.split("\n"), 0, []
    settings = [*suite.defaults, *(option for entry in suite.entries for option in entry.options)]
    for setting in settings:
        rest = "\n".join(lines[setting.line - 1 :])
        for value in (setting.key, *scalars(setting.value)):
            read += 1
            # a table of a table has its keys further up
            if not stands(value, rest) and not (value == setting.key and "\\" in text):
                wrong.append(f"{setting.key} = {setting.value!r} in line {setting.line}: no {value!r} there")
    for entry in suite.entries:
        for named in entry.benchmarks:
            read += 1
            if (
                named.name not in text.lower()
                and named.name not in text.lower().replace("osu_", "")
                and "\\" not in text
            ):
                wrong.append(f"benchmark {named.name!r} is not in the text")
    return read, wrong


def judge(rng: random.Random) -> tuple[int, list[str]]:
    """One suite."""
    text = changed(rng, SEEDS, WORDS, b"0123456789abcxyz_=,.\"'#[]{}\n \\").decode(errors="replace")
    return misread(parse_suite(text, "f.toml"), text)


JUDGES: dict[str, Judge] = {"TOML": judge}
