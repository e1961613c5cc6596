"""Metadata of the files of a store: schema version, launches, and the provenance of each launch.

A file holds one launch, ``<launch_id>.parquet``, or is merged from launches of one day. A merged file lists its
launches under :data:`LAUNCHES_KEY` and has their provenance, compressed together, under :data:`PROVENANCES_KEY`.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from omb_py.engine.rank.launch_facts import LaunchFacts, LaunchSection
from omb_py.errors import EnvironmentProblem, UsageError, nearest
from omb_py.results.store import schema
from omb_py.results.store.footer import read_schema, unreadable
from omb_py.results.store.paths import StoreFile, files
from omb_py.results.store.write import LAUNCHES_KEY, PROVENANCE_KEY, PROVENANCES_KEY, VERSION_KEY, first_line

if TYPE_CHECKING:
    import pyarrow as pa

Metadata = Mapping[bytes, bytes] | None

MERGED = "merged-"
"""The name of a merged file begins with it."""


SIMULATION = "simulation"
"""A library whose ``library_string`` holds this word simulates ranks: nothing is measured."""


class MergedLaunch(TypedDict):
    """Facts about a launch of a merged file."""

    rows: int
    sha256: str | None
    """Of the file that the launch had for itself; None for a file without a hash."""
    schema_version: int


class Provenance(LaunchFacts, total=False):
    """What the file of a launch says of it; a launch that was imported has ``imported`` alone."""

    run: Mapping[str, object]
    launch: LaunchSection
    program: str
    """Command line of a program that is not omb-py's own."""
    imported: Mapping[str, object]
    recovered: bool
    """The journal of a run that was killed became this launch."""


def is_simulated(provenance: Provenance) -> bool:
    """Whether the ranks of a launch were simulated."""
    return SIMULATION in str(provenance.get("library_string", ""))


def why_not(file_schema: pa.Schema) -> str:
    """Why a file with this schema cannot be read as part of a store; empty when it can."""
    version = (file_schema.metadata or {}).get(VERSION_KEY)
    if version is None:
        return "not written by omb-py"
    try:
        number = int(json.loads(version))
    except (ValueError, TypeError):
        return f"its schema version is {version.decode(errors='replace')!r}"
    if number > schema.SCHEMA_VERSION:
        return f"its schema version is {number}, this omb-py knows up to {schema.SCHEMA_VERSION}: update omb-py"
    for field in file_schema:
        column = schema.BY_NAME.get(field.name)
        if column is not None and field.type != schema.arrow_type(column.kind):
            return f"column {field.name} is {field.type}, not {column.arrow}"
    return ""


def launches(metadata: Metadata) -> dict[str, MergedLaunch]:
    """The launches of a merged file by id; empty for other files."""
    try:
        facts = json.loads((metadata or {}).get(LAUNCHES_KEY, b"{}"))
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}


def outdated_launches(listed: Iterable[StoreFile], held: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """Find the launches of merged files that must be read from another file.

    A launch's own file is newer than its merged copy. Of two merged files with the same launch, which an interrupted
    merge leaves behind, the first by name counts.

    Args:
        listed: all files of the store.
        held: launches of each merged file in question, by its path relative to the store.

    Returns:
        The outdated launches of each of those files; a file without any is left out.

    Raises:
        FileNotFoundError: a file was removed meanwhile.
    """
    if not held:
        return {}

    merged = {relative: tuple(names) for relative, names in held.items()}
    folders = {relative.rpartition("/")[0] for relative in held}
    alone = set()
    for entry in listed:
        if entry.relative in merged:
            continue
        if entry.path.name.startswith(MERGED) and entry.relative.rpartition("/")[0] in folders:
            try:
                merged[entry.relative] = tuple(launches(read_schema(entry.path).metadata))
            except FileNotFoundError:
                raise
            except unreadable():
                continue
        alone.add(entry.path.stem)
    owner: dict[str, str] = {}
    for relative in sorted(merged):
        for name in merged[relative]:
            owner.setdefault(name, relative)
    gone = {
        relative: tuple(n for n in names if n in alone or owner[n] != relative) for relative, names in merged.items()
    }
    return {relative: names for relative, names in gone.items() if names and relative in held}


def provenances(path: str | Path) -> dict[str, Provenance]:
    """The provenance of every launch of a file, by launch id. Raises EnvironmentProblem when the file is unreadable."""
    return _provenances(Path(path), _metadata(path))


def read_provenance(path: str | Path, launch_id: str | None = None) -> Provenance:
    """The provenance of a launch; empty when it has none.

    Args:
        path: a file of the store.
        launch_id: the launch; required for a merged file.

    Raises:
        EnvironmentProblem: the file is not readable.
        UsageError: the file does not hold this launch, or holds several and `launch_id` is None.
    """
    metadata = _metadata(path)
    merged = launches(metadata)
    by_launch = _provenances(Path(path), metadata)
    if launch_id is None and merged:
        raise UsageError(f"{str(path)!r} holds {len(merged)} launches: name one")
    wanted = next(iter(by_launch), "") if launch_id is None else launch_id
    if launch_id is not None and launch_id not in by_launch:
        raise UsageError(f"no launch {launch_id!r} in {str(path)!r}: {nearest(launch_id, by_launch)}")
    return by_launch.get(wanted, {})


def provenance_of(store: str | Path) -> Callable[[str], Provenance]:
    """A function from launch id to provenance, empty for an unknown or unreadable launch. It opens each file once."""

    @cache
    def paths() -> Mapping[str, Path]:
        return {path.stem: path for path in files(store)}

    @cache
    def merged() -> Mapping[str, Provenance]:
        by_launch: dict[str, Provenance] = {}
        for stem, path in paths().items():
            if stem.startswith(MERGED):
                by_launch.update(held(path))
        return by_launch

    @cache
    def held(path: Path) -> Mapping[str, Provenance]:
        try:
            return provenances(path)
        except EnvironmentProblem:
            return {}

    def look_up(launch_id: str) -> Provenance:
        path = paths().get(launch_id)
        return (held(path) if path else merged()).get(launch_id, {})

    return look_up


def pack(provenance: Mapping[str, Provenance]) -> bytes:
    """The provenance of many launches, compressed together, since they are nearly equal."""
    return base64.b64encode(zlib.compress(json.dumps(provenance, sort_keys=True, default=str).encode(), 6))


def _metadata(path: str | Path) -> Metadata:
    import pyarrow as pa

    try:
        metadata: Metadata = read_schema(path).metadata
    except (OSError, ValueError, pa.ArrowException) as error:
        raise _unreadable(path, error) from error
    return metadata


def _provenances(path: Path, metadata: Metadata) -> dict[str, Provenance]:
    known = metadata or {}
    try:
        if launches(known):
            by_launch = json.loads(zlib.decompress(base64.b64decode(known.get(PROVENANCES_KEY, b""))))
            return {str(launch): facts for launch, facts in by_launch.items()}
        single: Provenance = json.loads(known.get(PROVENANCE_KEY, b"{}"))
    except (ValueError, AttributeError, TypeError, zlib.error) as error:
        raise _unreadable(path, error) from error
    return {path.stem: single} if isinstance(single, dict) else {path.stem: {}}


def _unreadable(path: str | Path, error: BaseException) -> EnvironmentProblem:
    return EnvironmentProblem(f"cannot read {str(path)!r}: {first_line(error)}")
