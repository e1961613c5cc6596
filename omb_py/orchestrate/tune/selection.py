"""Which knobs of a library decide how a collective is done, by their names and descriptions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from omb_py.backends.knobs import Knob, LibraryKnobs
from omb_py.backends.registry import find
from omb_py.errors import EnvironmentProblem, UsageError, nearest
from omb_py.suites.registry import BENCHMARKS

_FAMILIES = ("collective", "non-blocking", "neighborhood")
_WITHOUT_BENCHMARK = ("scan", "exscan", "iscan", "iexscan")
_NO_COLLECTIVE = ("sendrecv", "hypercube")
"""Benchmarks of the family that are made of other calls."""
_ALGORITHM = re.compile(r"(_algorithm|_composition)$|^i_mpi_adjust_[a-z]+$")
_SWITCH = re.compile(r"_device_collective$")
"""Of MPICH: whether the device's own algorithms go before those of the MPI layer."""
_APART = re.compile(r"_inter_algorithm$|_init_device_collective$")
"""For intercommunicators, and for persistent collectives."""
_NAME = re.compile(r"\w+_\w+")


@cache
def collectives() -> tuple[str, ...]:
    """Names of MPI's collectives, as benchmarks have them."""
    names = (b.name for b in BENCHMARKS.values() if b.family in _FAMILIES and b.name not in _NO_COLLECTIVE)
    return (*names, *_WITHOUT_BENCHMARK)


def collective_of(knob: Knob) -> str:
    """The collective for which a knob is; empty where it is for none, or for several.

    >>> collective_of(Knob("MPIR_CVAR_REDUCE_SCATTER_INTRA_ALGORITHM", "enum", "auto"))
    'reduce_scatter'
    """
    name = f"_{knob.name.lower()}_"
    places = [(name.find(f"_{word}_"), -len(word), word) for word in collectives() if f"_{word}_" in name]
    return min(places)[2] if places else ""


def decides(knob: Knob) -> bool:
    """Whether a knob decides which algorithm a collective of an intracommunicator uses."""
    return chooses(knob) or bool(_SWITCH.search(knob.name.lower()) and not _APART.search(knob.name.lower()))


def chooses(knob: Knob) -> bool:
    """Whether the values of a knob are algorithms of a collective on an intracommunicator."""
    name = knob.name.lower()
    return knob.category == "algorithm" or bool(knob.choices and _ALGORITHM.search(name) and not _APART.search(name))


def mentioned(knobs: Iterable[Knob], library: LibraryKnobs) -> list[Knob]:
    """Knobs that the descriptions of others name, as the switch without which Open MPI ignores them."""
    names = {name for knob in knobs for name in _NAME.findall(knob.description)}
    return [knob for knob in library.knobs if knob.name in names]


def of_collective(library: LibraryKnobs, collective: str = "", every: bool = False) -> list[Knob]:
    """The knobs of a collective.

    Args:
        library: all knobs.
        collective: its name; empty: all collectives.
        every: also those that do not decide its algorithm; without a collective, all knobs.

    Returns:
        Without a collective those whose values are algorithms; else also the switches on which they depend.
    """
    if not collective:
        return [knob for knob in library.knobs if every or (chooses(knob) and (collective_of(knob) or knob.category))]
    general = [knob for knob in library.knobs if knob.category == "algorithm"]
    own = [knob for knob in library.knobs if collective_of(knob) == collective]
    chosen = [*general, *(knob for knob in own if every or decides(knob))]
    more = [knob for knob in mentioned(chosen, library) if knob not in chosen]
    return [*chosen, *more] if chosen else []


def library_of(backend: str) -> LibraryKnobs:
    """Everything that can be set in the library of a backend.

    Raises:
        UsageError: there is no such backend.
        EnvironmentProblem: there is nothing to set; the message names what is missing.
    """
    capabilities = find(backend).capabilities
    if capabilities.knobs is None:
        raise EnvironmentProblem(f"backend {backend} has no library, so no knobs: use --backend mpi, nccl or gloo")
    library = capabilities.knobs()
    if library.reason:
        raise EnvironmentProblem(f"{library.reason}. What to do: {library.fix}")
    return library


def check_collective(name: str, library: LibraryKnobs | None = None) -> str:
    """The name of a collective, without OMB's ``osu_``.

    Raises:
        UsageError: there is no such collective; the message has the nearest name.
        EnvironmentProblem: no knob of the library decides its algorithm.
    """
    word = name.lower().removeprefix("osu_")
    if word not in collectives():
        raise UsageError(f"unknown collective {name!r}: {nearest(word, collectives())}")
    if library is not None and not of_collective(library, word):
        others = sorted({collective_of(knob) for knob in library.knobs if decides(knob)} - {""})
        instead = f"it has some of {', '.join(others)}" if others else "it chooses by itself"
        raise EnvironmentProblem(f"{library.title} has no knob that decides the algorithm of {word}: {instead}")
    return word
