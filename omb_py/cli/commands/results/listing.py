"""``omb-py results``: its verbs, and those that list, show, export and recover runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from omb_py.cli.commands.results import maintenance
from omb_py.cli.commands.results.importing import IMPORT_EXAMPLES, IMPORT_HELP, import_params, run_import
from omb_py.cli.help import CONTEXT, Page, Verbs, debug_option, tool_option
from omb_py.cli.option_params import table_option
from omb_py.cli.output import form_option, output_path, write_file, write_report
from omb_py.cli.resuming import words_of
from omb_py.cli.stored_cells import filters, skipped, where_option
from omb_py.errors import OK, EnvironmentProblem
from omb_py.options.request import DEFAULT_STORE
from omb_py.printing.export import FORMATS, export, left_out
from omb_py.printing.printers import AtEnd
from omb_py.results.compare.tags import COMPARE_SIDE, LINKS_PART, distinguishing_tags
from omb_py.results.dialects.dialect import TextOptions
from omb_py.results.dialects.registry import USUAL
from omb_py.results.document import Document
from omb_py.results.repro_command import resuming
from omb_py.results.store.journal import recover_command
from omb_py.results.store.provenance import provenance_of
from omb_py.results.store.read import load_table, to_rows
from omb_py.results.store.recovery import journals, recover
from omb_py.results.store.row import Row
from omb_py.results.store.runs import RunSummary, find_run, runs, show
from omb_py.results.units import counted

ALL = "all"
"""In place of a run's id, this word means every run of the store."""


