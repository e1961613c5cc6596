"""The command that measures rows again, built from their columns. Functions of a project are measured by its tests."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from omb_py.results.json_values import plain
from omb_py.results.store.row import Row
from omb_py.results.store.runs import LAST

_FLAGS: Mapping[str, Callable[[Any], tuple[str, ...]]] = {
    "backend": lambda v: ("--backend", v),
    "binding": lambda v: () if v == "c" else ("--binding", v),
    "ranks": lambda v: ("-n", f"{v}"),
    "dtype": lambda v: ("-T", "char" if v == "byte" else v),  # MPI_BYTE, which IMB prints, is no type of omb-py
    "op": lambda v: ("--op", v),
    "in_place": lambda v: ("--in-place",) if v else (),
    "root": lambda v: ("-k", "rotate" if v < 0 else f"fixed:{v}"),
    "window": lambda v: ("-W", f"{v}"),
    "device": lambda v: ("-d", v),
    "buffer": lambda v: () if v == "device" else ("--buffer", v),
    "cache": lambda v: ("--cache", v),
    "process_sync": lambda v: ("--process-sync", v),
    "datatype_layout": lambda v: ("-D", v),
}
"""Column -> the option that sets it. Programs in C, whose results were imported, are no binding of omb-py."""
_USUAL: Mapping[str, Any] = {
    "device": "cpu",
    "buffer": "numpy",
    "cache": "hot",
    "in_place": False,
    "root": 0,
    "window": 64,
    "op": "sum",
    "process_sync": "barrier",
    "datatype_layout": "contiguous",
}
"""Default values, which need no option. The type always needs one, since its default differs between benchmarks."""
_SYNCHRONISED = ("collective", "non-blocking", "persistent", "neighborhood")
"""Families that take ``--process-sync``; rows of other families have ``none``."""
PYTEST_TAG = "pytest"
"""Tag of rows that the pytest plugin measured: the node id of the test."""
_REHEARSED_WITH = ("--nodes", "--slow-link")
"""Options of ``omb-py rehearse`` that take a value."""
COLUMNS = ("benchmark", "family", "size_bytes", "launch_id", "parameters", "tags", *_FLAGS)
"""The columns that the command depends on."""


def resuming(words: Sequence[str], run_id: str) -> str:
    """The command line that continues a run, from the words after ``omb-py`` of the one that began it.

    >>> resuming(["run", "osu", "-n", "4", "--resume"], "r1")
    'omb-py run --resume=r1 osu -n 4'
    >>> resuming(["rehearse", "--nodes", "2", "accept", "nersc10"], "r1")
    'omb-py rehearse --nodes 2 accept --resume=r1 nersc10'
    """
    kept = without_resume(words, run_id)
    command = _command_end(kept)
    return shlex.join(["omb-py", *kept[:command], f"--resume={run_id}", *kept[command:]])


def without_resume(words: Sequence[str], run_id: str) -> list[str]:
    """The words of a command line without ``--resume`` and the run that it names.

    >>> without_resume(["accept", "nersc10", "--resume", "last", "-n", "4"], "r1")
    ['accept', 'nersc10', '-n', '4']
    """
    kept = list(words)
    for at in [at for at, word in enumerate(words) if word.partition("=")[0] == "--resume"]:
        typed = words[at + 1] if words[at] == "--resume" and len(words) > at + 1 else ""
        # the id may be glued to the option or stand behind it
        behind = typed == LAST or bool(typed and run_id.startswith(typed))
        kept = [*words[:at], *words[at + 1 + behind :]]
    return kept


def _command_end(words: Sequence[str]) -> int:
    """Number of words to the end of the command's name; a rehearsal has its own options before that of its command."""
    at = next((at for at, word in enumerate(words) if not word.startswith("-")), 0)
    if words[at] == "rehearse":
        at += 1
        while at < len(words) - 1 and words[at].startswith("-"):
            at += 2 if words[at] in _REHEARSED_WITH else 1
    return at + 1


def measuring(rows: Sequence[Row], launches: int = 1, *, binding: bool = True) -> str:
    """The command line that measures the first row again, at the sizes of all rows of its benchmark.

    Args:
        rows: at least one row, with :data:`COLUMNS`; nulls may be of any kind.
        launches: the number of launches.
        binding: whether to set the binding; False leaves it free, for a comparison of two bindings.
    """
    first = {name: plain(rows[0].get(name)) for name in COLUMNS}
    if first["family"] == "function":
        test = dict(first["tags"] or {}).get(PYTEST_TAG)
        return shlex.join(["pytest", "--omb-py", *([str(test)] if test else [])])
    words = ["omb-py", str(first["benchmark"])]
    if first["family"] in ("workload", "training"):
        words, first["dtype"] = [*words, *_name_workload(cast(Row, first))], None
        binding &= first["family"] != "training"
    if first["process_sync"] == "none" and first["family"] not in _SYNCHRONISED:
        first["process_sync"] = None
    for column, flag in _FLAGS.items():
        value = first[column]
        if value is not None and value != _USUAL.get(column) and (binding or column != "binding"):
            words += flag(value)
    numbers = {plain(row.get("size_bytes")) for row in rows if row["benchmark"] == first["benchmark"]}
    sizes = sorted(int(size) for size in numbers if size)
    if sizes:
        words += ["-m", ",".join(map(str, sizes)) if len(sizes) > 1 else f"{sizes[0]}:{sizes[0]}"]
    return shlex.join([*words, *(["--launches", str(launches)] if launches > 1 else [])])


def storing(command: str, store: object) -> str:
    """A command line of :func:`measuring` that keeps its launches in a store.

    >>> storing("omb-py bw -n 2", "s"), storing("pytest --omb-py a.py", "my s")
    ('omb-py bw -n 2 --store s', "pytest --omb-py a.py --omb-py-store 'my s'")
    """
    return f"{command} {'--omb-py-store' if command.startswith('pytest ') else '--store'} {shlex.quote(str(store))}"


def training_of(row: Mapping[str, object]) -> tuple[str, dict[str, str]]:
    """The model of a training and all its settings, as ``parallel``, also those that nobody gave."""
    model, _, settings = _workload_text(row).partition(":")
    pairs = (pair.partition("=") for pair in settings.split(",") if pair)
    return model, {key: value for key, _, value in pairs}


def _workload_text(row: Mapping[str, object]) -> str:
    return str(dict(cast(Mapping[str, object], row.get("parameters") or {})).get("workload", ""))


def _name_workload(first: Row) -> list[str]:
    """``--workload TEXT``; for a training, the model and its settings as options."""
    if first["family"] == "workload":
        text = _workload_text(first)
        return ["--workload", text] if text else []
    model, settings = training_of(first)
    return [model, *(word for key, value in settings.items() for word in (f"--{key}", value))]
