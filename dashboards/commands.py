"""The command that measures some rows again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omb_py.dashboards import style
from omb_py.results.commandline import COLUMNS, measuring
from omb_py.results.lookup import provenance_of

if TYPE_CHECKING:
    import pandas as pd

LOOKED_AT = 8
"""Runs whose provenance is read for one figure."""
MOST = 4
"""Commands shown for one figure."""
_ALONE = ("--quiet", "--no-store", "--debug")
_VALUED = ("--store", "--format")


class Commands:
    """Commands by run, from the provenance of one launch of each; a run without one gets a command from its columns."""

    def __init__(self, store: Path) -> None:
        self._provenance = provenance_of(store)
        self._known: dict[str, str] = {}

    def of(self, rows: pd.DataFrame) -> tuple[str, ...]:
        """What to type for these rows, a line a run, with the library as a comment; at most :data:`MOST`."""
        made: dict[str, None] = {}
        for _, row in rows.drop_duplicates("run_id").head(LOOKED_AT).iterrows():
            text = self._of_run(str(row["run_id"]), rows[rows["run_id"] == row["run_id"]])
            name = " ".join(w for w in (_word(row["library"]), _word(row["library_version"])) if w)
            made[f"{text}  # {name}" if name else text] = None
        return tuple(made)[:MOST]

    def _of_run(self, run: str, part: pd.DataFrame) -> str:
        if run not in self._known:
            self._known[run] = self._recorded(str(part["launch_id"].iloc[0]))
        rows: Any = part.reindex(columns=COLUMNS).to_dict("records")
        return self._known[run] or measuring(rows, int(part["launch_id"].nunique()))

    def _recorded(self, launch: str) -> str:
        found = self._provenance(launch)
        run = found.get("run")
        tool = run.get("tool") if isinstance(run, Mapping) else None
        words = tool.get("command_line") if isinstance(tool, Mapping) else None
        return recorded(words) if isinstance(words, list) else ""


def recorded(words: Sequence[str]) -> str:
    """The command line that was typed, without where it stored and how it printed.

    >>> recorded(["/x/__main__.py", "bw", "-n", "2", "--store", "s", "--quiet"])
    'omb-py bw -n 2'
    """
    kept: list[str] = []
    rest = iter([str(word) for word in words[1:]])
    for word in rest:
        if word in _VALUED:
            next(rest, None)
        elif word not in _ALONE and not word.startswith(tuple(f"{name}=" for name in _VALUED)):
            kept.append(word)
    return shlex.join(["omb-py", *kept]) if kept else ""


def _word(value: Any) -> str:
    return "" if style.absent(value) else str(value)
