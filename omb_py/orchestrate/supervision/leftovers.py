"""What killed processes of a launch leave behind: shared memory in /dev/shm, and temporary files of mpiexec.

A launch that fails removes its own. Where the parent itself was killed, nobody is left to do so: a record in a folder
of its own (:mod:`omb_py.engine.rank.scratch`) tells the next launch what to remove. Inside a foreign launcher the first
rank of each node writes the record, before its library starts.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from omb_py.engine.rank import scratch
from omb_py.orchestrate.supervision import processes

_FOLDER = "/dev/shm/"
_NAMES = ("mpich_shm_", "ucx_shm_posix_", "sm_segment.", "vader_segment.", "Intel_MPI_")
"""Name prefixes of MPICH, UCX, Open MPI 5 and 4, and Intel MPI. No other file is ever touched."""
_TOPOLOGIES, _PROXY = Path("/tmp"), "hydra_pmi_proxy"
"""MPICH's mpiexec writes the machine's topology into /tmp for its ranks, whatever TMPDIR says; its proxy removes it."""
_RECORD = "leftovers.json"


def segments(pid: int) -> set[str]:
    """Paths of the library's segments that a process has mapped; empty when it is gone or not ours to inspect."""
    try:
        maps = Path(f"/proc/{pid}/maps").read_text(errors="replace")
    except OSError:
        return set()
    # A segment that the library has removed already is listed as "... (deleted)".
    paths = {line.split(maxsplit=5)[5] for line in maps.splitlines() if _FOLDER in line}
    return {path for path in paths if _is_a_librarys(path) and os.path.exists(path)}


def _is_a_librarys(path: str) -> bool:
    return path.startswith(tuple(_FOLDER + name for name in _NAMES)) and "/" not in path[len(_FOLDER) :]


Files = frozenset[tuple[int, str]]
"""Files by inode and path: another file under the name of one that went is another file."""


def present() -> Files:
    """Segments and topology files of this user that are there now: a launch that begins now did not make them."""
    return _segments_here() | _topologies_here()


def _segments_here() -> Files:
    try:
        return _select_own(path for path in map(_FOLDER.__add__, os.listdir(_FOLDER)) if _is_a_librarys(path))
    except OSError:
        return frozenset()


def _topologies_here() -> Files:
    return _select_own(map(str, _TOPOLOGIES.glob("hydra_hwloc_xmlfile_*")))


def _select_own(paths: Iterable[str]) -> Files:
    own = set()
    for path in paths:
        with contextlib.suppress(OSError):
            state = os.lstat(path)
            if state.st_uid == os.geteuid():
                own.add((state.st_ino, path))
    return frozenset(own)


def orphaned(before: Files) -> set[str]:
    """Segments of this user that no process here has mapped or open, made after a launch found `before`.

    A rank that dies while its library makes them, as of SIGBUS where /dev/shm is full, never said which are its own.
    """
    candidates = {path for _, path in _segments_here() - before}
    return candidates - set(_list_used()) if candidates else set()


def topologies(before: Files, ticks: int) -> set[str]:
    """Topology files that MPICH's mpiexec made for this user after a launch found `before`.

    A file does not say whose launch it belongs to. Those of earlier launches were there `before`; while a proxy lives
    that is younger than the launcher (started at `ticks` of boot), a file may be its, and none is given.
    """
    candidates = {path for _, path in _topologies_here() - before}
    return candidates if candidates and not _proxies(ticks) else set()


def _proxies(ticks: int) -> bool:
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and (entry / "comm").read_text().rstrip("\n") == _PROXY:
                process = processes.identify(int(entry.name))  # a zombie reads no file
                if process is not None and process[1] >= ticks:
                    return True
    return False


def _list_used() -> Iterator[str]:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        yield from segments(int(pid))
        with contextlib.suppress(OSError):
            for descriptor in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    yield os.readlink(f"/proc/{pid}/fd/{descriptor}")


