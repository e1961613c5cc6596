"""``omb-py gate``: is a build slower? Programs of a file, compared for a build server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from omb_py.cli.help import Page, debug_option, exit_codes, tool_option
from omb_py.cli.option_params import table_option
from omb_py.cli.output import check_files, measuring_report_options, notes, write_report
from omb_py.errors import INCONCLUSIVE, NEGATIVE, NO_VERDICT, OK
from omb_py.options.readers import whole
from omb_py.options.request import DEFAULT_STORE

_CODES = exit_codes(
    {
        NEGATIVE: "something is SLOWER",
        INCONCLUSIVE: "with strict = true in the file: something is UNCLEAR",
        NO_VERDICT: "NO VERDICT: something was not measured",
    }
)


def command() -> click.Command:
    return Page(
        "gate",
        params=[
            click.Argument(["file"], metavar="FILE"),
            tool_option("Security", "--trust", "Let the file, as it is now, start its programs. (default: ask)"),
            tool_option("How the answer counts", "--advisory", "Exit code 0 whatever the verdict."),
            tool_option(
                "How the answer counts", "--seed N", "Of the order of BASE and NEW. (default: drawn)", whole("seed", 0)
            ),
            *measuring_report_options(),
            table_option("store"),
            debug_option(),
        ],
        callback=_gate,
        help="Is a build slower? Compares the programs of a file, in turn, as omb-py compare --run does, "
        "by rules and in a time that the file says. What was not measured is never called the same. Markdown has a "
        "marker by which a bot finds its earlier comment (docs/compare.md).",
        examples=("omb-py gate --trust gate.toml -o comment.md -o verdicts.xml",),
        codes=_CODES,
    )


def _gate(
    file: str,
    trust: bool,
    advisory: bool,
    seed: int | None,
    form: str,
    output: Sequence[Path],
    quiet: bool,
    store: Path | None,
) -> int:
    from omb_py.orchestrate.gate.gate import gate_document, run_gate  # loads scipy, which --help does not need
    from omb_py.orchestrate.gate.gate_file import read_gate
    from omb_py.orchestrate.suites.trust import ask_trust, remember

    check_files(output)
    gate = read_gate(file)
    if trust:
        remember(gate)
    ask_trust(gate, gate.demands, "omb-py gate --trust")

    report = run_gate(gate, store or DEFAULT_STORE, seed, quiet, notes(quiet))
    code = write_report(gate_document(report, advisory), form, output)
    return OK if advisory else code
