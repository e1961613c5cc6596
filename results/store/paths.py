"""The folder of a store: list its files, and let readers notice that files are being merged.

A process that merges or removes files raises the *generation*, a number in a small file, after the new file has its
name and before an old one loses its own. A listing during which the generation stays the same has therefore seen each
row at least once.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.results.store.journal import lock
from omb_py.results.store.write import reason, write_atomically

SUFFIX = ".parquet"
DATE = "date"
"""The column whose value is in the name of a day's folder, ``date=YYYY-MM-DD``."""
INDEX = ".index"
"""Folder of the summary index (:mod:`omb_py.results.store.index`)."""
REPORTS, _REPORT = ".reports", ".report"
"""Folder and suffix of comparison reports, which are JSON."""
_GENERATION = ".generation"
_LOCK = ".maintenance"
_LISTINGS = 20
"""A listing is repeated at most this often while files are being merged."""

OnSkip = Callable[[Path, str], None]
"""Called with each file or folder that is left out, and the reason."""


def pass_over(path: Path, why: str) -> None:
    """An :data:`OnSkip` where another reading, or a command about the store, names what is left out."""


@dataclass(frozen=True, slots=True)
class StoreFile:
    """A file of the store, as the folder lists it; it has not been opened."""

    path: Path
    relative: str
    """The path relative to the store."""
    size: int
    """Bytes."""
    changed_ns: int
    """Time of the inode's last change. Unlike the time of modification, only the system can set it."""

    @property
    def day(self) -> str:
        """What its folder says of ``date``; the folder's name where that is no day's."""
        return self.path.parent.name.removeprefix(f"{DATE}=")


def entries(store: str | Path, on_skip: OnSkip | None = None) -> list[StoreFile]:
    """The Parquet files of a store, sorted by path.

    Hidden files and folders do not belong to it; a folder that was moved elsewhere and left a link does.

    `on_skip` is called with each folder that cannot be listed, and each link that leads nowhere.
    """
    root = Path(store)
    for _ in range(_LISTINGS):
        before = generation(root)
        problems: list[tuple[Path, str]] = []
        listed = list(_list_below(root, "", problems, os.path.realpath(root)))
        if generation(root) == before:
            break
    for path, why in problems:
        if on_skip is not None:
            on_skip(path, why)
    return sorted(listed, key=lambda entry: entry.relative.split("/"))  # paths compare so, but slowly


def is_store(word: str) -> bool:
    """Whether `word` names a folder of results, and not a run or a benchmark."""
    path = Path(word)
    # any other folder may happen to have the name of a run or a benchmark
    return path.is_dir() and ("/" in word or next(path.rglob(f"*{SUFFIX}"), None) is not None)


def no_store(root: Path) -> str:
    """The message for a `root` that is not a folder."""
    if not root.is_file():
        return f"no store at {str(root)!r}: name another folder, or measure first: omb-py allreduce -n 2"
    parent = root.parent.parent if root.parent.name.startswith("date=") else root.parent
    return f"{str(root)!r} is a file; a store is the folder that such files lie in: {parent}"


def check_store(root: Path) -> None:
    """Raises UsageError where `root` is no folder."""
    if not root.is_dir():
        raise UsageError(no_store(root))


def files(store: str | Path) -> list[Path]:
    """The paths of :func:`entries`."""
    return [entry.path for entry in entries(store)]


def report_path(store: Path, run_id: str) -> Path:
    """The file of a comparison's report."""
    return store / REPORTS / f"{run_id}{_REPORT}"


def report_files(store: Path) -> list[Path]:
    """The reports of a store, sorted by run."""
    return sorted((store / REPORTS).glob(f"*{_REPORT}"))


def generation(root: Path) -> int:
    """Number of times that files of this store were merged or removed."""
    try:
        return int((root / _GENERATION).read_text())
    except (OSError, ValueError):
        return 0


def raise_generation(root: Path) -> None:
    """Tell readers that files are about to be removed. Raises OSError when the store cannot be written."""
    write_atomically(root / _GENERATION, str(generation(root) + 1).encode())


@contextlib.contextmanager
def maintenance(root: Path) -> Iterator[None]:
    """Keep other processes from merging or removing files; readers and writers continue.

    Raises EnvironmentProblem when another process holds it, or when the store cannot be written. Where the file system
    has no locks, nothing is held. At worst a launch then lies in two merged files, of which one is read.
    """
    try:
        handle = os.open(root / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise EnvironmentProblem(f"cannot write {str(root / _LOCK)!r}: {reason(error)}") from error
    try:
        try:
            lock(handle)
        except BlockingIOError:
            raise EnvironmentProblem(f"another omb-py is tidying {str(root)!r}: wait until it has ended") from None
        yield
    finally:
        os.close(handle)


def wait_for_lock(handle: int, seconds: float) -> bool:
    """Lock an open file as soon as it is free. Returns False when it is still locked after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            lock(handle)
            return True
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.05)


def _list_below(folder: Path, prefix: str, problems: list[tuple[Path, str]], root: str) -> Iterator[StoreFile]:
    """`root` is the store whose links are followed; none is below a link, so that no two of them make a circle."""
    try:
        with os.scandir(folder) as listed:
            names = [entry for entry in listed if not entry.name.startswith(".")]
    except OSError as error:
        problems.append((folder, f"cannot be listed ({reason(error)})"))
        return
    for entry in names:
        relative = prefix + entry.name
        try:
            if entry.is_dir(follow_symlinks=False):
                yield from _list_below(folder / entry.name, relative + "/", problems, root)
            elif root and entry.is_symlink() and entry.is_dir() and _leads_out(entry.path, root):
                yield from _list_below(folder / entry.name, relative + "/", problems, "")
            elif entry.name.endswith(SUFFIX) and entry.is_file():
                facts = entry.stat()
                yield StoreFile(folder / entry.name, relative, facts.st_size, facts.st_ctime_ns)
            elif entry.is_symlink() and not os.path.exists(entry.path):
                problems.append((folder / entry.name, "is a link that leads nowhere"))
        except OSError:  # it was removed after the listing
            continue


def _leads_out(link: str, root: str) -> bool:
    """Whether a link leads to a folder that is neither in the store nor around it."""
    target = os.path.realpath(link)
    return os.path.commonpath([target, root]) not in (target, root)
