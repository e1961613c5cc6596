"""``omb-py results compact``, ``prune`` and ``verify``, which keep a store small and sound."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import click

from omb_py.cli.help import tool_option
from omb_py.errors import NEGATIVE, OK
from omb_py.grammar.values import parse_age, parse_tags
from omb_py.options.request import DEFAULT_STORE
from omb_py.results.store.paths import check_store
from omb_py.results.store.runs import find_run
from omb_py.results.units import counted


def _older(default: str | None, text: str) -> click.Option:
    return tool_option(
        "Which launches",
        "--older-than older AGE",
        f"{text} (default: {default or 'any age'})",
        parse_age,
        default=default,
    )


def compact_params() -> Sequence[click.Parameter]:
    return (
        _older("7d", "Only days that ended so long ago, as 30d, 6w, 3m, 1y."),
        tool_option("What is done", "--dry-run", "Only say what it would merge. (default: off)"),
    )


def prune_params() -> Sequence[click.Parameter]:
    heading = "Which launches"
    return (
        _older(None, "Only launches that started so long ago, as 30d, 6w, 3m, 1y."),
        tool_option(
            heading,
            "--tag K=V",
            "Only launches with this tag; repeat it for several. (default: any tags)",
            str,
            multiple=True,
        ),
        tool_option(
            heading,
            "--run runs RUN",
            "Only launches of this run: its id or the beginning of it; repeat it. (default: any run)",
            str,
            multiple=True,
        ),
        tool_option("What is done", "--yes", "Remove them. Without it they are only listed. (default: off)"),
    )


def run_compact(older: timedelta, dry_run: bool, store: Path | None) -> int:
    from omb_py.results.store.compaction import compact  # loads pyarrow, unlike --help

    place = _existing(store)
    merges = compact(place, older, dry_run=dry_run, on_skip=_skipped)
    for merge in merges:
        did = "would merge" if dry_run else "merged"
        click.echo(f"{did} {merge.files} files, {merge.launches} launches, {merge.rows} cells: {merge.path}")
    if not merges:
        click.echo(f"nothing to merge in {place} that is older than {older.days} days: see --older-than")
    return OK


def run_prune(
    older: timedelta | None, tag: tuple[str, ...], runs: tuple[str, ...], yes: bool, store: Path | None
) -> int:
    """Remove the launches that meet all criteria; without `yes` only list them."""
    from omb_py.results.store.compaction import doomed, prune

    place = _existing(store)
    ids = [find_run(place, name, on_skip=lambda path, why: None) for name in runs]
    launches = doomed(place, older_than=older, tags=parse_tags(tag), runs=ids, on_skip=_skipped)
    if yes and launches:
        prune(place, [launch.launch_id for launch in launches], _skipped)
    for launch in launches:
        did, cells = "removed" if yes else "would remove", counted(launch.cells, "cell")
        click.echo(f"{did} {launch.launch_id}, {launch.started_at[:19]}, {cells}")
    if not launches:
        click.echo(f"no launch of {place} is meant by that: see omb-py results list")
        return OK
    total = f"{counted(len(launches), 'launch')}, {counted(sum(launch.cells for launch in launches), 'cell')}"
    what = f" removed from {place}" if yes else "; nothing was removed: repeat with --yes to remove them"
    click.echo(f"{total}{what}")
    return OK


def run_verify(store: Path | None) -> int:
    """Check every file of the store; the exit code is 1 where one is damaged."""
    from omb_py.results.store.integrity import BAD, verify

    place = _existing(store)
    files: dict[str, int] = {}
    rows = 0
    for check in verify(place):
        files[check.state] = files.get(check.state, 0) + 1
        rows += check.rows
        if check.state != "ok":
            click.echo(f"{check.state}: {check.path}: {check.note}")
    total = sum(files.values())
    states = ", ".join(f"{number} {state}" for state, number in sorted(files.items()))
    click.echo(f"{total} files, {rows} cells in {place}: {states or 'none'}")
    return NEGATIVE if any(state in BAD for state in files) else OK


def _existing(store: Path | None) -> Path:
    place = store or DEFAULT_STORE
    check_store(place)
    return place


def _skipped(path: Path, why: str) -> None:
    click.echo(f"omb-py: left as it is: {path}: {why}", err=True)
