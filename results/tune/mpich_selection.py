"""MPICH's selection of collectives as two JSON files: one of its device CH4, one of the MPI layer.

The format is that of src/mpi/coll/src/csel.c: nested objects whose keys are conditions, read from the first to the
last; the first that holds is taken, and there is no way back.  A leaf is ``composition=…`` (CH4) or ``algorithm=…``
(MPI layer) with its parameters (csel_container.c).  A file replaces the whole selection, so it holds what is built into
the library, with rules before it.  The environment knows no sizes: MPIR_CVAR_…_ALGORITHM holds for all of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

from omb_py.results.tune.library_files import LibraryFacts, LibraryFiles, by_place, head
from omb_py.results.tune.rules import Rule, RuleTable

FILES: Final = {
    "mpich-ch4.json": "MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE",
    "mpich-mpi.json": "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE",
}
"""File -> the variable that names it."""
_AVERAGE: Final = frozenset({"allreduce", "bcast", "reduce", "alltoall"})
"""Collectives of which csel.c knows the bytes of one rank, as also of their non-blocking forms."""
_TOTAL: Final = {"allgather": True, "reduce_scatter": False, "reduce_scatter_block": False}
"""Collectives of which it knows the bytes of all ranks together -> whether those are our size times the ranks."""
_PARAMETERS: Final = {
    "_KVAL": "k",
    "_TREE_KVAL": "k",
    "_TREE_TYPE": "tree_type",
    "_TREE_PIPELINE_CHUNK_SIZE": "chunk_size",
    "_TREE_BUFFER_PER_CHILD": "buffer_per_child",
    "_SINGLE_PHASE_RECV": "single_phase_recv",
    "_IS_NON_BLOCKING": "is_non_blocking",
    "_TOPO_OVERHEAD": "topo_overhead",
    "_TOPO_DIFF_GROUPS": "topo_diff_groups",
    "_TOPO_DIFF_SWITCHES": "topo_diff_switches",
    "_TOPO_SAME_SWITCHES": "topo_same_switches",
}
"""End of a variable's name -> the parameter of an algorithm that it sets."""
_OF_TREES: Final = tuple(end for end in _PARAMETERS if end not in ("_KVAL", "_SINGLE_PHASE_RECV"))
_TAKES: Final = {
    "tree": _OF_TREES,
    "recexch": ("_KVAL", "_SINGLE_PHASE_RECV"),
    "recursive_multiplying": ("_KVAL",),
    "k_reduce_scatter_allgather": ("_KVAL", "_SINGLE_PHASE_RECV"),
    "k_brucks": ("_KVAL",),
    "recexch_doubling": ("_KVAL", "_SINGLE_PHASE_RECV"),
    "recexch_halving": ("_KVAL", "_SINGLE_PHASE_RECV"),
    "k_dissemination": ("_KVAL",),
}
"""Algorithm -> its parameters; all of them must stand in the file, which has no defaults (csel_container.c)."""
_PARAMETERS_FROM: Final = {"k_reduce_scatter_allgather": "RECEXCH", "recexch_doubling": "RECEXCH"} | {
    "recexch_halving": "RECEXCH",
    "k_dissemination": "DISSEM",
}
"""Algorithms whose variables have another name than their own."""
_GREEK: Final = ("alpha", "beta", "gamma", "delta")
_UNREADABLE: Final = frozenset({"pipelined_tree", "nb"})
"""Algorithms that a file cannot name with all that they need, or that stand under another name there."""

Tree = dict[str, Any]
Leaves = Mapping[Rule, Tree | None]
"""Rule -> what it leads to; None: what is built in."""


def mpich_selection(table: RuleTable, facts: LibraryFacts, folder: PurePath) -> LibraryFiles:
    """The two files of the rules that they can express; others are left out."""
    trees = _trees(facts)
    left_out, expressed = [], []
    for rule in table.rules:
        why = "this library has no selection in JSON" if not trees else _inexpressible(rule, facts)
        if why:
            left_out.append((rule, why))
        else:
            expressed.append(rule)
    if trees is None or not expressed:
        return LibraryFiles({}, (), tuple(left_out))
    device, layer = trees
    for collective, sizes in by_place(expressed).items():
        composition: Tree = {f"composition={_composition(collective, facts)}": {}}
        _put(device, collective, sizes, {rule: composition for rules in sizes.values() for rule in rules})
        _put(layer, collective, sizes, {rule: _leaf(rule, facts) for rules in sizes.values() for rule in rules})
    texts = {name: json.dumps(tree, indent=1) + "\n" for name, tree in zip(FILES, (device, layer), strict=True)}
    texts["mpich-selection.txt"] = head(table)  # JSON has no comments, and MPICH takes no other key
    variables = {variable: str(folder / name) for name, variable in FILES.items()}
    return LibraryFiles(texts, tuple(sorted(variables.items())), tuple(left_out))


