"""Candidates that the command line gives: ``--candidate NAME=VARIABLE=VALUE[,VARIABLE=VALUE]``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from omb_py.errors import UsageError
from omb_py.results.tune.rules import DEFAULT, Setting

_FORM = "--candidate takes NAME=VARIABLE=VALUE[,VARIABLE=VALUE…], as ring=OMPI_MCA_coll_tuned_allreduce_algorithm=4"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def parse_candidate(text: str) -> Setting:
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
    return Setting(name, tuple(sorted(variables.items())))


def distinct(settings: Sequence[Setting]) -> tuple[Setting, ...]:
    """Check that no two candidates share a name or set the same. Raises UsageError."""
    names: dict[str, Setting] = {}
    values: dict[tuple[tuple[str, str], ...], str] = {}
    for setting in settings:
        if setting.name in names:
            raise UsageError(f"candidate {setting.name!r} is given twice")
        if setting.variables in values:
            raise UsageError(f"candidates {values[setting.variables]!r} and {setting.name!r} set the same")
        names[setting.name] = setting
        values[setting.variables] = setting.name
    return tuple(settings)
