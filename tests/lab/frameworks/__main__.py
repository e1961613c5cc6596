"""Records a step of every framework that runs here, and writes the table that holds workloads to it.

``python -m tests.lab.frameworks`` records all, ``python -m tests.lab.frameworks torch`` one framework. Each recording is
a small file of calls and bytes with the framework's version in tests/lab/evidence/recorded; another version shows in
``git diff`` what changed. DeepSpeed must be importable for its own (``DS_BUILD_OPS=0 pip install deepspeed``).
"""

import sys

from tests.lab.frameworks.record import record_all
from tests.support.workload_bytes.page import FILE, page

if __name__ == "__main__":
    record_all(sys.argv[1:])
    FILE.write_text(page())
