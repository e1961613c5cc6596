"""tests/lab/evidence/workload_bytes.md: ``python -m tests.support.workload_bytes`` writes it."""

from tests.support.workload_bytes.page import FILE, page

FILE.write_text(page())
