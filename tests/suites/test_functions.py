"""The benchmark of own functions, on a session without MPI."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from omb_py.engine.program.benchmark import Cell
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.options.table import make_cell
from omb_py.suites import find
from omb_py.suites.functions import FUNCTION, Target, fits, loaded, parse_target, refuses, run, target_of

CALLS: list[tuple[object, ...]] = []


def quiet(comm: object, *arguments: object) -> None:
    CALLS.append(arguments)


def two_arguments(comm: SimpleNamespace) -> tuple[int, str]:
    return comm.size, "x"


def one_argument(comm: SimpleNamespace) -> list[int]:
    return [comm.size]


def broken(comm: object) -> None:
    raise ValueError("no neighbour")


def in_two_lines(comm: object) -> None:
    raise AssertionError("first\nsecond")


def without_words(comm: object) -> None:
    raise AssertionError


def ends(comm: object) -> None:
    pytest.fail("not so")


def yields(comm: object) -> Iterator[int]:
    yield 1


async def waits(comm: object) -> None:
    pass


class Session:
    """One rank that is alone; the methods that a benchmark of its own uses."""

    size, local = 1, (0,)
    world = SimpleNamespace(size=1, rank=0)

    def __init__(self) -> None:
        self.barriers = 0
        self.watched: object = None

    def barrier(self) -> None:
        self.barriers += 1

    def watch(self, watched: object) -> None:
        self.watched = watched

    @staticmethod
    def maximum(values):
        return values

    total = maximum

    @staticmethod
    def gather(value):
        return [value]


def cell(target: Target, iterations: int = 4, warmup: int = 2) -> Cell:
    return make_cell(FUNCTION, "mpi", "native", 0, iterations=iterations, warmup=warmup, workload=target.text())


@pytest.fixture(autouse=True)
def calls() -> list[tuple[object, ...]]:
    CALLS.clear()
    return CALLS


def here(name: str, setup: str = "", arguments: tuple[object, ...] = ()) -> Target:
    """A target in this module, under the name under which it is loaded already."""
    return Target(__name__, str(Path(__file__).resolve()), name, setup, arguments)


@pytest.fixture
def importable(monkeypatch):
    """Let this module be found by its name, whatever pytest calls it."""
    monkeypatch.setattr("omb_py.suites.functions.loaded", lambda target: sys.modules[target.module])


class TestRun:
    def test_every_timed_call_is_a_sample(self, importable, calls) -> None:
        session = Session()
        result = run(session, cell(here("quiet", arguments=(3, "y"))), lambda phase: None)
        assert len(calls) == 6 and set(calls) == {(3, "y")} and session.barriers == 6
        assert result.series["call"]["max"].shape == (4,) and np.all(result.series["call"]["max"] > 0)
        assert (result.iterations, result.stop_reason) == (4, "fixed")
        assert session.watched.position() == (3, 0)

    @pytest.mark.parametrize(("setup", "expected"), [("two_arguments", (1, "x")), ("one_argument", ([1],))])
    def test_setup_gives_the_arguments(self, importable, calls, setup, expected) -> None:
        run(Session(), cell(here("quiet", setup), 1, 0), lambda phase: None)
        assert calls == [expected]

    @pytest.mark.parametrize(
        ("function", "said"),
        [
            ("broken", "ValueError: no neighbour"),
            ("in_two_lines", "AssertionError: first second"),
            ("without_words", "AssertionError"),
            ("ends", "Failed: not so"),
        ],
    )
    def test_what_the_function_raises_is_one_line(self, importable, function, said) -> None:
        with pytest.raises(EnvironmentProblem) as caught:
            run(Session(), cell(here(function)), lambda phase: None)
        text = str(caught.value)
        assert text.startswith(f"{function} failed on rank 0: {said} (line ")
        assert "test_functions.py" in text and "\n" not in text

    def test_another_function_is_another_version(self, importable) -> None:
        first, second = (
            run(Session(), cell(here("quiet", arguments=(n,)), 1, 0), lambda phase: None).program_hash for n in (1, 2)
        )
        assert first != second


class TestLoading:
    def test_by_file_with_the_modules_beside_it(self, tmp_path, monkeypatch) -> None:
        monkeypatch.setattr(sys, "path", [*sys.path])
        (tmp_path / "beside_it.py").write_text("VALUE = 7\n")
        (tmp_path / "mine.py").write_text("import beside_it\ndef f(comm): return beside_it.VALUE\n")
        module = loaded(Target("no.such.module", str(tmp_path / "mine.py"), "f"))
        assert module.f(None) == 7

    def test_by_name_where_that_is_the_same_file(self) -> None:
        import json

        assert loaded(Target("json", str(Path(json.__file__).resolve()), "dumps")) is json

    @pytest.mark.parametrize(
        ("text", "reason"), [("import nothing_like_it", "ModuleNotFoundError"), ("def (", "SyntaxError")]
    )
    def test_a_module_that_fails_is_named(self, tmp_path, monkeypatch, text, reason) -> None:
        monkeypatch.setattr(sys, "path", [*sys.path])
        (tmp_path / "bad.py").write_text(text)
        with pytest.raises(EnvironmentProblem, match=f"ranks cannot load .*bad.py: {reason}"):
            loaded(Target("no.such.module", str(tmp_path / "bad.py"), "f"))


class TestTargets:
    def test_there_and_back(self) -> None:
        target = target_of(quiet, two_arguments)
        assert parse_target(target.text()) == target and target.setup == "two_arguments"
        assert parse_target(target_of(quiet, arguments=(1, "a")).text()).arguments == (1, "a")

    @pytest.mark.parametrize("function", [lambda comm: None, print, SimpleNamespace()], ids=["lambda", "C", "object"])
    def test_what_ranks_cannot_find_is_refused(self, function) -> None:
        with pytest.raises(UsageError, match="at the top of a module"):
            target_of(function)

    @pytest.mark.parametrize("function", [yields, waits])
    def test_what_a_call_would_not_run_is_refused(self, function) -> None:
        with pytest.raises(UsageError, match=f"a call of {function.__name__} runs none of its lines"):
            target_of(function)

    def test_arguments_that_json_cannot_hold(self) -> None:
        with pytest.raises(UsageError, match="use setup="):
            target_of(quiet, arguments=(object(),))

    def test_a_setup_of_another_module(self) -> None:
        with pytest.raises(UsageError, match="must stand in the module of quiet"):
            target_of(quiet, target_of)

    @pytest.mark.parametrize("text", ["", "{}", "ddp:model=x", '{"arguments": [], "oops": 1}'])
    def test_other_texts_are_refused(self, text) -> None:
        with pytest.raises(UsageError, match="not a function to measure"):
            fits(make_cell(FUNCTION, "mpi", "native", 0, workload=text), 2)


def test_other_backends_are_refused_with_the_one_that_can() -> None:
    assert refuses(make_cell(FUNCTION, "mpi", "native", 0)) == ""
    assert "use backend mpi" in refuses(make_cell(FUNCTION, "mock", "native", 0))


def test_it_is_found_but_not_listed() -> None:
    from omb_py.suites import names

    assert find("function") is FUNCTION and "function" not in names()
