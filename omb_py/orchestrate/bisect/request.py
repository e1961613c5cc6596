"""From the texts of a command line to a bisection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from omb_py.errors import UsageError
from omb_py.orchestrate.bisect.builds import BUILD, Builds
from omb_py.orchestrate.bisect.commits import find_range
from omb_py.orchestrate.bisect.search import BisectDesign
from omb_py.orchestrate.compare.side_environments import parse_sides
from omb_py.orchestrate.programs.request import ProgramTexts
from omb_py.results.compare.judge import CompareRules
from omb_py.results.compare.match import SIDES


@dataclass(frozen=True, slots=True)
class BisectTexts:
    """What is said of a bisection, as texts."""

    good: str
    bad: str
    build: str
    run: str
    sets: Sequence[str] = ()
    tool: str = ""
    metrics: Sequence[str] = ()
    timeout_s: float = 600.0

    def design(
        self,
        repository: Path,
        folder: Path,
        launches: int,
        rounds: int,
        store: Path,
        seed: int | None,
        note: Callable[[str], None],
    ) -> BisectDesign:
        """The bisection; nothing is built or started yet.

        Raises:
            UsageError: a text is wrong.
            EnvironmentProblem: git is not here.
        """
        if not any(BUILD in text for text in (self.run, *self.sets)):
            raise UsageError(
                f"nothing in --run {self.run!r} depends on the commit: write {BUILD} for the folder of its build, as "
                f"'mpirun -n 2 {BUILD}/osu_latency'"
            )
        sides = parse_sides((), (), [f"{side}:{text}" for side in SIDES for text in self.sets], (), ())
        texts = ProgramTexts([self.run], self.tool, self.metrics, (), self.timeout_s, sides, may_be_equal=True)
        programs = replace(texts.design(CompareRules(rounds=rounds), launches, store, note), seed=seed)
        commits = find_range(repository, self.good, self.bad)
        return BisectDesign(commits, Builds(repository, self.build, folder, note), programs)
