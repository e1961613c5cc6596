from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from omb_py.backends import registry
from omb_py.backends.capabilities import Backend, Capabilities
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.options.table import usual_cell
from omb_py.suites.registry import find as benchmark
from tests.support.entries import ABSENT, GONE, PACKAGE, forget_plug_ins, install_entries
from tests.support.machines.mpi import run_command


def connect(spec: Mapping[str, Any]) -> Any:
    return ("connected", spec)


PIGEON = Backend(Capabilities("pigeon"), connect)
"""A backend of another package."""


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    entries = {"pigeon": PIGEON, "strange": object(), "absent": ABSENT, "mpi": PIGEON, "gone": GONE}
    install_entries(monkeypatch, registry.ENTRY_POINTS, entries)
    registry.backends.cache_clear()
    yield
    registry.backends.cache_clear()
    forget_plug_ins()


def test_ours_come_first() -> None:
    assert list(registry.backends())[:6] == ["mpi", "gloo", "nccl", "oneccl", "ucc", "mock"]
    assert all(backend.name == name for name, backend in registry.backends().items())


@pytest.mark.parametrize("name", ["mpi", "gloo", "mock"])
def test_ours_are_found_by_name(name: str) -> None:
    assert registry.find(name) is registry.backends()[name]


@pytest.mark.parametrize(("word", "near"), [("mpy", "mpi"), ("mok", "mock")])
def test_an_unknown_one_is_refused_with_the_nearest(word: str, near: str) -> None:
    with pytest.raises(UsageError, match=rf"unknown backend '{word}': did you mean {near}\?"):
        registry.find(word)


@pytest.mark.usefixtures("installed")
class TestOtherPackages:
    def test_are_found(self) -> None:
        assert registry.find("pigeon") is PIGEON

    def test_do_not_replace_ours(self) -> None:
        assert registry.backends()["mpi"] is registry.ours()["mpi"]

    @pytest.mark.parametrize(
        ("name", "reason"),
        [
            ("gone", "ModuleNotFoundError: No module named 'no_such_module_of_anybody'"),
            ("absent", "AttributeError: .*NO_SUCH_THING"),
            ("strange", f"{PACKAGE}:strange is no Backend but of type object"),
        ],
    )
    def test_that_are_broken_say_why_and_break_nothing_else(self, name: str, reason: str) -> None:
        assert list(registry.backends())[6:] == ["pigeon", "strange", "absent", "gone"]
        broken = registry.find(name)
        said = broken.capabilities.here()
        assert (said.name, said.available) == (name, False)
        assert said.inspection.fix
        with pytest.raises(EnvironmentProblem, match=f"backend {name} cannot be loaded: {reason}"):
            broken.connect({})


@pytest.mark.slow
def test_finding_ours_searches_no_installed_packages_and_loads_no_library() -> None:
    code = (
        "import importlib.metadata as m, sys\n"
        "m.entry_points = None\n"
        "from omb_py.backends.registry import find\n"
        "find('mpi'), find('mock')\n"
        "print([name for name in ('mpi4py', 'llvmlite') if name in sys.modules])\n"
    )
    done = run_command([sys.executable, "-c", code])
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("name", ["mpi", "mock"])
def test_a_probe_says_what_it_offers(name: str) -> None:
    said = registry.find(name).capabilities.here()
    assert said.name == name
    assert said.available and said.inspection.library and said.inspection.version
    assert said.devices["cpu"] == "" and "native" in said.bindings
    assert {"numpy", "bytearray", "array"} <= set(said.buffers)


def test_a_step_that_a_backend_lacks_is_named() -> None:
    bcast, allreduce = benchmark("bcast"), benchmark("allreduce")
    pigeon = Capabilities("pigeon", steps=frozenset({"bcast", "barrier"}))
    assert pigeon.why_not(bcast, usual_cell(bcast)) == ""
    assert pigeon.why_not(allreduce, usual_cell(allreduce)) == "pigeon has no allreduce: use --backend mpi"