def _trees(facts: LibraryFacts) -> tuple[Tree, Tree] | None:
    """The built-in selections of CH4 and of the MPI layer."""
    read = [json.loads(text) for text in facts.trees]
    device = next((tree for text, tree in zip(facts.trees, read, strict=True) if '"composition=' in text), None)
    layer = next((tree for text, tree in zip(facts.trees, read, strict=True) if '"algorithm=MPIR_' in text), None)
    return None if device is None or layer is None else (device, layer)


def _algorithm(rule: Rule) -> str:
    """The algorithm of a rule's setting; ``auto`` where it only leaves the choice to the MPI layer; else empty."""
    variables, name = dict(rule.setting.variables), rule.collective.upper()
    if variables.get(f"MPIR_CVAR_{name}_DEVICE_COLLECTIVE") != "0":
        return ""
    return variables.get(f"MPIR_CVAR_{name}_INTRA_ALGORITHM", "auto")


def _inexpressible(rule: Rule, facts: LibraryFacts) -> str:
    """Why the files cannot say a rule; empty where they can."""
    algorithm = _algorithm(rule)
    if not algorithm:
        return "the files choose algorithms of the MPI layer alone"
    if algorithm in _UNREADABLE:
        return f"the files cannot name {algorithm}"
    if not facts.compositions.get(rule.collective):
        return f"the library lists no composition of {rule.collective} that goes to the MPI layer"
    sized = rule.first_bytes > 0 or rule.last_bytes is not None
    if sized and rule.collective not in _AVERAGE and rule.collective not in _TOTAL:
        return f"the library knows no size of {rule.collective}"
    known = {name for name, _ in rule.setting.variables if name.endswith(("_DEVICE_COLLECTIVE", "_INTRA_ALGORITHM"))}
    known |= set(_variables(rule).values())
    other = [name for name, _ in rule.setting.variables if name not in known]
    return f"the files cannot set {', '.join(other)}" if other else ""


def _variables(rule: Rule) -> dict[str, str]:
    """Parameter of the rule's algorithm -> the variable that sets it."""
    algorithm, prefix = _algorithm(rule), f"MPIR_CVAR_{rule.collective.upper()}"
    own = _PARAMETERS_FROM.get(algorithm, algorithm.upper())
    return {
        _PARAMETERS[end]: f"{prefix}{end if end in _OF_TREES else f'_{own}{end}'}" for end in _TAKES.get(algorithm, ())
    }


def _composition(collective: str, facts: LibraryFacts) -> str:
    letter = _GREEK[int(facts.compositions[collective]) - 1]
    return f"MPIDI_{collective.capitalize()}_intra_composition_{letter}"


def _leaf(rule: Rule, facts: LibraryFacts) -> Tree | None:
    algorithm = _algorithm(rule)
    if algorithm == "auto":
        return None
    values = {**facts.values, **dict(rule.setting.variables)}
    parameters: Tree = {f"{key}={values[name]}": {} for key, name in _variables(rule).items() if name in values}
    return {f"algorithm=MPIR_{rule.collective.capitalize()}_intra_{algorithm}": parameters}


def _put(tree: Tree, collective: str, sizes: Mapping[int, Sequence[Rule]], leaves: Leaves) -> None:
    """Put rules before what is built in, for communicators of exactly their size."""
    branch: Tree = tree[f"collective={collective}"]
    has_kinds = "comm_type=intra" in branch
    built_in = branch["comm_type=intra"] if has_kinds else branch
    rules_of: Tree = {}
    for ranks in sorted(sizes):
        rules_of.setdefault(f"comm_size<={ranks - 1}", built_in)
        rules_of[f"comm_size<={ranks}"] = _nest_by_size(collective, sizes[ranks], built_in, leaves)
    rules_of["comm_size=any"] = built_in
    if has_kinds:
        branch["comm_type=intra"] = rules_of
    else:
        tree[f"collective={collective}"] = rules_of


def _nest_by_size(collective: str, rules: Sequence[Rule], built_in: Tree, leaves: Leaves) -> Tree:
    if rules[0].first_bytes == 0 and rules[0].last_bytes is None:
        return leaves[rules[0]] or built_in
    total = collective not in _AVERAGE
    times = rules[0].ranks if _TOTAL.get(collective) else 1
    key = "total_msg_size" if total else "avg_msg_size"
    out: Tree = {}
    for rule in rules:
        if rule.first_bytes > 0:
            out.setdefault(f"{key}<={rule.first_bytes * times - 1}", built_in)
        end = "=any" if rule.last_bytes is None else f"<={rule.last_bytes * times}"
        out[f"{key}{end}"] = leaves[rule] or built_in
    out.setdefault(f"{key}=any", built_in)
    return out
