"""``omb-py report``: one self-contained HTML file."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from omb_py.cli.help import Page, debug_option, tool_option
from omb_py.cli.option_params import store_is_given, table_option
from omb_py.cli.output import output_path, write_file
from omb_py.errors import ENVIRONMENT, OK, USAGE, UsageError
from omb_py.options.request import DEFAULT_STORE
from omb_py.results.store.paths import no_store

DEFAULT_OUTPUT = Path("report.html")
MOST_STORES = 2
_YOUNG = 50_000
"""New objects after which Python looks for unreachable cycles. Tables make many objects and few cycles: looking after
every 700, as by default, takes a twelfth of the processor time."""


def command() -> click.Command:
    return Page(
        "report",
        params=[
            click.Argument(["words"], nargs=-1, metavar="[STORE [STORE]] [COLUMN=VALUE]..."),
            tool_option(
                "Output", "-o --output FILE", "Write here, all or nothing.", output_path, default=DEFAULT_OUTPUT
            ),
            table_option("store", "Store"),
            debug_option(),
        ],
        callback=run_report,
        help="One HTML file that shows a store, or what fits the filters: what is slower, what is odd, what was "
        "measured. It holds "
        "all that it needs: open it without a network, mail it, print it. Of two stores it shows what is slower or "
        "faster in the second.\n\n"
        "COLUMN is a column of the store (docs/store.md); the same column twice means any of the values. "
        "tag=K=V filters by a tag, "
        "date=FROM..TO by day.\n\n"
        "Where nothing fits (exit code 2) or a file cannot be read (3), the page is written too and says so.",
        examples=(
            "omb-py report",
            "omb-py report results -o today.html date=2026-11-21",
            "omb-py report benchmark=allreduce ranks=4 ranks=8",
            "omb-py report old-cluster new-cluster -o both.html",
        ),
    )


def split(words: tuple[str, ...], store: Path | None) -> tuple[list[Path], list[str]]:
    """Tell stores, one or two, from the filters in a command line. Raises UsageError on more, and on a part of one."""
    for word in words:
        path = Path(word)
        if path.is_file():
            raise UsageError(no_store(path))
        if "=" in word and path.is_dir():
            raise UsageError(f"{word} is a part of a store: omb-py report {path.parent} {path.name}")
    places = [Path(word) for word in words if "=" not in word]
    if store is not None and places:
        raise UsageError(
            f"--store {store} and {places[0]}: name stores in one way; two of them: omb-py report BASE NEW"
        )
    if len(places) > MOST_STORES:
        named = ", ".join(map(str, places))
        raise UsageError(f"one store, or two to be compared, not {len(places)}: {named}; filters are COLUMN=VALUE")
    return places or [store or DEFAULT_STORE], [word for word in words if "=" in word]


@contextmanager
def _collect_seldom() -> Iterator[None]:
    """Look for unreachable cycles after :data:`_YOUNG` new objects, and then as before."""
    before = gc.get_threshold()
    gc.set_threshold(_YOUNG, 20, 50)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def run_report(words: tuple[str, ...], output: Path, store: Path | None) -> int:
    """Write the page; the exit code is 2 where nothing fits, 3 where a file cannot be read."""
    from omb_py.dashboards.base.reading import parse  # loads pandas, unlike --help
    from omb_py.dashboards.report.build import report
    from omb_py.dashboards.report.html_page import page
    from omb_py.dashboards.views.registry import installed

    if output.suffix not in ("", ".html", ".htm"):
        raise UsageError(f"--output {output}: the report is a page of HTML: name it {output.with_suffix('.html')}")
    places, filters = split(words, store if store_is_given() or not any("=" not in w for w in words) else None)
    with _collect_seldom():
        document = report(places[0], parse(filters), *places[1:])
        write_file(output, page(document))
    what = (
        f"{document.problem}\nomb-py: {output} says the same"
        if document.problem
        else f"{document.summary}: written to {output}"
    )
    click.echo(f"omb-py: {what}", err=True)
    for name, why in installed().broken.items():
        click.echo(f"omb-py: view {name} cannot be loaded: {why}", err=True)
    for path, why in document.skipped:
        click.echo(f"omb-py: skipped {path}: {why}", err=True)
    return ENVIRONMENT if document.skipped else USAGE if document.problem else OK
