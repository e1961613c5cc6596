"""``omb-py`` and ``python -m omb_py`` are the command line; Ctrl-C while it is imported ends the process at once."""

import signal
from collections.abc import Sequence
from typing import NoReturn

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else a caller ignores it, or has a way of its own
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the command line has started: Python would print a traceback

import omb_py.process_begin  # noqa: F401 it looks at the machine while the rest is loaded
from omb_py.cli import main as run  # what takes long, and would be interrupted
from omb_py.process_end import end_process

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line as this process, to its end."""
    end_process(run(args))


if __name__ == "__main__":
    main()
