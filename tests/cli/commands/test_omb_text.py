"""OMB's text from real MPI, all checked, on two ranks: one benchmark of each layout.

A suite runs them: what needs the same launch shares one. tests/golden has the text of each benchmark.
"""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from omb_py import __version__
from omb_py.engine.program.benchmark import Benchmark
from omb_py.results.dialects.omb.titles import TITLES
from omb_py.suites import BENCHMARKS
from tests.support.machines.mpi import ROOT, run_omb_py

pytestmark = [pytest.mark.mpi]
RANKS = 2
NUMBER = r"\d+\.\d\d"


def run(store: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run_omb_py(*words, "--store", str(store), "--quiet", cwd=ROOT)


_HERE = [b for b in BENCHMARKS.values() if b.ranks.admits(RANKS) and not b.ranks.over_nodes and not b.once]
_LAYOUTS: dict[tuple[object, ...], Benchmark] = {}
for _each in _HERE:
    _layout = TITLES[_each.name].layout if _each.name in TITLES else ""
    _LAYOUTS.setdefault((_layout, "validation" in _each.options, _each.family), _each)
WANTED = [*_LAYOUTS.values()]
"""Of those that run on one node; what is measured at the start is in a test of its own."""


def title_of(benchmark: Benchmark) -> str:
    name = benchmark.name
    return TITLES[name].line() if name in TITLES else f"# omb-py {name} Test v{__version__}"


def suite() -> str:
    """A suite of them: two sizes where there are sizes, every byte checked where there are bytes."""
    groups: dict[tuple[bool, bool], list[str]] = {}
    for benchmark in WANTED:
        groups.setdefault((benchmark.sizes is not None, "validation" in benchmark.options), []).append(benchmark.name)
    text = f'name = "text"\ndescription = "all"\n\n[defaults]\niterations = "5"\nwarmup = "1"\nranks = {RANKS}\n'
    for (sized, checked), names in groups.items():
        text += f"\n[[entry]]\nbenchmarks = {names}\n"
        text += 'message-size = "8:16"\n' if sized else ""
        text += "validation = true\n" if checked else ""
    return text


@cache
def tables(folder: Path) -> dict[str, list[list[str]]]:
    """Title -> the lines that follow it, for each table of that title (alltoallw's over neighbors has the same)."""
    folder.mkdir(exist_ok=True)
    (folder / "all.toml").write_text(suite())
    done = run(folder, "run", str(folder / "all.toml"))
    assert done.returncode == 0, done.stderr
    found: dict[str, list[list[str]]] = {}
    last: list[str] = []
    for line in done.stdout.splitlines():
        if re.match(r"# (OSU|omb-py) .* Test v", line):
            last = []
            found.setdefault(line, []).append(last)
        last.append(line)
    return found


@pytest.mark.parametrize("name", [b.name for b in WANTED])
def test_every_table_is_printed_and_every_byte_right(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    found, benchmark = tables(tmp_path_factory.getbasetemp() / "text"), BENCHMARKS[name]
    same = [b for b in WANTED if title_of(b) == title_of(benchmark)]
    assert len(found[title_of(benchmark)]) == len(same)
    lines = found[title_of(benchmark)][same.index(benchmark)]
    rows = [line for line in lines if re.match(r"\s*\d+(\.\d\d)?\s", f"{line} ")]
    assert sum(line.startswith("# ") for line in lines) >= 2
    said = "Pass|passed" if "validation" in benchmark.options else ""
    if benchmark.sizes is None and not benchmark.one_element:
        assert len(rows) == 1 and re.fullmatch(rf"\s*({NUMBER}\s*)+({said})", rows[0]), lines
        return
    assert [int(row.split()[0]) for row in rows] == ([1] if benchmark.one_element else [8, 16]), lines
    assert all(re.fullmatch(rf"\d+(\s+{NUMBER})+\s*({said})", row) for row in rows), lines


@pytest.mark.slow
@pytest.mark.parametrize("name", ["init", "hello"])
def test_start_up_is_one_sentence_a_launch(name: str, tmp_path: Path) -> None:
    done = run(tmp_path, name, "-n", "2", "--launches", "2", "--format", "osu")
    assert done.returncode == 0, done.stderr
    title, row = TITLES[name].line(), r"This is a test with 2 processes"
    if name == "init":
        row = r"nprocs: 2, min: \d+ ms, max: \d+ ms, avg: \d+ ms"
    told, _, table = done.stdout.partition("\n\n")
    assert re.fullmatch(f"({re.escape(title)}\n{row}\n?){{2}}", told), done.stdout
    assert table.startswith(f"# {name}: ") and all(line.startswith("#") for line in table.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("binding", ["native", "mpi4py"])
def test_one_wrong_byte_is_a_fail_and_exit_code_1(binding: str, tmp_path: Path) -> None:
    done = run(
        tmp_path, "allgather", "--binding", binding, "-n", "3", "-m", "8:32", "-i", "5", "-c", "--inject", "flip:2:16"
    )
    assert done.returncode == 1, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line[:1].isdigit()]
    assert [(row[0], row[-1]) for row in rows] == [("8", "Pass"), ("16", "Fail")]
