"""``omb-py workloads``: what there is, and what a workload's calls are."""

from __future__ import annotations

import json

import click

from omb_py.cli.formatting import EXIT_CODES, Grouped, Page, debug_option
from omb_py.cli.history import format_option
from omb_py.cli.options import ranks_option
from omb_py.cli.words import whole
from omb_py.errors import OK, UsageError


def workloads_command() -> click.Command:
    """``omb-py workloads``."""
    what = "What is shown"
    return Page(
        "workloads",
        params=[
            click.Argument(["text"], metavar="[NAME:KEY=VALUE,…]", required=False),
            ranks_option(what),
            Grouped(["--rank"], heading=what, metavar="R", type=whole("rank", 0), default=0,
                    help="Whose calls. (default: 0)"),
            format_option(), debug_option(),
        ],
        callback=run_workloads,
        help="The workloads that omb-py step measures; with a name its settings, its formula with the source, and the "
        "calls of a rank.",
        sections=(
            ("Examples", [("omb-py workloads", ""), ("omb-py workloads ddp:model=resnet50", ""),
                          ("omb-py workloads three_d:tp=2,pp=2 -n 8 --rank 3", "")]),
            ("Exit codes", EXIT_CODES),
        ),
    )  # fmt: skip


def run_workloads(text: str | None, ranks: int, rank: int, form: str) -> int:
    """Print the list, or a workload."""
    from omb_py.orchestrate import workloads
    from omb_py.suites.workloads.families import FAMILIES, parse_workload

    if rank >= ranks:
        raise UsageError(f"there is no rank {rank} among {ranks}: 0 to {ranks - 1}")
    if text is None:
        plain = {name: {"summary": f.summary, "formula": f.formula, "source": f.source} for name, f in FAMILIES.items()}
        click.echo(json.dumps(plain, indent=1, ensure_ascii=False) if form == "json" else workloads.listing())
        return OK
    found = parse_workload(text)
    if form == "json":
        click.echo(json.dumps(workloads.as_json(found, ranks, rank), indent=1, ensure_ascii=False))
    else:
        click.echo(workloads.described(found, ranks, rank))
    return OK
