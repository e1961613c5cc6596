"""ReFrame test that runs a suite of omb-py and returns its results as performance variables (docs/schedulers.md).

::

    import reframe as rfm
    from omb_py.reframe import OmbPyTest

    @rfm.simple_test
    class Quick(OmbPyTest):
        suite = "quick"
        options = ["-n", "4"]
        reference = {"*": {"allreduce 8 B": (2.1, None, 0.15, "us")}}

It needs ``pip install reframe-hpc``, so nothing else of omb-py imports this module.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
import reframe.utility.typecheck as typ
from reframe.core.builtins import run_before, sanity_function, variable

from omb_py.results.store.row import Row

STORE = "omb-results"
"""Folder of the results in the test's stage folder."""


def figures(rows: Iterable[Row]) -> dict[str, tuple[float, str]]:
    """Return the figures of stored rows: name of a cell -> (median over the launches of the printed number, unit).

    A name is ``allreduce 8 B``; where cells of a benchmark differ in something else, it follows:
    ``allreduce 8 B, 4 ranks``. No two cells share a name.
    """
    from omb_py.results.compare.cell_names import namer

    known = [row for row in rows if row.get("value") is not None]
    named = namer(known)
    cells: dict[str, dict[str, list[Row]]] = {}
    for row in known:
        cells.setdefault(named(row), {}).setdefault(str(row.get("comparability_key")), []).append(row)
    return {
        # cells that even the name cannot tell apart are told apart by their comparability key
        name + (f", {key[:8]}" if len(by_key) > 1 else ""): (
            statistics.median(float(row["value"]) for row in launches),
            str(launches[0]["unit"]),
        )
        for name, by_key in cells.items()
        for key, launches in by_key.items()
    }


class OmbPyTest(rfm.RunOnlyRegressionTest):  # type: ignore[misc]
    """Runs ``omb-py run SUITE``; passes if it ends with exit code 0 and every checked byte was right."""

    suite = variable(str, value="quick")
    """A shipped suite, or the path of a file, which may stand beside the check file."""
    options = variable(typ.List[str], value=[])
    """Further options of ``omb-py run``. omb-py starts the ranks itself, without ReFrame's launcher."""
    command = variable(str, value="omb-py")
    """The omb-py executable."""
    valid_systems = ["*"]  # noqa: RUF012, ReFrame's own variables
    valid_prog_environs = ["*"]  # noqa: RUF012
    local = True

    @run_before("run", always_last=True)  # type: ignore[untyped-decorator]
    def say_what_runs(self) -> None:
        """Set the command line, when the hooks of a subclass have set what it holds."""
        beside = Path(self.prefix) / self.suite
        self.executable = self.command
        self.executable_opts = [
            *("run", str(beside) if beside.is_file() else self.suite, "--store", STORE),
            *self.options,
        ]

    @property
    def rows(self) -> list[Row]:
        """The stored rows; empty if nothing was stored."""
        from omb_py.results.compare.cell_names import COLUMNS
        from omb_py.results.store.read import load_table, to_rows

        folder = Path(self.stagedir) / STORE
        if not folder.is_dir():
            return []
        return to_rows(load_table(folder, columns=[*COLUMNS, "comparability_key", "value", "unit", "validated"]))

    @sanity_function  # type: ignore[untyped-decorator]
    def ended_well(self) -> object:
        """Check that the exit code is 0, no row failed its validation, and each name of `reference` is a row's."""
        from omb_py.errors import nearest

        rows = self.rows
        names = figures(rows)
        lost = [name for name in self.reference.scope(self.current_partition.fullname) if name not in names]
        wrong = sum(row["validated"] is False for row in rows)
        code = self.job.exitcode
        return sn.all(
            [
                sn.assert_eq(code or 0, 0, f"omb-py ended with {code}: see {self.stderr}"),
                sn.assert_true(rows, "omb-py stored nothing"),
                sn.assert_eq(wrong, 0, f"{wrong} rows did not validate"),
                *(sn.assert_true(False, f"no cell is called {name!r}: {nearest(name, names)}") for name in lost),
            ]
        )

    @run_before("performance")  # type: ignore[untyped-decorator]
    def name_figures(self) -> None:
        """Make a performance variable for each cell."""
        self.perf_variables = {
            name: sn.make_performance_function(sn.defer(value), unit)
            for name, (value, unit) in figures(self.rows).items()
        }
