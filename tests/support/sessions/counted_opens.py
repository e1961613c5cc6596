"""A rank of a real launch that writes down each file that Python opens, and the bytes that it has read by then.

python -m tests.support.sessions.counted_opens FILE
"""

from __future__ import annotations

import os
import runpy
import sys

FOLDER = "OMB_PY_TEST_OPENS"
"""Variable that names the folder. Each rank writes a file: a line for each file that it opens, bytes and path."""


def main() -> None:
    """Run the file of the first argument as a program, after the interpreter's own start."""
    io = os.open("/proc/self/io", os.O_RDONLY)
    log = os.open(f"{os.environ[FOLDER]}/{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(event: str, details: tuple[object, ...]) -> None:
        if event == "open" and isinstance(details[0], (str, bytes)):
            read = os.pread(io, 64, 0).split()[1]  # rchar: what read calls have returned
            os.write(log, read + b" " + os.fsencode(details[0]) + b"\n")

    for name in [name for name in sys.modules if name.startswith("tests")]:
        del sys.modules[name]
    sys.addaudithook(note)
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
