"""``omb-py plot``: one picture of a benchmark that stands alone."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from omb_py.cli.help import Page, debug_option, tool_option
from omb_py.cli.option_params import table_option
from omb_py.cli.output import check_files, output_path, write_file
from omb_py.cli.stored_cells import benchmark_name, filters, skipped, where_option
from omb_py.errors import ENVIRONMENT, OK, UsageError
from omb_py.options.readers import comma_list, word
from omb_py.options.request import DEFAULT_STORE
from omb_py.results.repro_command import storing

OVER = {"size": "ranks", "ranks": "ranks", "gpus": "devices"}
"""What can stand on the x axis, and the column that counts in it."""
ENDINGS = (".png", ".svg", ".pdf")
QUANTITIES = ("auto", "time", "bandwidth", "busbw", "ratio")
THEMES = ("light", "dark")
WIDTHS = ("slide", "paper", "column")


def command() -> click.Command:
    what = "What is drawn"
    drawn, written = partial(tool_option, what), partial(tool_option, "Output")
    return Page(
        "plot",
        params=[
            click.Argument(["name"], metavar="BENCHMARK"),
            drawn(
                "--compare SIDES",
                "Up to six sides with commas: libraries, versions, backends, bindings or devices, as mpi,nccl or "
                "2.21.5,2.27.3. (default: what the report compares)",
                comma_list("sides", keep_case=True, blanks=True),
                default=(),
            ),
            drawn(
                "--over WHAT",
                "size: over message size, a panel for each number of ranks or GPUs. ranks or gpus: over these, a "
                "panel for each message size.",
                word("over", tuple(OVER)),
                default="size",
            ),
            drawn(
                "--quantity WHAT",
                "auto (what the benchmark prints), time, bandwidth (in MB/s, as bw prints it), busbw (bus bandwidth), "
                "or ratio (time over that of the first side).",
                word("quantity", QUANTITIES),
                default="auto",
            ),
            where_option(what),
            written("-o --output FILE", "Write here: .png, .svg or .pdf. (default: BENCHMARK.png)", output_path),
            written(
                "--width WHERE",
                "slide (1200 pixels), paper (7 inches, both columns of a page) or column (3.5 inches, one of them); "
                "letters and lines fit it.",
                word("width", WIDTHS),
                default="slide",
            ),
            written(
                "--data FILE",
                "Write what is drawn here too, as CSV: a row a point, with the range of its launches.",
                output_path,
            ),
            written("--theme THEME", "light or dark.", word("theme", THEMES), default="light"),
            table_option("store", "Store"),
            debug_option(),
        ],
        callback=run_plot,
        help="A picture for slides and issues: who is fastest at which size, on which hardware, with the crossover "
        "marked. It needs a Chromium or Chrome; the measurements are read from a store.",
        examples=(
            "omb-py plot allreduce",
            "omb-py plot allreduce --compare mpi,nccl --over gpus -o fig.svg",
            "omb-py plot bcast --where ranks=8 --quantity ratio --width column -o bcast.pdf --data bcast.csv",
        ),
    )


def run_plot(
    name: str,
    compare: tuple[str, ...],
    over: str,
    quantity: str,
    where: tuple[str, ...],
    output: Path | None,
    width: str,
    data: Path | None,
    theme: str,
    store: Path | None,
) -> int:
    from omb_py.dashboards.base.reading import parse  # loads pandas, unlike --help
    from omb_py.dashboards.figures.curves import SIZE, PanelGrid
    from omb_py.dashboards.report.build import read_cells
    from omb_py.dashboards.report.image_export import browser, save_figure
    from omb_py.dashboards.report.picture import SIZES, picture
    from omb_py.results.analysis.series import check_measured

    place, name = store or DEFAULT_STORE, benchmark_name("plot", name)
    path = output or Path(f"{name}.png")
    check_files([path], ENDINGS)
    if data is not None:
        check_files([data], (".csv",), option="--data")
    browser("omb-py report needs none")
    filters(where)
    unread: list[tuple[str, str]] = []
    cells = read_cells(place, parse([f"benchmark={name}", *where]), unread)
    for file, why in unread:
        skipped(Path(file), why)
    if not len(cells.rows):
        check_measured(place, name)
        raise UsageError(f"no cell of {name} fits {' '.join(where)}: {storing('omb-py results show', place)}")
    column = OVER[over]
    if over == "size" and bool((cells.timed["devices"].fillna(0) > 0).all()):
        column = "devices"
    grid = PanelGrid(column, SIZE if over == "size" else column, quantity)
    drawn = picture(cells, name, compare, grid, SIZES[width])
    if data is not None:
        write_file(data, drawn.csv())
    save_figure(drawn.spec(theme), path)
    click.echo(f"omb-py: {drawn.view.title}: written to {path}", err=True)
    return ENVIRONMENT if unread else OK
