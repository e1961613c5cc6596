"""``omb-py`` and ``python -m omb_py`` are the command line; Ctrl-C while it is imported ends the process at once."""

import signal
import sys

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else a caller ignores it, or has a way of its own
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the command line has started: Python would print a traceback

from omb_py.cli import main  # what takes long, and would be interrupted

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
