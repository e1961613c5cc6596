"""The search: the good build against the bad one, then against a commit that halves what is left, by verdicts.

The cell and the statistic that tell the ends apart most clearly are judged at each commit. Changes count from half of
theirs on: a commit that is SLOWER is as the bad one, one that is SAME as the good one. What is UNCLEAR is compared
again with more launches, and passed over where that does not help.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import NormalDist

from omb_py.errors import Interrupted, NoVerdict, OmbError, UsageError
from omb_py.orchestrate.bisect.builds import BUILD, Builds, filled
from omb_py.orchestrate.bisect.commits import Commit, CommitRange, find_commit
from omb_py.orchestrate.compare.side_environments import parse_sides
from omb_py.orchestrate.programs.request import ProgramTexts
from omb_py.orchestrate.programs.session import DEFAULT_TIMEOUT_S, ProgramsDesign, compare_programs
from omb_py.orchestrate.running.interrupts import resumable
from omb_py.results.compare.judge import SAME_LEVEL, Answer, CompareRules, Question
from omb_py.results.compare.match import Side
from omb_py.results.compare.report import CompareReport
from omb_py.results.repro_command import storing
from omb_py.results.store.row import Row

_TAG = "commit"
"""Tag of every row of a bisection: the commit of NEW."""
_TIMES_LAUNCHES = (1, 2, 4)
"""A commit that is UNCLEAR is compared again with so many times the launches, each time on its own."""


@dataclass(frozen=True, slots=True)
class BuiltProgram:
    """A program of which each build has one, as texts; ``{build}`` in them is the folder of a build."""

    run: str
    """Its command."""
    sets: Sequence[str] = ()
    """Variables, each as ``K=V``."""
    tool: str = ""
    metrics: Sequence[str] = ()
    timeout_s: float = DEFAULT_TIMEOUT_S

    def of_builds(self, base: Path, new: Path) -> ProgramTexts:
        """What a comparison of two builds starts. Raises UsageError where a text is wrong."""
        if not any(BUILD in text for text in (self.run, *self.sets)):
            raise UsageError(
                f"nothing in --run {self.run!r} depends on the commit: write {BUILD} for the folder of its build, as "
                f"'mpirun -n 2 {BUILD}/osu_latency'"
            )
        wrong = next((text for text in self.sets if not text.partition("=")[0].strip() or "=" not in text), None)
        if wrong is not None:
            raise UsageError(f"--set takes NAME=VALUE, as LD_LIBRARY_PATH={BUILD}/lib, not {wrong!r}")
        trees: Mapping[Side, Path] = {"BASE": base, "NEW": new}
        runs = [f"{side}: {filled(self.run, tree)}" for side, tree in trees.items()]
        sets = [f"{side}:{text.replace(BUILD, str(tree))}" for side, tree in trees.items() for text in self.sets]
        return ProgramTexts(runs, self.tool, self.metrics, (), self.timeout_s, parse_sides(sets=sets))


@dataclass(frozen=True, slots=True)
class BisectDesign:
    """What is bisected: a range of commits, their builds, the program, and how it is compared."""

    commits: CommitRange
    builds: Builds
    program: BuiltProgram
    launches: int
    store: Path
    rules: CompareRules
    seed: int | None = None

    def compared(self, commit: str, base: Path, new: Path) -> ProgramsDesign:
        """The comparison of two builds, of which `new` is that of `commit`. Raises UsageError where a text is wrong."""
        texts = self.program.of_builds(base, new)
        design = texts.design(self.rules, self.launches, self.store, self.builds.note)
        return replace(design, seed=self.seed, quiet=True, tags={_TAG: commit}, may_be_equal=True)


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
    number: int
    """Of the cell that is judged, among those of `ends`."""
    question: Question
    tried: list[TriedCommit] = field(default_factory=list)
    possible: list[Commit] = field(default_factory=list)
    """One of these made it slower; a single one where all that matters could be decided."""

    @property
    def row(self) -> Row:
        """A row of the cell that is judged."""
        return self.ends.matched.cells[self.number].base

    @property
    def between(self) -> Answer:
        """How much slower the bad commit is."""
        return self.ends.judged[self.number].answers[self.question]

    @property
    def certainty(self) -> float:
        """The chance that no verdict on the way was wrong."""
        return max(0.0, 1 - self.design.rules.alpha - sum(tried.error for tried in self.tried))


def bisect(design: BisectDesign) -> Bisection:
    """Name the commit that made a program slower.

    Raises:
        UsageError: a text of the program is wrong; nothing was built.
        NoVerdict: the bad commit is not slower than the good one, or one of them did not measure.
        LaunchFailed: one of both cannot be built, or its program fails.
        EnvironmentProblem: git fails, or a folder cannot be written.
        Interrupted: the user pressed Ctrl-C.
    """
    design.compared("", Path("good"), Path("bad"))  # reads all texts
    kept = f"builds are kept in {design.builds.folder} and launches in {design.store}, and a bisection begins anew"
    with resumable(lambda: kept):
        return _search(design)


def _search(design: BisectDesign) -> Bisection:
    commits, note = design.commits, design.builds.note
    good, bad = design.builds.of(commits.good), design.builds.of(commits.bad)
    note(f"comparing --good {commits.good} with --bad {commits.bad}")
    found = _choose_clearest(design, compare_programs(design.compared(commits.bad.name, good, bad)))
    fast, slow, passed = [commits.good], commits.bad, set[str]()
    left = commits.halving(fast, slow)
    note(_forecast(found, len(left)))
    while following := next((name for name in left if name not in passed and name != slow.name), None):
        tried = _try(design, found, good, find_commit(commits.repository, following))
        found.tried.append(tried)
        note(_outcome_text(tried))
        if tried.verdict == "SLOWER":
            slow = tried.commit
        elif tried.verdict in ("SAME", "FASTER"):
            fast.append(tried.commit)
        else:
            passed.add(following)
        left = commits.halving(fast, slow)
    found.possible = [slow, *(find_commit(commits.repository, name) for name in left if name != slow.name)]
    return found


def _choose_clearest(design: BisectDesign, ends: CompareReport) -> Bisection:
    """The question that tells both ends apart most clearly. Raises NoVerdict where none does."""
    slower = [
        (math.log(answer.ratio) / max(1e-9, math.log(answer.high / answer.low)), number, question)
        for number, judged in enumerate(ends.judged)
        for question, answer in judged.answers.items()
        if answer.verdict == "SLOWER"
    ]
    if not slower:
        shown = storing(f"omb-py compare {ends.run_id}", design.store)
        raise NoVerdict(
            f"{design.commits.bad} is not found to be slower than {design.commits.good}, so there is nothing to look "
            f"for: {shown} shows the verdicts; more --launches find smaller changes"
        )
    _, number, question = max(slower)
    return Bisection(design, ends, number, question)


def _try(design: BisectDesign, found: Bisection, good: Path, commit: Commit) -> TriedCommit:
    """Compare a commit with the good one, with more launches while it is UNCLEAR."""
    half = math.sqrt(found.between.ratio) - 1
    own = design.rules
    rules = replace(own, delta=half) if found.question == "median" else replace(own, tail_delta=half)
    tried = TriedCommit(commit)
    try:
        compared = design.compared(commit.name, good, design.builds.of(commit))
        compared = replace(compared, rules=rules, only={str(found.row["comparability_key"])})
        for times in _TIMES_LAUNCHES:
            seed = None if times > 1 else design.seed
            report = compare_programs(replace(compared, launches=times * design.launches, seed=seed))
            (judged,) = report.judged
            answer = judged.answers[found.question]
            error = _error(answer, found.between, own.alpha)
            tried = TriedCommit(commit, answer, tried.launches + max(answer.launches), error)
            if answer.verdict != "UNCLEAR":
                break
    except Interrupted:
        raise
    except OmbError as error_of_commit:
        return TriedCommit(commit, problem=str(error_of_commit))
    return tried


def _error(answer: Answer, between: Answer, alpha: float) -> float:
    """The chance that a verdict of a commit is wrong; of SAME, that it is as slow as the bad one and looks so fast."""
    if answer.verdict == "UNCLEAR":
        return 0.0
    if answer.verdict == "SLOWER":
        return alpha
    deviation = math.hypot(_deviation(answer), _deviation(between))
    return NormalDist().cdf(-math.log(between.ratio / answer.ratio) / max(deviation, 1e-9))


def _deviation(answer: Answer) -> float:
    """Standard error of the log of a ratio, from its interval."""
    return math.log(answer.high / answer.low) / (2 * NormalDist().inv_cdf((1 + SAME_LEVEL) / 2))


def _forecast(found: Bisection, left: int) -> str:
    steps = math.ceil(math.log2(left)) if left > 1 else 0
    design = found.design
    each = 2 * (design.launches + 1)
    return (
        f"--bad is {100 * (found.between.ratio - 1):.1f} % slower in {found.ends.named(found.row)}; {left} commits are "
        f"possible: about {steps} comparisons of {each} to {2 * (design.launches * design.rules.rounds + 1)} launches"
    )


def _outcome_text(tried: TriedCommit) -> str:
    if tried.answer is None:
        return f"{tried.commit} is passed over: {tried.problem}"
    return f"{tried.commit}: {tried.verdict}, ratio {tried.answer.ratio:.3f}, {tried.launches} launches a side"
