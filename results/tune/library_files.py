"""The files by which a library uses the rules of a tuning: one writer for each family of libraries."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Final

from omb_py.results.tune.rules import Rule, RuleTable


@dataclass(frozen=True, slots=True)
class LibraryFacts:
    """What a writer must know of the library that was tuned."""

    family: str
    """``Open MPI``, ``MPICH``, ``Intel MPI``, ``NCCL or RCCL``, or another library's name."""
    numbers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Environment variable of an enumeration -> its words -> their numbers."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Environment variable -> its value here."""
    trees: Sequence[str] = ()
    """The selection of collectives that is built into MPICH, as JSON texts."""
    compositions: Mapping[str, str] = field(default_factory=dict)
    """Collective -> number of MPICH's composition that goes to the MPI layer at once."""


@dataclass(frozen=True, slots=True)
class LibraryFiles:
    """Texts of files, and what makes a library read them."""

    texts: Mapping[str, str]
    """File name -> text."""
    variables: tuple[tuple[str, str], ...] = ()
    """Environment variables of a program that is to use the files, sorted by name."""
    left_out: tuple[tuple[Rule, str], ...] = ()
    """Each rule that the library's file cannot express, with the reason."""

    @property
    def left_out_lines(self) -> list[str]:
        return [f"{rule_line(rule)}: {why}" for rule, why in self.left_out]


Writer = Callable[[RuleTable, LibraryFacts, PurePath], LibraryFiles]


def write_rules(table: RuleTable, facts: LibraryFacts, folder: PurePath) -> LibraryFiles:
    """The files for the library of a table, and with them ``tuned.env`` and a modulefile.

    Args:
        table: the rules; with none there are no files.
        folder: where the files will stand, as an absolute path.
    """
    from omb_py.results.tune.mpich_selection import mpich_selection

    writers: dict[str, Writer] = {"Open MPI": open_mpi_rules, "MPICH": mpich_selection, "Intel MPI": intel_adjust}
    if not table.rules:
        return LibraryFiles({})
    writer = writers.get(facts.family)
    files = _add_variables(writer(table, facts, folder), table) if writer else by_variables(table, facts, folder)
    return with_environment(files, table)


def _add_variables(files: LibraryFiles, table: RuleTable) -> LibraryFiles:
    """The same with the variables of rules for every size, where no file can say them.

    A variable holds for any number of ranks, so all rules of the collective must have one setting.
    """
    variables, left = dict(files.variables), list(files.left_out)
    for collective in dict.fromkeys(rule.collective for rule, _ in files.left_out):
        rules = [rule for rule in table.rules if rule.collective == collective]
        setting = rules[0].setting
        alike = all(rule.setting == setting and rule.for_all_sizes for rule in rules)
        if alike and all(variables.get(name, value) == value for name, value in setting.variables):
            variables |= dict(setting.variables)
            left = [entry for entry in left if entry[0] not in rules]
    return replace(files, variables=tuple(sorted(variables.items())), left_out=tuple(left))


def head(table: RuleTable, mark: str = "#") -> str:
    lines = [f"{table.library}, tuned by omb-py", *(f"{name}: {value}" for name, value in table.who)]
    return "".join(f"{mark} {' '.join(line.split())}\n" for line in [*lines, *map(rule_line, table.rules)])


def rule_line(rule: Rule) -> str:
    sizes = f"{rule.first_bytes} to {rule.last_bytes} B" if rule.last_bytes is not None else f"{rule.first_bytes} B on"
    return (
        f"{rule.collective} on {rule.ranks} ranks, {sizes}: {rule.setting.name}, {rule.ratio:.3f} of the default's "
        f"time ({rule.low:.3f} to {rule.high:.3f})"
    )


def by_place(rules: Sequence[Rule]) -> dict[str, dict[int, list[Rule]]]:
    """Collective -> ranks -> rules in the order of their sizes."""
    places: dict[str, dict[int, list[Rule]]] = {}
    for rule in sorted(rules, key=lambda rule: (rule.collective, rule.ranks, rule.first_bytes)):
        places.setdefault(rule.collective, {}).setdefault(rule.ranks, []).append(rule)
    return places


ENVIRONMENT, MODULE = "tuned.env", "tuned.lua"
_VARIABLES_ALONE: Final = "its variables hold for all sizes and ranks"


def by_variables(table: RuleTable, facts: LibraryFacts, folder: PurePath) -> LibraryFiles:
    """The variables of a library that reads no sizes: those of the one setting of all rules.

    Where the rules have several settings no variables hold for all, so each setting gets a file of its own.
    """
    settings = dict.fromkeys(rule.setting for rule in table.rules)
    if len(settings) == 1:
        return LibraryFiles({}, table.rules[0].setting.variables)
    texts = {}
    for setting in settings:
        rules = [rule for rule in table.rules if rule.setting == setting]
        name = re.sub(r"[^A-Za-z0-9]+", "-", setting.name).strip("-") or "setting"
        texts[f"tuned-{name}.env"] = _shell(head(replace(table, rules=tuple(rules))), setting.variables)
    why = f"{_VARIABLES_ALONE}, so each setting has a file of its own"
    return LibraryFiles(texts, (), tuple((rule, why) for rule in table.rules))


def with_environment(files: LibraryFiles, table: RuleTable) -> LibraryFiles:
    if not files.variables:
        return files
    texts = {
        **files.texts,
        ENVIRONMENT: _shell(head(table), files.variables),
        MODULE: head(table, "--") + "".join(f"setenv({_lua(n)}, {_lua(v)})\n" for n, v in files.variables),
    }
    return replace(files, texts=texts)


def _shell(comment: str, variables: Sequence[tuple[str, str]]) -> str:
    return comment + "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables)


def _lua(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # a text of Lua has the same escapes for what a path may hold


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
