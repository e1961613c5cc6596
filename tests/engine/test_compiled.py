from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from omb_py.engine import compiled, interpreter, rows
from tests.support.mpi import environment

USE = (
    "import sys, time\n"
    "from omb_py.engine.compiled import load, without_scipy\n"
    "without_scipy()\n"
    "start = time.monotonic()\n"
    "run = load()\n"
    "print(f'{time.monotonic() - start:.3f}', any(name.startswith('scipy.') for name in sys.modules))\n"
)


def start(folder: Path) -> subprocess.Popen[str]:
    """A process that loads the interpreter with a cache and marker of its own, and tells what the cache did."""
    (folder / "tmp").mkdir(exist_ok=True)
    more = {"NUMBA_CACHE_DIR": str(folder / "cache"), "TMPDIR": str(folder / "tmp"), "NUMBA_DEBUG_CACHE": "1"}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", USE],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(**more),
    )  # fmt: skip


def result(child: subprocess.Popen[str]) -> str:
    out, err = child.communicate(timeout=100)
    assert child.returncode == 0, err
    return out


def test_of_two_that_start_at_once_one_compiles_and_both_run(tmp_path: Path) -> None:
    children = [start(tmp_path), start(tmp_path)]
    said = [result(child) for child in children]
    saved = [text.count("data saved to") for text in said]
    loaded = [text.count("data loaded from") for text in said]
    assert sorted(saved)[0] == 0 < sorted(saved)[1], "one of the two must not compile"
    assert sorted(loaded)[1] > 0
    # a later launch finds it, and does not wait for a lock
    again = result(start(tmp_path))
    assert again.count("data saved to") == 0 < again.count("data loaded from")
    seconds, scipy = again.splitlines()[-1].split()
    assert scipy == "False"
    assert float(seconds) < 5
    assert len(list((tmp_path / "tmp").glob("omb-py-*.compiled"))) == 1


def test_a_new_layout_of_rows_cannot_meet_an_old_cache() -> None:
    """Numba's cache looks at interpreter.py alone, whose constants come from rows.py: both change together."""
    values = {name: value for name, value in vars(rows).items() if name.isupper()}
    text = " ".join(f"{name}={value}" for name, value in sorted(values.items()))
    assert hashlib.sha256(text.encode()).hexdigest()[:8] == interpreter.LAYOUT, "write this into interpreter.py"


def test_the_marker_changes_with_the_source_the_python_and_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    usual = compiled._marker()
    assert str(os.getuid()) in usual.name
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/elsewhere")
    assert compiled._marker() != usual
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setattr(sys, "version", "3.99")
    assert compiled._marker() != usual


def test_scipy_is_kept_out_only_where_nobody_has_it_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", time)
    compiled.without_scipy()
    assert sys.modules["scipy"] is time
    monkeypatch.delitem(sys.modules, "scipy")
    compiled.without_scipy()
    assert sys.modules["scipy"] is None
