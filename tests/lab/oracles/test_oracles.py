"""A small part of what ``python -m tests.lab.oracles`` does, and that each oracle sees a misreading."""

from __future__ import annotations

import random
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from omb_py.orchestrate.suites.suite_file import parse_suite
from omb_py.results.store.read import SkippedFile, load
from tests.lab.oracles import store_files, suites, traces
from tests.lab.oracles.__main__ import judged
from tests.lab.oracles.inputs import changed

JUDGES = {**suites.JUDGES, **traces.JUDGES, **store_files.JUDGES}


@pytest.mark.parametrize("name", JUDGES)
def test_nothing_is_misread(name: str) -> None:
    found = judged(name, JUDGES[name], 40, 2)
    assert found.wrong == [] and found.inputs == 40 and found.values > 0


def test_a_value_that_is_not_in_a_suite_is_seen() -> None:
    text = suites.SEEDS[1].decode()
    suite = parse_suite(text, "f.toml")
    assert suites.misread(suite, text)[1] == []
    moved = replace(suite.defaults[0], value=1001)
    assert len(suites.misread(replace(suite, defaults=(moved,)), text)[1]) == 1


def test_a_call_that_is_not_in_a_trace_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "read", lambda data: [("allreduce", 123456789, "float32")])
    for name, judge in traces.JUDGES.items():
        assert any(judge(random.Random(seed))[1] for seed in range(3)), name


def test_a_damaged_number_of_a_store_is_not_read(tmp_path: Path) -> None:
    name, data = store_files.written()[0]
    rows, _, _ = store_files.rows_of(name, data)
    value = sorted(dict(row)["min_us"] for row in rows)[1]  # the least and the greatest stand in statistics too
    at = data.index(struct.pack("<d", value))
    damaged = data[: at + 7] + bytes([data[at + 7] ^ 0x10]) + data[at + 8 :]
    path = tmp_path / name
    path.parent.mkdir()
    path.write_bytes(damaged)
    with pytest.warns(SkippedFile, match="damaged"):
        assert load(tmp_path).empty


def test_a_column_whose_name_is_no_text_is_named(tmp_path: Path) -> None:
    name, data = store_files.written()[0]
    path = tmp_path / name
    path.parent.mkdir()
    path.write_bytes(data.replace(b"\x06run_id", b"\x06run\xffid", 1))
    with pytest.warns(SkippedFile, match="not a readable Parquet file"):
        assert load(tmp_path).empty


def test_an_input_is_one_of_the_seeds_with_a_change() -> None:
    rng = random.Random(1)
    made = [changed(rng, [b"abcdef"], [b"XY"], b"z") for _ in range(200)]
    assert len(set(made)) > 40 and any(len(text) == 7 for text in made)
