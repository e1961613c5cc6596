"""The machines that the tests are run on: each is this one with one thing changed, in a namespace of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MIB = 1 << 20
MEMORY = 2048 * MIB
"""Bytes of the machine with little memory."""
CACHES = "/sys/devices/system/cpu/cpu0/cache"
NOBODY = 65534


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine, and what makes it: bash in a mount namespace that has a /tmp and a /dev/shm of its own."""

    name: str
    means: str
    setup: str = ""
    """Runs as root before the tests. ``$ROOT`` is the checkout, ``$PREFIX`` the Python environment."""
    environment: Mapping[str, str | None] = field(default_factory=dict)
    """Variables that are set; None: removed."""
    root: str = "$ROOT"
    """Path of the checkout on this machine."""
    temporary: str = "/tmp/pytest"
    """Folder for the tests' files."""
    preloaded: bool = False
    """Whether the C library is replaced in part (preload.c)."""
    memory: int = 0
    """Bytes of memory, by a control group and /proc/meminfo; 0: as it is."""
    as_nobody: bool = False
    small_shm: bool = False
    """Whether an MPI library may find too little shared memory, which must be said."""


def cache(mib: int) -> Machine:
    """A machine whose kernel tells of a last-level cache of so many MiB; 0: of none."""
    files = "".join(
        f"mkdir {folder}; echo {level} > {folder}/level; echo Unified > {folder}/type; echo {size} > {folder}/size; "
        for folder, level, size in (("/tmp/caches/index0", 2, "1024K"), ("/tmp/caches/index1", 3, f"{mib}M"))
    )
    told = f"a last-level cache of {mib:,} MiB" if mib else "no cache that the kernel tells of"
    setup = f"mkdir /tmp/caches; {files if mib else ''}mount --bind /tmp/caches {CACHES}"
    return Machine(f"cache-{mib or 'unknown'}", told, setup, {"OMB_PY_CACHE_BYTES": ""})


def cores(number: int) -> Machine:
    """A machine with so many visible cores."""
    told = f"{number} visible core{'s' if number > 1 else ''}"
    return Machine(f"cores-{number}", told, environment={"INJECTED_CORES": str(number)}, preloaded=True)


_READ_ONLY = (
    'for folder in "$ROOT" "$PREFIX"; do mount --bind "$folder" "$folder"; mount -o remount,ro,bind "$folder"; done'
)
_ODD_PATH = "/tmp/one folder/zwölf 日本/omb-py"
_OPEN_HOME = """
# an interpreter in root's home is not for others: they get a home that has the interpreter alone
case "$BASE" in "$HOME"/*)
  mkdir /tmp/base; mount --bind "$BASE" /tmp/base; mount -t tmpfs -o mode=755 none "$HOME"
  mkdir -p "$BASE"; mount --bind /tmp/base "$BASE";;
esac
mkdir /tmp/home; chmod 777 /tmp/home; export HOME=/tmp/home
"""

MACHINES = {
    machine.name: machine
    for machine in (
        *(cache(mib) for mib in (8, 480, 1024, 0)),
        *(cores(number) for number in (1, 2, 64)),
        Machine("memory", "2 GiB of memory", environment={"OMB_PY_CACHE_BYTES": str(1024 * MIB)}, memory=MEMORY),
        Machine("shm", "1 MiB in /dev/shm", "mount -t tmpfs -o size=1m none /dev/shm", small_shm=True),
        Machine("read-only", "an installation that nobody can write to", _READ_ONLY),
        Machine("no-home", "HOME unset", environment={"HOME": None}),
        Machine("c-locale", "LC_ALL=C", environment={"LC_ALL": "C", "LANG": None}),
        Machine(
            "ascii",
            "LC_ALL=C without UTF-8 mode",
            environment={"LC_ALL": "C", "LANG": None, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        ),
        Machine(
            "odd-paths",
            "blanks and letters beyond ASCII in all paths",
            f'mkdir -p "{_ODD_PATH}" "/tmp/tmp ü"; mount --bind "$ROOT" "{_ODD_PATH}"',
            {"TMPDIR": "/tmp/tmp ü"},
            root=_ODD_PATH,
            temporary="/tmp/tmp ü/pytest",
        ),
        Machine("not-root", "a user who is not root", _OPEN_HOME, as_nobody=True),
        Machine("umask", "umask 077", "umask 077"),
        Machine(
            "clock",
            "a clock that steps 3 s back, and forward again, at each 50th reading",
            environment={"INJECTED_CLOCK": "1"},
            preloaded=True,
        ),
    )
}
