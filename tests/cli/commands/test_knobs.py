"""``omb-py knobs``: what it prints, and what bad input gets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omb_py.backends.capabilities import LibraryKnobs
from omb_py.cli import main
from omb_py.cli.commands import knobs as command
from tests.support.planted_knobs import mpich, open_mpi


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "library_of", lambda backend: {"mpi": open_mpi(), "nccl": mpich()}[backend])


def output(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert main(["knobs", *words]) == code
    out, err = capsys.readouterr()
    assert (out == "") == (code != 0) and (err == "") == (code == 0)
    return out + err


def test_a_collective_has_the_few_knobs_that_decide(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "osu_allreduce")
    assert "OMPI_MCA_coll_tuned_allreduce_algorithm" in text and "basic_linear, nonoverlapping" in text
    assert "coll_tuned_use_dynamic_rules" in text and "segmentsize" not in text
    assert text.endswith("Open MPI 5.0.11: 2 of 10 knobs of allreduce (from MPI_T). --all shows 1 more.\n")
    assert "segmentsize" in output(capsys, "allreduce", "--all")


def test_one_knob_is_shown_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM", "--backend", "nccl")
    assert "set by: MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM=VALUE in the environment" in text
    assert "Force pipelined tree algorithm" in text and "Variable to select allreduce algorithm\nauto - " in text
    built_in = output(capsys, "coll_tuned_major_version")
    assert "set by: nothing; it is built in" in built_in and "It has no description." in built_in


def test_json_has_everything(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "k.json"
    told = json.loads(output(capsys, "allreduce", "--format", "json", "--output", str(file)))
    assert told == json.loads(file.read_text())
    assert (told["library"], told["from"], told["collective"]) == ("Open MPI", "MPI_T", "allreduce")
    assert told["knobs"][0]["choices"][4] == {"word": "ring", "meaning": "4"}
    assert told["knobs"][0]["variable"] == "OMPI_MCA_coll_tuned_allreduce_algorithm"


def test_what_the_library_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert "pml_monitoring_messages_count" in output(capsys, "--pvars")
    assert "MPICH 5.0.2 lists no performance variable" in output(capsys, "--pvars", "--backend", "nccl", code=3)
    assert "leave out the collective" in output(capsys, "allreduce", "--pvars", code=2)


@pytest.mark.parametrize(
    ("name", "code", "text"),
    [
        ("coll_tuned_prio", 2, "did you mean coll_tuned_priority?"),
        ("!", 2, "a collective, as barrier, bcast, reduce, allreduce, or a knob"),
        ("scatterv", 3, "Open MPI 5.0.11 has no knob that decides the algorithm of scatterv"),
    ],
)
def test_bad_input(name: str, code: int, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    err = output(capsys, name, code=code)
    assert err.startswith("omb-py: error: ") and text in err and err.count("\n") == 1


def test_a_library_that_lists_no_algorithm(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "library_of", lambda backend: LibraryKnobs("gloo", "Gloo"))
    assert "Gloo has no knob that decides an algorithm" in output(capsys, code=3)
    assert "Gloo has no knob that decides the algorithm of bcast: it chooses by itself" in output(
        capsys, "bcast", code=3
    )
