"""The provenance of a launch, wherever its rows lie: in its own file or in a merged one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from omb_py.errors import EnvironmentProblem
from omb_py.results.store.launchfile import MERGED, provenances
from omb_py.results.store.paths import files


def provenance_of(store: str | Path) -> Callable[[str], Mapping[str, Any]]:
    """Looks up launches by id; empty for one that is not there or cannot be read. Files are opened once."""

    @cache
    def paths() -> Mapping[str, Path]:
        return {path.stem: path for path in files(store)}

    @cache
    def merged() -> Mapping[str, Mapping[str, Any]]:
        found: dict[str, Mapping[str, Any]] = {}
        for stem, path in paths().items():
            if stem.startswith(MERGED):
                found.update(held(path))
        return found

    @cache
    def held(path: Path) -> Mapping[str, Mapping[str, Any]]:
        try:
            return provenances(path)
        except EnvironmentProblem:
            return {}

    def look(launch_id: str) -> Mapping[str, Any]:
        path = paths().get(launch_id)
        return (held(path) if path else merged()).get(launch_id, {})

    return look
