"""4 000 seeded mutations of every known text: no exception but a refusal, and every table fits the store's limits."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from omb_py.errors import UsageError
from omb_py.results.dialects.parse import parse
from omb_py.results.dialects.reading import INT64, Context, Parsed
from tests.results.dialects import imb_texts, nccl_texts, test_perftest, test_ucx
from tests.results.dialects.test_ombpy import BW, LATENCY
from tests.results.dialects.texts import OMB

NCCL = [text for name, text in vars(nccl_texts).items() if name.isupper()]
RDMA = [test_ucx.LATENCY, test_ucx.BATCH, test_ucx.CSV, test_ucx.UCC, test_perftest.BANDWIDTH, test_perftest.LATENCY]
SEEDS = [text.encode() for text in (*OMB.values(), *NCCL, imb_texts.MPI1, imb_texts.NBC, LATENCY + BW, *RDMA)]
MUTATIONS = 4_000
WORDS = (
    b"nan",
    b"inf",
    b"-1",
    b"9" * 30,
    b"9" * 5000,
    b"1e999",
    b"0x10",
    b"\xff\xfe",
    b"\0",
    b"#",
    b"# Size",
    b"\n",
    b"\r",
    b"\t",
    b" ",
    b"{",
    b"[" * 3000,
    b'"',
    b",",
    b"null",
    b"Fail",
    b"\xd9\xa3",
    b"\xc2\xb2",
    b"# OSU MPI Latency Test v7.5\n",
    b"# Datatype: MPI_CHAR.\n",
    b"# Benchmarking PingPong\n",
    b"# nThread 1 nGpus 1 minBytes 1\n",
    b"[1,0]<stdout>: ",
    b"# Message Rate Profile\n",
    b"Dimensions size = 99999 99999\n",
    b"# Out of bounds values : 1 FAILED\n",
    b"99",
    b"-",
)


def mutated(rng: random.Random, seeds: Sequence[bytes] = SEEDS, words: Sequence[bytes] = WORDS) -> bytes:
    """A text with one to four changes: cut, a piece removed, doubled or moved, words put in, bytes changed."""
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.randint(1, 4)):
        at, to = sorted((rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)))
        change = rng.randrange(7)
        if change == 0:
            del data[at:]
        elif change == 1:
            del data[at : at + rng.randint(1, 20)]
        elif change == 2:
            data[at:at] = rng.choice(words)
        elif change == 3:
            data[at:at] = data[at : min(to, at + 300)]
        elif change == 4 and data:
            data[min(at, len(data) - 1)] = rng.randrange(256)
        elif change == 5:
            data += rng.choice(seeds)[: rng.randint(1, 400)]
        else:
            data[at : at + rng.randint(1, 8)] = rng.choice(words)
    return bytes(data)


def fits(found: Parsed) -> bool:
    whole = [v for table in found.tables for row in table.rows for v in row.values() if type(v) is int]
    return all(abs(v) <= INT64 for v in whole) and all(table.rows for table in found.tables)


@pytest.mark.slow
def test_no_mutation_gives_a_traceback() -> None:
    rng = random.Random(20261121)
    read = refused = damaged = 0
    for _ in range(MUTATIONS):
        data = mutated(rng)
        try:
            found = parse(data, Context(rng.choice(["a.log", "all_gather.txt"]), rng.choice([None, "bw"])))
        except UsageError as error:
            refused += 1
            assert "\n" not in str(error)
            continue
        assert fits(found)
        read += bool(found.tables)
        damaged += bool(found.problems)
        assert all("\n" not in str(problem) for problem in found.problems)
    # the mutations are of all kinds: most texts survive, many are damaged, some are no log any more
    assert read > MUTATIONS / 4 and damaged > MUTATIONS / 10 and refused > 10


@pytest.mark.parametrize("number", range(12))
def test_what_is_read_of_a_mutation_can_be_stored_and_printed(number: int, tmp_path) -> None:
    from omb_py.printing.export import FORMATS, export
    from omb_py.results.dialects.storing import ImportOptions, store_bytes
    from omb_py.results.store.read import load_table, to_rows

    data = mutated(random.Random(number))
    try:
        done = store_bytes(data, "a.log", 1e9, tmp_path, ImportOptions())
    except UsageError:
        return
    rows = to_rows(load_table(tmp_path)) if done.tables else []
    assert len(rows) == done.cells
    for form in FORMATS:
        try:
            export(rows, form)
        except UsageError as error:
            assert form in ("nccl-tests", "imb", "imb-multi", "pytest-benchmark") and "none of these rows" in str(error)
