"""A run from request to exit code: plan it, start or join each launch, store what is finished."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial

from omb_py.backends.registry import capabilities, find, in_process
from omb_py.class_code import is_program
from omb_py.engine.devices.registry import HOST, is_gpu
from omb_py.engine.rank.launcher_variables import Joined, joined_environment
from omb_py.engine.rank.lifetime import let_rank_0_speak
from omb_py.engine.rank.link import LaunchSpec, LocalLink, Message
from omb_py.engine.rank.start_times import now_ns
from omb_py.errors import NEGATIVE, OK, EnvironmentProblem, Interrupted, LaunchFailed, NotBegun, NotStored, OmbError
from omb_py.grammar.json_values import JsonValue
from omb_py.launchers.registry import BATCH_SYSTEMS, job_around
from omb_py.options.request import Request
from omb_py.options.table import sizes_of
from omb_py.orchestrate.launching.launch_command import HERE, command_for, machine_of, ranks_for
from omb_py.orchestrate.launching.machine_state import OtherWork, busy_now
from omb_py.orchestrate.planning.plan import LaunchPlan, plan_launches
from omb_py.orchestrate.planning.resolution import CheckedRequest, in_place_alone, reachable, resolve_alone
from omb_py.orchestrate.running.collector import Collector, CommandState, Run
from omb_py.orchestrate.running.progress import progress_for
from omb_py.orchestrate.running.rank_modules import question_of, rank_program, rank_variables
from omb_py.orchestrate.running.rank_start import MODULES_VARIABLE
from omb_py.orchestrate.supervision.failure_messages import join_hint
from omb_py.orchestrate.supervision.supervisor import Handlers, Supervisor
from omb_py.printing.printers import RowByRow, printer_of, with_more
from omb_py.results.skip import Skip
from omb_py.results.store.journal import RunLock
from omb_py.results.store.redact import stored_prefixes
from omb_py.results.store.write import check_writable
from omb_py.suites import find as find_benchmark
from omb_py.suites.registry import home_of

MOST_NAMED = 4
"""Most nodes that a note about a launch names."""
ATTEMPTS = 3
"""Attempts at a launch that does not begin, before the error is raised."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a run ended: its exit code, and the name under which it is stored."""

    code: int
    run_id: str
    root: bool = True
    """False on the ranks of a foreign launcher other than rank 0, which hold no results."""


def execute(checked: CheckedRequest) -> int:
    """Run a request, as all that a command does. Returns the exit code; raises OmbError."""
    return run_checked(checked, alone=is_program() and checked.benchmark.runs is None).code


def execute_run(request: Request) -> RunOutcome:
    """Check and run a request. Raises OmbError; inside a foreign launcher only rank 0 does."""
    joined = joined_environment(os.environ)
    try:
        checked = resolve_alone(request)
    except OmbError as error:
        if joined is None or joined.rank == 0 or not joins(request):
            raise
        let_rank_0_speak()
        return RunOutcome(error.exit_code, "", root=False)
    return run_checked(checked)


def joins(request: Request) -> bool:
    """Whether the processes of a launcher around us are to be the ranks of this request."""
    return request.launching.launcher in ("auto", "none") and not in_process(request.backends)


