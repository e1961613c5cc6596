"""Methods that ``dataclasses`` generates are compiled once a user, and are the same as ever."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from omb_py import class_code, user_cache
from tests.support.machines.mpi import run_command

DECLARED = """
import builtins, json, sys, types
from omb_py import class_code
class_code.install("command")
compiled = []
real = builtins.compile
builtins.compile = lambda text, *others: compiled.append(text) or real(text, *others)
import dataclasses
module = sys.modules[sys.argv[1]] = types.ModuleType(sys.argv[1])
made = vars(module)
made["dataclass"] = dataclasses.dataclass
exec("@dataclass(frozen=True, slots=True, order=True)\\nclass Pair:\\n    first: int\\n    second: str = 'x'", made)
builtins.compile = real
one, two = made["Pair"](1), made["Pair"](1, "y")
class_code.save()
print(json.dumps([len(compiled), repr(one), one < two, one == made["Pair"](1), hash(one) == hash((1, "x"))]))
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "omb-py"


def declared(module: str) -> tuple[int, list[object]]:
    """How many texts were compiled for the methods of a class of a module, and what the methods give."""
    done = run_command([sys.executable, "-c", DECLARED, module], env=os.environ)
    assert not done.stderr, done.stderr
    compiled, *rest = json.loads(done.stdout)
    return compiled, rest


@pytest.mark.slow
def test_the_second_process_compiles_nothing_and_has_the_same_methods(folder: Path) -> None:
    first, methods = declared("omb_py.pairs")
    assert first > 0 and methods == ["Pair(first=1, second='x')", True, True, True]
    assert declared("omb_py.other") == (0, methods)
    (file,) = folder.iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    assert declared("omb_py.pairs") == (first, methods)


def test_classes_of_other_packages_are_not_kept(folder: Path) -> None:
    assert declared("pairs") == (0, ["Pair(first=1, second='x')", True, True, True])
    assert not folder.exists()


def test_what_others_kept_meanwhile_stays_and_a_file_does_not_grow_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    def kept_after(*texts: str) -> int:
        code = class_code.ClassCode("rank")
        for text in texts:
            code(text, {"__name__": "omb_py.x"}, {})
        code.save()
        return len(code._load())

    assert kept_after("a = 1") == 1
    assert kept_after("a = 2", "a = 3") == 3
    assert kept_after() == 3
    monkeypatch.setattr(class_code, "_MOST", 2)
    assert kept_after("a = 4") == 1


def test_without_a_cache_nothing_is_kept_and_nothing_raises(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_cache, "_open_folder", lambda create: (_ for _ in ()).throw(PermissionError()))
    assert declared("omb_py.pairs")[0] > 0
    code = class_code.ClassCode("rank")
    code("a = 1", {"__name__": "omb_py.x"}, made := {})
    code.save()
    assert made == {"a": 1}
