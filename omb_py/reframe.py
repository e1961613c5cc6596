"""A ReFrame test that runs a suite of omb-py and yields its figures as performance variables (docs/schedulers.md).

::

    import reframe as rfm
    from omb_py.reframe import OmbPyTest

    @rfm.simple_test
    class Quick(OmbPyTest):
        suite = "quick"
        options = ["-n", "4"]
        reference = {"*": {"allreduce 8 B": (2.1, None, 0.15, "us")}}

Needs ``pip install reframe-hpc``; nothing else of omb-py imports this module.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.utility.sanity as sn
import reframe.utility.typecheck as typ
from reframe.core.builtins import run_before, sanity_function, variable

STORE = "omb-results"
"""In the test's stage folder."""


def figures(rows: Iterable[Mapping[str, Any]]) -> dict[str, tuple[float, str]]:
    """Name of a cell, as ``allreduce 8 B`` -> (median over the launches of the number that OMB prints, its unit).

    What tells cells of one benchmark apart follows: ``allreduce 8 B, 4 ranks``. No two cells share a figure.
    """
    from omb_py.results.compare.cell_names import namer

    known = [row for row in rows if row.get("value") is not None]
    named = namer(known)
    cells: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for row in known:
        cells.setdefault(named(row), {}).setdefault(str(row.get("comparability_key")), []).append(row)
    return {
        key + (f", {apart[:8]}" if len(alike) > 1 else ""): (
            statistics.median(float(row["value"]) for row in mine),
            str(mine[0]["unit"]),
        )
        for key, alike in cells.items()
        for apart, mine in alike.items()
    }


class OmbPyTest(rfm.RunOnlyRegressionTest):  # type: ignore[misc]
    """Runs ``omb-py run SUITE``; passes when it ends well and every checked byte was right."""

    suite = variable(str, value="quick")
    """A shipped suite, or the path of a file."""
    options = variable(typ.List[str], value=[])
    """Further words for ``omb-py run``; ReFrame's own launcher is not used: omb-py starts the ranks."""
    command = variable(str, value="omb-py")
    """How omb-py is called."""
    valid_systems = ["*"]  # noqa: RUF012, ReFrame's own variables
    valid_prog_environs = ["*"]  # noqa: RUF012
    local = True

    @run_before("run")  # type: ignore[untyped-decorator]
    def say_what_runs(self) -> None:
        """The command line."""
        self.executable = self.command
        self.executable_opts = ["run", self.suite, "--store", STORE, *self.options]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """What was stored; empty where nothing was."""
        from omb_py.results.compare.cell_names import COLUMNS
        from omb_py.results.store.read import load_table, to_rows

        folder = Path(self.stagedir) / STORE
        if not folder.is_dir():
            return []
        return to_rows(load_table(folder, columns=[*COLUMNS, "comparability_key", "value", "unit", "validated"]))

    @sanity_function  # type: ignore[untyped-decorator]
    def ended_well(self) -> Any:
        """Exit code 0, at least one row, and none that did not validate."""
        rows = self.rows
        wrong = sum(row["validated"] is False for row in rows)
        code = self.job.exitcode
        return sn.all(
            [
                sn.assert_eq(code or 0, 0, f"omb-py ended with {code}: see {self.stderr}"),
                sn.assert_true(rows, "omb-py stored nothing"),
                sn.assert_eq(wrong, 0, f"{wrong} rows did not validate"),
            ]
        )

    @run_before("performance")  # type: ignore[untyped-decorator]
    def name_figures(self) -> None:
        """A performance variable for each cell."""
        self.perf_variables = {
            name: sn.make_performance_function(sn.defer(value), unit)
            for name, (value, unit) in figures(self.rows).items()
        }
