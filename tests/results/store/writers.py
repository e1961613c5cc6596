"""A process that writes launches into a store: ``python -m tests.results.store.writers STORE NAME LAUNCHES``."""

from __future__ import annotations

import sys

from omb_py.results.store.write import write_launch
from tests.support.rows import row_of


def main(store: str, name: str, launches: int) -> None:
    for number in range(launches):
        row = row_of(name, number, started_at=f"2026-11-{1 + number % 3:02d}T12:00:00", samples_us=[1.0] * 50)
        write_launch(store, [{**row, "size_bytes": size, "value": float(number)} for size in (4, 8)], {"name": name})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