def run_checked(checked: CheckedRequest, alone: bool = False) -> RunOutcome:
    """Run a request; `alone`: this process does nothing else.

    Raises OmbError; cells that were finished before stay in the store or its journal.
    """
    joined = joined_environment(os.environ)
    if joined is not None and joins(checked.asked):
        from omb_py.orchestrate.running.joined_run import run_joined  # which imports this module

        return run_joined([checked], joined, checked.skips)
    checked = reachable(checked)
    ranks = checked.request.ranks
    if ranks is None and not in_process(checked.request.backends):
        ranks = ranks_for(checked.benchmark, job_around(os.environ))
    checked = checked.on_ranks(ranks)
    request, plans = checked.request, plan_launches([checked])
    run = new_run(request, plans)
    run.command.only_writes = alone and len(plans) == 1 and type(run.printer) is RowByRow
    say_busy(run)
    run.command.progress.plan([len(launch.cells) for launch in plans])
    refused: dict[tuple[str, str], EnvironmentProblem] = {}
    try:
        print_skipped(checked.skips)
        for text in in_place_alone(checked):
            run.note(text)
        for launch in plans:
            side = launch.backend, launch.needs.device
            if side in refused:
                continue
            if len(plans) > 1:
                run.note(f"launch {launch.index + 1} of {len(plans)}: {describe_launch(launch)}")
            try:
                start(run, launch)
            except EnvironmentProblem as problem:
                if isinstance(problem, NotStored) or launch.index in run.finished or len(request.sides) == 1:
                    run.ended_early("failed")
                    raise
                # ranks of this backend never began, but the other backends can still be measured
                refused[side] = problem
                name = " on ".join(side) if len(request.devices) > 1 else launch.backend
                print_skipped([Skip(name, str(problem))])
            if run.failed:
                break
    finally:
        finish(run)
    if refused and not run.cells:
        raise next(iter(refused.values()))
    return RunOutcome(NEGATIVE if run.failed else OK, run.run_id)


def drawn_seed() -> int:
    return random.SystemRandom().randrange(1 << 31)


def new_run(request: Request, plans: list[LaunchPlan], run_id: str | None = None, *, needs_store: bool = False) -> Run:
    """Create a run with its id and seed, or go on with one.

    Args:
        needs_store: whether its command has no ``--no-store``.

    Raises:
        EnvironmentProblem: its results cannot be stored.
        UsageError: another process measures this run.
    """
    if request.store is not None:
        check_writable(request.store, needs_store)
    started = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    seed = request.seed if request.seed is not None else drawn_seed()
    sides: dict[str, set[tuple[str, str, str]]] = {}
    for cell in (cell for launch in plans for cell in launch.cells):
        sides.setdefault(cell.benchmark, set()).add((cell.backend, cell.binding, cell.device))
    tables = max(map(len, sides.values()), default=1)
    command = CommandState(progress_for(request.printing.quiet))
    note: Callable[[str], None] = (lambda text: None) if request.printing.quiet else partial(_to_stderr, command)
    run_id = run_id or f"{started}-{os.urandom(3).hex()}"
    held = RunLock(request.store, run_id) if request.store is not None else None
    printer = printer_of(request, tables, lambda asked: sizes_of(asked, find_benchmark(asked.benchmark)))
    return Run(run_id, seed, request, with_more(printer, request), {}, note=note, command=command, lock=held)


def print_skipped(skips: Sequence[Skip]) -> None:
    """Print which parts were skipped or failed, with the reasons; on stderr, also with --quiet."""
    reasons: dict[tuple[bool, str], dict[str, None]] = {}
    for skip in skips:
        reasons.setdefault((skip.failed, skip.reason), {})[skip.what] = None
    for (failed, reason), names in reasons.items():
        word = "failed" if failed else "skipped"
        print(f"omb-py: {word}: {', '.join(names)}: {' '.join(reason.split())}", file=sys.stderr, flush=True)


def say_busy(run: Run) -> None:
    """Say first, and keep for the store, where other programs use much of this machine. Simulated ranks feel nothing.

    It is a note on stderr: what stdout holds is C's text, or a table that programs read.
    """
    if not in_process(run.request.backends):
        run.command.busy = busy_now(joined_environment(os.environ) is not None)
    if run.command.busy:
        run.note(f"warning: {run.command.busy}")


def finish(run: Run) -> None:
    """Finish the output, then show the notes that waited for it and the files with the rows."""
    try:
        run.printer.close()
    finally:
        for text in (*run.later, *run.last.lines()):
            run.note(text)
        for path in () if run.request.printing.scratch else run.files:
            run.note(f"stored in {path}")


def connection_of(request: Request, launch: LaunchPlan) -> dict[str, object]:
    """The part of a launch's description with which a backend joins its ranks, whoever has started them."""
    return {
        "backend": launch.backend,
        "ranks": launch.ranks,
        "hosts": list(hosts_of(request, launch)),
        "batch_signs": [system.sign for system in BATCH_SYSTEMS],
        **asdict(launch.needs),
        "settings": settings_of(request, launch.backend),
        "cells": [asdict(cell) for cell in launch.cells],
    }


