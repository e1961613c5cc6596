"""The command that measures rows again."""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import omb_py
from omb_py.results.repro_command import measuring, resuming
from omb_py.results.store.schema import blank_row

ROW: dict[str, Any] = blank_row() | {
    "benchmark": "allreduce",
    "family": "collective",
    "backend": "mpi",
    "binding": "native",
    "ranks": 4,
    "size_bytes": 8,
    "dtype": "float32",
    "op": "sum",
    "in_place": False,
    "process_sync": "barrier",
    "device": "cpu",
    "buffer": "numpy",
    "cache": "hot",
    "datatype_layout": "contiguous",
    "launch_id": "a-0",
}


def test_what_is_usual_needs_no_option() -> None:
    assert measuring([ROW]) == "omb-py allreduce --backend mpi --binding native -n 4 -T float32 -m 8:8"
    assert measuring([ROW], 3, binding=False).endswith("-n 4 -T float32 -m 8:8 --launches 3")
    imported = {**ROW, "benchmark": "latency", "dtype": "byte", "binding": "c", "op": None}
    assert measuring([imported]) == "omb-py latency --backend mpi -n 4 -T char -m 8:8"


def test_what_is_not_has_its_own() -> None:
    told = measuring(
        [
            ROW
            | {
                "op": "max",
                "in_place": True,
                "root": -1,
                "device": "cuda",
                "buffer": "device",
                "cache": "rotate",
                "process_sync": "roundtime",
                "datatype_layout": "vect:2:8",
                "window": 1,
            }
        ]
    )
    assert " --op max --in-place -k rotate -W 1 -d cuda --cache rotate --process-sync roundtime -D vect:2:8 " in told
    assert "--buffer" not in told


def test_no_option_that_the_benchmark_does_not_take() -> None:
    latency = ROW | {"benchmark": "latency", "family": "pt2pt", "process_sync": "none", "op": None}
    assert measuring([latency]) == "omb-py latency --backend mpi --binding native -n 4 -T float32 -m 8:8"
    assert "--process-sync none" in measuring([ROW | {"process_sync": "none"}])


def test_all_sizes_of_the_first_benchmark() -> None:
    rows = [ROW | {"size_bytes": size} for size in (1024, 8, None)] + [ROW | {"benchmark": "bcast", "size_bytes": 2}]
    assert measuring(rows).endswith(" -m 8,1024")
    assert " -m " not in measuring([ROW | {"size_bytes": None}])


def test_workloads_and_trainings_say_what_they_are_of() -> None:
    step = ROW | {
        "benchmark": "step",
        "family": "workload",
        "size_bytes": 0,
        "op": None,
        "dtype": "char",
        "parameters": {"workload": "ddp:model=resnet50"},
    }
    wanted = "omb-py step --workload ddp:model=resnet50 --backend mpi --binding native -n 4"
    assert measuring([step]) == wanted
    train = step | {
        "benchmark": "train",
        "family": "training",
        "backend": "gloo",
        "binding": "torch",
        "parameters": [("workload", "gpt2-124m:parallel=fsdp,batch=2,seq=8")],
    }
    assert measuring([train], 2) == (
        "omb-py train gpt2-124m --parallel fsdp --batch 2 --seq 8 --backend gloo -n 4 --launches 2"
    )


def test_a_function_of_a_project_is_measured_by_its_test() -> None:
    row = ROW | {
        "benchmark": "function",
        "family": "function",
        "tags": [("pytest", "tests/test_halo.py::test_step[a b]")],
    }
    assert measuring([row]) == "pytest --omb-py 'tests/test_halo.py::test_step[a b]'"
    assert measuring([row | {"tags": None}]) == "pytest --omb-py"


@pytest.mark.parametrize(
    "words",
    [
        "compare allreduce -n 2",
        "compare --resume allreduce -n 2",
        "compare --resume=r allreduce -n 2",
        "compare --resume r allreduce -n 2",
    ],
)
def test_a_run_is_resumed_by_its_whole_command_line(words: str) -> None:
    assert resuming(words.split(), "r1") == "omb-py compare --resume=r1 allreduce -n 2"


_OF_A_RUN = re.compile(r"omb-py (compare|results show|results export) $")
_PLACEHOLDER = re.compile(" (OTHER|RUN)[ ,]")


@pytest.mark.parametrize("folder", ["cli", "orchestrate", "results"])
def test_a_command_line_about_a_stored_run_names_its_store(folder: str) -> None:
    """Else it works for the usual store alone. `storing` adds it."""
    bare = []
    for path in sorted((Path(omb_py.__file__).parent / folder).resolve().rglob("*.py")):
        tree = ast.parse(path.read_text())
        calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
        named = {id(part) for call in calls if ast.unparse(call.func) == "storing" for part in ast.walk(call)}
        for text in (node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) and id(node) not in named):
            before = (part.value for part, _ in pairwise(text.values) if isinstance(part, ast.Constant))
            if any(map(_OF_A_RUN.search, before)) and not _PLACEHOLDER.search(ast.unparse(text)):
                bare.append(f"{path}:{text.lineno}: {ast.unparse(text)}")
    assert bare == []
