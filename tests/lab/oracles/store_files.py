"""Parquet files: rows of a changed file are those that were written, or the file is left out and named."""

from __future__ import annotations

import io
import math
import random
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

from omb_py.results.store.integrity import verify
from omb_py.results.store.paths import files
from omb_py.results.store.read import load_table, to_rows
from tests.lab.oracles.inputs import Judge, changed

WORDS = (b"\0", b"\xff", b"PAR1", b"\x15\x00", b"\0" * 8, b"\xff" * 8, b"omb_py.sha256", b"sha256:", b"9" * 30)


@cache
def written() -> tuple[tuple[str, bytes], ...]:
    """(path below the store, bytes) of launches' files."""
    from omb_py.cli import main

    found = []
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        for words in ("latency -m 8:64 -i 20", "allreduce -m 8:16 -i 5 -c -f"):
            assert main([*words.split(), "--backend", "mock", "--store", f"{folder}/{words[:4]}"]) == 0
            store = Path(folder) / words[:4]
            found += [(str(path.relative_to(store)), path.read_bytes()) for path in files(store)]
    return tuple(found)


def plain(value: Any) -> Any:
    """A value that can be compared: nan equals nan."""
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    if isinstance(value, (list, tuple)):
        return tuple(plain(each) for each in value)
    if isinstance(value, dict):
        return tuple(sorted((key, plain(each)) for key, each in value.items()))
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return value


def rows_of(name: str, data: bytes) -> tuple[list[Any], list[str], set[str]]:
    """The rows of a store that has one file, why it was left out, and what ``results verify`` finds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
        problems: list[str] = []
        table = load_table(folder, on_skip=lambda path, why: problems.append(why))
        return [plain(row) for row in to_rows(table)], problems, {checked.state for checked in verify(folder)}


@cache
def expected(name: str, data: bytes) -> list[Any]:
    """The rows that were written."""
    rows, problems, states = rows_of(name, data)
    assert rows and not problems and states == {"ok"}
    return rows


def judge(rng: random.Random) -> tuple[int, list[str]]:
    """One file, in a store of its own."""
    name, data = rng.choice(written())
    damaged = changed(rng, [data], WORDS, bytes(range(256)))
    rows, problems, states = rows_of(name, damaged)
    wrong = [f"a reason of several lines: {why!r}" for why in problems if "\n" in why]
    if rows and rows != expected(name, data):
        lost = {key for row, other in zip(rows, expected(name, data), strict=False) for key, _ in set(other) - set(row)}
        wrong.append(f"rows that nobody wrote: {len(rows)}, {sorted(lost)}")
    if damaged != data and rows and states == {"ok"}:
        wrong.append("results verify finds nothing")
    if not rows and not problems:
        wrong.append("no row, and no word about it")
    return len(rows), wrong


JUDGES: dict[str, Judge] = {"Parquet": judge}
