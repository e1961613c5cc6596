"""Texts of the files by which libraries use rules."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import pytest

from omb_py.results.tune.library_files import LibraryFacts, LibraryFiles, write_rules
from omb_py.results.tune.rules import LibrarySetting, Rule, RuleTable

FOLDER = PurePosixPath("/site/tuned files")
WHO = (("hosts", "n1, n2"), ("time", "2026-11-23T06:00:00+00:00"), ("command", "omb-py tune allreduce\n-n 4"))
ALGORITHM = "OMPI_MCA_coll_tuned_{}_algorithm"
DEVICE = '{"collective=allreduce":{"comm_type=intra":{"composition=MPIDI_Allreduce_intra_composition_gamma":{}}}}'
LAYER = (
    '{"collective=allreduce":{"comm_type=intra":{"algorithm=MPIR_Allreduce_intra_smp":{}},"comm_type=inter":{}},'
    '"collective=barrier":{"comm_type=intra":{"algorithm=MPIR_Barrier_intra_smp":{}}}}'
)
OPEN_MPI = LibraryFacts("Open MPI", {ALGORITHM.format("allreduce"): {"ring": "4"}})
MPICH = LibraryFacts(
    "MPICH",
    values={"MPIR_CVAR_ALLREDUCE_RECEXCH_KVAL": "2", "MPIR_CVAR_ALLREDUCE_RECEXCH_SINGLE_PHASE_RECV": "0"},
    trees=(DEVICE, LAYER),
    compositions={"allreduce": "2"},
)


def rule(
    setting: LibrarySetting, first: int = 0, last: int | None = None, collective: str = "allreduce", n: int = 4
) -> Rule:
    return Rule(collective, n, first, last, setting, 0.8, 0.75, 0.85)


def files(facts: LibraryFacts, *rules: Rule) -> LibraryFiles:
    return write_rules(RuleTable(f"{facts.family} 5", rules, WHO), facts, FOLDER)


def tuned(word: str, collective: str = "allreduce", **more: str) -> LibrarySetting:
    name = ALGORITHM.format(collective)
    parameters = {f"{name}_{key}": value for key, value in more.items()}
    variables = {name: word, "OMPI_MCA_coll_tuned_use_dynamic_rules": "1", **parameters}
    return LibrarySetting(word, tuple(sorted(variables.items())))


def layer(word: str = "", **more: str) -> LibrarySetting:
    variables = {"MPIR_CVAR_ALLREDUCE_DEVICE_COLLECTIVE": "0", **more}
    variables |= {"MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": word} if word else {}
    return LibrarySetting(word or "mpir", tuple(sorted(variables.items())))


def numbers(text: str) -> list[list[int]]:
    """The numbers of a rules file, line by line, as Open MPI reads them: without comments."""
    lines = (line.partition("#")[0].split() for line in text.splitlines())
    return [[int(word) for word in line] for line in lines if line]


def test_without_rules_there_is_no_file() -> None:
    assert files(OPEN_MPI) == LibraryFiles({})


def test_open_mpis_rules_begin_and_end_at_their_sizes_and_ranks() -> None:
    written = files(OPEN_MPI, rule(tuned("ring"), 64, 4096), rule(tuned("3", segmentsize="8192"), 65536))
    text = written.texts["openmpi-rules.conf"]
    default = [[1], [0, 0, 0, 0]]
    small, large = [[0, 0, 0, 0], [64, 4, 0, 0], [4097, 0, 0, 0]], [[65536, 3, 0, 8192]]
    assert numbers(text) == [[1], [2], [3], [0], *default, [4], [4], *small, *large, [5], *default]
    assert text.startswith("# Open MPI 5, tuned by omb-py\n# hosts: n1, n2\n# time: 2026-11-23T06:00:00+00:00\n")
    assert "# command: omb-py tune allreduce -n 4\n" in text, "a line end in it would end the comment"
    assert "# allreduce on 4 ranks, 64 to 4096 B: ring, 0.800 of the default's time (0.750 to 0.850)\n" in text
    assert dict(written.variables) == {
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
        "OMPI_MCA_coll_tuned_dynamic_rules_filename": "/site/tuned files/openmpi-rules.conf",
    }


def test_open_mpi_counts_the_bytes_of_all_ranks_in_some_collectives() -> None:
    text = files(OPEN_MPI, rule(tuned("2", "alltoall"), 16, 64, "alltoall", n=3)).texts["openmpi-rules.conf"]
    assert [48, 2, 0, 0] in numbers(text) and [193, 0, 0, 0] in numbers(text)
    neighbours = files(OPEN_MPI, rule(tuned("ring")), rule(tuned("3"), n=5)).texts["openmpi-rules.conf"]
    assert [line[0] for line in numbers(neighbours)[3::]] == [0, 1, 0, 4, 1, 0, 5, 1, 0, 6, 1, 0]


@pytest.mark.parametrize(
    ("planted", "why"),
    [
        (rule(tuned("ring", "iallreduce"), collective="iallreduce"), "the component tuned has no iallreduce"),
        (rule(tuned("unheard-of")), "names algorithms of coll_tuned_allreduce_algorithm alone"),
        (rule(tuned("2", "barrier"), 8, collective="barrier"), "the file knows no sizes of barrier"),
        (rule(tuned("4", max_requests="2")), "the file cannot set OMPI_MCA_coll_tuned_allreduce_algorithm_max_"),
    ],
)
def test_what_open_mpis_file_cannot_say_is_left_out_by_name(planted: Rule, why: str) -> None:
    written = files(OPEN_MPI, planted if planted.first_bytes else replace(planted, last_bytes=4096))
    assert written.texts == {} and len(written.left_out) == 1 and why in written.left_out_lines[0]


def walk(tree: dict[str, Any], **facts: int) -> str:
    """The leaf that MPICH finds: the first condition that holds is taken, and there is no way back."""
    for key, branch in tree.items():
        if key.startswith(("composition=", "algorithm=")):
            return " ".join([key.partition("=")[2], *branch])
        name, sign, value = key.partition("<=")
        if key == "comm_type=intra" or key.endswith("=any") or (sign and facts[name] <= int(value)):
            return walk(branch, **facts)
    raise LookupError


@pytest.mark.parametrize(
    ("ranks", "nbytes", "device", "algorithm"),
    [
        (3, 64, "gamma", "smp"),
        (5, 64, "gamma", "smp"),
        (4, 63, "gamma", "smp"),
        (4, 64, "beta", "ring"),
        (4, 4096, "beta", "ring"),
        (4, 4097, "gamma", "smp"),
        (4, 65536, "beta", "recexch k=4 single_phase_recv=0"),
        (4, 1 << 30, "beta", "recexch k=4 single_phase_recv=0"),
        (8, 8, "beta", "smp"),
    ],
)
def test_mpichs_selection_is_what_is_built_in_but_for_the_rules(
    ranks: int, nbytes: int, device: str, algorithm: str
) -> None:
    recexch = layer("recexch", MPIR_CVAR_ALLREDUCE_RECEXCH_KVAL="4")
    written = files(MPICH, rule(layer("ring"), 64, 4096), rule(recexch, 65536), rule(layer(), n=8))
    assert written.left_out == ()
    trees = {name: json.loads(text) for name, text in written.texts.items() if name.endswith(".json")}
    found = {
        name: walk(tree["collective=allreduce"], comm_size=ranks, avg_msg_size=nbytes) for name, tree in trees.items()
    }
    assert found["mpich-ch4.json"] == f"MPIDI_Allreduce_intra_composition_{device}"
    assert found["mpich-mpi.json"] == f"MPIR_Allreduce_intra_{algorithm}"
    assert "comm_type=inter" in trees["mpich-mpi.json"]["collective=allreduce"]
    assert trees["mpich-mpi.json"]["collective=barrier"] == json.loads(LAYER)["collective=barrier"]
    assert written.texts["mpich-selection.txt"].startswith("# MPICH 5, tuned by omb-py\n# hosts: n1, n2\n")


@pytest.mark.parametrize(
    ("planted", "facts", "why"),
    [
        (
            rule(LibrarySetting("x", (("MPIR_CVAR_ALLREDUCE_COMPOSITION", "1"),))),
            MPICH,
            "algorithms of the MPI layer alone",
        ),
        (rule(layer("nb")), MPICH, "the files cannot name nb"),
        (rule(layer("ring", MPIR_CVAR_OTHER="1")), MPICH, "the files cannot set MPIR_CVAR_OTHER"),
        (rule(layer("ring")), LibraryFacts("MPICH"), "this library has no selection in JSON"),
        (rule(layer("ring")), LibraryFacts("MPICH", trees=(DEVICE, LAYER)), "no composition of allreduce"),
    ],
)
def test_what_mpichs_files_cannot_say_is_left_out_by_name(planted: Rule, facts: LibraryFacts, why: str) -> None:
    written = files(facts, replace(planted, last_bytes=4096))
    assert written.texts == {} and len(written.left_out) == 1 and why in written.left_out_lines[0]


@pytest.mark.parametrize(
    ("facts", "setting"),
    [
        (OPEN_MPI, LibrarySetting("ring", (("OMPI_MCA_coll_libnbc_iallreduce_algorithm", "ring"),))),
        (MPICH, LibrarySetting("tsp_ring", (("MPIR_CVAR_IALLREDUCE_INTRA_ALGORITHM", "tsp_ring"),))),
    ],
)
def test_variables_set_a_rule_for_every_size_that_no_file_can_say(facts: LibraryFacts, setting: LibrarySetting) -> None:
    whole = rule(setting, collective="iallreduce")
    written = files(facts, whole, replace(whole, ranks=8))
    assert (written.variables, written.left_out) == (setting.variables, ())
    assert set(written.texts) == {"tuned.env", "tuned.lua"}
    for other in (
        replace(whole, ranks=8, last_bytes=64),
        replace(whole, ranks=8, setting=LibrarySetting("x", (("Y", "1"),))),
    ):
        assert len(files(facts, whole, other).left_out) == 2, "a variable holds for any size and any number of ranks"
    beside = files(OPEN_MPI, whole, rule(tuned("ring"), 0, 4096))
    assert set(setting.variables) < set(beside.variables) and "openmpi-rules.conf" in beside.texts


def test_intels_variable_has_sizes_in_it_and_its_own_choice_wherever_there_is_no_rule() -> None:
    eighth, second = (LibrarySetting(n, (("I_MPI_ADJUST_ALLREDUCE", n),)) for n in "82")
    written = files(
        LibraryFacts("Intel MPI"), rule(eighth, 64, 4096), rule(second, 8192), rule(layer("ring"), 5000, 6000)
    )
    assert written.variables == (("I_MPI_ADJUST_ALLREDUCE", "0:0-63;8:64-4096;0:4097-8191;2:8192-2147483647"),)
    assert len(written.left_out) == 1 and set(written.texts) == {"tuned.env", "tuned.lua"}
    whole = files(LibraryFacts("Intel MPI"), rule(eighth, 0, 4096))
    assert whole.variables == (("I_MPI_ADJUST_ALLREDUCE", "8:0-4096;0:4097-2147483647"),)


def test_intels_variable_holds_for_one_number_of_ranks() -> None:
    """Intel MPI 2021.18 obeys no size where ranks are given: the last entry then holds for every size."""
    eighth = LibrarySetting("8", (("I_MPI_ADJUST_ALLREDUCE", "8"),))
    written = files(LibraryFacts("Intel MPI"), rule(eighth, 0, 4096), rule(eighth, 0, 64, n=8))
    assert (written.texts, written.variables, len(written.left_out)) == ({}, (), 2)
    assert "both sizes and ranks" in written.left_out_lines[0]


def test_a_library_that_reads_no_sizes_gets_variables() -> None:
    one = LibrarySetting("ring ll", (("NCCL_ALGO", "ring"), ("NCCL_PROTO", "ll")))
    written = files(LibraryFacts("NCCL or RCCL"), rule(one, 0, 64), rule(one, n=8))
    assert written.variables == one.variables and set(written.texts) == {"tuned.env", "tuned.lua"}
    assert written.texts["tuned.env"].endswith("export NCCL_ALGO=ring\nexport NCCL_PROTO=ll\n")
    two = files(
        LibraryFacts("NCCL or RCCL"), rule(one, 0, 64), rule(LibrarySetting("tree", (("NCCL_ALGO", "tree"),)), 65)
    )
    assert set(two.texts) == {"tuned-ring-ll.env", "tuned-tree.env"} and two.variables == ()
    assert "65 B on" in two.texts["tuned-tree.env"] and "65 B on" not in two.texts["tuned-ring-ll.env"]


def test_a_shell_and_lmod_read_paths_with_blanks() -> None:
    written = files(OPEN_MPI, rule(tuned("ring")))
    path = "/site/tuned files/openmpi-rules.conf"
    assert f"export OMPI_MCA_coll_tuned_dynamic_rules_filename='{path}'\n" in written.texts["tuned.env"]
    assert f'setenv("OMPI_MCA_coll_tuned_dynamic_rules_filename", "{path}")\n' in written.texts["tuned.lua"]
    assert written.texts["tuned.lua"].startswith("-- Open MPI 5, tuned by omb-py\n")