def hosts_of(request: Request, launch: LaunchPlan) -> tuple[str, ...]:
    """The hosts of a launch, as ``--hosts`` takes them; ``()``: this machine, or the nodes of the batch job."""
    return launch.hosts or request.launching.hosts


def spec_of(run: Run, launch: LaunchPlan) -> dict[str, object]:
    """The description of a launch that every rank gets."""
    request, benchmarks = run.request, dict.fromkeys(cell.benchmark for cell in launch.cells)
    return {
        **connection_of(request, launch),
        "launch_index": launch.index,
        "seed": run.seed,
        "inject": request.launching.inject,
        "validation_log": str(request.validation_log) if request.validation_log else None,
        "debug": request.printing.debug,
        "repeat_for": request.repetition.repeat_for,
        "passes": request.repetition.passes,
        "prefixes": [*stored_prefixes(), *capabilities(launch.backend).start.prefixes],
        "homes": {name: home for name in benchmarks if (home := home_of(name))},
        "modes": capabilities(launch.backend).option is not None or any(cell.options.timing for cell in launch.cells),
        "launched_at": now_ns(),
    }


def settings_of(request: Request, backend: str) -> str:
    """The text of a backend's own option where it holds for the whole run; empty where cells hold it."""
    option = capabilities(backend).option
    return request.settings.get(backend, "") if option and option.run_wide else ""


def start(run: Run, launch: LaunchPlan) -> None:
    """Run a launch and store its rows.

    A launch that does not begin is made again, up to :data:`ATTEMPTS` times, if the launcher's failure passes by itself
    or if earlier launches of this command began: what starts ranks works here, so this start was slow or unlucky.

    Raises:
        OmbError: cells that were finished before are stored.
    """
    attempt = partial(_run_here if in_process([launch.backend]) else _start, run, launch)
    run.command.progress.begin(len(launch.cells))
    failed: list[str] = []
    try:
        while True:
            try:
                return attempt(failed)
            except LaunchFailed as problem:
                why = problem.problem
                begun = launch.index in run.finished
                may_pass = isinstance(problem, NotBegun) or run.command.begun
                failed.append(why)
                if begun or not may_pass or len(failed) == ATTEMPTS:
                    raise
                run.command.repeated.append(f"launch {launch.index + 1} did not begin and was made again: {why}")
                run.note(f"launching again, attempt {len(failed) + 1} of {ATTEMPTS}: {why}")
    except (Interrupted, KeyboardInterrupt):
        run.ended_early("interrupted")
        raise
    finally:
        run.command.progress.end()


def _start(run: Run, launch: LaunchPlan, failed: Sequence[str]) -> None:
    request, offer = run.request, capabilities(launch.backend)
    here = run.where is HERE
    rank = rank_program() if here else [run.where.python, "-m", "omb_py.orchestrate.running.rank_process"]
    question = modules_question(launch)
    variables = rank_variables(question) if here else {}
    command = command_for(
        request.launching.launcher,
        rank,
        launch.ranks,
        hosts=hosts_of(request, launch),
        extra=request.launching.launcher_args,
        pass_names=(*offer.start.passed(os.environ), *run.where.names),
        bind=offer.start.bound,
        needs_mpi=offer.start.needs_mpi,
        gpus="none" if not is_gpu(launch.needs.device) else "shared" if launch.needs.share_device else "own",
        machine=machine_of(run.where, variables),
    )
    for line in command.notes:
        run.note_once(line)
    facts = {"launcher": command.name, "command": list(command.words), **run.where.facts, **_attempts(failed)}
    collector = Collector(run, launch, facts)
    collector.modules_question = question
    if command.local and job_around(os.environ) is None:
        collector.others = OtherWork()
    supervise(
        collector,
        {**spec_of(run, launch), "list_modules": here and MODULES_VARIABLE not in variables},
        words=command.words,
        environ=command.environ,
        local=command.local,
        hosts=hosts_of(request, launch),
        launcher=command.name,
    )


