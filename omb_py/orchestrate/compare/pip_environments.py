"""Small environments for ``compare --pip``: only the named packages are their own, all else is this Python's.

An environment is a virtual environment whose packages come first and whose ``.pth`` file adds the packages of this one.
It lies under the user's cache folder by the hash of its requirements and of this Python, and is made once.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from omb_py.errors import EnvironmentProblem, UsageError

_READY = "omb-py.json"
"""File of a finished environment: what is in it."""
_SHARED = "omb-py-shared.pth"
_NAME = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[[^\]]*\])?\s*(.*)", re.DOTALL)
_PIP_S = 1800.0
_REASON_MAX = 300
_LIBMPI = "MPI4PY_LIBMPI"

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class PipEnvironment:
    """An environment that exists."""

    folder: Path
    requirements: tuple[str, ...]
    variables: Mapping[str, str | None]
    """Changes to the environment variables of processes in it."""


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    base = environ.get("XDG_CACHE_HOME") or str(Path(environ.get("HOME") or "~").expanduser() / ".cache")
    return Path(base) / "omb-py" / "environments"


def check_requirement(text: str, flag: str) -> str:
    """Check one requirement, as ``mpich==4.3.2`` or the path of a wheel. Raises UsageError."""
    text = text.strip()
    if "://" not in text and (text.endswith(".whl") or "/" in text):
        path = Path(text).expanduser()
        if not path.exists():
            raise UsageError(f"{flag}{text}: no such file: give a wheel, or a requirement as mpich==4.3.2")
        return str(path.resolve())
    match = _NAME.fullmatch(text)
    if match is None or text.startswith("-") or (match[2] and match[2][0] not in "=<>!~@;"):
        raise UsageError(f"{flag}{text}: not a requirement: write NAME==VERSION, as mpich==4.3.2")
    return text


def environment_for(
    requirements: Sequence[str],
    note: Note = lambda text: None,
    root: Path | None = None,
    pip: Sequence[str] | None = None,
) -> PipEnvironment:
    """Return the environment of some requirements; make it if there is none.

    Args:
        requirements: texts that :func:`check_requirement` has passed; at least one.
        note: called with a sentence before something is installed, which may take minutes.
        root: folder of the environments; None: :func:`cache_folder`.
        pip: command line of pip up to its subcommand; None: that of this Python.

    Raises:
        EnvironmentProblem: pip fails, there is no pip, or the cache folder cannot be written. The message has the
            reason in one line; nothing half made is used later.
    """
    wanted = tuple(sorted(requirements))
    folder = (root or cache_folder()) / _folder_name(wanted)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _lock(folder):
            if not _is_ready(folder, wanted):
                note(f"making an environment with {' '.join(wanted)}, once; it is kept in {folder}")
                _make(folder, wanted, pip)
    except OSError as error:
        raise EnvironmentProblem(
            f"cannot make an environment in {str(folder)!r}: {error.strerror or error}: set XDG_CACHE_HOME to a folder "
            "that can be written"
        ) from error
    return PipEnvironment(folder, wanted, _variables(folder))


def _folder_name(wanted: Sequence[str]) -> str:
    facts = [*wanted, sys.version, sys.prefix, *(str(_read_change_time(text)) for text in wanted)]
    digest = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:12]
    readable = re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(Path(text).name for text in wanted))[:60].strip("-")
    return f"{readable}-{digest}"


def _read_change_time(text: str) -> int:
    """When a local wheel was changed: one that was built anew is another requirement. Raises EnvironmentProblem."""
    try:
        return os.stat(text).st_mtime_ns if text.startswith("/") else 0
    except FileNotFoundError:
        raise EnvironmentProblem(f"--pip {text}: no such file any more") from None


@contextlib.contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Let only one process make an environment; the others wait for it."""
    handle = os.open(folder.with_name(f"{folder.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _is_ready(folder: Path, wanted: Sequence[str]) -> bool:
    try:
        facts = json.loads((folder / _READY).read_text())
    except (OSError, ValueError):
        return False
    return facts.get("requirements") == list(wanted) and os.access(folder / "bin" / "python", os.X_OK)


def _make(folder: Path, wanted: Sequence[str], pip: Sequence[str] | None) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=False, symlinks=True)
    try:
        own = _site_packages(folder)
        # addsitedir also reads the .pth files there, as those of an editable install; a plain path would not
        lines = [f"import site; site.addsitedir({path!r})" for path in _list_shared_folders()]
        (own / _SHARED).write_text("\n".join([*lines, ""]))
        _install(folder, wanted, list(pip) if pip is not None else _pip())
        (folder / _READY).write_text(json.dumps({"requirements": list(wanted), "python": sys.version}))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _site_packages(folder: Path) -> Path:
    paths = {"base": str(folder), "platbase": str(folder)}
    return Path(sysconfig.get_path("purelib", "venv", vars=paths))


def _list_shared_folders() -> list[str]:
    paths = sysconfig.get_paths()
    return list(dict.fromkeys((paths["purelib"], paths["platlib"])))


def _pip() -> list[str]:
    """The command of pip. Raises EnvironmentProblem."""
    asked = subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False)
    if asked.returncode:
        raise EnvironmentProblem(f"--pip needs pip, which this Python lacks: {sys.executable} -m ensurepip")
    return [sys.executable, "-m", "pip"]


