"""``omb-py history``: one cell over time or over versions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from omb_py.cli.help import Page, debug_option, tool_option
from omb_py.cli.option_params import table_option
from omb_py.cli.stored_cells import benchmark_name, filters, format_option, skipped, where_option
from omb_py.errors import OK, UsageError
from omb_py.grammar.values import parse_fraction, parse_size
from omb_py.options.readers import whole, word
from omb_py.options.request import DEFAULT_STORE
from omb_py.printing.analyses import environment_lines, history_table
from omb_py.printing.writers.terminal import stdout_console
from omb_py.results.analysis import series
from omb_py.results.analysis.history import History, as_json, enough, history, too_few
from omb_py.results.analysis.series import KINDS, PLURALS, Kind, TimedRow, kind_of, units_of
from omb_py.results.repro_command import measuring, storing
from omb_py.results.statistics.change_points import LEAST
from omb_py.results.statistics.launch_time import OURS
from omb_py.results.store.provenance import provenance_of

_SERIES = 12


def history_command() -> click.Command:
    what = "What is looked at"
    option, tested = partial(tool_option, what), partial(tool_option, "The test")
    return Page(
        "history",
        params=[
            click.Argument(["name"], metavar="BENCHMARK"),
            option(
                "-m --message-size size SIZE",
                "One message size, as 8, 4K, 1MiB. (default: every size by itself)",
                parse_size,
            ),
            where_option(what),
            option(
                "--by ORDER",
                "Order of the launches: time, or version of the library.",
                word("order", ("time", "version")),
                default="time",
            ),
            tested(
                "--unit UNIT",
                "What counts once: night, run or launch. (default: night where there are several, else run)",
                word("unit", KINDS),
            ),
            tested(
                "--delta P", "Smallest change that is told, as 0.03 or 3%. (default: 3%)", parse_fraction, default=0.03
            ),
            tested("--seed N", "Of the random orders of the permutation test.", whole("seed", 0), default=0),
            format_option(),
            table_option("store", "Store"),
            debug_option(),
        ],
        callback=run_history,
        help="How a cell changed over the launches of the store: its levels, the changes between them, and what "
        "changed in the environment at each. The same launches always give the same answer.",
        examples=(
            "omb-py history allreduce -m 8",
            "omb-py history bcast --by version",
            "omb-py history latency --where ranks=2 --format json",
        ),
    )


def run_history(
    name: str,
    size: int | None,
    where: tuple[str, ...],
    by: str,
    unit: Kind | None,
    delta: float,
    seed: int,
    form: str,
    store: Path | None,
) -> int:
    """Print the histories that match; the exit code. Raises UsageError where none has enough launches."""
    place, name = store or DEFAULT_STORE, benchmark_name("history", name)
    wanted = filters(where)
    if size is not None:
        wanted["size_bytes"] = size
    rows = series.rows_of(place, name, wanted, skipped)
    every = series.series(rows)
    judged = [cell for cell in every if enough(cell, unit)]
    if not judged:
        raise UsageError(_explain_too_few(every[0], rows, unit, place))
    look = provenance_of(place)
    histories = [
        history(cell, look, versions=by == "version", delta=delta, seed=seed, unit=unit) for cell in judged[:_SERIES]
    ]
    if form == "json":
        click.echo(json.dumps([as_json(entry) for entry in histories], indent=1))
    else:
        _print(histories)
    if len(judged) > _SERIES:
        click.echo(f"omb-py: {len(judged) - _SERIES} more series: choose with -m or --where", err=True)
    if left := len(every) - len(judged):
        kind = PLURALS[unit or kind_of(every[0].points)]
        click.echo(f"omb-py: {left} series have under {LEAST} {kind} and are left out", err=True)
    return OK


def _explain_too_few(cell: series.Series, rows: Sequence[TimedRow], unit: Kind | None, place: Path) -> str:
    kind = unit or kind_of(cell.points)
    what, more = too_few(cell, kind), LEAST - len(units_of(cell.points, kind))
    if cell.facts["source"] != OURS:
        line = storing("omb-py results import FILE…", place)
        return f"{what}; import {more} more of {cell.facts['source']}: {line}"
    launches = {point.launch_id for point in cell.points}
    own = [row for row in rows if row["launch_id"] in launches and row["size_bytes"] == cell.facts["size_bytes"]]
    if kind == "launch":
        return f"{what}; measure more with {storing(measuring(own, more), place)}"
    how = f"repeat {storing(measuring(own), place)} {'in' if kind == 'night' else 'as'} {more} more {PLURALS[kind]}"
    apart = "" if len(cell.points) < LEAST else ", or take each launch as independent: --unit launch"
    return f"{what}; {how}{apart}"


def _print(histories: Sequence[History]) -> None:
    console = stdout_console()
    for entry in histories:
        console.print(history_table(entry))
        for line in environment_lines(entry):
            console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
        if not entry.steps:
            console.print("  no change found")
        if entry.left_out:
            console.print(f"  {entry.left_out} older launches were left out")
