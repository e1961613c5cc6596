"""A PID namespace with mounts of its own: what runs there sees and ends nothing outside it (``unshare``)."""

from __future__ import annotations

import subprocess
from functools import cache

APART = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
"""What follows runs in a PID namespace with a /proc of its own. As a user who is not root, in a user namespace too."""
AS_USER = (*APART, "--user", "--map-root-user")
INIT = ("bash", "-c", '"$@"; exit $?', "init")
"""The first process of the namespace, which waits for orphans as an init does."""


@cache
def apart() -> tuple[str, ...]:
    """The beginning of a command line that runs the rest in a namespace. Raises RuntimeError where there is none."""
    for words in (APART, AS_USER):
        try:
            done = subprocess.run([*words, *INIT, "true"], capture_output=True, check=False, timeout=60)
        except OSError:
            break
        if done.returncode == 0:
            return (*words, *INIT)
    raise RuntimeError("this needs a PID namespace, since it may end every process that it sees: run as root on Linux")
