"""The knobs of a library: which of them decide how a collective is done, and the lists of ``omb-py knobs``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import cache

from omb_py.backends.capabilities import Knob, LibraryKnobs
from omb_py.backends.registry import find
from omb_py.errors import OK, EnvironmentProblem, UsageError, nearest
from omb_py.results.document import Document, TextTable
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
    library = capabilities.knobs()
    if library is None:
        raise EnvironmentProblem(f"backend {backend} has no library, so no knobs: use --backend mpi, nccl or gloo")
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


_HEADS = ("knob", "set by", "value", "values", "what it is")
_IN_WORDS = ("what it is", "values")
"""Columns that are long, the first of which a narrow terminal misses least."""
_PVAR_HEADS = ("variable", "class", "type", "belongs to", "what it is")
_FIRST_WORDS = 90


def listing(library: LibraryKnobs, name: str = "", every: bool = False) -> Document:
    """The report of a collective's knobs, of one knob, or of all.

    Args:
        name: a collective or a knob; empty: all collectives.
        every: also knobs that do not decide an algorithm.

    Raises:
        UsageError: there is neither such a collective nor such a knob.
        EnvironmentProblem: nothing decides how the library does it.
    """
    knob = library.knob(name) if name else None
    if knob:
        return _describe_knob(library, knob)
    short = name.lower().removeprefix("osu_")
    if name and short not in collectives():
        either = f"a collective, as {', '.join(collectives()[:4])}, or a knob"
        near = nearest(short, [*collectives(), *(knob.name for knob in library.knobs)], otherwise=either)
        raise UsageError(f"{library.title} has no collective or knob {name!r}: {near}")
    collective = check_collective(name, library) if name else ""
    chosen = of_collective(library, collective, every)
    if not chosen:
        raise EnvironmentProblem(f"{library.title} has no knob that decides an algorithm: --all lists what it has")
    return Document(
        title=f"knobs of {library.title}",
        headline=_headline(library, chosen, collective, every),
        exit_code=OK,
        data=lambda: {**_facts(library), "collective": collective or None, "knobs": [_as_data(k) for k in chosen]},
        tables=[TextTable(_HEADS, [*map(_row, chosen)], _HEADS, spare=_IN_WORDS, folding=_IN_WORDS)],
        notes=[f"source: {source}" for source in dict.fromkeys(knob.source for knob in chosen if knob.source)],
    )


def _facts(library: LibraryKnobs) -> dict[str, str]:
    return {"backend": library.backend, "library": library.library, "version": library.version, "from": library.how}


def _headline(library: LibraryKnobs, chosen: Sequence[Knob], collective: str, every: bool) -> str:
    what = f" of {collective}" if collective else ""
    text = f"{library.title}: {len(chosen)} of {len(library.knobs)} knobs{what} (from {library.how})."
    more = len(of_collective(library, collective, every=True)) - len(chosen)
    return text if every or more <= 0 else f"{text} --all shows {more} more."


def _row(knob: Knob) -> list[str]:
    words = ", ".join(choice.word for choice in knob.choices) or knob.type
    variable = "its name" if knob.variable == knob.name else knob.variable or "nothing"
    return [knob.name, variable, knob.value or "-", words, _first_words(knob.description)]


def _first_words(text: str) -> str:
    sentence = text.split("\n")[0].split(". ")[0].rstrip(".")
    return sentence if len(sentence) <= _FIRST_WORDS else sentence[:_FIRST_WORDS].rsplit(" ", 1)[0] + " …"


def _as_data(knob: Knob) -> dict[str, object]:
    return {**asdict(knob), "collective": collective_of(knob) or None}


def _describe_knob(library: LibraryKnobs, knob: Knob) -> Document:
    facts = [
        f"{knob.name} of {library.title}",
        f"type: {knob.type}, value here: {knob.value or 'none'}",
        f"set by: {knob.variable}=VALUE in the environment" if knob.variable else "set by: nothing; it is built in",
    ]
    labels = {"scope": knob.scope, "for": knob.verbosity, "category": knob.category, "source": knob.source}
    facts.append(", ".join(f"{name}: {value}" for name, value in labels.items() if value))
    heads = ("value", "meaning")
    rows = [(choice.word, choice.meaning) for choice in knob.choices]
    return Document(
        title=f"{knob.name} of {library.title}",
        headline=knob.description or "It has no description.",
        exit_code=OK,
        data=lambda: {**_facts(library), "knobs": [_as_data(knob)]},
        facts=[fact for fact in facts if fact],
        tables=[TextTable(heads, rows, left=heads)] if rows else [],
    )


def performance_variables(library: LibraryKnobs) -> Document:
    """The report of what a library counts. Raises EnvironmentProblem where it counts nothing."""
    if not library.pvars:
        raise EnvironmentProblem(
            f"{library.title} lists no performance variable: Open MPI has some; MPICH has them where it was configured "
            "with --enable-mpit-pvars=all"
        )
    rows = [(p.name, p.kind, p.type, p.binding or "process", _first_words(p.description)) for p in library.pvars]
    return Document(
        title=f"performance variables of {library.title}",
        headline=f"{library.title}: {len(rows)} performance variables (from {library.how}). --pvar NAME of a benchmark "
        "stores what it counts.",
        exit_code=OK,
        data=lambda: {**_facts(library), "pvars": [asdict(pvar) for pvar in library.pvars]},
        tables=[
            TextTable(_PVAR_HEADS, rows, _PVAR_HEADS, spare=("what it is", "belongs to"), folding=_PVAR_HEADS[-1:])
        ],
    )
