"""The command that a reader may type to measure a figure's rows again."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from omb_py.dashboards.views.repro_commands import Commands
from omb_py.results.store.schema import blank_row

ROW: dict[str, Any] = blank_row() | {
    "benchmark": "allreduce",
    "family": "collective",
    "backend": "mpi",
    "ranks": 4,
    "dtype": "float32",
    "run_id": "r",
    "launch_id": "r-0",
    "library": "MPICH",
    "library_version": "5.0.2",
}
FUNCTION = {"benchmark": "function", "family": "function", "tags": {"pytest": "test_halo.py::test_step"}}
PREPARED_FUNCTION = {**FUNCTION, "tags": "pytest=test_halo.py::test_step[1, 2], rack=a3"}
"""As the cells of a page hold it."""
PREPARED_STEP = {"benchmark": "step", "family": "workload", "parameters": "workload=ddp:sizes=1M, 2M", "tags": ""}
MEASURED = "omb-py allreduce --backend mpi -n 4 -T float32 --process-sync none  # MPICH 5.0.2"


@pytest.mark.parametrize(
    ("typed", "columns", "told"),
    [
        (["/v/bin/omb-py", "allreduce", "-n", "4", "--quiet"], {}, "omb-py allreduce -n 4  # MPICH 5.0.2"),
        (["/v/omb_py/__main__.py", "allreduce", "--store=s"], {}, "omb-py allreduce  # MPICH 5.0.2"),
        (["/v/bin/omb-py", "run", "quick", "--resume=r"], {}, "omb-py run quick  # MPICH 5.0.2"),
        (["/v/bin/omb-py", "run", "quick", "--resume", "r", "-f"], {}, "omb-py run quick -f  # MPICH 5.0.2"),
        (["/v/bin/omb-py", "run", "--resume", "quick"], {}, "omb-py run quick  # MPICH 5.0.2"),
        (["my_sweep.py", "--ranks", "4"], {}, MEASURED),
        (["/v/bin/pytest", "--omb-py"], FUNCTION, "pytest --omb-py test_halo.py::test_step  # MPICH 5.0.2"),
        (None, FUNCTION, "pytest --omb-py test_halo.py::test_step  # MPICH 5.0.2"),
        (None, PREPARED_FUNCTION, "pytest --omb-py 'test_halo.py::test_step[1, 2]'  # MPICH 5.0.2"),
        (None, PREPARED_STEP, "omb-py step --workload 'ddp:sizes=1M, 2M' --backend mpi -n 4  # MPICH 5.0.2"),
    ],
)
def test_only_what_can_be_typed_is_told(typed: list[str] | None, columns: dict[str, Any], told: str) -> None:
    commands = Commands(lambda launch: {"run": {"tool": {"command_line": typed}}})
    assert commands.of(pd.DataFrame([ROW | {"process_sync": "none"} | columns])) == (told,)


@pytest.mark.parametrize(
    ("columns", "needs"),
    [
        ({"nodes": 4, "ranks": 32}, "in a job with 4 nodes, or with --hosts"),
        ({"nodes": None, "devices": 32, "ranks": 32}, "in a job with 32 GPUs, or with --hosts"),
        ({"nodes": 1, "devices": 8, "ranks": 8}, ""),
        ({"nodes": None}, ""),
    ],
)
def test_a_command_that_one_machine_cannot_run_says_where_it_can(columns: dict[str, Any], needs: str) -> None:
    """Imported rows name no command: ``-n 32`` alone would ask one machine for 32 GPUs."""
    (told,) = Commands(lambda launch: {}).of(pd.DataFrame([ROW | columns]))
    _, _, comment = told.partition("  # ")
    assert comment == "; ".join(filter(None, ["MPICH 5.0.2", needs]))