def modules_question(launch: LaunchPlan) -> str:
    """What most that the ranks of a launch load depends on; a benchmark's own modules are few."""
    kinds = sorted({(cell.binding, cell.validate) for cell in launch.cells})
    return question_of(launch.backend, launch.needs.device, kinds)


def _attempts(failed: Sequence[str]) -> dict[str, JsonValue]:
    """The facts of a launch about its attempts: its number, and why the earlier ones did not begin."""
    return {"attempt": len(failed) + 1, **({"failed_attempts": list(failed)} if failed else {})}


def supervise(
    collector: Collector,
    spec: LaunchSpec,
    *,
    words: tuple[str, ...] | None,
    environ: Mapping[str, str] | None = None,
    local: bool = True,
    hosts: tuple[str, ...] = (),
    launcher: str = "",
    announce: Callable[[str, str], None] | None = None,
    failed: Callable[[OmbError], None] = lambda error: None,
) -> None:
    """Supervise a launch to its end. Raises OmbError; cells that were finished are stored in every case.

    Args:
        collector: handles the messages.
        spec: as :func:`spec_of` gives it.
        words: command line of the launcher; None where a foreign launcher has started the ranks.
        environ: environment of the command; None for our own.
        local: whether all ranks run on this machine.
        hosts: hosts of the ranks.
        launcher: name of the launcher, for messages.
        announce: called with address and token of the supervisor before it runs.
        failed: called with an error before it ends the ranks.
    """
    run = collector.run
    handlers = Handlers(
        started=collector.prepare,
        launch=lambda message: collector.facts(message["facts"]),
        cell=collector.cell,
        note=lambda message: run.note_once(str(message["text"])),
        modules=collector.take_modules,
        beat=lambda message: run.command.progress.tick(),
        failed=failed,
    )
    supervisor = Supervisor(
        spec,
        spec["ranks"],
        run.request.launching.timeout,
        command=words,
        environ=environ,
        handlers=handlers,
        local=local,
        hosts=hosts,
        launcher=launcher,
    )
    if announce:
        announce(supervisor.address, supervisor.token)
    try:
        outcome = supervisor.run()
    finally:
        collector.close()
    if outcome.output.strip() and not run.request.printing.quiet:
        run.later.append(f"the ranks printed:\n{outcome.output.rstrip()}")
    for line in outcome.notes:
        run.note(line)


def _run_here(run: Run, launch: LaunchPlan, failed: Sequence[str] = ()) -> None:
    from omb_py.orchestrate.running.rank_process import Position, run_cells  # else the ranks load it

    spec = spec_of(run, launch)
    collector = Collector(run, launch, {"launcher": "none", "command": [], **run.where.facts, **_attempts(failed)})

    def handle(message: Message) -> Message | None:
        if message["type"] == "launch":
            collector.facts(message["facts"])
        elif message["type"] == "cell":
            collector.cell(message)
        return None

    collector.prepare()
    session = find(launch.backend).connect(spec)
    try:
        run_cells(session, spec, LocalLink(handle), Position())
    finally:
        session.close()
        collector.close()


def describe_launch(launch: LaunchPlan) -> str:
    """A launch in words, such as ``mpi, native binding, 2 ranks``."""
    bindings = sorted({cell.binding for cell in launch.cells})
    where = "" if launch.needs.device == HOST else f" on {launch.needs.device}"
    nodes = f" on {', '.join(launch.hosts)}" if 0 < len(launch.hosts) <= MOST_NAMED else ""
    return f"{launch.backend}{where}, {', '.join(bindings)} binding, {launch.ranks} ranks{nodes}"


def _to_stderr(command: CommandState, text: str) -> None:
    command.progress.clear()
    print(f"omb-py: {text}", file=sys.stderr, flush=True)


def unjoined(joined: Joined, size: int, library: str) -> EnvironmentProblem:
    """The error for processes that a launcher started together but that do not see one world."""
    return EnvironmentProblem(
        f"ranks did not join one world: {joined.launcher} started {joined.size} processes, but each world of "
        f"{library} has {size}: {join_hint(joined.launcher)}"
    )
