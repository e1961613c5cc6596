"""Open MPI's file of dynamic rules, which its component tuned reads.

The format is that of ompi/mca/coll/tuned/coll_tuned_dynamic_file.c (versions 1 to 5; 6 reads it too): numbers, and
comments from ``#`` to the end of the line.  A rule holds from its message size, or communicator size, on to the next.
Algorithm 0 leaves the choice to the library.  Each communicator size begins with a rule for message size 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Final

from omb_py.results.tune.library_files import LibraryFacts, LibraryFiles, by_place, head
from omb_py.results.tune.rules import Rule, RuleTable

FILE: Final = "openmpi-rules.conf"
_PREFIX: Final = "OMPI_MCA_coll_tuned_"
_SWITCH: Final = f"{_PREFIX}use_dynamic_rules"
_NUMBERS: Final = {
    name: number
    for number, name in enumerate(
        (
            "allgather allgatherv allreduce alltoall alltoallv alltoallw barrier bcast exscan gather gatherv reduce "
            "reduce_scatter reduce_scatter_block scan scatter scatterv"
        ).split()
    )
}
"""Numbers of collectives: COLLTYPE of ompi/mca/coll/base/coll_base_functions.h."""
_TIMES_RANKS: Final = frozenset({"allgather", "alltoall", "gather", "scatter"})
"""Collectives whose message size is that of all ranks together (coll_tuned_decision_dynamic.c)."""
_FANOUT: Final = {"bcast": "chain_fanout", "reduce": "chain_fanout", "reduce_scatter": "chain_fanout"}
"""The fan-out that a rule sets, where it is not that of the tree."""
_NOTHING: Final = "0 0 0 0  # from 0 B on: the library's choice"


def open_mpi_rules(table: RuleTable, facts: LibraryFacts, folder: PurePath) -> LibraryFiles:
    """The file of the rules whose settings are algorithms of the component tuned; others are left out."""
    lines, left_out, more = [], [], dict[str, str]()
    expressed: list[Rule] = []
    for rule in table.rules:
        why = _inexpressible(rule, facts)
        if why:
            left_out.append((rule, why))
            continue
        expressed.append(rule)
        more |= {name: value for name, value in rule.setting.variables if not name.startswith(_PREFIX)}
    if not expressed:
        return LibraryFiles({}, (), tuple(left_out))
    places = by_place(expressed)
    lines.append(f"{len(places)}  # number of collectives")
    for collective, sizes in places.items():
        lines += [f"{_NUMBERS[collective]}  # {collective}", *_communicators(collective, sizes, facts)]
    variables = {**more, _SWITCH: "1", f"{_PREFIX}dynamic_rules_filename": str(folder / FILE)}
    text = head(table) + "\n".join(lines) + "\n"
    return LibraryFiles({FILE: text}, tuple(sorted(variables.items())), tuple(left_out))


def _inexpressible(rule: Rule, facts: LibraryFacts) -> str:
    """Why the file cannot say a rule; empty where it can."""
    if rule.collective not in _NUMBERS:
        return f"the component tuned has no {rule.collective}"
    if not _number(rule, facts):
        return f"the file names algorithms of coll_tuned_{rule.collective}_algorithm alone"
    if rule.collective in ("alltoallv", "barrier") and (rule.first_bytes or rule.last_bytes is not None):
        return f"the file knows no sizes of {rule.collective}"
    known = {_name(rule, part) for part in ("", "_segmentsize", "_tree_fanout", "_chain_fanout")} | {_SWITCH}
    other = [name for name, _ in rule.setting.variables if name.startswith(_PREFIX) and name not in known]
    return f"the file cannot set {', '.join(other)}" if other else ""


def _name(rule: Rule, part: str) -> str:
    return f"{_PREFIX}{rule.collective}_algorithm{part}"


def _number(rule: Rule, facts: LibraryFacts) -> str:
    name = _name(rule, "")
    word = dict(rule.setting.variables).get(name, "")
    return word if word.isdigit() else facts.numbers.get(name, {}).get(word, "")


def _communicators(collective: str, sizes: Mapping[int, Sequence[Rule]], facts: LibraryFacts) -> list[str]:
    """The rules for each communicator size, and none for the sizes between them."""
    rules_of: dict[int, list[str]] = {0: [_NOTHING]}
    for ranks, rules in sizes.items():
        rules_of[ranks] = _messages(rules, facts, ranks if collective in _TIMES_RANKS else 1)
        rules_of.setdefault(ranks + 1, [_NOTHING])
    lines = [f"{len(rules_of)}  # communicator sizes"]
    for ranks in sorted(rules_of):
        lines += [f"{ranks}  # ranks", f"{len(rules_of[ranks])}  # message sizes", *rules_of[ranks]]
    return lines


def _messages(rules: Sequence[Rule], facts: LibraryFacts, times: int) -> list[str]:
    lines = {0: _NOTHING}
    for rule in rules:
        variables = dict(rule.setting.variables)
        fan_out = variables.get(_name(rule, f"_{_FANOUT.get(rule.collective, 'tree_fanout')}"), "0")
        segment = variables.get(_name(rule, "_segmentsize"), "0")
        first = rule.first_bytes * times
        lines[first] = f"{first} {_number(rule, facts)} {fan_out} {segment}  # from {first} B on: {rule.setting.name}"
        if rule.last_bytes is not None:
            after = rule.last_bytes * times + 1
            lines.setdefault(after, f"{after} {_NOTHING[2:].replace('from 0 B', f'from {after} B')}")
    return [lines[size] for size in sorted(lines)]
