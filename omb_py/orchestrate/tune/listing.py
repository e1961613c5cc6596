"""The reports of ``omb-py knobs``: the knobs of a collective, one knob in full, and performance variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from omb_py.backends.knobs import Knob, LibraryKnobs
from omb_py.errors import OK, EnvironmentProblem, UsageError, nearest
from omb_py.orchestrate.tune.selection import check_collective, collective_of, collectives, of_collective
from omb_py.results.document import Document, TextTable

_HEADS = ("knob", "set by", "value", "values", "what it is")
_PVAR_HEADS = ("variable", "class", "type", "belongs to", "what it is")
_FIRST_WORDS = 90


def listing(library: LibraryKnobs, name: str = "", every: bool = False) -> Document:
    """The report of a collective's knobs, of one knob, or of all.

    Args:
        library: what can be set.
        name: a collective or a knob; empty: all collectives.
        every: also knobs that do not decide an algorithm.

    Raises:
        UsageError: there is neither such a collective nor such a knob.
        EnvironmentProblem: nothing decides how the library does it.
    """
    knob = library.knob(name) if name else None
    if knob:
        return _one(library, knob)
    short = name.lower().removeprefix("osu_")
    if name and short not in collectives():
        near = nearest(short, [*collectives(), *(knob.name for knob in library.knobs)])
        near = (
            near if near.startswith("did you mean") else f"a collective, as {', '.join(collectives()[:4])}, or a knob"
        )
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
        tables=[TextTable(_HEADS, [_row(knob) for knob in chosen], left=_HEADS, spare=("what it is", "values"))],
        notes=_sources(chosen),
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


def _sources(knobs: Sequence[Knob]) -> list[str]:
    return [f"source: {source}" for source in dict.fromkeys(knob.source for knob in knobs if knob.source)]


def _as_data(knob: Knob) -> dict[str, object]:
    return {**asdict(knob), "collective": collective_of(knob) or None}


def _one(library: LibraryKnobs, knob: Knob) -> Document:
    """One knob with its whole description."""
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
        tables=[TextTable(_PVAR_HEADS, rows, left=_PVAR_HEADS, spare=("what it is", "belongs to"))],
    )
