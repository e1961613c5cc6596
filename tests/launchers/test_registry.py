"""A launcher of another package: it is found by its name alone, and its ranks know their place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from omb_py.engine.rank.launcher_variables import Joined, joined_environment, local_rank
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.launchers import registry
from omb_py.launchers.launcher import LaunchCommand, Launcher, RankRequest, RankVariables
from omb_py.launchers.machine import LaunchMachine
from omb_py.launchers.mpiexec_family import MPICH
from omb_py.launchers.registry import installed
from omb_py.options.readers import word
from omb_py.orchestrate.launching.launch_command import command_for
from omb_py.results.store.keys import environment_key
from omb_py.results.store.redact import allowed_environment, stored_prefixes
from tests.launchers.test_launchers import context, program
from tests.support.entries import forget_plug_ins, install_entries


class Prun(Launcher):
    """A launcher as another package has it."""

    def missing(self, machine: LaunchMachine) -> str:
        return "" if machine.which("prun") else "prun not found in PATH: load its module"

    def command(self, ranks: RankRequest, machine: LaunchMachine) -> LaunchCommand:
        words = ("prun", "-n", str(ranks.count), *ranks.extra, *ranks.program)
        return LaunchCommand("prun", words, machine.rank_environ(), local=False)


PLACE = RankVariables("prun", rank=("PRUN_RANK",), size=("PRUN_SIZE",), local_rank=("PRUN_LOCAL_RANK",))
LAUNCHER = Prun("prun", "the launcher of our cluster", (PLACE,), prefixes=("PRUN_",), per_job="PRUN_(?!MAP)")


def forget() -> None:
    for remembered in (installed, registry.prefixes, registry.per_job, stored_prefixes):
        remembered.cache_clear()


@pytest.fixture(autouse=True)
def packages(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    values = {"prun": f"{__name__}:LAUNCHER", "gone": "no_such_package:LAUNCHER"}
    install_entries(monkeypatch, registry.ENTRY_POINTS, values)
    forget()
    yield
    forget()
    forget_plug_ins()


def test_it_starts_ranks_that_know_their_place(tmp_path: Path) -> None:
    machine = context(tmp_path, MPICH, PMI_RANK="0")
    with pytest.raises(EnvironmentProblem, match="prun not found"):
        command_for(word("launcher", registry.CHOICES).parse("PRUN"), ["x"], 2, machine=machine)
    program(tmp_path / "prun", "")
    command = command_for("prun", ["x"], 2, machine=machine)
    assert command.words == ("prun", "-n", "2", "x")
    rank = {**command.environ, "PRUN_RANK": "3", "PRUN_SIZE": "4", "PRUN_LOCAL_RANK": "1"}
    assert joined_environment(rank) == Joined("prun", 3, 4, 1) and local_rank(rank) == 1
    del rank[registry.NAME_VARIABLE]
    assert joined_environment(rank) == Joined("mpiexec (hydra)", 0, None, None)


def test_its_variables_are_stored_and_settings_alone_are_of_the_environment() -> None:
    job = {"PRUN_JOBNAME": "j1", "PRUN_MAP": "cores", "PATH": "/bin"}
    assert allowed_environment(job) == {"PRUN_JOBNAME": "j1", "PRUN_MAP": "cores"}
    key = environment_key({"environment": job})
    assert key == environment_key({"environment": {**job, "PRUN_JOBNAME": "j2"}})
    assert key != environment_key({"environment": {**job, "PRUN_MAP": "nodes"}})


def test_one_that_cannot_be_loaded_says_why(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match=r"launcher gone cannot be loaded \(ModuleNotFoundError: .*repair"):
        command_for("gone", ["x"], 2, machine=context(tmp_path, MPICH))
    with pytest.raises(UsageError, match="unknown launcher 'prnu': did you mean prun"):
        command_for("prnu", ["x"], 2, machine=context(tmp_path, MPICH))
