"""The picture and the table of docs/architecture.md agree with the source, and so do its folders and its links."""

from __future__ import annotations

import re

import pytest

from tests.architecture.figures import CAPABILITIES, capability_of
from tests.architecture.graph import ROOT, imports_of, module_of, rooms, source_files
from tests.architecture.picture import FLOORS, PAGE, floor_of, outdated, short

MOST_FILES = 15
MOST_LINES = 600
NAMES = sorted({path.parent.relative_to(ROOT).as_posix() for path in source_files()})


def test_picture_and_table_are_those_of_the_source() -> None:
    stale = [path.name for path in outdated()]
    assert stale == [], "make them anew: python -m tests.architecture.picture"


@pytest.mark.parametrize("name", NAMES)
def test_a_room_is_no_larger_than_a_reader_can_see(name: str) -> None:
    room = rooms()[name]
    assert len(room.files) <= MOST_FILES, f"{room.name} has {len(room.files)} files: give some a folder of their own"
    for path in room.files:
        assert path.read_text(encoding="utf-8").count("\n") <= MOST_LINES, path
    assert room.about, f"{room.name}/__init__.py does not say what the folder is for"


def test_every_room_of_a_floor_has_a_name_on_it() -> None:
    house = [room for room in rooms().values() if floor_of(room) is not None]
    assert {floor_of(room) for room in house} == set(range(len(FLOORS)))
    assert all(short(room) for room in house)


def test_paths_in_the_page_exist() -> None:
    text = PAGE.read_text(encoding="utf-8").partition("## Rooms")[0]
    named = re.findall(r"`((?:[a-z_]+/)+(?:[a-z_0-9]+\.(?:py|md))?)`", text)
    assert len(named) > 30
    for name in named:
        assert (ROOT / name).exists() or (ROOT / "omb_py" / name).exists(), name


def test_imports_are_read_as_python_does() -> None:
    import ast

    text = "from omb_py.a import b\nif TYPE_CHECKING:\n    import omb_py.c\ndef f():\n    import omb_py.d\nimport os\n"
    assert list(imports_of(ast.parse(text))) == ["omb_py.a.b", "omb_py.d"]
    assert list(imports_of(ast.parse(text), local=False)) == ["omb_py.a.b"]
    assert module_of(ROOT / "results" / "store" / "keys.py") == "omb_py.results.store.keys"
    assert module_of(ROOT / "omb_py" / "engine" / "__init__.py") == "omb_py.engine"


def test_every_room_belongs_to_a_capability() -> None:
    assert {capability_of(name) for name in rooms()} == set(CAPABILITIES)
