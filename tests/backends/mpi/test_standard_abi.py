"""MPI's standard ABI: its numbers are not those of any library, so none may be written down for all.

`make test-abi` runs what needs a library with an mpi4py that was built for it.
"""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from mpi4py import MPI

from omb_py.backends.mpi import start, types
from omb_py.backends.mpi.start import standard_abi, thread_level
from omb_py.backends.mpi.tools.interface import numbering_of
from omb_py.engine.program.requirements import LEVELS
from omb_py.errors import EnvironmentProblem
from tests.support.machines.mpi import run_command

OF_THE_STANDARD = {"THREAD_SINGLE": 0, "THREAD_FUNNELED": 1024, "THREAD_SERIALIZED": 2048, "THREAD_MULTIPLE": 4096}


def mpi(**more: Any) -> Any:
    return SimpleNamespace(**(OF_THE_STANDARD | more))


@pytest.mark.parametrize(("answer", "version"), [((1, 0), "1.0"), ((-1, -1), ""), ((0, 0), "")])
def test_a_library_says_whether_it_is_called_by_the_standard(answer: tuple[int, int], version: str) -> None:
    assert standard_abi(mpi(Get_abi_version=lambda: answer)) == version


def test_an_older_mpi4py_or_library_cannot_be_asked() -> None:
    def refuse() -> tuple[int, int]:
        raise NotImplementedError("MPI_Abi_get_version")

    assert standard_abi(mpi()) == standard_abi(mpi(Get_abi_version=refuse)) == ""


@pytest.mark.parametrize("level", LEVELS)
def test_a_thread_level_is_asked_for_and_read_by_name(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    fake = mpi(Is_initialized=lambda: False, Init_thread=asked.append, Query_thread=lambda: asked[-1])
    monkeypatch.setattr(start, "load", lambda: fake)
    start.initialise(level)
    assert asked == [OF_THE_STANDARD[f"THREAD_{level.upper()}"]] and thread_level(fake) == level


def test_no_handle_of_a_library_s_own_interface_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """MPICH's number of its 16-bit float is no address: its size would be asked of nothing."""
    monkeypatch.setattr(types, "standard_abi", lambda mpi: "1.0")
    monkeypatch.setattr(types, "vendor", lambda mpi: ("MPICH", "5.0.2"))
    with pytest.raises(EnvironmentProblem, match=r"MPI's standard ABI has no MPIX_C_FLOAT16, so no -T float16"):
        types.datatype.__wrapped__("float16")
    assert types.datatype.__wrapped__("float32") == MPI.FLOAT


@pytest.mark.parametrize(
    ("vendor", "standard", "numbers"),
    [
        ("MPICH", True, (0x11, 7, 10, 12)),
        ("MPICH", False, (224, 60444, 249, 9711)),
        ("Open MPI", True, (0x11, 7, 10, 12)),
        ("Open MPI", False, (3, 6, 9, 11)),
    ],
)
def test_numbers_of_the_tool_interface(vendor: str, standard: bool, numbers: tuple[int, ...]) -> None:
    words = [of[number] for of, number in zip(numbering_of(vendor, standard), numbers, strict=True)]
    assert words == ["tuner basic", "all_eq", "generic", "session"]


@pytest.mark.mpi
@pytest.mark.each_library
@pytest.mark.parametrize("binding", ["native", "mpi4py"])
def test_rows_say_by_which_interface_the_library_was_called(binding: str) -> None:
    words = ["-m", "omb_py", "latency", "--binding", binding, "-m", "8:8", "-i", "10", "--no-store", "--format", "json"]
    ended = run_command([sys.executable, *words])
    assert ended.returncode == 0, ended.stderr
    (row,) = json.loads(ended.stdout)
    assert row["parameters"].get("mpi_abi", "") == standard_abi(MPI)
