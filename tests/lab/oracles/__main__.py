"""``python -m tests.lab.oracles [COUNT [SEED [NAME …]]]``: nothing that a stranger wrote is silently misread.

Suites in TOML, traces (JSON, packed JSON, Chakra's protobuf) and Parquet files are mutated so many times each.
An oracle that knows no reader of omb-py judges what came through; what is refused is refused in one line. No input
takes longer than 5 s, and all of them at most 1 GB. The importers have an oracle of their own
(``python -m tests.results.dialects.oracle``). Exit code 1 where something is wrong.
"""

from __future__ import annotations

import random
import resource
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import FrameType

from omb_py.errors import OmbError
from tests.lab.oracles.inputs import Judge

COUNT, SEED = 10_000, 20261123
MOST_S = 5.0
"""Seconds of processor time for one input."""
MOST_BYTES = 1 << 30


@dataclass(slots=True)
class Found:
    """What came of the inputs of one kind."""

    name: str
    inputs: int = 0
    refused: int = 0
    values: int = 0
    """Numbers, words and rows that came through."""
    wrong: list[str] = field(default_factory=list)


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TimeoutError


def judged(name: str, judge: Judge, count: int, seed: int) -> Found:
    """Judge so many inputs."""
    found, rng = Found(name), random.Random(f"{name} {seed}")
    signal.signal(signal.SIGVTALRM, _too_long)
    for number in range(count):
        found.inputs += 1
        signal.setitimer(signal.ITIMER_VIRTUAL, MOST_S)
        try:
            values, wrong = judge(rng)
            found.values += values
            found.wrong += [f"input {number}: {text}" for text in wrong]
        except OmbError as error:
            found.refused += 1
            if "\n" in str(error):
                found.wrong.append(f"input {number}: a refusal of several lines: {str(error)[:200]!r}")
        except TimeoutError:
            found.wrong.append(f"input {number}: more than {MOST_S:g} s")
        except Exception as error:
            found.wrong.append(f"input {number}: {type(error).__name__}: {str(error)[:200]}")
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return found


def taken() -> int:
    """The most bytes that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main(words: Sequence[str]) -> int:
    """Print what was found, in a table."""
    from tests.lab.oracles import store_files, suites, traces

    count, seed = (int(word) for word in (*words[:2], *(str(COUNT), str(SEED))[len(words[:2]) :]))
    judges = {**suites.JUDGES, **traces.JUDGES, **store_files.JUDGES}
    print("| input | mutated | refused | values read | misread, tracebacks, longer than 5 s | peak memory |")
    print("|---|--:|--:|--:|--:|--:|")
    failed, problems = False, list[str]()
    for name in words[2:] or judges:
        found = judged(name, judges[name], count, seed)
        large = taken() > MOST_BYTES
        print(
            f"| {name} | {found.inputs:,} | {found.refused:,} | {found.values:,} | {len(found.wrong)} "
            f"| {taken() >> 20} MiB |",
            flush=True,
        )
        problems += [f"{name}: {text}" for text in found.wrong[:20]]
        failed |= bool(found.wrong) or large
    print("\n".join(problems))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
