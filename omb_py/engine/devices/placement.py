"""Places of the buffers at the two ends of a benchmark: OMB's words ``H D M MD MH``."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from omb_py.engine.devices import synchronise
from omb_py.engine.program.language import Body, Program, Region, Step
from omb_py.engine.program.steps import barrier
from omb_py.errors import EnvironmentProblem

HOST, DEVICE, MANAGED, MANAGED_ON_DEVICE, MANAGED_ON_HOST = PLACES = ("H", "D", "M", "MD", "MH")
"""Host; device; managed memory, wherever it is; the same, brought to the device or to the host before each call."""
TO_HOST: Final = -1
"""Number of the host among devices, for cuMemPrefetchAsync and hipMemPrefetchAsync."""


def is_managed(place: str) -> bool:
    """Whether host and device both use the memory at a place."""
    return place.startswith(MANAGED)


def place_of_rank(placement: str, rank: int, size: int) -> str:
    """The word of a rank: the first of ``SOURCE DESTINATION`` for the first half of the ranks, else the second.

    >>> [place_of_rank("H D", rank, 4) for rank in range(4)]
    ['H', 'H', 'D', 'D']
    >>> place_of_rank("", 0, 2)
    'D'
    """
    words = placement.split() or [DEVICE, DEVICE]
    return words[0] if rank < max(1, size // 2) else words[1]


def settled(program: Program, placement: str, place: str, device: int) -> Program:
    """The program in which managed memory is where it is wanted when an iteration begins.

    After each iteration (and in the setup) it is brought there, outside the timer, and the ranks meet: otherwise the
    time would hold the other rank's pages. Ranks whose memory stays where it is meet them all the same.

    Args:
        program: of this rank.
        placement: of both ends.
        place: of this rank.
        device: its number.

    Raises:
        EnvironmentProblem: the program has threads, which have no common end of an iteration.
    """
    if not {MANAGED_ON_DEVICE, MANAGED_ON_HOST} & set(placement.split()):
        return program
    if any(stage.threads > 1 for stage in program.stages):
        raise EnvironmentProblem(f"buffers {placement}: threaded benchmarks have none of these: H, D or M")
    moves: Body = ()
    if place in (MANAGED_ON_DEVICE, MANAGED_ON_HOST):
        where = device if place == MANAGED_ON_DEVICE else TO_HOST
        moves = tuple(
            Step("prefetch", {"region": Region(b.name, 0, b.nbytes), "where": where})
            for b in program.buffers
            if b.nbytes
        )
        moves = (*moves, synchronise("settled"))
    end = (*moves, barrier())
    stages = tuple(
        replace(stage, setup=(*stage.setup, *end), variants=tuple((*body, *end) for body in stage.variants))
        for stage in program.stages
    )
    return replace(program, stages=stages)
