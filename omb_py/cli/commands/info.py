"""``omb-py list``, ``explain``, ``doctor``, ``expect`` and ``completion``."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from omb_py.backends.registry import capabilities_of, default
from omb_py.cli.app import COMPLETE_VAR, FAMILIES, ROOT
from omb_py.cli.help import Page, ParsedType, debug_option, tool_option
from omb_py.cli.option_params import backend_option, ranks_option, table_option
from omb_py.cli.registry import commands
from omb_py.cli.stored_cells import format_option, skipped
from omb_py.engine.devices import registry as devices
from omb_py.engine.devices.registry import GPU_KINDS
from omb_py.engine.observers import registry as observers
from omb_py.engine.program.benchmark import Benchmark
from omb_py.engine.rank.launcher_variables import joined_environment
from omb_py.errors import ENVIRONMENT, NEGATIVE, OK, EnvironmentProblem, UsageError
from omb_py.grammar.values import parse_size
from omb_py.launchers import registry as launchers
from omb_py.options.readers import whole, word
from omb_py.options.request import DEFAULT_STORE, Request
from omb_py.orchestrate.info import catalogue, doctor, explain_devices, gpu_doctor
from omb_py.orchestrate.info.explain import explain
from omb_py.orchestrate.launching.launch_command import command_for
from omb_py.orchestrate.planning.parsing import parse
from omb_py.orchestrate.planning.resolution import resolve
from omb_py.plug_ins import all_broken, has_plug_ins
from omb_py.results.dialects import registry as dialects
from omb_py.results.store.paths import is_store
from omb_py.results.store.row import Row
from omb_py.suites import find, names
from omb_py.suites.registry import broken
from omb_py.suites.training.frameworks import frameworks

SHELLS = ("bash", "zsh", "fish")
_LINES = {
    "bash": 'eval "$(omb-py completion bash)"     in ~/.bashrc',
    "zsh": 'eval "$(omb-py completion zsh)"      in ~/.zshrc',
    "fish": "omb-py completion fish > ~/.config/fish/completions/omb-py.fish",
}


def list_command() -> click.Command:
    return Page(
        "list",
        params=[format_option(), debug_option()],
        callback=run_list,
        help="All benchmarks by family, and the backends, bindings and devices on which they can run here. "
        "--format json has a row for each combination, with the reason where it cannot run.",
    )


def run_list(form: str) -> int:
    benchmarks = [find(name) for name in names()]
    where = catalogue.list_targets(catalogue.inspected())
    if form == "json":
        click.echo(json.dumps(catalogue.as_json(benchmarks, where, broken()), indent=1))
    else:
        click.echo(catalogue.as_text(benchmarks, where, _broken(), FAMILIES))
    return OK


def _broken() -> Mapping[str, str]:
    """What installed packages offer and cannot be loaded, of all kinds -> why."""
    for load in (
        commands,
        launchers.installed,
        devices.installed,
        observers.installed,
        dialects.broken,
        frameworks,
    ):
        load()
    if has_plug_ins("omb_py.views"):
        from omb_py.dashboards.views.registry import installed  # it loads all views of ours

        installed()
    return all_broken()


def explain_command() -> click.Command:
    heading = "What is explained"
    return Page(
        "explain",
        params=[
            click.Argument(["name"], metavar="BENCHMARK", shell_complete=_benchmarks),
            ranks_option(heading),
            tool_option(
                heading,
                "-m --message-size size SIZE",
                "One message size, as 8, 4K, 1MiB. (default: 8, or the benchmark's smallest)",
                parse_size,
            ),
            table_option("window", heading),
            table_option("window_kind", heading, "the benchmark's"),
            table_option("sync", heading, "the benchmark's"),
            backend_option(heading),
            *device_options(),
            debug_option(),
        ],
        callback=run_explain,
        help="What a benchmark does: for each rank the steps, which of them are timed, and how the number is made. "
        "With --device also the GPU that each rank will open; inside a launcher each process says its own and why.",
        examples=(
            "omb-py explain latency",
            "omb-py explain allreduce -n 4 -m 1M",
            ("omb-py explain allreduce -d cuda -n 16 --hosts n1,n2 --gpus 8", "the GPU of each rank"),
            ("srun -n 16 --gpus-per-task=1 omb-py explain allreduce -d cuda", "each rank its own"),
        ),
    )


def device_options() -> list[click.Option]:
    """Options of ``omb-py explain`` about GPUs and the launcher that starts the ranks."""
    heading = "Where"
    return [
        tool_option(
            heading,
            "-d --device device KIND",
            f"{' or '.join(GPU_KINDS)}: also which GPU each rank will open.",
            word("device", GPU_KINDS),
        ),
        tool_option(
            heading, "--gpus N", "GPUs of each machine. (default: those that are here)", whole("number of GPUs", 1)
        ),
        table_option("hosts", heading, "this one"),
        table_option("launcher", heading),
    ]


MOST_EXPLAINED = 1 << 16
"""Ranks whose programs are made for ``explain``."""


def run_explain(
    name: str,
    ranks: int,
    size: int | None,
    window: int | None,
    backend: str,
    window_kind: str | None = None,
    sync: str | None = None,
    device: str | None = None,
    gpus: int | None = None,
    hosts: tuple[str, ...] | None = None,
    launcher: str | None = None,
) -> int:
    if ranks > MOST_EXPLAINED:
        raise UsageError(f"explain looks at no more than {MOST_EXPLAINED} ranks, not {ranks}: use a smaller -n")
    benchmark = find(name)
    if device and joined_environment(os.environ):
        click.echo(explain_devices.of_rank(os.environ, device, gpus or explain_devices.count_here(device, os.environ)))
        return OK
    if device and device not in capabilities_of()[backend].devices:
        raise EnvironmentProblem(f"backend {backend} has no buffers on {device}: leave --device out")
    if not device and (gpus or hosts or launcher):
        raise UsageError("--gpus, --hosts and --launcher say where GPUs are: add --device, or leave them out")
    where = _where(benchmark, backend, ranks, device, gpus, hosts or (), launcher or "auto") if device else ""
    resolve(
        parse(
            Request(
                benchmark.name,
                backends=(default() if device else backend,),  # no GPU is needed for an explanation
                ranks=ranks,
                window=window,
                window_kind=window_kind,
                sync=sync,
                sizes=None if size is None else f"{size}:{size}",
            )
        )
    )
    click.echo(explain(benchmark, ranks, size, window, backend, window_kind, sync) + where)
    return OK


def _where(
    benchmark: Benchmark, backend: str, ranks: int, device: str, gpus: int | None, hosts: tuple[str, ...], launcher: str
) -> str:
    capabilities = capabilities_of()[backend]
    words = ["omb-py", benchmark.name, "--backend", backend, "--device", device]
    bind, needs_mpi = capabilities.start.bound, capabilities.start.needs_mpi
    command = command_for(launcher, words, ranks, hosts=hosts, bind=bind, needs_mpi=needs_mpi, gpus="own")
    each = gpus or explain_devices.count_here(device, os.environ)
    return f"\n\n{explain_devices.before_launch(command, hosts, ranks, device, each)}"


def _benchmarks(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in names() if name.startswith(incomplete)]


def doctor_command() -> click.Command:
    return Page(
        "doctor",
        params=[
            tool_option(
                "What is looked at",
                "-d --device device KIND",
                f"{gpu_doctor.DEVICE}: all that decides a run on NVIDIA GPUs, from driver to network. (default: "
                "the machine in general)",
                word("device", (gpu_doctor.DEVICE,)),
            ),
            table_option("own_mpi", "What is looked at"),
            format_option(),
            table_option("store"),
            debug_option(),
        ],
        callback=run_doctor,
        help="What this machine can do, and why the rest cannot: each line is ok, warn or no, with what to do.\n\n"
        "Exit code 0 when at least one backend other than mock works, with --device on that device, else 3.",
    )


def run_doctor(form: str, store: Path | None, device: str | None = None) -> int:
    backends = catalogue.inspected()
    if device:
        findings, usable = gpu_doctor.report(backends, os.environ)
    else:
        findings = doctor.report(backends, catalogue.list_targets(backends), store or DEFAULT_STORE, os.environ)
        usable = doctor.exit_ok(backends)
    click.echo(json.dumps(doctor.as_json(findings, usable), indent=1) if form == "json" else doctor.as_text(findings))
    return OK if usable else ENVIRONMENT


def expect_command() -> click.Command:
    return Page(
        "expect",
        params=[format_option(), table_option("store", "Store"), debug_option()],
        callback=run_expect,
        help="What this machine should reach: the most that its PCI Express links, network ports, GPUs and memory "
        "carry, as the machine declares it or as published, with the source of each figure; and the largest share of "
        "it that stored results reached.\n\nExit code 1 when a card has fewer PCI Express lanes than it could.",
        examples=("omb-py expect", ("omb-py expect --format json", "all published figures, with source and date")),
    )


def run_expect(form: str, store: Path | None) -> int:
    from omb_py.orchestrate.info import expect  # NumPy copies; the other commands of this module need none

    place = store or DEFAULT_STORE
    rows: list[Row] = []
    if store or is_store(str(place)):
        from omb_py.results.store.read import load_table, to_rows  # pyarrow is slow to import

        columns = ["benchmark", "library", "ranks", "size_bytes", "unit", "value", "busbw_gbps", "metrics"]
        rows = to_rows(load_table(place, columns=columns, on_skip=skipped))
    findings, results = expect.expected(expect.machine(), expect.copy_rates()), expect.reached(rows)
    data = json.dumps(expect.as_json(findings, results), indent=1) if form == "json" else ""
    click.echo(data or expect.as_text(findings, results, place))
    return NEGATIVE if any(finding.narrow for finding in findings) else OK


def completion_command() -> click.Command:
    return Page(
        "completion",
        params=[
            click.Argument(["shell"], type=ParsedType(word("shell", SHELLS)), metavar="|".join(SHELLS)),
            debug_option(),
        ],
        callback=run_completion,
        help="Print the completion script of a shell: commands, options and their words.",
        sections=(("To install it", [(line, "") for line in _LINES.values()]),),
    )


def run_completion(shell: str) -> int:
    completion = get_completion_class(shell)
    assert completion is not None
    click.echo((completion.source_template % completion(ROOT, {}, "omb-py", COMPLETE_VAR).source_vars()).strip())
    return OK
