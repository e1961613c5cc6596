"""The search: the good build against the bad one, then against a commit that halves what is left, by verdicts.

The cell and the statistic that tell the ends apart most clearly are judged at each commit. Changes count from half of
theirs on: a commit that is SLOWER is as the bad one, one that is SAME as the good one. What is UNCLEAR is compared
again with more launches, and passed over where that does not help.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import NormalDist

from omb_py.errors import Interrupted, NoVerdict, OmbError
from omb_py.orchestrate.bisect.builds import BUILD, Builds, filled
from omb_py.orchestrate.bisect.commits import Commit, CommitRange, find_commit
from omb_py.orchestrate.programs.command import SideProgram
from omb_py.orchestrate.programs.session import ProgramsDesign, compare_programs
from omb_py.results.compare.judge import SAME_LEVEL, Answer, CompareRules, Question
from omb_py.results.compare.match import Side
from omb_py.results.compare.report import CompareReport
from omb_py.results.store.row import Row

_TAG = "commit"
"""Tag of every row of a bisection: the commit of NEW."""
_TIMES_LAUNCHES = (1, 2, 4)
"""A commit that is UNCLEAR is compared again with so many times the launches, each time on its own."""


@dataclass(frozen=True, slots=True)
class BisectDesign:
    """What is bisected: a range of commits, their builds, and a comparison of which both commands hold ``{build}``."""

    commits: CommitRange
    builds: Builds
    programs: ProgramsDesign

    def compared(self, tree: Mapping[Side, Path], commit: Commit) -> ProgramsDesign:
        """The comparison of two builds."""

        def built(program: SideProgram) -> SideProgram:
            place, where = tree[program.side], program.where
            variables = {name: value and value.replace(BUILD, str(place)) for name, value in where.variables.items()}
            where = replace(where, variables=variables)
            return replace(program, command=filled(program.command, place), where=where)

        programs = {side: built(program) for side, program in self.programs.programs.items()}
        return replace(self.programs, programs=programs, quiet=True, tags={_TAG: commit.name})


@dataclass(frozen=True, slots=True)
class TriedCommit:
    """A commit that was compared with the good one, or could not be."""

    commit: Commit
    answer: Answer | None = None
    launches: int = 0
    """Of each side, in all its comparisons."""
    error: float = 0.0
    """The chance that its verdict is wrong."""
    problem: str = ""

    @property
    def verdict(self) -> str:
        return self.answer.verdict if self.answer else "NOT TRIED"


@dataclass(slots=True)
class Bisection:
    """What a search has found."""

    design: BisectDesign
    ends: CompareReport
    """The comparison of the good commit with the bad one."""
    row: Row
    """A row of the cell that is judged."""
    question: Question
    tried: list[TriedCommit] = field(default_factory=list)
    possible: list[Commit] = field(default_factory=list)
    """One of these made it slower; a single one where all that matters could be decided."""

    @property
    def between(self) -> Answer:
        """How much slower the bad commit is."""
        judged = zip(self.ends.matched.cells, self.ends.judged, strict=True)
        return next(j.answers[self.question] for cell, j in judged if cell.base is self.row)

    @property
    def certainty(self) -> float:
        """The chance that no verdict on the way was wrong."""
        return max(0.0, 1 - self.design.programs.rules.alpha - sum(tried.error for tried in self.tried))


def bisect(design: BisectDesign) -> Bisection:
    """Name the commit that made a program slower.

    Raises:
        NoVerdict: the bad commit is not slower than the good one, or one of them did not measure.
        LaunchFailed: one of both cannot be built, or its program fails.
        EnvironmentProblem: git fails, or a folder cannot be written.
        Interrupted: the user pressed Ctrl-C.
    """
    commits, note = design.commits, design.builds.note
    good = design.builds.of(commits.good)
    trees: Mapping[Side, Path] = {"BASE": good, "NEW": design.builds.of(commits.bad)}
    note(f"comparing --good {commits.good} with --bad {commits.bad}")
    ends = compare_programs(design.compared(trees, commits.bad))
    found = _clearest(design, ends)
    left = commits.halving([commits.good], commits.bad)
    note(_forecast(found, len(left)))
    fast, slow, passed = [commits.good], commits.bad, set[str]()
    while True:
        left = commits.halving(fast, slow)
        following = next((name for name in left if name not in passed and name != slow.name), None)
        if following is None:
            break
        commit = find_commit(commits.repository, following)
        tried = _try(design, found, good, commit)
        found.tried.append(tried)
        note(_outcome_text(tried))
        if tried.verdict == "SLOWER":
            slow = commit
        elif tried.verdict in ("SAME", "FASTER"):
            fast.append(commit)
        else:
            passed.add(following)
    found.possible = [slow, *(find_commit(commits.repository, name) for name in left if name != slow.name)]
    return found


def _clearest(design: BisectDesign, ends: CompareReport) -> Bisection:
    """The question that tells both ends apart most clearly. Raises NoVerdict where none does."""
    slower = [
        (math.log(answer.ratio) / max(1e-9, math.log(answer.high / answer.low)), number, question)
        for number, judged in enumerate(ends.judged)
        for question, answer in judged.answers.items()
        if answer.verdict == "SLOWER"
    ]
    if not slower:
        raise NoVerdict(
            f"{design.commits.bad} is not found to be slower than {design.commits.good}, so there is nothing to look "
            f"for: omb-py compare {ends.run_id} shows the verdicts; more --launches find smaller changes"
        )
    _, number, question = max(slower)
    return Bisection(design, ends, ends.matched.cells[number].base, question)


def _try(design: BisectDesign, found: Bisection, good: Path, commit: Commit) -> TriedCommit:
    """Compare a commit with the good one, with more launches while it is UNCLEAR."""
    rules = design.programs.rules
    half = math.sqrt(found.between.ratio) - 1
    rules = replace(rules, delta=half) if found.question == "median" else replace(rules, tail_delta=half)
    launches, answer = 0, None
    try:
        compared = design.compared({"BASE": good, "NEW": design.builds.of(commit)}, commit)
        for times in _TIMES_LAUNCHES:
            more = replace(
                compared,
                rules=rules,
                launches=times * design.programs.launches,
                only={str(found.row["comparability_key"])},
                seed=None if times > 1 else compared.seed,
            )
            report = compare_programs(more)
            (judged,) = report.judged
            answer = judged.answers[found.question]
            launches += max(answer.launches)
            if answer.verdict != "UNCLEAR":
                break
    except Interrupted:
        raise
    except OmbError as error:
        return TriedCommit(commit, problem=str(error))
    return TriedCommit(commit, answer, launches, _error(answer, found.between, rules))


def _error(answer: Answer | None, between: Answer, rules: CompareRules) -> float:
    """The chance that a verdict of a commit is wrong; of SAME, that it is as slow as the bad one and looks so fast."""
    if answer is None or answer.verdict == "UNCLEAR":
        return 0.0
    if answer.verdict == "SLOWER":
        return rules.alpha
    deviation = math.hypot(_deviation(answer), _deviation(between))
    return NormalDist().cdf(-math.log(between.ratio / answer.ratio) / max(deviation, 1e-9))


def _deviation(answer: Answer) -> float:
    """Standard error of the log of a ratio, from its interval."""
    return math.log(answer.high / answer.low) / (2 * NormalDist().inv_cdf((1 + SAME_LEVEL) / 2))


def _forecast(found: Bisection, left: int) -> str:
    steps = math.ceil(math.log2(left)) if left > 1 else 0
    design = found.design.programs
    each = 2 * (design.launches + 1)
    return (
        f"--bad is {100 * (found.between.ratio - 1):.1f} % slower in {found.ends.named(found.row)}; {left} commits are "
        f"possible: about {steps} comparisons of {each} to {2 * (design.launches * design.rules.rounds + 1)} launches"
    )


def _outcome_text(tried: TriedCommit) -> str:
    if tried.answer is None:
        return f"{tried.commit} is passed over: {tried.problem}"
    return f"{tried.commit}: {tried.verdict}, ratio {tried.answer.ratio:.3f}, {tried.launches} launches a side"
