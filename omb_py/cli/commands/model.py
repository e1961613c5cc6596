"""``omb-py model``: the curve of a benchmark, lower bounds, more ranks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from omb_py.cli.help import Page, debug_option, tool_option
from omb_py.cli.option_params import table_option
from omb_py.cli.stored_cells import benchmark_name, filters, format_option, skipped, where_option
from omb_py.errors import OK, OmbError, UsageError
from omb_py.options.readers import whole
from omb_py.options.request import DEFAULT_STORE
from omb_py.printing.analyses import cells_table, scaled_table, segments_table
from omb_py.printing.writers.terminal import stdout_console
from omb_py.results.analysis import cost_model, series
from omb_py.results.analysis.series import TimedRow
from omb_py.results.repro_command import storing
from omb_py.suites import find

_MODELS = 8


def model_command() -> click.Command:
    what = "What is looked at"
    return Page(
        "model",
        params=[
            click.Argument(["name"], metavar="BENCHMARK"),
            where_option(what),
            tool_option(
                what,
                "--predict ranks RANKS",
                "Times at so many ranks, from times at 3 or more other numbers of ranks; at most 4 times the "
                "largest. (default: none)",
                whole("ranks", 2),
            ),
            format_option(),
            table_option("store", "Store"),
            debug_option(),
        ],
        callback=run_model,
        help="The times of a benchmark as alpha + beta · size, in pieces where the library changes its protocol; how "
        "near they are to the lower bound, which needs latency in the same store; and times at more ranks.",
        examples=(
            "omb-py model allreduce",
            "omb-py model bcast --where ranks=8 --format json",
            "omb-py model allreduce --predict 64",
        ),
    )


def run_model(name: str, where: tuple[str, ...], ranks: int | None, form: str, store: Path | None) -> int:
    """Print the models that match, or with `ranks` the predictions; the exit code."""
    place, name = store or DEFAULT_STORE, benchmark_name("model", name)
    rows = series.rows_of(place, name, filters(where), skipped)
    if ranks is not None:
        return _predictions(rows, ranks, form, storing(f"omb-py {name} -n {{ranks}}", place))
    try:
        models = cost_model.models(rows, _messages(place))
    except cost_model.TooFewSizes as error:
        if not _is_sized(name):
            raise UsageError(
                f"{name} has no message size, so there is no model over sizes: omb-py model {name} --predict RANKS "
                "is of its times over ranks"
            ) from None
        raise UsageError(f"{error}; measure more with {storing(f'omb-py {name} -m 1:4M', place)}") from None
    if form == "json":
        click.echo(json.dumps([cost_model.as_json(model) for model in models[:_MODELS]], indent=1))
    else:
        _print(models[:_MODELS])
    if any(model.message is None and model.cells[0].bound_us is None for model in models):
        click.echo(
            "omb-py: no lower bound without messages between two ranks: measure "
            f"{storing('omb-py latency -n 2', place)}",
            err=True,
        )
    if len(models) > _MODELS:
        click.echo(f"omb-py: {len(models) - _MODELS} more models: choose with --where", err=True)
    return OK


def _predictions(rows: list[TimedRow], ranks: int, form: str, command: str) -> int:
    try:
        predictions = cost_model.predict_at_ranks(rows, ranks)
    except UsageError as error:
        hint = f"measure other numbers of ranks with {command.format(ranks='RANKS')}"
        raise UsageError(f"{error}; {hint}") from None
    if form == "json":
        click.echo(json.dumps([cost_model.scaled_as_json(prediction) for prediction in predictions], indent=1))
        return OK
    for prediction in predictions[:_MODELS]:
        stdout_console().print(scaled_table(prediction, ranks))
    return OK


def _is_sized(name: str) -> bool:
    """Whether a benchmark has message sizes, as those of other tools are thought to have."""
    try:
        return find(name).sizes is not None
    except OmbError:
        return True


def _messages(store: Path) -> list[TimedRow]:
    try:
        return series.rows_of(store, "latency", {}, lambda path, why: None)
    except UsageError:
        return []


def _print(models: Sequence[cost_model.CostModel]) -> None:
    console = stdout_console()
    for model in models:
        console.print(segments_table(model))
        console.print(cells_table(model))
