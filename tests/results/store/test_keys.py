from __future__ import annotations

import copy
import re

import pytest

from omb_py.results.store import keys, schema

PROVENANCE = {
    "run": {"run_id": "a", "seed": 1, "tool": {"command_line": ["omb-py"]}},
    "launch": {"launch_id": "a-0", "index": 0, "started_at": "2026", "launcher": "mpiexec", "command": ["mpiexec"]},
    "ranks": 2,
    "hosts": ["n1", "n2"],
    "library_version": "5.0.2",
    "rank_facts": [{"rank": 0, "pid": 10}, {"rank": 1, "pid": 11}],
    "node_facts": [
        {
            "host": "n1",
            "cpu": {"model name": "X", "cpu MHz": "2000"},
            "kernel": "6",
            "load_before": [0.1],
            "uptime_s": 5,
        },
        {
            "host": "n2",
            "cpu": {"model name": "X", "cpu MHz": "2100"},
            "kernel": "6",
            "load_before": [0.2],
            "uptime_s": 6,
        },
    ],
    "environment": {"OMPI_MCA_btl": "self,sm", "SLURM_JOB_ID": "7", "PMIX_RANK": "0", "OMPI_COMM_WORLD_RANK": "0"},
    "skew_us": 1.5,
}


def test_keys_are_hex_and_do_not_change_with_the_release(make_row) -> None:
    key = keys.comparability_key(make_row(size_bytes=8, ranks=4), "p")
    assert re.fullmatch("[0-9a-f]{32}", key)
    # kept files hold this key: a change of it would make old and new rows NOT COMPARABLE
    assert key == "a7d377cef060d6e665f07209c96b1f3d"


@pytest.mark.parametrize("column", keys.COMPARED)
def test_each_compared_column_changes_the_key(make_row, column: str) -> None:
    row = make_row()
    changed = {**row, column: {"string": "other", "bool": True}.get(schema.BY_NAME[column].kind, 12345)}
    assert keys.comparability_key(changed, "p") != keys.comparability_key(row, "p")


def test_program_and_placement_change_the_key_and_the_rest_does_not(make_row) -> None:
    row = make_row()
    key = keys.comparability_key(row, "p")
    assert keys.comparability_key(row, "q") != key
    assert keys.comparability_key(row, "p", "scatter") != key
    rest = set(schema.NAMES) - set(keys.COMPARED)
    assert {"backend", "binding", "library_version", "iterations", "stop_reason", "warmup"} <= rest
    assert keys.comparability_key({**row, **dict.fromkeys(rest, "other")}, "p") == key


def test_another_launch_of_the_same_environment_has_the_same_key() -> None:
    other = copy.deepcopy(PROVENANCE)
    other["run"] = {"run_id": "b", "seed": 2}
    other["launch"].update(launch_id="b-3", index=3, started_at="2027", command=["mpiexec", "-n", "4"])
    other.update(ranks=3, hosts=["n7", "n8", "n9"], skew_us=9.0, rank_facts=[], loaded_libraries=[{"path": "/x"}])
    node = {**other["node_facts"][0], "host": "n9", "load_before": [3.0], "uptime_s": 9}
    other["node_facts"] = [node, *other["node_facts"]]
    other["environment"].update(SLURM_JOB_ID="8", PMIX_RANK="1", OMPI_COMM_WORLD_RANK="1", PMIX_SERVER_URI="x")
    assert keys.environment_key(other) == keys.environment_key(PROVENANCE)
    assert keys.environment_facts(PROVENANCE) == {
        "launch": {"launcher": "mpiexec"},
        "library_version": "5.0.2",
        "node_facts": [{"cpu": {"model name": "X"}, "kernel": "6"}],
        "environment": {"OMPI_MCA_btl": "self,sm"},
    }


@pytest.mark.parametrize(
    "change",
    [
        {"library_version": "5.0.3"},
        {"environment": {"OMPI_MCA_btl": "self,tcp"}},
        {"environment": {"OMPI_MCA_btl": "self,sm", "UCX_TLS": "tcp"}},
        {"launch": {"launcher": "srun"}},
        {"node_facts": [{"host": "n1", "cpu": {"model name": "Y"}, "kernel": "6"}]},
    ],
)
def test_another_environment_has_another_key(change: dict[str, object]) -> None:
    assert keys.environment_key({**PROVENANCE, **change}) != keys.environment_key(PROVENANCE)


def test_one_odd_node_changes_the_key() -> None:
    odd = copy.deepcopy(PROVENANCE)
    odd["node_facts"][1]["kernel"] = "5"
    assert keys.environment_key(odd) != keys.environment_key(PROVENANCE)
    turned = {**odd, "node_facts": odd["node_facts"][::-1]}
    assert keys.environment_key(turned) == keys.environment_key(odd)


def test_a_section_called_host_is_kept_and_a_host_name_is_not() -> None:
    assert keys.environment_facts({"host": {"cpu": "X"}, "node": "n1"}) == {"host": {"cpu": "X"}}
