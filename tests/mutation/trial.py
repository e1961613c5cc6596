"""One mutant tried: in a copy of the tree its tests are run until one fails.

A mutant of what ends processes may end any process. So tests run where they see no process but their own: in a PID
namespace (``unshare``, Linux).
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.mutation.mutants import Mutant
from tests.support.machines.namespace import apart

QUICK = "not slow and not bench and not gpu"
PROCESSOR_S = 600
"""Processor seconds after which a mutant that loops is ended; wall time would depend on who else is working here."""
NEEDED = ("omb_py", "backends", "results", "suites", "dashboards", "tests", "docs")
FAILED = re.compile(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", re.M)

Verdict = Literal["killed", "survived", "broken", "unfinished"]


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of a mutant."""

    mutant: Mutant
    verdict: Verdict
    """broken: the test that failed also fails without the mutant, so that nothing is known. unfinished: so many tests
    that they took longer than the limit."""
    by: str = ""
    """The first test that failed."""


@contextmanager
def copied(root: Path) -> Iterator[Path]:
    """A copy of a checkout's source and tests, which lasts as long as the block."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as name:
        copy = Path(name)
        ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
        for entry in root.iterdir():
            if entry.name in NEEDED and entry.is_dir():
                shutil.copytree(entry, copy / entry.name, ignore=ignored)
            elif entry.is_file() or entry.name == ".ci":
                (shutil.copytree if entry.is_dir() else shutil.copy2)(entry, copy / entry.name)
        yield copy


def pytest(copy: Path, tests: Sequence[str], markers: str = QUICK, limit: float | None = None) -> tuple[int, str]:
    """Run tests in the copy until one fails: pytest's exit code and what it printed.

    Raises:
        subprocess.TimeoutExpired: they took longer than `limit` seconds.
    """
    words = [
        *apart(),
        sys.executable,
        "-m",
        "pytest",
        *tests,
        "-q",
        "-x",
        "-m",
        markers,
        "-p",
        "no:benchmark",
        "--no-header",
    ]
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        words,
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=limit,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_S, PROCESSOR_S)),
    )
    return done.returncode, done.stdout + done.stderr


NOTHING_SELECTED = 5
"""pytest's exit code where every test was deselected."""


def tried(
    copy: Path,
    root: Path,
    mutant: Mutant,
    stages: Sequence[Sequence[str]],
    markers: str = QUICK,
    limit: float | None = None,
) -> Trial:
    """Run the stages of tests one after the other against a mutant, until one test fails.

    Args:
        copy: a copy of the checkout; the mutant is in it while the tests run.
        root: the checkout.
        mutant: the change.
        stages: lists of test files and folders, the nearest first.
        markers: pytest's marker expression for all of them.
        limit: seconds for the tests of a stage.
    """
    place = copy / mutant.path.relative_to(root)
    source = place.read_bytes()
    for stage in stages:
        place.write_bytes(mutant.applied(source))
        try:
            code, text = pytest(copy, stage, markers, limit)
        except subprocess.TimeoutExpired:
            return Trial(mutant, "unfinished", f"more than {limit:g} s")
        finally:
            place.write_bytes(source)
        if code in (0, NOTHING_SELECTED):
            continue
        names = FAILED.findall(text)
        if not names:  # it could not even be collected, or ran into the limit
            last = next((line for line in reversed(text.splitlines()) if line.strip()), "")
            clean, _ = pytest(copy, [*stage, "--collect-only"], markers)
            return Trial(mutant, "broken" if clean not in (0, NOTHING_SELECTED) else "killed", last[:100])
        again, _ = pytest(copy, names[:1], markers)
        return Trial(mutant, "killed" if again in (0, NOTHING_SELECTED) else "broken", names[0])
    return Trial(mutant, "survived")
