"""Logs with one line of something else between two rows: no row may be gained, and no row lost without a word.

``python -m tests.lab.hostile.junk_lines [LOGS]`` prints how many logs did what.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Sequence

from omb_py.errors import UsageError
from omb_py.results.dialects.parse import parse
from omb_py.results.dialects.reading import Context, Parsed
from tests.results.dialects import imb_texts, nccl_texts
from tests.results.dialects.test_ombpy import BW, LATENCY
from tests.results.dialects.texts import OMB

LOGS = (*OMB.values(), nccl_texts.FIRST, nccl_texts.THIRD, imb_texts.MPI1, LATENCY, BW)


def junk(rng: random.Random, log: str) -> str:
    """A line as other programs write them, which may look like a row."""
    size, value = rng.choice((0, 1, 2, 6, 8, 12, 16, 77, 1024, 4096, 10**6)), rng.uniform(0, 900)
    columns = max(len(line.split()) for line in log.splitlines()) if rng.random() < 0.5 else rng.randint(2, 4)
    return rng.choice(
        (
            f"{size} {rng.choice(('nan', '-nan', 'inf'))}",
            f"{size:<10}{'nan':>18}",
            f"{size} {value:.2f}",
            f"{size}\t{value:.2f}",
            f"{size}   {value:.2f}",
            " ".join([str(size), *(f"{rng.uniform(0, 99):.2f}" for _ in range(columns - 1))]),
            f"{size} {size} {value:.2f}",
            f"[{size}] {value:.2f}",
            f"{size}: loss {value:.4f}",
            f"{rng.randint(2000, 2030)}-11-{rng.randint(10, 28)} 10:{rng.randint(10, 59)}:07 INFO step {size}",
            f"srun: job {size} queued and waiting for resources",
            f"{size} of {size + 5} steps done ({value:.0f} %)",
        )
    )


def rows_of(parsed: Parsed) -> Counter[str]:
    """What was read, as one text for each row."""
    columns = ("size_bytes", "value", "dtype", "op", "window", "in_place")
    return Counter(
        repr((table.benchmark, [row.get(name) for name in columns])) for table in parsed.tables for row in table.rows
    )


def try_log(rng: random.Random, logs: Sequence[str] = LOGS) -> tuple[str, str]:
    """(outcome, the log) of one log with a line of junk: ``the same``, ``left out``, ``GAINED`` or ``LOST``."""
    log = rng.choice(logs)
    lines = log.splitlines(keepends=True)
    at = rng.randint(1, len(lines))
    text = "".join([*lines[:at], junk(rng, log) + "\n", *lines[at:]])
    before = rows_of(parse(log.encode(), Context("a.log", None)))
    try:
        parsed = parse(text.encode(), Context("a.log", None))
    except UsageError:
        return "left out", text
    after = rows_of(parsed)
    if after - before:
        return "GAINED", text
    if before - after:
        return "left out" if parsed.problems else "LOST", text
    return "the same", text


def main(logs: int = 1500, seed: int = 43) -> int:
    """Print the outcomes; 1 where a row was gained or lost."""
    rng, outcomes = random.Random(seed), Counter[str]()
    for _ in range(logs):
        outcome, text = try_log(rng)
        outcomes[outcome] += 1
        if outcome.isupper():
            print(f"--- {outcome}\n{text}")
    print(", ".join(f"{outcome}: {count}" for outcome, count in sorted(outcomes.items())))
    return int(any(outcome.isupper() for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
