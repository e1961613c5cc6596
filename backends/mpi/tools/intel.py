"""What Intel MPI says of its variables in tags, and the algorithms of its collectives, which MPI_T does not list."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from omb_py.backends.knobs import Choice, Knob

_SOURCE: Final = "Intel MPI Library Developer Reference for Linux 2019, I_MPI_ADJUST family"
_TAG: Final = re.compile(r"@(\w+):#\s*([^@]*)")

ALGORITHMS: Final[Mapping[str, tuple[str, ...]]] = {
    "allgather": ("recursive doubling", "Bruck", "ring", "topology-aware gatherv + bcast", "knomial"),
    "allgatherv": ("recursive doubling", "Bruck", "ring", "topology-aware gatherv + bcast"),
    "allreduce": (
        *("recursive doubling", "Rabenseifner", "reduce + bcast", "topology-aware reduce + bcast"),
        *("binomial gather + scatter", "topology-aware binomial gather + scatter", "Shumilin's ring", "ring"),
        *("knomial", "topology-aware flat in shared memory", "topology-aware knomial in shared memory"),
        "topology-aware knary in shared memory",
    ),
    "alltoall": ("Bruck", "isend/irecv + waitall", "pairwise exchange", "Plum"),
    "alltoallv": ("isend/irecv + waitall", "Plum"),
    "barrier": (
        *("dissemination", "recursive doubling", "topology-aware dissemination"),
        *("topology-aware recursive doubling", "binomial gather + scatter", "topology-aware binomial gather + scatter"),
    ),
    "bcast": (
        *("binomial", "recursive doubling", "ring", "topology-aware binomial", "topology-aware recursive doubling"),
        *("topology-aware ring", "Shumilin", "knomial"),
    ),
    "gather": ("binomial", "topology-aware binomial", "Shumilin", "binomial with segments"),
    "reduce": (
        *("Shumilin", "binomial", "topology-aware Shumilin", "topology-aware binomial", "Rabenseifner"),
        *("topology-aware Rabenseifner", "knomial"),
    ),
    "reduce_scatter": (
        *("recursive halving", "pairwise exchange", "recursive doubling", "reduce + scatterv"),
        "topology-aware reduce + scatterv",
    ),
    "scatter": ("binomial", "topology-aware binomial", "Shumilin"),
}
"""Collective -> its algorithms, whose numbers count from 1. Some in shared memory are left out, and a newer library
may have more."""


def read_tags(description: str) -> dict[str, str]:
    """``Alias``, ``Default`` and ``Verbosity`` as a description has them; its text stands at ``""``."""
    tags = {name: value.strip() for name, value in _TAG.findall(description)}
    return {**tags, "": " ".join(_TAG.sub("", description).replace("$", " ").split())}


def adjust_knobs() -> tuple[Knob, ...]:
    """``I_MPI_ADJUST_<collective>`` with the numbers of the algorithms; 0 leaves the choice to the library."""
    return tuple(
        Knob(
            f"I_MPI_ADJUST_{collective.upper()}",
            "enum",
            "0",
            f"I_MPI_ADJUST_{collective.upper()}",
            (Choice("0", "the library's choice"), *(Choice(str(n), name) for n, name in enumerate(names, 1))),
            description=f"Algorithm of MPI_{collective.capitalize()}; with conditions: NUMBER:FIRST-LAST@RANKS;…",
            category="COLLECTIVE",
            source=_SOURCE,
        )
        for collective, names in ALGORITHMS.items()
    )
