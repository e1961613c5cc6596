"""The files by which a library uses the rules of a tuning: one writer for each family of libraries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

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
        """A line for each of those."""
        return [f"{rule_line(rule)}: {why}" for rule, why in self.left_out]


Writer = Callable[[RuleTable, LibraryFacts, PurePath], LibraryFiles]


def write_rules(table: RuleTable, facts: LibraryFacts, folder: PurePath) -> LibraryFiles:
    """The files for the library of a table, and with them ``tuned.env`` and a modulefile.

    Args:
        table: the rules; with none there are no files.
        facts: the library.
        folder: where the files will stand, as an absolute path.
    """
    from omb_py.results.tune.environment_files import by_variables, with_environment
    from omb_py.results.tune.intel_adjust import intel_adjust
    from omb_py.results.tune.mpich_selection import mpich_selection
    from omb_py.results.tune.open_mpi_rules import open_mpi_rules

    writers: dict[str, Writer] = {"Open MPI": open_mpi_rules, "MPICH": mpich_selection, "Intel MPI": intel_adjust}
    if not table.rules:
        return LibraryFiles({})
    writer = writers.get(facts.family)
    files = _with_variables(writer(table, facts, folder), table) if writer else by_variables(table, facts, folder)
    return with_environment(files, table)


def _with_variables(files: LibraryFiles, table: RuleTable) -> LibraryFiles:
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
    """The lines that say who measured what, where and when, as comments."""
    lines = [f"{table.library}, tuned by omb-py", *(f"{name}: {value}" for name, value in table.who)]
    return "".join(f"{mark} {' '.join(line.split())}\n" for line in [*lines, *map(rule_line, table.rules)])


def rule_line(rule: Rule) -> str:
    """A rule in words, with its evidence."""
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
