"""``python -m tests.lab.parity FOLDER``: :mod:`tests.lab.parity.omb`."""

import sys

from tests.lab.parity.omb import main

sys.exit(main())
