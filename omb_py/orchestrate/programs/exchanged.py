"""Was the library that two sides are to differ in really exchanged? Told from what their processes have mapped."""

from __future__ import annotations

import filecmp
import os
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from omb_py.errors import UsageError, nearest
from omb_py.orchestrate.programs.command import SideProgram
from omb_py.orchestrate.programs.mapped_files import MappedFile, entries_of
from omb_py.results.compare.match import SIDES, Side

Seen = Mapping[Side, Collection[MappedFile]]
_PATHS, _PRELOAD, _VENV = "LD_LIBRARY_PATH", "LD_PRELOAD", "VIRTUAL_ENV"


@dataclass(frozen=True, slots=True)
class ExpectedLibrary:
    """A library that a side must load, and from where."""

    side: Side
    name: str
    path: Path
    """The file, or a folder in which it lies."""

    def why_not(self, files: Collection[MappedFile]) -> str:
        """Say what the side had loaded instead; empty where it is as it should be."""
        loaded = [file for file in files if _stem(file.name) == _stem(self.name)]
        wanted = self.path.resolve()
        wrong = [file for file in loaded if wanted not in (path := Path(file.path).resolve(), *path.parents)]
        if wrong:
            return f"{self.side} was to load {self.name} from {self.path} and ran with {wrong[0]}"
        if not loaded:
            return f"{self.side} was to load {self.name} from {self.path} and was not seen to load any {self.name}"
        return ""


def parse_expected(texts: Sequence[str]) -> tuple[ExpectedLibrary, ...]:
    """Read the values of ``--expect-library``. Raises UsageError."""
    expected = []
    for text in texts:
        word, _, rest = text.partition(":")
        name, equals, path = rest.partition("=")
        side = next((side for side in SIDES if side == word.strip().upper()), None)
        if side is None or not equals or not name.strip():
            raise UsageError(f"--expect-library takes SIDE:NAME=PATH, as NEW:libmpi.so=/opt/new/lib, not {text!r}")
        place = Path(path.strip()).expanduser()
        if not place.exists():
            beside = [entry.name for entry in place.parent.iterdir()] if place.parent.is_dir() else []
            near = nearest(place.name, beside) if beside else "give a file, or the folder in which it lies"
            raise UsageError(f"--expect-library {text}: there is no {str(place)!r}: {near}")
        expected.append(ExpectedLibrary(side, name.strip(), place))
    return tuple(expected)


def why_not_exchanged(programs: Mapping[Side, SideProgram], seen: Seen) -> str:
    """Say which file both sides ran although they should differ; empty where nothing contradicts the settings."""
    for side, other in zip(SIDES, reversed(SIDES), strict=True):
        own = [programs[each].where.environment() for each in (side, other)]
        folders = [p for p in _split(own[0].get(_PATHS)) if p not in _split(own[1].get(_PATHS))]
        preloads = [p for p in _split(own[0].get(_PRELOAD)) if p not in _split(own[1].get(_PRELOAD))]
        if (folders or preloads) and not seen[side]:
            return f"{side} ended too soon to see what it loaded: let it run longer than a few milliseconds"
        for path in preloads:
            if "/" in path and not _select_files([path], seen[side]):
                return f"{side} was to preload {path} and did not load it"
        modules = bool(programs[side].where.facts.get("config", {}).get("modules"))
        if folders and (why := _explain_other_source(side, folders, seen[side], seen[other], modules)):
            return why
        venv = own[0].get(_VENV)
        if venv and venv != own[1].get(_VENV) and (why := _find_passed_over(side, [f"{venv}/lib"], seen[side])):
            return why
    return _explain_same_words(programs)


def _explain_other_source(
    side: Side, folders: Sequence[str], own: Collection[MappedFile], other: Collection[MappedFile], modules: bool
) -> str:
    """Why the libraries of these folders were not those with which the side ran.

    A module brings folders with more libraries than are to be exchanged, so there one of them is enough.
    """
    loaded = _select_files(_libraries(folders), own)
    if (why := _find_passed_over(side, folders, own)) and not (modules and loaded):
        return why
    if not loaded:
        there = ", ".join(folders)
        return f"{side} was to load libraries from {there} and loaded none from there"
    by_stem = {_stem(file.name): file for file in other}
    pairs = [(file, by_stem[_stem(file.name)]) for file in loaded if _stem(file.name) in by_stem]
    if pairs and all(_is_same(*pair) for pair in pairs):
        return f"both sides ran the same build of {pairs[0][0].name}: {pairs[0][1]} and {pairs[0][0]}"
    return ""


def _find_passed_over(side: Side, folders: Sequence[str], own: Collection[MappedFile]) -> str:
    """Name a library that the side loaded from elsewhere, although these folders have one of its name."""
    offered = _libraries(folders)
    stems, loaded = {_stem(Path(path).name) for path in offered}, _select_files(offered, own)
    wrong = next((file for file in sorted(own) if _stem(file.name) in stems and file not in loaded), None)
    if wrong is None:
        return ""
    return f"{side} was to load {wrong.name} from {', '.join(folders)} and ran with {wrong}"


def _libraries(folders: Sequence[str]) -> list[str]:
    return [str(entry) for folder in folders for entry in entries_of(folder) if ".so" in entry.name]


def _explain_same_words(programs: Mapping[Side, SideProgram]) -> str:
    """Why two commands are one: the programs in which alone they differ have the same content."""
    words = [shlex.split(programs[side].command) for side in SIDES]
    settings = [dict(programs[side].where.variables) for side in SIDES]
    if words[0] == words[1] or len(words[0]) != len(words[1]) or settings[0] != settings[1]:
        return ""
    pairs = [(a, b) for a, b in zip(*words, strict=True) if a != b]
    if all(_is_program(a) and _is_program(b) and filecmp.cmp(a, b, shallow=False) for a, b in pairs):
        libraries = [_list_near(Path(path)) for path in pairs[0]]
        if libraries[0] == libraries[1]:
            return f"both sides run the same program: {pairs[0][0]} and {pairs[0][1]} have the same content"
    return ""


def _is_program(word: str) -> bool:
    return os.path.isfile(word) and os.access(word, os.X_OK)


def _list_near(program: Path) -> list[str]:
    """The libraries that lie where a program may look for its own (``$ORIGIN``), as names and sizes."""
    folders = (program.resolve().parent, program.resolve().parent.parent / "lib")
    return sorted(f"{e.name} {e.stat().st_size}" for folder in folders for e in entries_of(folder) if ".so" in e.name)


def _is_same(file: MappedFile, other: MappedFile) -> bool:
    if file.path == other.path or (file.build_id and file.build_id == other.build_id):
        return True
    try:
        return not (file.build_id or other.build_id) and filecmp.cmp(file.path, other.path, shallow=False)
    except OSError:
        return False


def _select_files(paths: Iterable[str], files: Collection[MappedFile]) -> list[MappedFile]:
    wanted = {os.path.realpath(path) for path in paths}
    return sorted(file for file in files if os.path.realpath(file.path) in wanted)


def _split(text: str | None) -> list[str]:
    return [path for path in (text or "").replace(" ", ":").split(":") if path]


def _stem(name: str) -> str:
    """The name of a library without its version.

    >>> _stem("libmpi.so.40.30.1")
    'libmpi.so'
    """
    stem, mark, _ = name.partition(".so")
    return stem + mark
