"""``python -m omb_py`` is the command line."""

import sys

from omb_py.cli import main

sys.exit(main())
