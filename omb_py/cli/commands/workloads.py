"""``omb-py workloads``: the list, the calls of a workload, and predictions and scaling from the store."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import click

from omb_py.cli.help import Page, debug_option, tool_option
from omb_py.cli.option_params import ranks_option, table_option
from omb_py.cli.stored_cells import filters, format_option, where_option
from omb_py.errors import OK, UsageError
from omb_py.options.readers import whole
from omb_py.options.request import DEFAULT_STORE
from omb_py.orchestrate.workloads import describe
from omb_py.results.repro_command import storing
from omb_py.suites.workloads.families import FAMILIES, Workload, parse_workload


def workloads_command() -> click.Command:
    what, stored = "What is shown", "From the store"
    option = partial(tool_option, stored)
    return Page(
        "workloads",
        params=[
            click.Argument(["text"], metavar="[NAME:KEY=VALUE,…]", required=False),
            ranks_option(what),
            tool_option(what, "--rank R", "Whose calls.", whole("rank", 0), default=0),
            option(
                "--predict",
                "What each call takes as stored sweeps of single operations predict it, beside what the "
                "stored step took. (default: off)",
            ),
            option("--scaling", "Efficiency of the stored steps over numbers of ranks. (default: off)"),
            where_option(stored),
            table_option("store", stored),
            format_option(),
            debug_option(),
        ],
        callback=run_workloads,
        help="The workloads that omb-py step measures; with a name its settings, its formula with the source, what "
        "compute=matmul multiplies, and the calls of a rank; or what the store says of its times.",
        examples=(
            "omb-py workloads",
            "omb-py workloads ddp:model=resnet50",
            "omb-py workloads three_d:tp=2,pp=2 -n 8 --rank 3",
            "omb-py workloads ddp:model=resnet50 -n 4 --predict",
            "omb-py workloads ddp:model=resnet50,compute=50ms --scaling",
        ),
    )


def run_workloads(
    text: str | None,
    ranks: int,
    rank: int,
    predict: bool,
    scaling: bool,
    where: tuple[str, ...],
    store: Path | None,
    form: str,
) -> int:
    """Print the list of workloads, one workload, or what the store says of its times; the exit code."""
    if rank >= ranks:
        raise UsageError(f"there is no rank {rank} among {ranks}: 0 to {ranks - 1}")
    if predict and scaling:
        raise UsageError("--predict and --scaling are two views: leave one of them out")
    if (predict or scaling) and text is None:
        view = "--predict" if predict else "--scaling"
        raise UsageError(f"which workload? write omb-py workloads NAME {view}; omb-py workloads lists them")
    if where and not (predict or scaling):
        raise UsageError("--where chooses stored rows: add --predict or --scaling")
    if text is None:
        plain = {name: {"summary": f.summary, "formula": f.formula, "source": f.source} for name, f in FAMILIES.items()}
        click.echo(json.dumps(plain, indent=1, ensure_ascii=False) if form == "json" else describe.listing())
        return OK
    workload, place = parse_workload(text), store or DEFAULT_STORE
    if predict:
        return _predictions(workload, ranks, where, place, form)
    if scaling:
        return _scaling(workload, where, place, form)
    if form == "json":
        click.echo(json.dumps(describe.as_json(workload, ranks, rank), indent=1, ensure_ascii=False))
    else:
        click.echo(describe.described(workload, ranks, rank))
    return OK


def _predictions(workload: Workload, ranks: int, where: tuple[str, ...], store: Path, form: str) -> int:
    from omb_py.orchestrate.workloads import prediction  # loads scipy: not for descriptions
    from omb_py.results.analysis import step_prediction

    chosen = filters(where)
    sides = {name: value for name, value in chosen.items() if name in prediction.WHERE}
    rows, steps = prediction.sweeps(store, chosen), prediction.steps_of(store, sides)
    forecasts = prediction.forecasts(workload, ranks, rows, steps)
    if not forecasts:
        raise UsageError(
            f"no sweep at {ranks} ranks and no step of {workload.text} in {str(store)!r}: run "
            f"{storing(f'omb-py allreduce -n {ranks} -T float32 -l', store)} first"
        )
    if form == "json":
        plain = [
            {
                "workload": forecast.workload,
                "side": dict(forecast.side),
                **step_prediction.as_json(forecast.prediction, forecast.times),
                "run": [prediction.command(gap, forecast.side, store) for gap in forecast.prediction.missing],
            }
            for forecast in forecasts
        ]
        click.echo(json.dumps(plain, indent=1, ensure_ascii=False))
        return OK
    prediction.show(forecasts, store)
    return OK


def _scaling(workload: Workload, where: tuple[str, ...], store: Path, form: str) -> int:
    # Fits load scipy, tables rich: not for descriptions.
    from omb_py.orchestrate.workloads import prediction
    from omb_py.orchestrate.workloads import scaling as stepscaling
    from omb_py.printing.analyses import scaling_table
    from omb_py.printing.writers.terminal import stdout_console

    groups = stepscaling.scalings(workload, prediction.steps_of(store, filters(where)))
    if form == "json":
        click.echo(json.dumps([stepscaling.as_json(group) for group in groups], indent=1, ensure_ascii=False))
        return OK
    console = stdout_console()
    for group in groups:
        console.print(scaling_table(group.workload, group.kind, group.side, group.steps))
    return OK
