"""Records a step of every framework that runs here, and writes the table that holds workloads to it.

``python -m tests.lab.frameworks`` records all, ``python -m tests.lab.frameworks torch`` one framework. Each recording is
a small file of calls and bytes with the framework's version in tests/lab/evidence/recorded; another version shows in
``git diff`` what changed. What is not installed is named: DeepSpeed (``DS_BUILD_OPS=0 pip install deepspeed``),
``tensorflow-cpu``, ``scikit-learn``.
"""

import sys
from collections import Counter

from tests.lab.frameworks.record import record_all
from tests.support.workload_bytes.page import FILE, UNEXPLAINED, outcome, page
from tests.support.workload_bytes.recorded import recordings

if __name__ == "__main__":
    record_all(sys.argv[1:])
    FILE.write_text(page())
    outcomes = Counter(map(outcome, recordings()))
    print(f"{outcomes.total()} recorded steps beside their workloads, in {FILE.name}:")
    for text, count in outcomes.most_common():
        print(f"{count:4} {text}")
    sys.exit(UNEXPLAINED in outcomes)
