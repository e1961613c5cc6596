"""The settings of a collective that are worth a try: each algorithm of the library, and chosen values of its knobs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product

from omb_py.backends.capabilities import Knob, LibraryKnobs
from omb_py.errors import UsageError, nearest
from omb_py.orchestrate.tune.knobs import check_collective, chooses, mentioned, of_collective
from omb_py.results.tune.rules import DEFAULT, LibrarySetting

_DEFAULTS = frozenset({"ignore", "auto", "sched_auto", "mpir", "default", "0"})
"""Values that leave the choice to the library."""
_ON_DEVICES = frozenset({"ccl", "ipc_read"})
"""Algorithms of MPICH for buffers on GPUs; with others it takes its default instead, and says nothing."""
_PRIORITY = re.compile(r"^coll_(?P<component>[a-z0-9]+)_priority$")
_OF_OPEN_MPI = re.compile(r"^coll_(?P<component>[a-z0-9]+)_")
_WHOLE_COLLECTIVES = frozenset({"han", "xhc", "acoll", "ucc", "hcoll", "adapt", "sm"})
"""Components of Open MPI that take a collective as a whole, so that one below them is not asked."""

Chosen = Mapping[str, Sequence[str]]
"""Knob -> values to try."""


def parse_knob(text: str) -> tuple[str, tuple[str, ...]]:
    """Read ``--knob NAME=VALUE,VALUE``. Raises UsageError.

    >>> parse_knob("coll_tuned_allreduce_algorithm_segmentsize=0,8192")
    ('coll_tuned_allreduce_algorithm_segmentsize', ('0', '8192'))
    """
    name, equals, values = (part.strip() for part in text.partition("="))
    words = tuple(dict.fromkeys(word.strip() for word in values.split(",")))
    if not name or not equals or not all(words):
        raise UsageError(f"--knob takes NAME=VALUE[,VALUE…], not {text!r}: omb-py knobs COLLECTIVE --all lists names")
    return name, words


def candidates(library: LibraryKnobs, collective: str, chosen: Chosen | None = None) -> tuple[LibrarySetting, ...]:
    """The settings to try, without the library's default.

    Args:
        chosen: knobs with values. Values of a knob whose values are algorithms replace all of its algorithms; those of
            any other are tried with each algorithm, and alone where they mean something alone.

    Raises:
        UsageError: no such collective, knob or value.
        EnvironmentProblem: no knob of the library decides the algorithm of the collective.
    """
    check_collective(collective, library)
    named = {_knob(library, name): tuple(values) for name, values in (chosen or {}).items()}
    for knob, values in named.items():
        for value in values:
            _check(knob, value)
    main = [knob for knob in of_collective(library, collective) if chooses(knob) and _is_first(knob)]
    deciding = dict.fromkeys([*main, *(knob for knob in named if chooses(knob))])
    algorithms = [(knob, word) for knob in deciding for word in named.get(knob) or _list_choices(knob)]
    others = {knob: values for knob, values in named.items() if not chooses(knob)}
    settings = []
    if library.joined:
        settings = list(_combine(algorithms, others))
    else:
        alone = others and not any("algorithm is forced" in knob.description for knob in others)
        with_each = [*algorithms, None] if alone else algorithms
        for algorithm in with_each:
            for values in product(*others.values()):
                parts = [*([algorithm] if algorithm else []), *zip(others, values, strict=True)]
                settings.append(_setting(library, collective, parts))
    device = next((k for k in of_collective(library, collective) if k.name.endswith("_DEVICE_COLLECTIVE")), None)
    if device and not named:
        settings.append(LibrarySetting("mpir", ((device.variable, "0"),)))
    return tuple({setting.variables: setting for setting in settings}.values())


def _knob(library: LibraryKnobs, name: str) -> Knob:
    knob = library.knob(name)
    if knob is None:
        near = nearest(name, (k.name for k in library.knobs), otherwise="omb-py knobs --all lists them")
        raise UsageError(f"{library.title} has no knob {name!r}: {near}")
    if not knob.variable:
        raise UsageError(f"{knob.name} of {library.title} cannot be set: it is built in")
    return knob


def _check(knob: Knob, value: str) -> None:
    words = [choice.word for choice in knob.choices]
    numbers = [choice.meaning for choice in knob.choices if choice.meaning.lstrip("-").isdigit()]
    if words and value not in (*words, *numbers) and not (knob.type == "bool" and value in ("0", "1")):
        raise UsageError(f"{knob.name} takes no {value!r}: {nearest(value, words)}")
    if knob.type in ("int", "unsigned", "unsigned_long", "uint64_t") and not re.fullmatch(r"-?\d+", value):
        raise UsageError(f"{knob.name} takes a whole number, not {value!r}")


def _is_first(knob: Knob) -> bool:
    """Whether all values of a knob are tried when nothing is chosen.

    Not those of han, which Open MPI uses on several nodes alone, and not MPICH's compositions, of which some abort on
    communicators of another shape.
    """
    return not (knob.name.startswith("coll_han_") or knob.name.endswith(("_COMPOSITION", "_POSIX_INTRA_ALGORITHM")))


def _list_choices(knob: Knob) -> tuple[str, ...]:
    return tuple(c.word for c in knob.choices if c.word not in _DEFAULTS and c.word not in _ON_DEVICES)


def _combine(algorithms: Sequence[tuple[Knob, str]], others: Mapping[Knob, Sequence[str]]) -> Iterable[LibrarySetting]:
    """Of NCCL: each algorithm with each protocol, and each value of the other knobs."""
    by_knob: dict[Knob, list[str]] = {}
    for knob, word in algorithms:
        by_knob.setdefault(knob, []).append(word)
    pools = {**by_knob, **others}
    for values in product(*pools.values()):
        parts = list(zip(pools, values, strict=True))
        named = [word if chooses(knob) else f"{_short(knob)}={word}" for knob, word in parts]
        yield LibrarySetting(" ".join(named), tuple(sorted((knob.variable, word) for knob, word in parts)))


def _setting(library: LibraryKnobs, collective: str, parts: Sequence[tuple[Knob, str]]) -> LibrarySetting:
    variables = {knob.variable: word for knob, word in parts}
    names = [word if chooses(knob) else f"{_short(knob, collective)}={word}" for knob, word in parts]
    for knob, _ in parts:
        for name, value in _find_needed(library, collective, knob).items():
            variables.setdefault(name, value)
    return LibrarySetting(" ".join(names), tuple(sorted(variables.items())))


def _short(knob: Knob, collective: str = "") -> str:
    """A knob without what all knobs of the collective share: ``segmentsize``, ``recexch_kval``."""
    name = knob.name.lower().removeprefix("mpir_cvar_").removeprefix("nccl_")
    name = re.sub(rf"^(coll_[a-z0-9]+_)?{collective}_(algorithm_)?", "", name) if collective else name
    return name.replace("segmentsize", "segsize")


def _find_needed(library: LibraryKnobs, collective: str, knob: Knob) -> dict[str, str]:
    """What else must be set so that a knob is obeyed."""
    needed = {k.variable: "1" for k in mentioned([knob], library) if k.type == "bool"}
    component = _OF_OPEN_MPI.match(knob.name)
    if component:
        needed |= _lower_priorities(library, component["component"])
    if knob.name.startswith("MPIR_CVAR_") and not knob.name.endswith(("_COMPOSITION", "_POSIX_INTRA_ALGORITHM")):
        device = library.knob(f"MPIR_CVAR_{collective.upper()}_DEVICE_COLLECTIVE")
        needed |= {device.variable: "0"} if device else {}
    return needed


def _lower_priorities(library: LibraryKnobs, component: str) -> dict[str, str]:
    """The components of Open MPI that would take the call first, with priority 0."""
    priorities = {
        match["component"]: knob
        for knob in library.knobs
        if (match := _PRIORITY.match(knob.name)) and knob.value.lstrip("-").isdigit()
    }
    own = int(priorities[component].value) if component in priorities else 0
    return {
        knob.variable: "0"
        for name, knob in priorities.items()
        if name in _WHOLE_COLLECTIVES and name != component and int(knob.value) > own
    }


_FORM = "--candidate takes NAME=VARIABLE=VALUE[,VARIABLE=VALUE…], as ring=OMPI_MCA_coll_tuned_allreduce_algorithm=4"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def parse_candidate(text: str) -> LibrarySetting:
    """Read one candidate.

    Raises:
        UsageError: it has another form, a variable is given twice, or it is called as the default is.

    >>> parse_candidate("ring 8K=A_ALGORITHM=4,A_SEGSIZE=8192").variables
    (('A_ALGORITHM', '4'), ('A_SEGSIZE', '8192'))
    """
    name, equals, rest = (part.strip() for part in text.partition("="))
    if not name or not equals or not rest:
        raise UsageError(f"{_FORM}, not {text!r}")
    if name == DEFAULT.name:
        raise UsageError(f"{text!r}: the library as it is is called {name!r}, and is a candidate already")
    variables: dict[str, str] = {}
    for part in rest.split(","):
        variable, equals, value = (word.strip() for word in part.partition("="))
        if not equals or not _VARIABLE.fullmatch(variable):
            raise UsageError(f"{_FORM}: {part!r} is no VARIABLE=VALUE")
        if variable in variables:
            raise UsageError(f"{text!r}: {variable} is given twice")
        variables[variable] = value
    return LibrarySetting(name, tuple(sorted(variables.items())))


def distinct(settings: Sequence[LibrarySetting]) -> tuple[LibrarySetting, ...]:
    """Check that no two candidates share a name or set the same. Raises UsageError."""
    names: dict[str, LibrarySetting] = {}
    values: dict[tuple[tuple[str, str], ...], str] = {}
    for setting in settings:
        if setting.name in names:
            raise UsageError(f"candidate {setting.name!r} is given twice")
        if setting.variables in values:
            raise UsageError(f"candidates {values[setting.variables]!r} and {setting.name!r} set the same")
        names[setting.name] = setting
        values[setting.variables] = setting.name
    return tuple(settings)
