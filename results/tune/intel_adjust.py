"""Intel MPI's ``I_MPI_ADJUST_<collective>``: one variable with the sizes in it, and no file.

The form is ``NUMBER:FIRST-LAST;…`` (Intel MPI Library Developer Reference, I_MPI_ADJUST family). The reference also has
``@FEWEST-MOST`` ranks, but Intel MPI 2021.18 then obeys neither: the last entry holds for every size. A size outside
all entries takes the last entry too, so number 0, the library's own choice, stands wherever there is no rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

from omb_py.results.tune.library_files import LibraryFacts, LibraryFiles, by_place
from omb_py.results.tune.rules import Rule, RuleTable

_LARGEST: Final = (1 << 31) - 1
"""Stands for no end: the form has none."""
_OWN_CHOICE: Final = "0"


def intel_adjust(table: RuleTable, facts: LibraryFacts, folder: PurePath) -> LibraryFiles:
    """The variables of the rules that choose an algorithm by its number; others are left out."""
    variables, left_out = dict[str, str](), []
    for collective, sizes in by_place(table.rules).items():
        name = f"I_MPI_ADJUST_{collective.upper()}"
        if len(sizes) > 1:
            why = f"{name} cannot say both sizes and ranks: tune one number of ranks, and set it for those jobs"
            left_out += [(rule, why) for rules in sizes.values() for rule in rules]
            continue
        (rules,) = sizes.values()
        numbered = [(rule, dict(rule.setting.variables).get(name, "")) for rule in rules]
        alone = [(rule, n) for rule, n in numbered if n.isdigit() and len(rule.setting.variables) == 1]
        why = f"{name} takes the number of an algorithm alone"
        left_out += [(pair[0], why) for pair in numbered if pair not in alone]
        if alone:
            variables[name] = _value(alone)
    return LibraryFiles({}, tuple(sorted(variables.items())), tuple(left_out))


def _value(rules: Sequence[tuple[Rule, str]]) -> str:
    """The entries of rules in the order of their sizes, with the library's choice before, between and after them."""
    entries, following = [], 0
    for rule, number in rules:
        if rule.first_bytes > following:
            entries.append((_OWN_CHOICE, following, rule.first_bytes - 1))
        last = _LARGEST if rule.last_bytes is None else rule.last_bytes
        entries.append((number, rule.first_bytes, last))
        following = last + 1
    if following <= _LARGEST:
        entries.append((_OWN_CHOICE, following, _LARGEST))
    return ";".join(f"{number}:{first}-{last}" for number, first, last in entries)
