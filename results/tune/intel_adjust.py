"""Intel MPI's ``I_MPI_ADJUST_<collective>``: one variable with sizes and ranks in it, and no file.

The form is ``NUMBER:FIRST-LAST@FEWEST-MOST;…`` (Intel MPI Library Developer Reference, I_MPI_ADJUST family).
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Final

from omb_py.results.tune.library_files import LibraryFacts, LibraryFiles, by_place
from omb_py.results.tune.rules import RuleTable

_LARGEST: Final = (1 << 31) - 1
"""Stands for no end: the form has none."""


def intel_adjust(table: RuleTable, facts: LibraryFacts, folder: PurePath) -> LibraryFiles:
    """The variables of the rules that choose an algorithm by its number; others are left out."""
    variables, left_out = dict[str, str](), []
    for collective, sizes in by_place(table.rules).items():
        name, parts = f"I_MPI_ADJUST_{collective.upper()}", []
        for rule in (rule for rules in sizes.values() for rule in rules):
            number = dict(rule.setting.variables).get(name, "")
            if not number.isdigit() or len(rule.setting.variables) > 1:
                left_out.append((rule, f"{name} takes the number of an algorithm alone"))
                continue
            last = _LARGEST if rule.last_bytes is None else rule.last_bytes
            parts.append(f"{number}:{rule.first_bytes}-{last}@{rule.ranks}-{rule.ranks}")
        if parts:
            variables[name] = ";".join(parts)
    return LibraryFiles({}, tuple(sorted(variables.items())), tuple(left_out))
