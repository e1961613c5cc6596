"""Small files of this user that spare work of the next command: machine code, answers of programs.

The folder is ``omb-py`` in ``$XDG_CACHE_HOME`` (default ``~/.cache``). It is used only where it belongs to this user
and nobody else may enter it, since what lies there is run. A file is written under another name and renamed, so a
reader sees all of it or none, and it begins with a check sum of name, length and content; of a large file, which is on
the disk before it has its name, of the beginning of the content. Nothing here raises: without a cache the work is done
again. A rank loads this module before it can find others, so it needs few.
"""

import mmap
import os
import stat
from binascii import crc32

_MOST_FILES = 2000
_MOST_BYTES = 100 << 20
"""Files and bytes after which the folder is emptied: homes have quotas, and what is needed is made again in a second.
One version of omb-py keeps some 20 MB; what an older one has kept is never read again."""
_SUM_BYTES = 4
_SUMMED = 1 << 16
"""Bytes of a content that its check sum is of: over all of 13 MB of modules it takes 5 ms of each start."""


def load(name: str) -> bytes | None:
    """The content of a file; None where there is none that can be trusted."""
    content = view(name)
    return None if content is None else bytes(content)


def view(name: str) -> memoryview | None:
    """The content of a file as it lies in the memory of all who read it: a large one is not copied."""
    try:
        folder = _open_folder(create=False)
        try:
            whole = memoryview(_read(folder, name))
        finally:
            os.close(folder)
    except (OSError, ValueError):  # an empty file cannot be mapped
        return None
    content = whole[_SUM_BYTES:]
    return content if whole[:_SUM_BYTES] == _sum(name, content) else None


def save(name: str, content: bytes) -> None:
    """Keep a file for later commands, if the folder allows it."""
    try:
        folder = _open_folder(create=True)
        try:
            _make_room(folder, len(content))
            _write(folder, name, _sum(name, content) + content)
        finally:
            os.close(folder)
    except OSError:
        return


def _sum(name: str, content: bytes | memoryview) -> bytes:
    return crc32(content[:_SUMMED], crc32(f"{name} {len(content)}".encode())).to_bytes(_SUM_BYTES, "big")


def _open_folder(create: bool) -> int:
    """A descriptor of the folder. Raises OSError where it is not this user's alone."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".cache")
    path = os.path.join(base, "omb-py")
    if create:
        os.makedirs(path, 0o700, exist_ok=True)
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    facts = os.fstat(folder)
    if facts.st_uid != os.geteuid() or stat.S_IMODE(facts.st_mode) & 0o077:
        os.close(folder)
        raise PermissionError(f"{path} is not this user's alone")
    return folder


def _read(folder: int, name: str) -> mmap.mmap:
    """A plain file of this user that nobody else may write. It is never written again, only replaced.

    Raises:
        OSError: it is no such file.
        ValueError: it is empty.
    """
    if os.path.basename(name) != name:
        raise PermissionError(f"{name} lies elsewhere")
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.geteuid() or facts.st_mode & 0o022:
            raise PermissionError(f"{name} is not a file of this user alone")
        return mmap.mmap(file, facts.st_size, access=mmap.ACCESS_READ)
    finally:
        os.close(file)


def _write(folder: int, name: str, content: bytes) -> None:
    draft = f".{name}.{os.getpid()}.{os.urandom(4).hex()}"
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        try:
            whole = os.write(file, content) == len(content)
            if len(content) > _SUM_BYTES + _SUMMED:  # content begins with its sum
                os.fsync(file)
        finally:
            os.close(file)
        if whole:
            os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
            return
    except OSError:
        pass
    os.unlink(draft, dir_fd=folder)


def _make_room(folder: int, size: int) -> None:
    with os.scandir(folder) as entries:
        files = {entry.name: entry.stat(follow_symlinks=False).st_size for entry in entries}
    full = len(files) >= _MOST_FILES or sum(files.values()) + size > _MOST_BYTES
    for name in files if full else ():
        try:
            os.unlink(name, dir_fd=folder)
        except OSError:
            continue
