"""The command that measures some rows again."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any

import pandas as pd

from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.theme import Record
from omb_py.dashboards.base.view import View, records
from omb_py.results.repro_command import COLUMNS, measuring, without_resume
from omb_py.results.store.provenance import Provenance

LOOKED_AT = 6
"""Runs whose provenance is read for one figure."""
MOST = 4
"""Commands shown for one figure."""
_TOLD = ("run_id", "launch_id", "library", "library_version", "ranks", "devices", "nodes")
_ALONE = ("--quiet", "--no-store", "--debug")
_VALUED = ("--store", "--format")


class Commands:
    """Commands by run, from the provenance of one launch of each; a run without one gets a command from its columns."""

    def __init__(self, provenance: Callable[[str], Provenance]) -> None:
        """Look launches up with `provenance` (:func:`omb_py.results.store.provenance.provenance_of`)."""
        self._provenance = provenance
        self._known: dict[str, str] = {}

    def of(self, rows: pd.DataFrame) -> tuple[str, ...]:
        """Command lines that measure these rows again, one a run, its library as a comment; at most :data:`MOST`."""
        lines: dict[str, None] = {}
        runs = rows[list(_TOLD)].drop_duplicates("run_id")
        # of each library one before a second of any
        others = runs.duplicated(["library", "library_version"])
        for row in records(runs.iloc[others.to_numpy().argsort(kind="stable")[:LOOKED_AT]]):
            if row.run_id not in self._known:
                match self._provenance(str(row.launch_id)):
                    case {"run": {"tool": {"command_line": list() as words}}}:
                        self._known[row.run_id] = recorded(words, str(row.run_id))
            text = self._known.setdefault(row.run_id, "")
            name = " ".join(str(word) for word in (row.library, row.library_version) if not theme.absent(word))
            comment = "; ".join(filter(None, [name, "" if text else _needs(row)]))
            text = text or _measuring(rows[rows["run_id"] == row.run_id])
            lines[f"{text}  # {comment}" if comment else text] = None
            if len(lines) == MOST:
                break
        return tuple(lines)

    def on(self, view: View, rows: pd.DataFrame | None) -> View:
        """The view with the commands of its rows, where it has none of its own and its rows are known."""
        return view if view.commands or rows is None else view.with_commands(self.of(rows))


def recorded(words: Sequence[str], run_id: str) -> str:
    """The command line that was typed, without where it stored, how it printed and what it resumed; empty if it was not
    omb-py's.

    >>> recorded(["/bin/omb-py", "bw", "-n", "2", "--store", "s", "--quiet", "--resume", "r1"], "r1")
    'omb-py bw -n 2'
    >>> recorded(["/bin/pytest", "--omb-py"], "r1")
    ''
    """
    program = PurePath(words[0]) if words else PurePath()
    if program.name != "omb-py" and program.parts[-2:] != ("omb_py", "__main__.py"):
        return ""
    kept: list[str] = []
    rest = iter(without_resume([str(word) for word in words[1:]], run_id))
    for word in rest:
        if word in _VALUED:
            next(rest, None)
        elif word not in _ALONE and not word.startswith(tuple(f"{name}=" for name in _VALUED)):
            kept.append(word)
    return shlex.join(["omb-py", *kept]) if kept else ""


def _needs(row: Record) -> str:
    """What a command that nobody typed needs beyond one machine; empty where it runs on one."""
    nodes, devices = (int(theme.finite(value) or 0) for value in (row.nodes, row.devices))
    if nodes == 1 or max(nodes, devices) < 2:
        return ""
    where = f"{nodes} nodes" if nodes else f"{devices} GPUs"
    return f"in a job with {where}, or with --hosts"


def _measuring(part: pd.DataFrame) -> str:
    own = part[part["benchmark"] == part["benchmark"].iloc[0]].drop_duplicates("size_bytes")
    rows: Any = own.reindex(columns=COLUMNS).to_dict("records")
    for row, name in itertools.product(rows, ("parameters", "tags")):
        if isinstance(row[name], str):  # the cells of a page hold them as texts
            row[name] = series.map_of(row[name])
    return measuring(rows, int(part["launch_id"].nunique()))
