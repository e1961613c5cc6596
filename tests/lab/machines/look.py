"""Whether a machine is as it is called: ``python -m tests.lab.machines.look NAME`` says what is not."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from typing import Any

from omb_py.engine.measuring.cache_rotation import last_level_cache
from omb_py.engine.measuring.host_memory import available_bytes
from tests.lab.machines.machines import MEMORY, MIB, NOBODY

EXPECTED: dict[str, tuple[str, Any]] = {
    "cache-8": ("cache", 8 * MIB),
    "cache-480": ("cache", 480 * MIB),
    "cache-1024": ("cache", 1024 * MIB),
    "cache-unknown": ("cache", 64 * MIB),
    "cores-1": ("cores", (1, 1)),
    "cores-2": ("cores", (2, 2)),
    "cores-64": ("cores", (64, 64)),
    "memory": ("little memory", True),
    "shm": ("shm", MIB),
    "read-only": ("writable", False),
    "no-home": ("home", False),
    "c-locale": ("language", "C"),
    "ascii": ("encoding", "ascii"),
    "odd-paths": ("folders", ("/tmp/one folder/zwölf 日本/omb-py", "/tmp/tmp ü")),
    "not-root": ("user", NOBODY),
    "umask": ("umask", 0o77),
    "clock": ("steps back", True),
}
"""Name of a machine -> a fact, and what it must be."""


def facts() -> dict[str, Any]:
    """What a process sees of the machine that it is on."""
    before = time.time()
    shm = os.statvfs("/dev/shm")
    umask = os.umask(0)
    os.umask(umask)
    return {
        "cache": last_level_cache(),
        "cores": (os.cpu_count(), len(os.sched_getaffinity(0))),
        "little memory": available_bytes() <= MEMORY,
        "shm": shm.f_blocks * shm.f_frsize,
        "writable": os.access(sys.prefix, os.W_OK),
        "home": "HOME" in os.environ,
        "language": os.environ.get("LC_ALL"),
        "encoding": {"ANSI_X3.4-1968": "ascii"}.get(sys.getfilesystemencoding(), sys.getfilesystemencoding()),
        "folders": (os.getcwd(), tempfile.gettempdir()),
        "user": os.getuid(),
        "umask": umask,
        "steps back": any(time.time() < before for _ in range(200)),
    }


def wrong_with(name: str) -> str:
    """What is not as expected; nothing where all is."""
    fact, wanted = EXPECTED[name]
    found = facts()[fact]
    return "" if found == wanted else f"{name} is not as it is called: {fact} is {found!r}, not {wanted!r}"


if __name__ == "__main__":
    print(wrong_with(sys.argv[1]).encode("ascii", "backslashreplace").decode())