def _install(folder: Path, wanted: Sequence[str], pip: Sequence[str]) -> None:
    """Install into the environment what is not shared. Raises EnvironmentProblem with pip's reason."""
    command = [
        *pip,
        "--python",
        str(folder / "bin" / "python"),
        "--disable-pip-version-check",
        "--no-input",
        "install",
        "--quiet",
        "--no-warn-conflicts",
    ]
    # the named packages are installed even if the shared ones have this version: the shared library lies elsewhere;
    # of what they need, only what is not shared
    _run(["--no-deps", "--ignore-installed"], command, wanted)
    _run([], command, wanted)


def _run(more: Sequence[str], command: Sequence[str], wanted: Sequence[str]) -> None:
    try:
        child = subprocess.run(
            [*command, *more, *wanted],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_PIP_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise EnvironmentProblem(f"--pip {' '.join(wanted)}: pip took more than {_PIP_S:g} s") from None
    if child.returncode:
        killed = f"it was killed by {signal.Signals(-child.returncode).name}" if child.returncode < 0 else ""
        raise EnvironmentProblem(f"--pip {' '.join(wanted)}: pip: {killed or pip_reason(child.stdout + child.stderr)}")


def pip_reason(output: str) -> str:
    """The reason of a failure of pip, in one line of at most some 300 characters.

    >>> pip_reason("WARNING: x\\nERROR: Could not find a version (from versions: 1, 2)\\nERROR: No matching")
    'Could not find a version (from versions: 1, 2)'
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    text = (errors or lines[-1:] or ["it failed without a word"])[0]
    if "(from versions: none)" in text:  # pip says no more, also where it cannot reach an index
        return f"{text}: is the name right, and can pip reach its index from here?"
    if len(text) <= _REASON_MAX:
        return text
    half = _REASON_MAX // 2  # a list of versions is long, and its end has the newest
    return f"{text[:half]} … {text[-half:]}"


def _variables(folder: Path) -> dict[str, str | None]:
    """mpi4py looks for the MPI library in the environment's own folder; one without a library uses the shared one."""
    if list((folder / "lib").glob("libmpi*.so*")):
        return {_LIBMPI: None}
    if os.environ.get(_LIBMPI):
        return {}
    # the name with a version: the one without may be a text for linkers
    shared = max((Path(sys.prefix) / "lib").glob("libmpi.so*"), default=None)
    return {_LIBMPI: str(shared)} if shared else {}
