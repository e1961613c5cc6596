"""``omb-py links``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from omb_py.backends.registry import in_process
from omb_py.cli.commands.benchmark import request_of
from omb_py.cli.help import Page, debug_option, exit_codes, tool_option
from omb_py.cli.option_params import backend_option, measuring_options, ranks_option
from omb_py.cli.output import HTML, check_files, report_options, write_report
from omb_py.cli.suite_options import long_name
from omb_py.engine.program.pair_schedule import KINDS
from omb_py.errors import NEGATIVE, UsageError
from omb_py.grammar.values import parse_size
from omb_py.launchers.registry import batch_around
from omb_py.options.readers import whole, word
from omb_py.options.request import Request
from omb_py.orchestrate.checks.isolate import GroupSearch
from omb_py.orchestrate.checks.links import SweepDesign, from_logs, placed, sweep
from omb_py.printing.drawings import heat_map
from omb_py.results.checks.isolation_report import IsolationResult, isolation_document
from omb_py.results.checks.pair_logs import USUAL_NAMES, PairNames, parse_names
from omb_py.results.checks.pair_sweeps import PairSweep, document_of, matrix
from omb_py.results.document import Document
from omb_py.suites import find

_FORMS = ("table", "json")
_FILES = (HTML, ".json")
_CODES = exit_codes({NEGATIVE: "a node or link is slow, and a repeat confirmed it"})
_SHARED = tuple(
    (
        "device share_device hosts launcher launcher_args thread_level timeout quiet store no_store tags seed "
        "mock inject"
    ).split()
)
_WITH_LOGS = frozenset({"from", "names", "topology", "small", "large", "format", "graph", "output", "quiet", "debug"})
_EXAMPLES = (
    "omb-py links --hosts a,b,c,d",
    "omb-py links --hosts a,b,c,d --rounds serial -G tty --output links.html",
    "omb-py links --isolate --topology topology.conf --hosts a,b,c,d",
    "omb-py links --from logs/ --names 'osu_bw.{a}_{b}.*'",
    "omb-py links --backend mock -n 16 --mock 'noise=0.05,slow=3:1.5'",
)


def command() -> click.Command:
    return Page(
        "links",
        params=[
            *_make_sweep_options(),
            *_make_search_options(),
            *_reading(),
            *_as_benchmarks(),
            *_output(),
            debug_option(),
        ],
        callback=run_links,
        help="Every pair of nodes: which node, which link is slow?\n\n"
        "Latency, its tail and bandwidth of all pairs, in rounds of disjoint pairs, one rank a node. What is slower "
        "than chance explains is measured again in a launch of its own, among other partners: confirmed or cleared "
        "(docs/links.md).",
        examples=_EXAMPLES,
        codes=_CODES,
    )


def _make_sweep_options() -> list[click.Parameter]:
    heading, usual = "What is measured", SweepDesign()
    option = partial(tool_option, heading)
    return [
        backend_option(heading),
        option(
            "--binding NAME", "Who issues the calls. (default: the backend's first)", word("binding", (), strict=False)
        ),
        ranks_option(heading, "Ranks.", "--per-node on each of --hosts, or on each node of a Slurm job"),
        option("--per-node N", "Ranks on each node, for example one a GPU.", whole("ranks on a node", 1), default=1),
        option(
            "--rounds KIND",
            "parallel: all pairs of a round at once; serial: one pair at a time, which takes N / 2 times as long.",
            word("kind of rounds", KINDS),
            default=usual.rounds,
        ),
        option(
            "--passes N",
            "How often all pairs are gone through, in another order each time.",
            whole("passes", 1),
            default=usual.passes,
        ),
        option(
            "--launches N",
            "Launches among which the passes are divided; what is slow in some of them only is not slow for good. "
            f"(default: {usual.launches})",
            whole("launches", 1),
            default=usual.launches,
        ),
        option("--small SIZE", "Bytes of a message for latency.", parse_size, default=usual.small),
        option("--large SIZE", "Bytes of a message for bandwidth. (default: 1M)", parse_size, default=usual.large),
        option(
            "-i --iterations N", "Of latency, of each pair and pass.", whole("iterations", 10), default=usual.iterations
        ),
        option(
            "--windows N",
            "Windows for bandwidth, of each pair, pass and direction.",
            whole("windows", 1),
            default=usual.windows,
        ),
        option("-W --window-size window N", "Messages in flight.", whole("window size", 1), default=usual.window),
    ]


def _make_search_options() -> list[click.Parameter]:
    option = partial(tool_option, "Many nodes")
    return [
        option(
            "--isolate [BENCHMARK]",
            "Search with this collective on groups of nodes, in 40 launches or fewer, and measure only "
            "pairs of what it names. (default: all pairs; bare: allreduce)",
            word("isolate", (), strict=False),
            is_flag=False,
            flag_value="allreduce",
        ),
        option(
            "--topology FILE",
            "For --isolate and --from: Slurm's topology.conf, or a line 'SWITCH: NODES' for each switch. "
            "(default: not known)",
            Path,
        ),
    ]


def _reading() -> list[click.Parameter]:
    option = partial(tool_option, "Logs that exist")
    return [
        option(
            "--from logs LOGS",
            "Measure nothing: judge logs of OMB, nccl-tests and others, a file a pair, or a folder of them; repeat it. "
            "(default: measure)",
            str,
            multiple=True,
        ),
        option(
            "--names PATTERN",
            "Where a file's name says the two nodes, if its list of devices does not; * is any text. "
            f"(default: {USUAL_NAMES.text})",
            parse_names,
        ),
    ]


def _as_benchmarks() -> list[click.Parameter]:
    return [param for param in measuring_options(find("latency")) if param.name in _SHARED]


def _output() -> list[click.Parameter]:
    graph = tool_option(
        "Output",
        "-G --graph FORM",
        "tty: the matrix of all pairs in this terminal too. (default: none)",
        word("graph", ("tty",)),
    )
    form, output = report_options(_FORMS, "the findings to a file too: .html (with heat map) or .json")
    return [form, graph, output]


def run_links(
    form: str,
    graph: str | None,
    output: Sequence[Path],
    isolate: str | None,
    topology: Path | None,
    logs: Sequence[str],
    names: PairNames | None,
    **given: Any,
) -> int:
    check_files(output, _FILES)
    if logs:
        _check_useless()
        design = SweepDesign(given["small"], given["large"])
        result = from_logs(logs, names or USUAL_NAMES, design, topology)
        return _show(result, document_of(result), graph, form, output)
    if names:
        raise UsageError("--names is for --from: give both")
    of_design = ("small", "large", "iterations", "windows", "window", "passes", "launches", "rounds")
    design = SweepDesign(**{name: given.pop(name) for name in of_design})
    request = _request(given)
    if isolate:
        if graph:
            raise UsageError("--graph draws all pairs, which --isolate does not measure: leave one out")
        search = GroupSearch(request, find(isolate), design, topology)
        return _isolated(search.run(), request, form, output)
    if topology:
        raise UsageError("--topology is for --isolate and --from: give one of them too")
    result = sweep(request, design)
    return _show(result, _advised(document_of(result), request, result.slow_nodes), graph, form, output)


def _check_useless() -> None:
    """Raises UsageError for an option that says nothing where logs are read."""
    line = click.get_current_context()
    options = [param for param in line.command.params if isinstance(param, click.Option)]
    useless = [
        f"--{name}"
        for param in options
        if line.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE
        and (name := long_name(param)) not in _WITH_LOGS
    ]
    if useless:
        raise UsageError(f"--from measures nothing, so {useless[0]} says nothing: leave it out")


def _show(result: PairSweep, document: Document, graph: str | None, form: str, output: Sequence[Path]) -> int:
    if graph:
        document = replace(document, picture=heat_map(matrix(result)))
    return write_report(document, form, output, partial(_html, result, document))


def _isolated(result: IsolationResult, request: Request, form: str, output: Sequence[Path]) -> int:
    def page() -> str:
        from omb_py.dashboards.report.html_page import with_figures

        return with_figures(document, "links", "What is slow, by groups", f"omb-py links · run {result.run_id}", [])

    document = _advised(isolation_document(result), request, result.slow_nodes)
    return write_report(document, form, output, page)


def _advised(document: Document, request: Request, slow: Sequence[str]) -> Document:
    document = replace(document, simulated=in_process(request.backends))
    return document if document.simulated else with_advice(document, slow, os.environ)


def with_advice(document: Document, slow: Sequence[str], environ: Mapping[str, str]) -> Document:
    """A document with a note of how the batch system around keeps slow nodes from other jobs."""
    system = batch_around(environ) if slow else None
    advice = system.out_of_service(slow) if system else ""
    if system is None or not advice:
        return document
    return replace(document, notes=[*document.notes, f"{system.job_text(environ)}: {advice}"])


def _request(given: dict[str, Any]) -> Request:
    per_node, binding = given.pop("per_node"), given.pop("binding")
    values = {**given, "backends": (given.pop("backend"),), "bindings": (binding,) if binding else ()}
    return placed(request_of(find("latency"), values), per_node, os.environ)


def _html(result: PairSweep, document: Document) -> str:
    # Only an .html file needs the figures.
    from omb_py.dashboards.report.html_page import with_figures
    from omb_py.dashboards.views.checks import sweep_view

    below = f"omb-py links · {'of logs' if result.logs else f'run {result.run_id}'}"
    return with_figures(document, "links", "Every pair of nodes", below, [sweep_view(result)])
