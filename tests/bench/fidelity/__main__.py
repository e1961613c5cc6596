"""``python -m tests.bench.fidelity``: :mod:`tests.bench.fidelity.run`."""

import sys

from tests.bench.fidelity.run import main

sys.exit(main())
