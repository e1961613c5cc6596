"""``python -m tests.parity FOLDER``: :mod:`tests.parity.omb`."""

import sys

from tests.parity.omb import main

sys.exit(main())
