"""``python -m tests.lab.torture.full_disk``: a disk that is full, or read-only, from each write of a run on.

A run on simulated ranks is made once to count its writes below the store, and then once for each of them, which fails
as does each one after it. After the run the disk has room again. Then the rows that were printed must be in the store
or be named as lost, the exit code is 3 with one line that says why, and the store is whole.
Exit code 1 where something is wrong. Linux, with a C compiler.
"""

from __future__ import annotations

import ctypes
import errno
import io
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.lab.torture.moment import rows_of
from tests.lab.torture.workloads import announced, missing
from tests.support.c_library import STRICT, shared_library

RUN = ("latency", "--backend", "mock", "-m", "8:64", "-i", "20", "--launches", "2")
FAULTS = {"full": errno.ENOSPC, "read-only": errno.EROFS}
_LIBRARY = "TORTURE_FULL_DISK"
_LOADED = ("omb_py.orchestrate.running.run", "omb_py.results.store.read", "omb_py.results.store.recovery")
"""Modules with which each child begins."""


@dataclass(frozen=True, slots=True)
class Ended:
    """One run."""

    code: int
    out: str
    err: str
    writes: int


def compiled(folder: Path) -> Path:
    """The library that is preloaded (full.c). Raises CalledProcessError."""
    return shared_library(Path(__file__).with_name("full.c"), folder / "full.so", *STRICT)


def run(words: Sequence[str], library: Any, first: int, error: int, folder: Path, papers: Path) -> Ended:
    """A command of omb-py in a child process, in which writes below `folder` fail from the `first` on; 0: none."""
    child = os.fork()
    if child == 0:
        code, out, err = 70, io.StringIO(), io.StringIO()
        try:
            from omb_py.cli import main

            library.injected_fault(first, error, os.fsencode(folder))
            with redirect_stdout(out), redirect_stderr(err):
                code = main(list(words))
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
        except BaseException as problem:
            err.write(f"Traceback: {problem!r}")
        writes = library.injected_writes()
        library.injected_fault(0, 0, b"")
        for name, text in (("out", out.getvalue()), ("err", err.getvalue()), ("writes", str(writes))):
            (papers / name).write_text(text)
        os._exit(code)
    _, status = os.waitpid(child, 0)
    out, err, writes = ((papers / name).read_text() for name in ("out", "err", "writes"))
    return Ended(os.waitstatus_to_exitcode(status), out, err, int(writes))


def wrong_after(done: Ended, store: Path, library: Any, papers: Path) -> list[str]:
    """What is wrong once the disk has room again."""
    wrong = []
    last = (done.err.rstrip().splitlines() or [""])[-1]
    if "Traceback" in done.err:
        wrong.append(f"a traceback: {done.err[-800:]}")
    told = any(word in done.err for word in ("no space left", "read-only"))
    if done.code not in (0, 3) or not told:
        wrong.append(f"exit code {done.code}, last line {last!r}")
    before = Counter(rows_of(store)) if store.exists() else Counter()
    if store.exists():
        for verb in ("recover", "verify"):
            again = run(("results", verb, "--store", str(store)), library, 0, 0, store, papers)
            if again.code:
                wrong.append(f"results {verb}: exit code {again.code}: {again.err[-300:]}")
    after = Counter(rows_of(store)) if store.exists() else Counter()
    if before - after:
        wrong.append(f"rows on the disk before recovery and not after it: {list(before - after)}")
    lost = missing(announced(done.out), list(after.elements()))
    if lost:
        wrong.append(f"printed, and not stored: {lost}")
    return wrong


def main(words: Sequence[str]) -> int:
    """Make all runs and print what came of them."""
    if _LIBRARY not in os.environ:
        with tempfile.TemporaryDirectory() as folder:
            library = compiled(Path(folder))
            environment = {**os.environ, "LD_PRELOAD": str(library), _LIBRARY: str(library)}
            return subprocess.run(
                [sys.executable, "-m", "tests.lab.torture.full_disk", *words], env=environment, check=False
            ).returncode
    for module in _LOADED:
        import_module(module)
    library, failed = ctypes.CDLL(os.environ[_LIBRARY]), False
    for name, error in FAULTS.items():
        with tempfile.TemporaryDirectory() as text:
            folder = Path(text)
            calm = run((*RUN, "--store", str(folder / "calm")), library, 0, 0, folder / "calm", folder)
            codes, stored, printed, problems = Counter[int](), 0, 0, 0
            for at in range(1, calm.writes + 1):
                store = folder / f"store{at}"
                done = run((*RUN, "--store", str(store)), library, at, error, store, folder)
                wrong = wrong_after(done, store, library, folder)
                codes[done.code] += 1
                printed += len(announced(done.out))
                stored += len(rows_of(store)) if store.exists() else 0
                problems += bool(wrong)
                print("".join(f"{name} from write {at}: {text}\n" for text in wrong), end="", flush=True)
        said = ", ".join(f"{code} ({count})" for code, count in sorted(codes.items()))
        print(
            f"{name}: {calm.writes} runs, each with one more write that succeeds; exit codes {said}; "
            f"{printed} rows printed, {stored} stored; wrong: {problems}"
        )
        failed |= bool(problems)
    return int(failed)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        sys.exit(main(sys.argv[1:]))
