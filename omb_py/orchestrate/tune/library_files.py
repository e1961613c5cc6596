"""The files of a tuned library, from what the installed library says of itself."""

from __future__ import annotations

import re
from pathlib import Path

from omb_py.backends.knobs import LibraryKnobs
from omb_py.results.tune.library_files import LibraryFacts, LibraryFiles, write_rules
from omb_py.results.tune.rules import RuleTable

_COMPOSITION = re.compile(r"^MPIR_CVAR_(\w+)_COMPOSITION$")
_MPI_LAYER = "NM only"
"""MPICH's word for a composition that passes the whole collective on to its MPI layer."""


def facts_of(library: LibraryKnobs) -> LibraryFacts:
    """What the writers of files must know of a library."""
    numbers = {
        knob.variable: {choice.word: choice.meaning for choice in knob.choices}
        for knob in library.knobs
        if knob.variable and all(choice.meaning.lstrip("-").isdigit() for choice in knob.choices)
    }
    compositions = {
        match[1].lower(): choice.word
        for knob in library.knobs
        if (match := _COMPOSITION.match(knob.name))
        for choice in knob.choices
        if choice.meaning.startswith(_MPI_LAYER)
    }
    values = {knob.variable: knob.value for knob in library.knobs if knob.variable}
    return LibraryFacts(library.library or library.backend, numbers, values, library.trees, compositions)


def files_of(table: RuleTable, library: LibraryKnobs, folder: Path) -> LibraryFiles:
    """The files by which a library uses the rules of a table; `folder` is where they will stand."""
    return write_rules(table, facts_of(library), folder.absolute())
