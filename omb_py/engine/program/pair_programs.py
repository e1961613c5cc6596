"""The programs of a round of pairs: those of a benchmark of two ranks, with other numbers for the two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from omb_py.engine.program.language import Program, Stage, Step, each_step
from omb_py.engine.program.pair_schedule import Pair

IDLE = Program((), (Stage(((),)),))
"""The program of a rank without a partner."""


@dataclass(frozen=True, slots=True)
class PairPrograms:
    """What the ranks of a round run: each pair the same two programs."""

    ends: tuple[Program, Program]
    """The programs of ranks 0 and 1 of two."""
    pairs: Sequence[Pair]
    """Disjoint pairs: (who plays rank 0, who plays rank 1)."""

    def of_ranks(self, ranks: Sequence[int]) -> dict[int, Program]:
        """The program of each of these ranks."""
        ends = {rank: (end, pair) for pair in self.pairs for end, rank in enumerate(pair)}
        programs = dict.fromkeys(ranks, IDLE)
        for rank in ranks:
            if rank in ends:
                end, pair = ends[rank]
                programs[rank] = renumber(self.ends[end], pair)
        return programs


def renumber(program: Program, pair: Pair) -> Program:
    """A program of ranks 0 and 1 with other numbers for the two."""

    def renamed(step: Step) -> Step:
        if "peer" not in step.operands:
            return step
        return replace(step, operands={**step.operands, "peer": pair[step["peer"]]})

    return each_step(program, renamed)
