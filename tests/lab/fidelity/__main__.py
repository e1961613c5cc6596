"""``python -m tests.lab.fidelity``: :mod:`tests.lab.fidelity.run`."""

import sys

from tests.lab.fidelity.run import main

sys.exit(main())
