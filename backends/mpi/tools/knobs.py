"""What can be set in the MPI library: listed by MPI_T, and by Intel's own tables."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

from omb_py.backends.capabilities import Choice, Knob, LibraryKnobs, PerformanceVariable
from omb_py.backends.child import MARK, answer_of
from omb_py.backends.mpi.start import load, vendor
from omb_py.backends.mpi.tools.interface import Interface, Variable
from omb_py.errors import EnvironmentProblem
from omb_py.launchers.mpi_library import mpi_library
from omb_py.launchers.mpiexec_family import INTEL, MPICH, OPEN_MPI

Listed: TypeAlias = Mapping[str, Any]
"""A variable, or all of them, as the child process tells them in JSON."""


def listing() -> Listed:
    """Library, version, and its variables with their values and categories; ``reason`` where it has no MPI_T."""
    mpi = load()
    name, version = vendor(mpi)
    answer: dict[str, object] = {"library": name, "version": version}
    try:
        interface = Interface(mpi, name)
    except EnvironmentProblem as problem:
        return {**answer, "reason": str(problem)}
    categories = interface.categories()
    answer["cvars"] = [
        {**asdict(variable), "value": _value(interface, variable), "category": categories.get(variable.name, "")}
        for variable in interface.control_variables()
    ]
    answer["pvars"] = [
        {**asdict(variable), "category": categories.get(variable.name, "")}
        for variable in interface.performance_variables()
    ]
    interface.close()
    return answer


def _value(interface: Interface, variable: Variable) -> str:
    try:
        return interface.value(variable)
    except EnvironmentProblem:  # it is listed, and cannot be read now
        return ""


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


_CHILD_S: Final = 60.0
_HOW: Final = "MPI_T"
_WORDS: Final = {"C_BOOL": "bool", "INT": "int", "UNSIGNED": "unsigned", "CHAR": "text", "DOUBLE": "double"}
_LISTED: Final = re.compile(r"^\s*(\w+)\s+- +(\S.*?)\s*$", re.MULTILINE)
"""A value in a description of MPICH, which keeps its lines only where it lists values (maint/extractcvars)."""
_FOLDED: Final = re.compile(r"(?:^|(?<=\s))([a-z]\w*) +- (?=[a-z])")
"""The same where the lines are joined."""
_NUMBERED: Final = re.compile(r"(?:^|(?<=\s))(\d+) (?=[A-Z])")
_TREE: Final = re.compile(rb'\{"collective=[^\0]*')


@cache
def library_knobs() -> LibraryKnobs:
    """Everything that can be set in the MPI library that mpi4py loads here; asked in a child process. Never raises."""
    library = mpi_library()
    if not library.available:
        return LibraryKnobs("mpi", reason=library.reason, fix=library.fix)
    answer = answer_of("omb_py.backends.mpi.tools.knobs", timeout=_CHILD_S)
    if "library" not in answer:
        why = f"{library.vendor} {library.version} did not list its variables ({answer.get('error', 'no answer')})"
        return LibraryKnobs("mpi", library.vendor, library.version, reason=why, fix="see python -m mpi4py")
    trees = built_in_trees(Path(library.path)) if library.vendor == MPICH else ()
    return knobs_of(answer, trees)


def knobs_of(answer: Listed, trees: tuple[str, ...] = ()) -> LibraryKnobs:
    """The knobs in what the child process answered."""
    library, version = str(answer["library"]), str(answer["version"])
    if "reason" in answer:
        return LibraryKnobs("mpi", library, version, reason=answer["reason"], fix="use another library")
    read = _READERS.get(library, _make_plain_knob)
    knobs = tuple(read(cvar) for cvar in answer["cvars"])
    if library == INTEL:
        knobs += adjust_knobs()
    if not knobs:
        reason = f"{library} {version} has MPI_T, which lists no control variable"
        return LibraryKnobs("mpi", library, version, reason=reason, fix="use a library built with its tool interface")
    return LibraryKnobs("mpi", library, version, _HOW, knobs, tuple(map(_pvar, answer["pvars"])), trees=trees)


def _pvar(pvar: Listed) -> PerformanceVariable:
    return PerformanceVariable(
        pvar["name"],
        pvar["kind"],
        _type(pvar),
        pvar["object"],
        pvar["verbosity"],
        pvar["category"],
        pvar["description"],
    )


def _type(variable: Listed) -> str:
    return _WORDS.get(variable["type"], str(variable["type"]).lower())


def _make_plain_knob(cvar: Listed, variable: str = "", choices: tuple[Choice, ...] = (), **more: Any) -> Knob:
    """A control variable of a library of which nobody told us how it is set."""
    more = {**cvar, **more}
    listed = choices or tuple(Choice(name, str(number)) for number, name in cvar["items"])
    return Knob(
        cvar["name"],
        "enum" if listed and cvar["type"] != "C_BOOL" else _type(cvar),
        more["value"],
        variable,
        listed,
        cvar["scope"],
        more["verbosity"],
        cvar["category"],
        more["description"],
    )


def _make_open_mpi_knob(cvar: Listed) -> Knob:
    return _make_plain_knob(cvar, "" if cvar["scope"] == "constant" else f"OMPI_MCA_{cvar['name']}")


def _make_mpich_knob(cvar: Listed) -> Knob:
    """MPICH reads the variable of the same name when it starts; descriptions list the values, in their order."""
    choices, value = choices_in(cvar["description"], cvar["type"]), cvar["value"]
    by_place = cvar["type"] == "INT" and bool(choices) and not choices[0].word.isdigit()
    if by_place and value.isdigit() and int(value) < len(choices):
        value = choices[int(value)].word
    return _make_plain_knob(cvar, cvar["name"], choices, value=value)


def choices_in(description: str, type: str) -> tuple[Choice, ...]:
    """The values that a description of MPICH lists; empty where it lists none.

    Args:
        type: ``INT`` of a number or an enumeration, ``CHAR`` of a text.
    """
    if "\n" in description:
        return tuple(Choice(word, meaning) for word, meaning in _LISTED.findall(description))
    pattern = _FOLDED if type == "CHAR" else _NUMBERED
    marks = list(pattern.finditer(description))
    if type != "CHAR" and [mark[1] for mark in marks] != [str(n) for n in range(len(marks))]:
        return ()  # numbers in a sentence
    if len(marks) < 2:
        return ()
    ends = [*(mark.start() for mark in marks[1:]), len(description)]
    return tuple(Choice(mark[1], description[mark.end() : end].strip()) for mark, end in zip(marks, ends, strict=True))


def _make_intel_knob(cvar: Listed) -> Knob:
    tags = read_tags(cvar["description"])
    name = cvar["name"]
    variable = tags.get("Alias") or (name if name.startswith("I_MPI_") else "")
    verbosity = tags.get("Verbosity", cvar["verbosity"])
    return _make_plain_knob(
        cvar, variable, verbosity=verbosity, description=tags[""], value=tags.get("Default", cvar["value"])
    )


_READERS: Final[Mapping[str, Callable[[Listed], Knob]]] = {
    OPEN_MPI: _make_open_mpi_knob,
    MPICH: _make_mpich_knob,
    INTEL: _make_intel_knob,
}


def built_in_trees(library: Path) -> tuple[str, ...]:
    """The JSON texts by which MPICH selects its collectives, which lie in the library as it was built.

    (maint/tuning/coll in its sources.)  Empty where there are none, or the file cannot be read.
    """
    try:
        return tuple(match[0].decode("ascii", "replace") for match in _TREE.finditer(library.read_bytes()))
    except OSError:
        return ()


if __name__ == "__main__":
    print(MARK + json.dumps(listing()), flush=True)
