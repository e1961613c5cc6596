"""Nothing is silently misread: what came through a damaged text stands in that text, under its own title.

Three oracles that know no reader; test_oracle.py asks them:

- The known texts of every tool are mutated. Value and size of each row that is read must be words of one line.
- A second table follows a first one, and each place of its head is damaged in turn. Each row that is read must be one
  of the undamaged two texts, with its benchmark and type.
- Each text of OMB follows each other one without its title: no row of it may be read as one of the first.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any

from omb_py.errors import UsageError
from omb_py.results.dialects.parse import parse
from omb_py.results.dialects.reading import Context, Parsed
from tests.results.dialects import imb_texts, nccl_texts
from tests.results.dialects.test_fuzz import mutated
from tests.results.dialects.texts import OMB

SCALES = (1.0, 1e3, 1e6, 1.048576, 125.0)
"""The store has µs and MB/s; texts have µs, ms, s, MB, MiB and Gb a second."""
PAIRS = {
    "OMB, collectives": (OMB["allreduce_persistent"], OMB["alltoallw"]),
    "OMB, point to point": (OMB["latency"], OMB["bw"]),
    "nccl-tests": (nccl_texts.SECOND, nccl_texts.ALLTOALL),
    "IMB": (imb_texts.MPI1, imb_texts.NBC),
}
_TITLE_ALONE = re.compile(r"^# OSU .*\n", re.MULTILINE)
_TITLE = re.compile(r"^\n?# OSU .*\n", re.MULTILINE)
"""With the blank line above it."""
_NO_WORD = re.compile(r"[\s,:\"{}\[\]()]+")


def numbers(line: str) -> set[float]:
    """The words of a line that are numbers as a whole."""
    found = set()
    for word in _NO_WORD.split(line):
        try:
            found.add(float(word))
        except ValueError:
            continue
    return found


def stands_in(row: Mapping[str, Any], lines: Sequence[set[float]]) -> bool:
    """Whether some line has the value of a row, and its size where it has one."""
    value = row.get("value")
    if value is None:
        return True
    sizes = {float(row[name]) for name in ("size_bytes", "bytes_total") if row.get(name)}
    values = [value / scale for scale in SCALES]
    return any(
        any(abs(number - wanted) <= 1e-7 * abs(wanted) for number in line for wanted in values)
        and (not sizes or sizes & line)
        for line in lines
    )


def misread(data: bytes, found: Parsed) -> list[str]:
    """The rows whose numbers are not in the text, in words."""
    text = data.decode(errors="replace")
    lines = [numbers(line) for line in text.split("\n")]
    sources = {table.source for table in found.tables}
    if "ucx_perftest" in sources or ("{" in text and any(source.endswith("tests") for source in sources)):
        lines.append(set().union(*lines))  # its size stands in the head; JSON breaks its lines where it likes
    wrong = [row for table in found.tables for row in table.rows if not stands_in(row, lines)]
    return [f"{row['benchmark']}: {row['value']} at {row.get('size_bytes')} B" for row in wrong]


def run(mutations: int, seed: int) -> tuple[int, list[str]]:
    """How many rows were read of mutated texts, and those that are misread."""
    rng, rows, wrong = random.Random(seed), 0, list[str]()
    for number in range(mutations):
        data = mutated(rng)
        try:
            found = parse(data, Context("a.log", None))
        except UsageError:
            continue
        rows += sum(len(table.rows) for table in found.tables)
        wrong += [f"mutation {number}: {text}" for text in misread(data, found)]
    return rows, wrong


def damages(head: str) -> Iterator[str]:
    """A head with one place damaged: cut, replaced, broken, or a piece missing."""
    for at in range(len(head)):
        yield head[:at] + head[at + 1 :]
        yield head[:at] + "x" + head[at + 1 :]
        yield head[:at] + "\n" + head[at:]
        yield head[:at] + head[at + 5 :]
        yield head[:at] + head[at + 40 :]


def identities(text: str) -> set[tuple[Any, ...]]:
    """Benchmark, type, size and value of each row that is read of a text; none where it is refused."""
    try:
        found = parse(text.encode(), Context("a.log", None))
    except UsageError:
        return set()
    return {
        tuple(row.get(name) for name in ("benchmark", "dtype", "size_bytes", "value"))
        for table in found.tables
        for row in table.rows
    }


def mistaken(first: str, second: str, every: int = 1) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """(damaged head, row) of each row that is in neither text: numbers of one table under the title of the other.

    Args:
        first: a text.
        second: the text whose head, all above its first row, is damaged.
        every: take each of so many damages.
    """
    right = identities(first) | identities(second)
    body = re.search(r"^ *\d", second, re.MULTILINE)
    head = second[: body.start()] if body else second
    for damaged in islice(damages(head), 0, None, every):
        for row in identities(first + damaged + second[len(head) :]) - right:
            alike = any(other[0] == row[0] and other[2:] == row[2:] and None in (row[1], other[1]) for other in right)
            if not alike and not _named(row[0], damaged):  # a type that is not said is no wrong one
                yield damaged, row


def untitled(every: int = 1) -> Iterator[tuple[str, str]]:
    """(first, second) of OMB's texts whose rows were all given to the first when the second lost its title.

    Args:
        every: take each of so many pairs.
    """
    for first, second in islice(product(OMB, OMB), 0, None, every):
        alone = identities(OMB[first])
        for title in (_TITLE_ALONE, _TITLE):
            lost, cut = title.subn("", OMB[second], count=1)
            if cut and {row[0] for row in alone} == {row[0] for row in identities(OMB[first] + lost) - alone}:
                yield first, second


def _named(benchmark: str, head: str) -> bool:
    """Whether the damaged head says this benchmark: one letter less makes an alltoall of an alltoallw."""
    letters = re.sub(r"[^a-z]", "", head.lower())
    return re.sub(r"[^a-z]", "", benchmark) in letters
