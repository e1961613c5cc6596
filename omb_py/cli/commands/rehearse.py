"""``omb-py rehearse``: a command on several nodes that are this machine."""

from __future__ import annotations

import os
import sys
from functools import partial

import click

from omb_py.cli.help import CONTEXT, Page, tool_option
from omb_py.errors import UsageError
from omb_py.grammar.values import pair_of
from omb_py.options.readers import whole
from omb_py.orchestrate.launching.rehearsal import INSIDE, Rehearsal, enter, why_no_nodes


def command() -> click.Command:
    """The command ``rehearse``."""
    option = partial(tool_option, "The nodes")
    return Page(
        "rehearse",
        params=[
            click.Argument(["words"], nargs=-1, required=True, metavar="COMMAND...", type=click.UNPROCESSED),
            option("--nodes N", "How many.", whole("nodes", 2), default=4),
            option("--slow-link A-B", "Make the link between two of them slow, as 1-3. (default: none)", _link),
            option("--simulated", "Simulate them, as where no namespaces are allowed."),
        ],
        callback=run,
        context_settings={**CONTEXT, "allow_interspersed_args": False},
        help="Run an omb-py command on several nodes that are this machine: node0, node1, …, each a network namespace "
        "with its own address, host name and shared memory. Ranks are real and talk over TCP. Try here "
        "whether a suite runs, a slow link is named and a page is written; the times say nothing about a network.\n\n"
        "The nodes end with the command. Where no namespaces are allowed the nodes are simulated; the first line says "
        "so.",
        examples=[
            "omb-py rehearse --slow-link 1-3 links      # is it named?",
            "omb-py rehearse accept nersc10 --output page.html",
            "omb-py rehearse --nodes 2 latency",
        ],
    )


def _link(text: str) -> tuple[int, int]:
    ends = pair_of(text, "-")
    if ends is None or ends[0] == ends[1]:
        raise UsageError(f"{text!r} are not two nodes, as 1-3")
    return ends


def run(words: tuple[str, ...], nodes: int, slow_link: tuple[int, int] | None, simulated: bool) -> int:
    """Become the command. Raises UsageError, EnvironmentProblem."""
    rehearsal = Rehearsal(nodes, slow_link)
    if os.environ.get(INSIDE):
        print(f"omb-py: on this machine: {rehearsal.text}", file=sys.stderr, flush=True)
        rehearsal.run_inside(words)
    why = "" if simulated else why_no_nodes()
    if not simulated and not why:
        link = ["--slow-link", f"{slow_link[0]}-{slow_link[1]}"] if slow_link else []
        enter(["--nodes", str(nodes), *link, *words])
    print(f"omb-py: simulated: {rehearsal.text}{f': {why}' if why else ''}", file=sys.stderr, flush=True)
    from omb_py.cli.app import invoke

    return invoke(rehearsal.simulated(words))
