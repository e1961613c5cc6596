"""Programs that print what OMB prints, in milliseconds, with noise that is the same in every run of the tests."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from omb_py.orchestrate.launching.launch_command import RankEnvironment
from omb_py.orchestrate.programs.command import SideProgram
from omb_py.orchestrate.programs.reading import OutputReading
from omb_py.orchestrate.programs.session import ProgramsDesign
from omb_py.results.compare.judge import CompareRules
from omb_py.results.compare.match import SIDES, Side

OSU = """
import os, random, sys
factor, sizes, counter = float(sys.argv[1]), sys.argv[2], sys.argv[3]
seed = sum(map(ord, os.path.basename(counter)))
try:
    seed += len(open(counter).read())
except OSError:
    pass
open(counter, "a").write(".")
noise = random.Random(seed)
print("# OSU MPI Latency Test v7.5")
print("# Datatype: MPI_CHAR.")
print("# Size          Avg Latency(us)")
for size in map(int, sizes.split(",")):
    print(f"{size:<24}{(100 + size / 100) * factor * noise.gauss(1, 0.005):.2f}")
"""

Make = Callable[..., ProgramsDesign]


def count_launch(folder: Path) -> str:
    """In sh, how often a command was started: noise that no launch repeats, and that each run of the tests has.

    A process number may come again, and a comparison refuses launches that print the same number to the last digit.
    """
    return f"$(echo >> {folder}/started; wc -l < {folder}/started)"


@pytest.fixture(autouse=True)
def calm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Watch the machine no longer than a moment."""
    from omb_py.orchestrate.launching import machine_state
    from omb_py.orchestrate.programs import session

    monkeypatch.setattr(session, "observe", lambda: machine_state.observe(wait=lambda seconds: None))


@pytest.fixture
def osu(tmp_path: Path) -> Callable[..., str]:
    """The command of a program that prints OMB's latencies: a factor on its times, its sizes, a name for its noise."""
    script = tmp_path / "osu.py"
    script.write_text(OSU)

    def command(factor: float, sizes: str = "8,1024,65536", name: str = "") -> str:
        counter = tmp_path / f"count-{name}-{factor}-{sizes}"
        return f"{sys.executable} -I -S {script} {factor} {sizes} {counter}"

    return command


@pytest.fixture
def design(tmp_path: Path) -> Make:
    """A comparison of two commands with 8 launches a side in one round."""

    def make(
        base: str, new: str, settings: Mapping[Side, Mapping[str, str]] | None = None, **more: object
    ) -> ProgramsDesign:
        variables = settings or {}
        programs = {
            side: SideProgram(
                side,
                command,
                RankEnvironment(
                    variables=variables.get(side, {}), facts={"config": {"set": dict(variables.get(side, {}))}}
                ),
            )
            for side, command in zip(SIDES, (base, new), strict=True)
        }
        usual = ProgramsDesign(programs, OutputReading(), CompareRules(), 8, tmp_path / "store", 20.0, 1, quiet=True)
        return replace(usual, **more)  # type: ignore[arg-type]

    return make
