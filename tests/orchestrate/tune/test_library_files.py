"""Files that the installed library reads: a planted rule is obeyed, at its sizes and at no others."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from omb_py.backends.mpi.tools.knobs import library_knobs
from omb_py.orchestrate.tune.candidates import candidates
from omb_py.orchestrate.tune.conclusion import facts_of, files_of
from omb_py.results.tune.rules import LibrarySetting, Rule, RuleTable
from tests.support.machines.mpi import start
from tests.support.planted_knobs import mpich, open_mpi

SIZES = (1024, 4096, 4100, 16384, 65536)


def steps(ranks: int, setting: tuple[tuple[str, str], ...]) -> dict[int, str]:
    """Message size -> how an allreduce was done: the last bits of its sum, and the pieces that were added."""
    words = [sys.executable, "-m", "tests.support.sessions.sums", *map(str, SIZES)]
    ran = start(words, ranks, **dict(setting))
    assert ran.returncode == 0 and ran.stderr == "", ran.stderr
    told: list[str] = json.loads(ran.stdout)
    return dict(zip(SIZES, told, strict=True))


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.each_library
def test_a_planted_rule_is_obeyed_at_its_sizes_alone(tmp_path: Path) -> None:
    ranks = 4
    library = library_knobs()
    settings = {setting.name: setting for setting in candidates(library, "allreduce")}
    ring, doubling = settings["ring"], settings["recursive_doubling"]
    as_ring, as_doubling = steps(ranks, ring.variables), steps(ranks, doubling.variables)
    assert all(as_ring[size] != as_doubling[size] for size in SIZES), "the algorithms take different steps"
    rules = (planted(ring, ranks, 0, 4096), planted(doubling, ranks, 65536, None))
    files = files_of(RuleTable(library.title, rules), library, tmp_path)
    assert files.left_out == ()
    for name, text in files.texts.items():
        (tmp_path / name).write_text(text)
    tuned = steps(ranks, files.variables)
    assert tuned == {**steps(ranks, ()), 1024: as_ring[1024], 4096: as_ring[4096], 65536: as_doubling[65536]}


def planted(setting: LibrarySetting, ranks: int, first: int, last: int | None) -> Rule:
    return Rule("allreduce", ranks, first, last, setting, 0.8, 0.75, 0.85)


def test_what_writers_know_comes_from_the_library() -> None:
    facts = facts_of(open_mpi())
    assert facts.family == "Open MPI" and facts.trees == ()
    assert facts.numbers["OMPI_MCA_coll_tuned_allreduce_algorithm"]["ring"] == "4"
    facts = facts_of(mpich("{}"))
    assert facts.trees == ("{}",) and facts.compositions == {"allreduce": "2"}
    assert facts.values["MPIR_CVAR_ALLREDUCE_TREE_TYPE"] == "knomial_1"
