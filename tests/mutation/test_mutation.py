"""The mutation tool itself: what it changes, which tests it runs, and what it says of them."""

from __future__ import annotations

import ast
import contextlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.graph import ROOT
from tests.mutation.__main__ import FOLDERS, drawn, line_of, main
from tests.mutation.known import known
from tests.mutation.mutants import all_mutants, mutants
from tests.mutation.related import THROUGH_ALL, far, mirrored, near
from tests.mutation.trial import tried
from tests.support.machines.namespace import apart

SOURCE = '''"""1 + 1 in a text."""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    LEAST = 3 < 4

@decorated(True)
def f(a: int = 5, *, b: float = 0.5) -> int:
    """Docs."""
    x: list[1] = [a]
    if not a and (a < b  # <= in a comment
                  <= 2):
        raise ValueError(f"{a + 1} é" + "x" + str(b))
    return x is not None


def g():
    return None
'''


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.py"
    path.write_text(SOURCE, encoding="utf-8")
    return path


def test_one_thing_is_changed_and_texts_are_left_alone(source: Path) -> None:
    found = [(m.line, m.kind, m.before, m.after) for m in mutants(source)]
    assert found == [
        (7, "constant", "5", "6"),
        (7, "constant", "0.5", "1.0"),
        (10, "boolean", "not ", ""),
        (10, "boolean", "and", "or"),
        (10, "boundary", "<", "<="),
        (10, "boundary", "<=", "<"),
        (11, "constant", "2", "3"),
        (13, "return", "x is not None", "None"),
        (13, "comparison", "is not", "is"),
    ]
    for mutant in mutants(source):
        changed = mutant.applied(source.read_bytes())
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(SOURCE))


@pytest.mark.slow
def test_every_mutant_of_the_source_is_python() -> None:
    everything = list(all_mutants(ROOT, FOLDERS))
    assert len(everything) > 5000
    for mutant in everything[::97]:
        ast.parse(mutant.applied(mutant.path.read_bytes()))


def test_places_of_known_mistakes_are_still_there() -> None:
    for mutant in known():
        ast.parse(mutant.applied(mutant.path.read_bytes()))


@pytest.mark.slow
def test_a_seed_draws_the_same_ones() -> None:
    first = drawn(20, 1)
    assert first == drawn(20, 1) and first != drawn(20, 2) and len(set(first)) == 20
    assert {m.path.parent for m in drawn(5, 1, "results/store")} == {ROOT / "results/store"}


@pytest.mark.slow
def test_the_nearest_tests_come_first() -> None:
    keys = ROOT / "results/store/keys.py"
    assert mirrored(keys) == ROOT / "tests/results/store/test_keys.py"
    assert near(keys)[0] == "tests/results/store/test_keys.py"
    assert "tests/results/store/test_journal.py" in near(ROOT / "results/store/journal.py")
    for mutant in drawn(200, 3):
        assert near(mutant.path) and all((ROOT / test).exists() for test in near(mutant.path)), mutant.path
    assert far(keys) == ["tests/results/store", *THROUGH_ALL]
    assert "tests/orchestrate/running" in far(ROOT / "omb_py/orchestrate/running/run.py")


@pytest.fixture
def toy(tmp_path: Path) -> tuple[Path, Path]:
    """A checkout with one module and its tests, and a copy of it."""
    places = tmp_path / "root", tmp_path / "copy"
    for place in places:
        (place / "tests").mkdir(parents=True)
        (place / "limit.py").write_text("def within(value):\n    return value < 10\n")
        (place / "tests" / "test_limit.py").write_text(
            "from limit import within\n\ndef test_within():\n    assert within(9) and not within(11)\n"
        )
        (place / "tests" / "test_edge.py").write_text(
            "from limit import within\n\ndef test_edge():\n    assert not within(10)\n"
        )
        (place / "tests" / "test_red.py").write_text("def test_red():\n    assert False\n")
        (place / "pyproject.toml").write_text('[tool.pytest.ini_options]\nmarkers = ["slow", "bench", "gpu"]\n')
    return places


@pytest.fixture
def namespace() -> tuple[str, ...]:
    try:
        return apart()
    except RuntimeError as error:
        pytest.skip(str(error))


def test_a_mutant_sees_no_process_but_its_own(namespace: tuple[str, ...]) -> None:
    """A mutant once ended every process of the machine: holders() with one word left out."""
    code = "import os; print([name for name in os.listdir('/proc') if name.isdigit()])"
    seen = subprocess.run([*namespace, sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert len(ast.literal_eval(seen)) == 2, "init and itself"


@pytest.mark.slow
@pytest.mark.usefixtures("namespace")
def test_a_mutant_is_killed_survives_or_says_nothing(toy: tuple[Path, Path]) -> None:
    root, copy = toy
    boundary = next(m for m in mutants(root / "limit.py") if m.kind == "boundary")
    limit, edge, red = (["tests/test_limit.py"], ["tests/test_edge.py"], ["tests/test_red.py"])
    assert tried(copy, root, boundary, [limit]).verdict == "survived"
    found = tried(copy, root, boundary, [limit, edge])
    assert (found.verdict, found.by) == ("killed", "tests/test_edge.py::test_edge")
    assert tried(copy, root, boundary, [red]).verdict == "broken"
    assert (copy / "limit.py").read_text() == (root / "limit.py").read_text()
    row = line_of(found, 1, root)
    assert row == "| 1 | limit.py:2 | boundary | `<` → `<=` | killed | tests/test_edge.py::test_edge |"


@pytest.mark.slow
def test_the_command_prints_a_table_and_its_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.mutation import __main__ as command

    monkeypatch.setattr(command, "apart", tuple)
    monkeypatch.setattr(command, "copied", lambda root: contextlib.nullcontext(root))
    monkeypatch.setattr(command, "tried", lambda copy, root, m, stages, markers, limit: command.Trial(m, "survived"))
    assert main(["--count", "2", "--seed", "1"]) == 1
    out = capsys.readouterr().out
    assert out.count("| survived |") == 2 and "2 mutants: 2 survived" in out
