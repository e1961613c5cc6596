"""The Python API: ``omb_py.run("allreduce", ranks=2)``."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def run(benchmark: str, **options: Any) -> pd.DataFrame | None:
    """Run a benchmark and return its rows.

    Outside a launcher the ranks are started by omb-py; inside one (``mpirun -n 4 python my.py``) every process calls
    this function and the ranks join.

    Args:
        benchmark: name, with or without ``osu_``.
        **options: fields of :class:`omb_py.options.request.Request`, for example ``ranks=4``, ``sizes="8:1K"``,
            ``backends=("mpi",)``, ``bindings=("native", "mpi4py")``, ``store="results"``; ``store=None`` keeps none.

    Returns:
        One row a cell, columns as in docs/store.md; None on ranks other than 0 of a foreign launcher.

    Raises:
        UsageError: bad input.
        EnvironmentProblem: the environment cannot do it.
    """
    from omb_py.options.request import DEFAULT_STORE, Request
    from omb_py.orchestrate.running.run import execute_run
    from omb_py.results.store.read import load
    from omb_py.suites import find

    wanted = options.pop("store", DEFAULT_STORE)
    with tempfile.TemporaryDirectory() as scratch:
        store = Path(scratch if wanted is None else wanted)
        request = Request(find(benchmark).name, store=store, format="none", **options)
        outcome = execute_run(request)
        return load(store, run_id=outcome.run_id) if outcome.root else None
