"""Ways of not having measured."""

from __future__ import annotations

import random

import pytest

from omb_py.errors import NoVerdict
from omb_py.orchestrate.launching.launch_command import RankEnvironment
from omb_py.orchestrate.programs.command import SideProgram
from omb_py.orchestrate.programs.measured import Repetitions, check_rows
from omb_py.results.store.row import Row


def rows(*values: float) -> dict[str, Row]:
    return {str(number): {"value": value} for number, value in enumerate(values)}


def test_a_table_that_comes_twice_was_stored() -> None:
    repetitions = Repetitions()
    table = [1234.56 + number for number in range(6)]
    repetitions.check("BASE", rows(*table))
    with pytest.raises(NoVerdict, match=r"2 launches \(BASE, NEW\) printed the same 6 numbers"):
        repetitions.check("NEW", rows(*table))


def test_a_number_of_full_precision_that_comes_twice_was_stored() -> None:
    repetitions = Repetitions()
    repetitions.check("NEW", rows(0.12345678901234567))
    with pytest.raises(NoVerdict, match="the same 1 number "):
        repetitions.check("NEW", rows(0.12345678901234567))


def test_a_few_digits_come_again_by_chance() -> None:
    noise = random.Random(1)
    for _ in range(200):
        repetitions = Repetitions()
        for _ in range(20):
            repetitions.check("NEW", rows(round(noise.gauss(0.26, 0.005), 2), round(noise.gauss(123.45, 1), 2)))


def test_means_of_coarse_numbers_come_again_by_chance() -> None:
    repetitions = Repetitions()
    for _ in range(2):
        repetitions.check("NEW", {"time": {"value": (0.1 + 0.1 + 0.2) / 3, "iterations": 3}})


def on_hosts(*hosts: str) -> dict[str, Row]:
    return {"cell": {"benchmark": "allreduce", "size_bytes": 8, "value": 1.0, "hosts": list(hosts)}}


def test_other_nodes_from_one_launch_to_the_next() -> None:
    program = SideProgram("NEW", "srun -n 2 all_reduce_perf", RankEnvironment())
    check_rows(program, on_hosts("n1", "n2"), on_hosts("n2", "n1"))
    check_rows(program, on_hosts("n1", "n2"), on_hosts())
    with pytest.raises(NoVerdict, match=r"NEW: .*allreduce.* was measured on n1, n2, then on n1, n3, from one launch"):
        check_rows(program, on_hosts("n1", "n3"), on_hosts("n1", "n2"))


@pytest.mark.parametrize("words", ["-N 4", "-N4", "--nodes=4", "--nodes 4"])
def test_fewer_nodes_than_asked(words: str) -> None:
    program = SideProgram("NEW", f"srun {words} -n 4 all_reduce_perf", RankEnvironment())
    check_rows(program, on_hosts("n1", "n2", "n3", "n4"), {})
    with pytest.raises(NoVerdict, match=r"NEW ran on 2 nodes \(n1, n2\), and 4 were asked for"):
        check_rows(program, on_hosts("n1", "n1", "n2", "n2"), {})