def _complete_run(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The runs of the store that begin so, the newest first."""
    store = ctx.params.get("store") or DEFAULT_STORE
    if not Path(store).is_dir():
        return []
    stored = runs(store, on_skip=lambda path, why: None)
    return [
        CompletionItem(run.run_id, help=", ".join(run.benchmarks[:3]))
        for run in reversed(stored)
        if run.run_id.startswith(incomplete)
    ]


def group() -> click.Command:
    form = (USUAL.name, "table", "csv", "json")
    verbs = (
        _verb("list", run_list, "The runs in the store, oldest first.", (form_option(("table", "json"), "table"),)),
        _verb(
            "show",
            run_show,
            "One run: its id, the beginning of it, or last.",
            (
                click.Argument(["run"], required=False, default="last", metavar="[RUN]", shell_complete=_complete_run),
                form_option(form, None, f"{USUAL.name}; of links, its report"),
                table_option("full"),
                table_option("percentiles"),
            ),
            "omb-py results show",
            "omb-py results show 20261121 --format table",
            "omb-py results show last -f -z",
        ),
        _verb(
            "export",
            run_export,
            "Runs in other tools' formats, to stdout or to a file. JSON has every sample.",
            (
                click.Argument(["runs"], nargs=-1, metavar="[RUN|all]...", shell_complete=_complete_run),
                form_option(tuple(FORMATS), None, "json where FILE ends in .json, else csv"),
                tool_option("Output", "-o --output FILE", "Write here, all or nothing. (default: stdout)", output_path),
                where_option("What is exported"),
            ),
            "omb-py results export last > last.csv",
            "omb-py results export all --where benchmark=allreduce -o a.csv",
            "omb-py results export last --format pytest-benchmark -o 0001_new.json",
        ),
        _verb("import", run_import, IMPORT_HELP, import_params(), *IMPORT_EXAMPLES),
        _verb("recover", run_recover, "Store what killed runs had finished, from their journals.", ()),
        _verb(
            "compact",
            maintenance.run_compact,
            "Merge the launch files of old days, one file a day; every launch keeps its provenance.",
            maintenance.compact_params(),
            "omb-py results compact --dry-run",
            "omb-py results compact --older-than 30d",
        ),
        _verb(
            "prune",
            maintenance.run_prune,
            "Remove launches that meet all criteria given; without --yes only list them.",
            maintenance.prune_params(),
            "omb-py results prune --older-than 1y",
            "omb-py results prune --tag try=1 --yes",
        ),
        _verb(
            "verify", maintenance.run_verify, "Check that every file holds what was written: exit code 1 if not.", ()
        ),
    )
    return Verbs(
        "results",
        commands=verbs,
        context_settings=dict(CONTEXT),
        params=[debug_option()],
        no_args_is_help=False,
        help="List, show, import, export, recover, merge, remove and check what was measured.",
    )


def _verb(
    name: str, callback: Callable[..., int], text: str, params: Sequence[click.Parameter], *examples: str
) -> click.Command:
    more = [table_option("store", "Store"), debug_option()]
    return Page(name, examples, params=[*params, *more], callback=callback, help=text)


def _say_unfinished(store: Path) -> None:
    """Say on stderr how many launches have no rows yet, and what gives them to those that have ended."""
    try:
        unfinished = journals(store)
    except EnvironmentProblem as problem:
        click.echo(f"omb-py: {problem}: whether runs have not ended is not known", err=True)
        return
    if unfinished:
        what = f"{counted(len(unfinished), 'launch')} not finished, or ended early"
        click.echo(f"omb-py: {what}: {recover_command(store)} stores what they had measured", err=True)


_HINTS = 3
"""Most runs, the newest, of which the list says how they go on."""


def _say_how_to_go_on(store: Path, stored: Sequence[RunSummary]) -> None:
    """Say on stderr with which command lines runs go on that have not reached their end."""
    provenance = provenance_of(store)
    for run in [run for run in stored if run.state not in (None, "running")][-_HINTS:]:
        if words := words_of(run.run_id, store, provenance):
            line = resuming(words, run.run_id)
            click.echo(f"omb-py: run {run.run_id}: {run.state}; to go on: {line}", err=True)


def run_list(form: str, store: Path | None) -> int:
    stored = runs(_store(store), on_skip=skipped)
    if form == "json":
        click.echo(json.dumps([asdict(run) for run in stored], indent=1))
        return OK
    if not stored:
        click.echo(f"omb-py: no runs in {_store(store)} yet", err=True)
        _say_unfinished(_store(store))
        return OK
    from omb_py.printing.tables import RUNS_FOLDED, RUNS_SPARE, runs_table  # rich is slow to import
    from omb_py.printing.writers.terminal import fitted, stdout_console

    console = stdout_console()
    table = fitted(lambda without: runs_table(stored, without), RUNS_SPARE, console, "json", RUNS_FOLDED)
    console.print(table, crop=False)
    _say_how_to_go_on(_store(store), stored)
    _say_unfinished(_store(store))
    return OK


def run_show(run: str, form: str | None, full: bool, percentiles: tuple[float, ...] | None, store: Path | None) -> int:
    rows = show(_store(store), run, on_skip=skipped)
    if not (form or full or percentiles) and (report := _report_of_links(rows)):
        write_report(report)
        click.echo(f"omb-py: --format {USUAL.name} prints its {counted(len(rows), 'cell')}", err=True)
        return OK
    if form in (None, USUAL.name):
        options = TextOptions(full, percentiles or ())
        look = provenance_of(_store(store))
        for head, of_launch in launches_of(rows):
            head += _disturbed(look(str(of_launch[0]["launch_id"])))
            click.echo(f"{head}{USUAL.export(of_launch, lambda launch: {}, options)}", nl=False)
        return OK
    printer = AtEnd(form)
    for row in rows:
        printer.row(row)
    printer.close()
    return OK


def _report_of_links(rows: Sequence[Row]) -> Document | None:
    """What a sweep over all pairs reported; None for other rows."""
    if not any(LINKS_PART in (row["tags"] or {}) for row in rows[:1]):
        return None
    from omb_py.results.checks.pair_sweeps import document_of, sweep_of  # loads NumPy and SciPy

    try:
        return document_of(sweep_of(rows))
    except ValueError:  # a search by groups (links --isolate)
        return None


def _disturbed(provenance: Mapping[str, object]) -> str:
    """A comment where other programs used much of the machine before a launch; else an empty text."""
    match provenance:
        case {"launch": {"busy_before": str() as busy}}:
            return f"\n# {busy}"
    return ""


def launches_of(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """A line about each launch of a run, with its rows; no line for a run of a single launch without tags.

    The line is a comment, as OMB's own heads, so ``results import`` can read the text.
    """
    launches: dict[str, list[Row]] = {}
    for row in rows:
        launches.setdefault(str(row["launch_id"]), []).append(row)
    shown = []
    for number, of_launch in enumerate(launches.values(), 1):
        tags = dict(of_launch[0]["tags"] or {})
        about = [f"launch {number} of {len(launches)}"] if len(launches) > 1 else []
        side = tags.pop(COMPARE_SIDE, None)
        about += [f"side {side}"] if side else []
        about += [f"{key}={value}" for key, value in distinguishing_tags(tags).items()]
        shown.append((f"\n# {', '.join(about)}" if about else "", of_launch))
    return shown


def run_export(
    runs: tuple[str, ...], form: str | None, output: Path | None, where: tuple[str, ...], store: Path | None
) -> int:
    place = _store(store)
    chosen = () if ALL in runs else runs
    rows = _rows(place, chosen, filters(where, {"run_id": "the run"} if chosen else {}))
    form = form or ("json" if output and output.suffix == ".json" else "csv")
    text = export(rows, form, provenance_of(place))
    if lost := left_out(rows, form):
        names = ", ".join(f"{name} ({number})" for name, number in lost.items())
        what = f"{counted(sum(lost.values()), 'row')} of {len(rows)} left out"
        click.echo(f"omb-py: {what}, for which --format {form} has no place: {names}", err=True)
    if not rows:
        click.echo(f"omb-py: no row of {place} matches: look at omb-py results list", err=True)
    if output is None:
        click.echo(text, nl=False)
        return OK
    write_file(output, text)
    click.echo(f"omb-py: {len(rows) - sum(lost.values())} rows written to {output}", err=True)
    return OK


def _rows(store: Path, which: Sequence[str], filters: Mapping[str, str]) -> list[Row]:
    wanted: dict[str, Any] = dict(filters)
    if which:
        wanted["run_id"] = [find_run(store, name, on_skip=lambda path, why: None) for name in which]
    return to_rows(load_table(store, on_skip=skipped, **wanted))


def run_recover(store: Path | None) -> int:
    """Recover every journal and print what became of it. Raises EnvironmentProblem where one cannot be recovered."""
    place = _store(store)
    recovered = recover(place)
    for journal in recovered:
        note = f": {journal.note}" if journal.note else ""
        click.echo(f"{journal.state}: {journal.launch_id}, {counted(journal.cells, 'cell')}, {journal.path}{note}")
    if not recovered:
        click.echo(f"nothing to recover in {place}")
    bad = [journal for journal in recovered if journal.state in ("unreadable", "failed")]
    if bad:
        raise EnvironmentProblem(f"{len(bad)} of {len(recovered)} journals could not be recovered: {bad[0].path}")
    return OK


def _store(store: Path | None) -> Path:
    return store or DEFAULT_STORE
