"""Small files of this user that spare work of the next command: machine code, answers of programs.

The folder is ``omb-py`` in ``$XDG_CACHE_HOME`` (default ``~/.cache``). It is used only where it belongs to this user
and nobody else may enter it, since what lies there is run. A file is written under another name and renamed, so a
reader sees all of it or none, and it begins with a digest of name and content. Nothing here raises: without a cache
the work is done again. A rank loads this module before it can find others, so it needs few.
"""

from __future__ import annotations

import os
import stat

try:
    from _blake2 import blake2b as _hash  # hashlib loads OpenSSL, which takes longer than all else here
except ImportError:  # a Python that was built without it
    from hashlib import sha256 as _hash  # type: ignore[assignment]

_MOST = 2000
"""Files after which the folder is emptied: each is small, and made again in milliseconds."""
_LARGEST = 8 << 20
_DIGEST_BYTES = 32


def load(name: str) -> bytes | None:
    """The content of a file; None where there is none that can be trusted."""
    try:
        folder = _open_folder(create=False)
        try:
            content = _read(folder, name)
        finally:
            os.close(folder)
    except OSError:
        return None
    digest, content = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return content if digest == _digest(name, content) else None


def save(name: str, content: bytes) -> None:
    """Keep a file for later commands, if the folder allows it."""
    try:
        folder = _open_folder(create=True)
        try:
            _make_room(folder)
            _write(folder, name, _digest(name, content) + content)
        finally:
            os.close(folder)
    except OSError:
        return


def digest_of(content: bytes) -> bytes:
    """A digest that no other content has."""
    return _hash(content).digest()[:_DIGEST_BYTES]


def _digest(name: str, content: bytes) -> bytes:
    return digest_of(name.encode() + b"\0" + content)


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


def _read(folder: int, name: str) -> bytes:
    """The bytes of a plain file of this user that nobody else may write. Raises OSError."""
    if os.path.basename(name) != name:
        raise PermissionError(f"{name} lies elsewhere")
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.geteuid() or facts.st_mode & 0o022:
            raise PermissionError(f"{name} is not a file of this user alone")
        return os.read(file, _LARGEST)
    finally:
        os.close(file)


def _write(folder: int, name: str, content: bytes) -> None:
    draft = f".{name}.{os.getpid()}.{os.urandom(4).hex()}"
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        try:
            whole = os.write(file, content) == len(content)
        finally:
            os.close(file)
        if whole:
            os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
            return
    except OSError:
        pass
    os.unlink(draft, dir_fd=folder)


def _make_room(folder: int) -> None:
    names = os.listdir(folder)
    for name in names if len(names) >= _MOST else ():
        try:
            os.unlink(name, dir_fd=folder)
        except OSError:
            continue
