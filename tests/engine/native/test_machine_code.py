"""Machine code that is kept: it refers to nothing outside itself, and is made once."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from omb_py.engine.native import machine_code
from omb_py.engine.native.codegen import Shape, llvm_text
from omb_py.engine.native.translate import Machine
from omb_py.engine.program import steps
from omb_py.engine.program.language import Lap, Repeat, Stage, Stamp, body
from tests.support.machine import Recorder, call, run, table
from tests.support.machines.mpi import run_command

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="LLVM loads the code of other processors")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    machine_code.address_of_code.cache_clear()
    yield tmp_path / "omb-py"
    machine_code.address_of_code.cache_clear()


def shape_of_many_kinds() -> Shape:
    """Nine variants, which a compiler would rather choose by a table, with calls, waiting, computing and clocks."""
    nodes = (Lap(), call(1, 5), steps.compute(7), Repeat(3, (call(2, 6),)), Lap("a"), Stamp("b"))
    return table(Stage(body(*nodes) * 9)).shape


@pytest.mark.parametrize("seconds", [False, True])
def test_code_of_every_kind_of_row_can_be_kept(seconds: bool) -> None:
    assert machine_code.compiled(llvm_text(shape_of_many_kinds(), seconds))


def test_code_that_refers_elsewhere_is_not_kept() -> None:
    assert machine_code.compiled("define double @run() {\n  %x = fadd double 3.0, 4.5e9\n  ret double %x\n}\n") == b""


def test_a_shape_is_compiled_once_and_loaded_by_the_next_process(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    compiled = machine_code.compiled
    monkeypatch.setattr(machine_code, "compiled", lambda text: texts.append(text) or compiled(text))  # type: ignore[func-returns-value]
    note = Recorder(1)
    for value in range(3):
        machine_code.address_of_code.cache_clear()
        run(Machine(), [call(note.address, value)])
    assert len(texts) == 1 == len(list(cache.iterdir())) and note.calls == [(0,), (1,), (2,)]


def test_a_damaged_file_is_made_again(cache: Path) -> None:
    note = Recorder(1)
    run(Machine(), [call(note.address, 1)])
    (file,) = cache.iterdir()
    file.write_bytes(file.read_bytes()[:-1] + b"\xcc")
    machine_code.address_of_code.cache_clear()
    run(Machine(), [call(note.address, 2)])
    assert note.calls == [(1,), (2,)]


def test_no_llvm_is_loaded_where_the_code_is_kept(cache: Path) -> None:
    code = (
        "import sys\nfrom omb_py.engine.native.machine_code import address_of_code\n"
        "address_of_code((((1, 0, -1), (1, 0, 0)),), True)\nprint('llvmlite' in sys.modules)\n"
    )
    seen = [run_command([sys.executable, "-c", code]).stdout for _ in range(2)]
    assert [text.strip() for text in seen] == ["True", "False"]
