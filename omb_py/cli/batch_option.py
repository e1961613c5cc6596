"""``--submit`` runs the same command line as a batch job."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from omb_py.cli.help import RAW, Page, tool_option
from omb_py.errors import UsageError
from omb_py.launchers.launcher import BatchRequest
from omb_py.options.readers import whole, word
from omb_py.options.request import DEFAULT_RANKS
from omb_py.orchestrate.launching.batch_job import SCHEDULERS, code_of, script_of, submit

_FOLDER = Path("omb-jobs")


def submitting(page: Page, check: Callable[[dict[str, object]], None]) -> Page:
    """Give a command ``--submit``, with which the rest of its line runs as a batch job.

    Args:
        check: raises OmbError on values that are wrong on any node, before the job waits for one.
    """
    own = _options()
    names = {param.name for param in own}
    inner = page.callback
    assert inner is not None

    def call(**values: object) -> object:
        job = {name: values.pop(name) for name in names}
        if job["submit"] is None and not job["print_script"]:
            alone = next((n for n in ("nodes", "array", "subset", "submit_args") if job[n] not in (None, ())), None)
            if alone is not None:
                raise UsageError(
                    f"--{alone.replace('_', '-')} is for a batch job: add --submit {next(iter(SCHEDULERS))}"
                )
            return inner(**values)
        check(values)
        return _submit(page, own, values, job)

    page.callback = call
    page.params = [*page.params, *own]
    return page


def _options() -> list[click.Option]:
    option = partial(tool_option, "As a batch job")
    return [
        option(
            "--submit NAME",
            f"Write the batch script of this command line, submit it, wait, and collect: "
            f"{', '.join(SCHEDULERS)}. (default: run here)",
            word("scheduler", tuple(SCHEDULERS)),
        ),
        option("--print-script", "Print the script instead of submitting it. (default: off)"),
        option("--nodes N", "Nodes of a job. (default: the scheduler's)", whole("nodes", 1)),
        option("--array N", "So many jobs alike, each with nodes of its own. (default: 1)", whole("array", 1)),
        option(
            "--subset NODES", "A job on these nodes, as node[1-4]. Repeat it. (default: any)", _nodes, multiple=True
        ),
        option(
            "--submit-args TEXT",
            "Words for sbatch, as one text: '--partition=gpu --time=30'. (default: none)",
            _shell_words,
        ),
    ]


def _nodes(text: str) -> str:
    if not text.strip():
        raise UsageError("--subset names no node: write it as node[1-4]")
    return text


def _shell_words(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"--submit-args {text!r}: {error}") from None


def _submit(page: Page, own: Sequence[click.Option], values: dict[str, Any], job: dict[str, Any]) -> int:
    raw = click.get_current_context().meta[RAW]
    words = (str(page.name), *drop_options(raw, own))
    if job["subset"] and job["array"]:
        raise UsageError("--subset names the nodes of each job, --array leaves them to the scheduler: leave one out")
    # where nothing says how large the job is, a scheduler gives it one task
    usual = None if any(job[name] for name in ("nodes", "array", "subset", "submit_args")) else DEFAULT_RANKS
    nodes, ranks = job["nodes"], values.get("ranks") or usual
    if nodes and ranks and nodes > ranks:
        raise UsageError(
            f"--nodes {nodes} with -n {ranks}: {nodes - ranks} nodes would have no rank, and Slurm would give {ranks} "
            f"without a word: -n {nodes} or more, or --nodes {ranks}"
        )
    of_one_job = drop_options(raw, [option for option in own if option.name in ("array", "subset")])
    batch = BatchRequest(
        words,
        (Path.cwd() / _FOLDER),
        nodes,
        ranks,
        array=job["array"] or 1,
        subsets=job["subset"],
        extra=job["submit_args"] or (),
        scheduler=job["submit"] or next(iter(SCHEDULERS)),
        typed=(str(page.name), *of_one_job) if job["submit"] else (),
    )
    if job["print_script"]:
        click.echo(script_of(batch), nl=False)
        return 0
    quiet = bool(values.get("quiet"))
    jobs = submit(batch, lambda text: None if quiet else click.echo(f"omb-py: {text}", err=True))
    for finished in jobs:
        for path in finished.files:
            if len(jobs) > 1 or len(finished.files) > 1:
                click.echo(f"# job {path.stem}{f' on {finished.where}' if finished.where else ''}")
            with contextlib.suppress(OSError):
                click.echo(path.read_text(errors="replace"), nl=False)
    return code_of(jobs)


def drop_options(words: Sequence[str], options: Sequence[click.Option]) -> list[str]:
    """Remove some long options and their values from a command line."""
    flags = {name: bool(option.is_flag) for option in options for name in option.opts}
    kept: list[str] = []
    rest = iter(words)
    for text in rest:
        name, equals, _ = text.partition("=")
        if name not in flags:
            kept.append(text)
        elif not flags[name] and not equals:
            next(rest, None)
    return kept
