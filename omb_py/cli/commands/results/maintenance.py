"""``omb-py results compact``, ``prune`` and ``verify``: what keeps a store small and sound."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import click

from omb_py.cli.help import Grouped
from omb_py.cli.param_types import Parsed
from omb_py.errors import NEGATIVE, OK, UsageError
from omb_py.options.request import DEFAULT_STORE
from omb_py.options.values import parse_age, parse_tags
from omb_py.results.store.compaction import compact, doomed, prune
from omb_py.results.store.integrity import BAD, verify
from omb_py.results.store.runs import find_run


def _older(default: str | None, text: str) -> click.Option:
    return Grouped(
        ["--older-than", "older"],
        heading="Which launches",
        metavar="AGE",
        type=Parsed("age", parse_age),
        default=default,
        help=f"{text} (default: {default or 'any age'})",
    )


def compact_params() -> Sequence[click.Parameter]:
    """Of ``results compact``."""
    return (
        _older("7d", "Only days that ended so long ago, as 30d, 6w, 3m, 1y."),
        Grouped(
            ["--dry-run"], heading="What is done", is_flag=True, help="Only say what it would merge. (default: off)"
        ),
    )


def prune_params() -> Sequence[click.Parameter]:
    """Of ``results prune``."""
    heading = "Which launches"
    return (
        _older(None, "Only launches that started so long ago, as 30d, 6w, 3m, 1y."),
        Grouped(
            ["--tag"],
            heading=heading,
            metavar="K=V",
            type=Parsed("tag", str),
            multiple=True,
            help="Only launches with this tag; repeat it for several. (default: any tags)",
        ),
        Grouped(
            ["--run", "runs"],
            heading=heading,
            metavar="RUN",
            type=Parsed("run", str),
            multiple=True,
            help="Only launches of this run: its id or the beginning of it; repeat it. (default: any run)",
        ),
        Grouped(
            ["--yes"],
            heading="What is done",
            is_flag=True,
            help="Remove them. Without it they are only listed. (default: off)",
        ),
    )


def run_compact(older: timedelta, dry_run: bool, store: Path | None) -> int:
    """Merge old launch files."""
    place = _existing(store)
    done = compact(place, older, dry_run=dry_run, on_skip=_skipped)
    for one in done:
        did = "would merge" if dry_run else "merged"
        click.echo(f"{did} {one.files} files, {one.launches} launches, {one.rows} cells: {one.path}")
    if not done:
        click.echo(f"nothing to merge in {place} that is older than {older.days} days: see --older-than")
    return OK


def run_prune(
    older: timedelta | None, tag: tuple[str, ...], runs: tuple[str, ...], yes: bool, store: Path | None
) -> int:
    """Remove launches, or say which."""
    place = _existing(store)
    ids = [find_run(place, name, on_skip=lambda path, why: None).run_id for name in runs]
    found = doomed(place, older_than=older, tags=parse_tags(tag), runs=ids, on_skip=_skipped)
    cells = sum(one.cells for one in found)
    for one in found:
        click.echo(f"{'removed' if yes else 'would remove'} {one.launch_id}, {one.started_at[:19]}, {one.cells} cells")
    if not found:
        click.echo(f"no launch of {place} is meant by that: see omb-py results list")
        return OK
    if yes:
        prune(place, [one.launch_id for one in found], _skipped)
        click.echo(f"{len(found)} launches, {cells} cells removed from {place}")
    else:
        click.echo(f"{len(found)} launches, {cells} cells; nothing was removed: repeat with --yes to remove them")
    return OK


def run_verify(store: Path | None) -> int:
    """Check every file."""
    place = _existing(store)
    counted: dict[str, int] = {}
    rows = 0
    for one in verify(place):
        counted[one.state] = counted.get(one.state, 0) + 1
        rows += one.rows
        if one.state not in ("ok", "no hash"):
            click.echo(f"{one.state}: {one.path}: {one.note}")
    total = sum(counted.values())
    states = ", ".join(f"{number} {state}" for state, number in sorted(counted.items()))
    click.echo(f"{total} files, {rows} cells in {place}: {states or 'none'}")
    return NEGATIVE if any(state in BAD for state in counted) else OK


def _existing(store: Path | None) -> Path:
    place = store or DEFAULT_STORE
    if not place.is_dir():
        raise UsageError(f"no store at {str(place)!r}: name one with --store DIR")
    return place


def _skipped(path: Path, why: str) -> None:
    click.echo(f"omb-py: left as it is: {path}: {why}", err=True)