def remove(paths: Iterable[str]) -> None:
    """Remove segments. A segment that is gone already is no error."""
    for path in paths:
        with contextlib.suppress(OSError):
            os.unlink(path)


class LeftoverRecord:
    """What a launch will leave behind if its parent is killed. The file is there from the first entry to the end."""

    def __init__(self) -> None:
        self.segments: set[str] = set()
        self._before = present()
        self._launcher: processes.Process | None = None
        self._folder: Path | None = None

    @classmethod
    def of_foreign_job(cls) -> LeftoverRecord:
        """The record of this node's ranks, made before their library starts.

        It is closed where this process ends by itself and its library has removed its segments.
        """
        record = cls()
        if any(path.startswith(_FOLDER) for _, path in record._before):
            used = set(_list_used())  # perhaps by a rank that is ahead of this one
            record._before = frozenset((inode, path) for inode, path in record._before if path not in used)
        record._launcher = _foreign_launcher()
        record._write()
        atexit.register(record._close_if_clean)
        return record

    def launcher(self, pid: int) -> None:
        """Note the launcher's process."""
        self._launcher = processes.identify(pid)
        self._write()

    def add(self, paths: set[str]) -> None:
        """Note segments of a rank."""
        if paths - self.segments:
            self.segments |= paths
            self._write()

    def _write(self) -> None:
        with contextlib.suppress(OSError):  # without a folder for temporary files nothing is recorded
            self._folder = self._folder or scratch.make()
            known = {"segments": sorted(self.segments), "launcher": self._launcher, "before": sorted(self._before)}
            (self._folder / "new").write_text(json.dumps(known))
            os.replace(self._folder / "new", self._folder / _RECORD)

    def remove(self) -> None:
        """Remove what the launch left, once all its processes are gone."""
        remove(self.segments | orphaned(self._before))
        _remove_recorded([], self._launcher, self._before)

    def _close_if_clean(self) -> None:
        if not segments(os.getpid()):
            self.close()

    def close(self) -> None:
        """Forget: the launch has cleaned up after itself."""
        if self._folder is not None:
            scratch.remove(self._folder)


def _foreign_launcher() -> processes.Process | None:
    """What started this rank. Open MPI's mpirun may be further up, but the job's folder has its number."""
    match = re.fullmatch(r"ompi\.(\d+)", Path(os.environ.get("PMIX_SERVER_TMPDIR", "")).name)
    return processes.identify(int(match[1]) if match else os.getppid())


def clean() -> None:
    """Remove what launches of this user left here whose processes were killed."""
    for folder in scratch.abandoned():
        if not _clear_record(folder):
            scratch.remove(folder)


def _clear_record(folder: Path) -> bool:
    """Remove what a record names; whether some of it is in use, so that a later launch must look again."""
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        record = json.loads((folder / _RECORD).read_text())
        before = frozenset((int(inode), str(path)) for inode, path in record["before"])
        launcher = record["launcher"]
        if launcher is not None and processes.alive((int(launcher[0]), int(launcher[1]))):
            return True  # it still ends its ranks
        remove(orphaned(before))
        _remove_recorded(record["segments"], launcher, before)
        return any(_is_a_librarys(path) and os.path.exists(path) for path in record["segments"])
    return False


def _remove_recorded(paths: list[str], launcher: Sequence[int] | None, before: Files) -> None:
    if launcher is not None and processes.alive((int(launcher[0]), int(launcher[1]))):
        return
    ours = {path for path in paths if _is_a_librarys(path)}
    remove(ours - set(_list_used()))
    if launcher is not None:
        remove(topologies(before, int(launcher[1])))
        pid = int(launcher[0])
        session = Path(tempfile.gettempdir()) / f"ompi.{pid}"  # Open MPI 5 names it by its mpiexec
        if processes.identify(pid) is not None:
            return  # the number is in use again, perhaps by another mpiexec
        if not session.is_symlink() and session.is_dir() and session.stat().st_uid == os.geteuid():
            shutil.rmtree(session, ignore_errors=True)
