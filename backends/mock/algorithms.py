"""Algorithms of collectives with planted costs, and what chooses among them: the first one, a variable, or a file.

A call of n bytes takes alpha + n·beta, so crossovers are known. A variable of the launch's environment chooses one for
all sizes, and a file one for each range of sizes, as in the libraries that ``omb-py tune`` is made for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from omb_py.engine.program.steps import COMMUNICATORS
from omb_py.errors import EnvironmentProblem, UsageError, nearest
from omb_py.grammar.values import parse_nanoseconds, parse_word

VARIABLE: Final = "MOCK_COLL_ALGORITHM"
"""Names the algorithm of all collectives."""
FILE_VARIABLE: Final = "MOCK_COLL_RULES_FILE"
"""Names a file with lines ``COLLECTIVE RANKS FIRST LAST ALGORITHM``, sizes in bytes; the first that fits is taken."""
FAULTS: Final = ("flip", "hang", "die")
FORM: Final = "NAME:ALPHA:BETA[:flip|hang|die], as ring:10us:0.1ns"
_UNCHANGED = ("barrier", *COMMUNICATORS)


@dataclass(frozen=True, slots=True)
class Algorithm:
    """An algorithm: ns of a call, ns a byte, and what is wrong with it; no fault is an empty text."""

    name: str
    alpha: float
    beta: float
    fault: Literal["", "flip", "hang", "die"] = ""


def read_algorithm(text: str) -> Algorithm:
    """Read the value of the key ``algorithm``. Raises UsageError."""
    name, *costs = text.split(":")
    if not name or len(costs) not in (2, 3):
        raise UsageError(f"{text!r} is not a name and two times")
    fault = parse_word(costs[2], FAULTS) if len(costs) == 3 else ""
    known: Literal["", "flip", "hang", "die"] = next((f for f in ("flip", "hang", "die") if f == fault), "")
    return Algorithm(name, parse_nanoseconds(costs[0]), parse_nanoseconds(costs[1]), known)


@dataclass(frozen=True, slots=True)
class AlgorithmRule:
    """A line of a rules file; `last` is None where there is no largest size."""

    collective: str
    ranks: int
    first: int
    last: int | None
    algorithm: Algorithm


@dataclass(frozen=True, slots=True)
class AlgorithmSelection:
    """The algorithms of one launch."""

    usual: Algorithm
    """Where no line fits."""
    lines: tuple[AlgorithmRule, ...] = ()

    def of(self, collective: str, ranks: int, nbytes: float) -> Algorithm | None:
        """The algorithm of a call; None for calls that move no data."""
        if collective in _UNCHANGED:
            return None
        for line in self.lines:
            same = (line.collective, line.ranks) == (collective, ranks)
            if same and line.first <= nbytes and (line.last is None or nbytes <= line.last):
                return line.algorithm
        return self.usual


def selection(algorithms: Sequence[Algorithm], environ: Mapping[str, str]) -> AlgorithmSelection | None:
    """What the settings and the environment choose; None where no algorithms are planted.

    Raises:
        UsageError: the variable or the file names none of them, or a line of the file has another form.
        EnvironmentProblem: the file cannot be read.
    """
    if not algorithms:
        return None
    known = {algorithm.name: algorithm for algorithm in algorithms}
    usual = algorithms[0]
    if name := environ.get(VARIABLE):
        usual = _find_algorithm(name, known, VARIABLE)
    path = environ.get(FILE_VARIABLE)
    return AlgorithmSelection(usual, _lines(Path(path), known) if path else ())


def _find_algorithm(name: str, known: Mapping[str, Algorithm], where: str) -> Algorithm:
    if name not in known:
        raise UsageError(f"mock: {where}: no algorithm {name!r}: {nearest(name, known)}")
    return known[name]


def _lines(path: Path, known: Mapping[str, Algorithm]) -> tuple[AlgorithmRule, ...]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise EnvironmentProblem(f"mock: {FILE_VARIABLE}: cannot read {path}: {error.strerror}") from None
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            collective, ranks, first, last, name = words
            sizes = int(ranks), int(first), None if last == "-" else int(last)
        except ValueError:
            raise UsageError(
                f"mock: {path}, line {number}: {line!r} is not of the form COLLECTIVE RANKS FIRST LAST ALGORITHM"
            ) from None
        lines.append(AlgorithmRule(collective, *sizes, _find_algorithm(name, known, f"{path}, line {number}")))
    return tuple(lines)
