"""A rank process: it joins the others, measures the cells of a launch and streams their results.

It loads no analysis package. Imports stand in functions, so that a rank connects to its parent before it loads NumPy.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count, groupby
from typing import TYPE_CHECKING

from omb_py import class_code
from omb_py.engine.rank.start_times import StartTimes, process_start_ns
from omb_py.errors import EnvironmentProblem, OmbError, UsageError
from omb_py.process_end import code_for_caller

KEPT = 32
"""Bytes of a rank for each iteration: its time in ns and in µs, the maximum over ranks and the average."""
CHECKING = 3
"""Buffers that validation adds: the expected content, its inverse and a mask."""


if TYPE_CHECKING:
    from omb_py.engine.measuring.validate import Log
    from omb_py.engine.program.benchmark import Benchmark, Cell, World
    from omb_py.engine.rank.launch_facts import DevicePlace, LaunchFacts
    from omb_py.engine.rank.link import Channel, LaunchSpec, Link
    from omb_py.engine.session import Session
    from omb_py.grammar.json_values import JsonValue

    Sweep = list[tuple[int, Cell]]


class _NothingLeft(EnvironmentProblem):
    """No benchmark of the launch can run: all ranks know it, and nothing is under way."""


class Position:
    """The current activity of this rank, which heartbeats report."""

    def __init__(self) -> None:
        self.phase, self.cell, self.label = "start", -1, ""
        self.session: Session | None = None
        self.start: StartTimes | None = None
        """Until the first call: what the start is made of."""

    def __call__(self) -> dict[str, JsonValue]:
        iteration, step, doing = 0, 0, self.phase
        if self.session is not None and self.phase in ("validate", "loop"):
            iteration, step = self.session.position()
            doing = self.session.doing(step)
        return {
            "phase": self.phase,
            "cell": self.cell,
            "label": self.label,
            "iteration": iteration,
            "step": step,
            "doing": doing,
        }


def run_cells(session: Session, spec: LaunchSpec, channel: Channel, position: Position) -> None:
    """Measure the cells of a launch in order. The process with rank 0 streams each one when it is done.

    Args:
        session: the joined ranks.
        spec: the launch, as :func:`omb_py.orchestrate.running.run.spec_of` gives it.
        channel: where messages go.
        position: kept up to date for heartbeats.

    Raises:
        OmbError: the ranks cannot measure these cells.
    """
    try:
        LaunchOfCells(session, spec, channel, position).run()
    finally:
        session.listener = None  # else a simulation would keep its run, and the run's lock, as long as its session


class LaunchOfCells:
    """The cells of a launch: they are checked, memory is reserved, and each is measured and sent to the parent."""

    def __init__(self, session: Session, spec: LaunchSpec, channel: Channel, position: Position) -> None:
        from omb_py.engine.measuring.measure import worlds_of
        from omb_py.engine.program.benchmark import cell_from
        from omb_py.suites.lookup import learn_homes

        self.session, self.spec, self.channel, self.position = session, spec, channel, position
        self.sends = 0 in session.local
        """Whether this process holds rank 0, which sends the results."""
        session.listener = self._tell if self.sends else None
        self.indexed = [(index, cell_from(cell)) for index, cell in enumerate(spec["cells"])]
        """The cells that can be measured, each with its place in the launch."""
        self.modes = bool(spec.get("modes", True))
        learn_homes(spec.get("homes") or {})
        self._check()
        self.cells = [cell for _, cell in self.indexed]
        self.halved = reserve(session, self.cells, worlds_of(session), self.modes)
        kinds = dict.fromkeys(("barrier", *(cell.options.process_sync for cell in self.cells)))
        self.skews = {kind: session.skew(kind) for kind in kinds}
        self.with_faults = _make_fault_adder(session, spec.get("inject"))
        self.unsettled = False
        """Whether the parent may still be working on the last cell."""
        self.log = _log_in(spec.get("validation_log"))

    def _tell(self, text: str) -> None:
        self.channel.send("note", text=text)

    def _check(self) -> None:
        """Leave benchmarks out that the ranks cannot run, and tell the parent why. Raises where none is left."""
        from omb_py.engine.measuring.host_memory import settle_heap
        from omb_py.engine.program.requirements import check_needs
        from omb_py.suites.lookup import find_benchmark

        benchmarks = {name: find_benchmark(name) for name in dict.fromkeys(cell.benchmark for _, cell in self.indexed)}
        problems: dict[str, EnvironmentProblem] = {}
        for name, benchmark in benchmarks.items():
            try:
                check_needs(benchmark, self.session)
            except EnvironmentProblem as problem:
                problems[name] = problem
        if problems and len(problems) == len(benchmarks):  # a resumed launch may have none left
            raise _NothingLeft(str(next(iter(problems.values()))))
        self.left_out = [(sweep, str(problems[name])) for name, sweep in self._sweeps() if name in problems]
        self.indexed = [(index, cell) for index, cell in self.indexed if cell.benchmark not in problems]
        self.session.check_cells(
            [cell for _, cell in self.indexed],
            {name: arranged(benchmarks[name], modes=self.modes) for name in benchmarks if name not in problems},
        )
        if any(benchmark.family == "guideline" for benchmark in benchmarks.values()):
            settle_heap()  # else the verdict on a cell depends on which others are measured

    def run(self) -> None:
        """Measure all cells; in a soak, pass after pass."""
        facts = launch_facts(self.session, self.spec)
        self._send_facts(facts)
        self.session.sleeping_barrier()  # rank 0 has gathered the facts of its node and of the software
        if self.position.start:
            self.position.start.end("facts and buffers")
        seconds, passes = self.spec.get("repeat_for"), self.spec.get("passes") or 0
        deadline = time.monotonic() + seconds if seconds else 0.0
        number = int(bool(seconds or passes))  # of the pass of a soak; 0 without one
        for sweep, reason in self.left_out:
            self._leave_out(sweep, reason)
        sweeps = [sweep for _, sweep in self._sweeps()]
        if len(sweeps) > 1:
            sweeps = self._select_possible(sweeps)
        while True:
            # as in OMB, a size that fails ends its sweep, and a soak with it
            valid = [self._run_sweep(sweep, number) for sweep in sweeps]
            if self.session.share(not all(valid) or (number >= passes and time.monotonic() >= deadline)):
                break
            number += 1
        self.position.phase = "done"
        self._send_late_facts(facts)

    def _sweeps(self) -> list[tuple[str, Sweep]]:
        """The cells of each benchmark and request, with the benchmark's name."""
        grouped = groupby(self.indexed, key=lambda item: (item[1].sweep, item[1].benchmark))
        return [(name, list(sweep)) for (_, name), sweep in grouped]

    def _leave_out(self, sweep: Sweep, reason: str) -> None:
        if self.sends:
            self.channel.send("cell", indexes=[index for index, _ in sweep], lacking=reason)

    def _select_possible(self, sweeps: list[Sweep]) -> list[Sweep]:
        """The sweeps that the library can run. For each other one the parent gets the reason."""
        from omb_py.engine.measuring.measure import worlds_of
        from omb_py.suites.lookup import find_benchmark

        def lacking(sweep: Sweep) -> str:
            cells = {(cell.benchmark, cell.dtype, cell.options.workload): cell for _, cell in sweep}.values()
            worlds = worlds_of(self.session).values()
            return self.session.lacks(find_benchmark(c.benchmark).program(world, c) for c in cells for world in worlds)

        gathered = self.session.gather([lacking(sweep) for sweep in sweeps])
        reasons = self.session.share([next(filter(None, by_rank), "") for by_rank in zip(*gathered, strict=True)])
        for sweep, reason in zip(sweeps, reasons, strict=True):
            if reason:
                self._leave_out(sweep, reason)
        return [sweep for sweep, reason in zip(sweeps, reasons, strict=True) if not reason]

    def _send_facts(self, facts: LaunchFacts) -> None:
        observers = {name: text for cell in self.cells for name, text in cell.observers.items()}
        missing: list[str] = []
        if observers:
            from omb_py.engine.observers.registry import find  # a rank without observers loads none

            missing = [find(name).explain_missing(self.session, text) for name, text in observers.items()]
        if not self.sends:
            return
        self.channel.send("launch", facts={**facts, "skew_us": self.skews["barrier"]})
        devices = device_map(facts["devices"]) if facts["devices"] else ""
        for note in (devices, self.session.device_note, *missing):
            self.session.say(note)

    def _send_late_facts(self, facts: LaunchFacts) -> None:
        """Send the facts with what is known, or quickly read, after the last cell alone: loaded libraries, memory."""
        from omb_py.engine.rank.system_info import loaded_libraries

        memory = self.session.memory_used()
        if self.sends:
            late = {**facts, "skew_us": self.skews["barrier"], "loaded_libraries": loaded_libraries()}
            late |= {"device_memory": memory} if memory else {}
            self.channel.send("launch", facts=late)
            class_code.save()
            if self.spec.get("list_modules"):
                self.channel.send("modules", names=sorted(sys.modules))

    def _run_sweep(self, sweep: Sweep, number: int) -> bool:
        """Measure the sizes of a benchmark up to the first that does not validate. Returns whether all did."""
        from omb_py.suites.lookup import find_benchmark

        name = sweep[0][1].benchmark
        benchmark = arranged(self.with_faults(find_benchmark(name)), self.halved, self.modes, self.session.cache_bytes)
        for index, cell in sweep:
            self.position.cell, self.position.label = index, f"{name} {cell.size} B" if benchmark.sizes else name
            validated = (self._measure_pairs if cell.pairs else self._measure)(benchmark, cell, index, number)
            self.position.phase = "start"
            if validated is False:
                return False
        return True

    def _measure(self, benchmark: Benchmark, cell: Cell, index: int, number: int) -> bool | None:
        from omb_py.engine.measuring.cache_rotation import rotation_marks
        from omb_py.engine.measuring.measure import measure

        result = measure(self.session, benchmark, cell, self._enter_phase, self.log)
        result.index, result.number, result.skew_us = index, number, self.skews[cell.options.process_sync]
        result.marks |= rotation_marks(cell, self.halved, self.session.cache_bytes)
        if self.sends:
            for of_lap in result.split_by_lap(benchmark):
                self.channel.send("cell", **of_lap.to_message())
            self.unsettled = True
        return self.session.share(result.validated)

    def _measure_pairs(self, benchmark: Benchmark, cell: Cell, index: int, number: int) -> None:
        from dataclasses import replace

        from omb_py.engine.measuring.pairs import measure_pairs

        for finished in measure_pairs(self.session, benchmark, cell, self._enter_phase):
            if self.sends:
                finished = replace(finished, index=index, skew_us=self.skews["barrier"])
                self.channel.send("cell", **finished.to_message())
                self.channel.settle()  # the next round begins at once

    def _enter_phase(self, name: str) -> None:
        position = self.position
        position.phase = name
        if self.unsettled and name in ("validate", "loop"):
            # the parent has worked on the cell before while this one was set up, and does not beside its loop
            self.channel.settle()
            self.unsettled = False
        if position.start and name in ("validate", "loop"):
            position.start.end("first cell's code")
            if self.sends and self.spec.get("debug"):
                self._tell(f"start of rank 0: {position.start.text()}")
            position.start = None


def _log_in(folder: str | None) -> Log | None:
    if not folder:
        return None
    from pathlib import Path

    from omb_py.engine.measuring.validate import Log

    return Log(Path(folder))


def _make_fault_adder(session: Session, text: str | None) -> Callable[[Benchmark], Benchmark]:
    """A function that adds the faults that a test asked for to a benchmark. Slowdowns go into the session instead."""
    if not text:
        return lambda benchmark: benchmark
    from omb_py.testing.faults import inject

    return inject(session, text)


def arranged(benchmark: Benchmark, halved: int = 0, modes: bool = True, cache_bytes: int = 0) -> Benchmark:
    """The benchmark with the cache rotation (its span halved so often), synchronisation and timing of its cells.

    Without `modes` no cell has a mode of timing, nor a backend that makes several calls at once.
    """
    from omb_py.engine.measuring.cache_rotation import with_cache
    from omb_py.engine.measuring.process_sync import with_sync

    synchronised = with_sync(with_cache(benchmark, halved, cache_bytes))
    if not modes:
        return synchronised
    from omb_py.backends.registry import capabilities
    from omb_py.engine.measuring.async_timing import Multiplicity, with_timing

    def multiplicity(cell: Cell) -> Multiplicity:
        option = capabilities(cell.backend).option
        return option.multiplicity(cell.settings) if option else Multiplicity()

    return with_timing(synchronised, multiplicity)


def reserve(session: Session, cells: Sequence[Cell], worlds: Mapping[int, World], modes: bool = True) -> int:
    """Check on all ranks that the largest cell and the times of all its calls fit, then allocate.

    Returns:
        How many times the span of ``--cache rotate`` was halved to fit, on every rank alike.

    Raises:
        UsageError: it does not fit; on every rank alike.
    """
    from omb_py.engine.measuring.cache_rotation import MOST_HALVED
    from omb_py.engine.measuring.host_memory import available_bytes

    rank, among = min(session.local), len(session.local)
    neighbours = max(1, session.hosts.count(session.hosts[rank]))
    for halved in range(MOST_HALVED + 1 if any(cell.options.cache == "rotate" for cell in cells) else 1):
        kinds, ours = _buffers(cells, worlds, halved, modes, session.cache_bytes)
        needed = sum(sum(sizes.values()) for sizes in kinds.values())
        times = KEPT * max(
            (cell.sampling.iterations for cell in cells if not cell.sampling.auto and cell.sampling.time_limit is None),
            default=0,
        )
        checked = any(cell.validate for cell in cells)
        free, on_device = available_bytes(), session.memory_left()
        on_host = times + (needed if on_device is None or session.stages() or checked else 0)
        if checked:
            on_host += CHECKING * max((nbytes for sizes in kinds.values() for nbytes in sizes.values()), default=0)
        # what there is and what is wanted, where least is left
        fits, needed = min(
            ((free // neighbours, on_host), *([] if on_device is None else [(on_device, needed)])),
            key=lambda memory: memory[0] - memory[1],
        )
        short = float(needed > fits) if among == 1 else float(needed * among > free)
        if not session.total(array("d", [short]))[0]:
            break
    else:
        raise UsageError(session.share(_shortest(session.gather((fits, needed, times, rank, session.hosts[rank])))))
    for kind, sizes in kinds.items():
        session.reserve(kind, {name: nbytes for name, nbytes in sizes.items() if name in ours[kind]})
    return halved


Sizes = dict[str, dict[str, int]]
"""Kind of buffer -> name -> bytes."""


def _buffers(
    cells: Sequence[Cell], worlds: Mapping[int, World], halved: int, modes: bool, cache_bytes: int
) -> tuple[Sizes, dict[str, set[str]]]:
    """The buffers of all cells, and of each kind the names of those that are allocated here."""
    from omb_py.engine.measuring.measure import buffers_needed
    from omb_py.suites.lookup import find_benchmark

    kinds: Sizes = {}
    ours: dict[str, set[str]] = {}
    for name in dict.fromkeys(cell.benchmark for cell in cells):  # in one order on all ranks
        same = [cell for cell in cells if cell.benchmark == name]
        benchmark = arranged(find_benchmark(name), halved, modes, cache_bytes)
        for world in worlds.values():
            needed, allocated = buffers_needed(benchmark, same, world)
            for buffer, nbytes in needed.items():
                for cell in same:
                    sizes = kinds.setdefault(cell.buffer, {})
                    sizes[buffer] = max(sizes.get(buffer, 0), nbytes)
                    ours.setdefault(cell.buffer, set()).update(allocated)
    return kinds, ours


def _shortest(parts: list[tuple[int, int, int, int, str]]) -> str:
    if not parts:
        return ""
    fits, needed, times, rank, host = min(parts, key=lambda part: part[0] - part[1])
    what, instead = ("the largest message needs", "-m") if 2 * times < needed else ("the times of all calls need", "-i")
    return (
        f"{what} {needed / 2**20:,.0f} MiB on rank {rank} ({host}), "
        f"which has {fits / 2**20:,.0f} MiB free for it: choose a smaller {instead} or fewer ranks on a node"
    )


def launch_facts(session: Session, spec: LaunchSpec) -> LaunchFacts:
    """Facts of the library, of each rank and of each node. They are complete in the process with rank 0."""
    from omb_py.engine.rank.system_info import node_facts, rank_facts, software

    hosts = list(session.hosts)
    on_node = numbers_on_node(hosts)
    ranks = [rank_facts(rank, on_node[rank]) for rank in session.local]
    nodes = [node_facts()] if any(on_node[rank] == 0 for rank in session.local) else []
    for kind in sorted({str(place["device"]).partition(":")[0] for place in session.places}) if nodes else ():
        from omb_py.engine.devices.registry import find_kind  # where there is a device

        if (gpus := find_kind(kind).machine_facts()) is not None:
            nodes[0]["gpus"] = gpus
    if nodes or 0 in session.local:
        from omb_py.results.store.redact import allowed_environment, redact_text
    for node in nodes:  # kernel parameters may hold secrets, as variables may
        node["kernel_command_line"] = redact_text(str(node["kernel_command_line"] or ""))
    gathered = session.gather((ranks, nodes))
    return {
        "ranks": session.size,
        "hosts": hosts,
        "library": session.library,
        "library_version": session.library_version,
        "library_string": session.library_string,
        "standard": session.standard,
        "binding_version": session.binding_version,
        "thread_level": session.thread_level,
        "device_name": session.device_name,
        "devices": list(session.places),
        "rank_facts": [fact for part, _ in gathered for fact in part],
        "node_facts": [fact for _, part in gathered for fact in part],
        # of rank 0 alone: the reader of package versions is as large as all else of the standard library here
        "software": software({"library": f"{session.library} {session.library_version}"}) if 0 in session.local else {},
        "environment": allowed_environment(os.environ, tuple(spec.get("prefixes") or ())) if 0 in session.local else {},
    }


def numbers_on_node(hosts: Sequence[str]) -> list[int]:
    counters: defaultdict[str, Iterator[int]] = defaultdict(count)
    return [next(counters[host]) for host in hosts]


def device_map(places: Sequence[DevicePlace]) -> str:
    # ranks that each see a device of their own all call it by the same number, so its identity is added
    numbers = len({(place["host"], place["device"]) for place in places})
    alike = numbers < len({(place["host"], place["identity"]) for place in places})
    parts = [f"{p['rank']} → {p['host']} {p['device']}{' ' + str(p['identity']) if alike else ''}" for p in places]
    names = dict.fromkeys(str(place["name"]) for place in places)
    return f"rank → device: {', '.join(parts)} ({', '.join(names)})"


def serve(link: Link) -> int:
    """Measure as a rank process that omb-py started. Returns the exit code."""

    def join(spec: LaunchSpec) -> Session:
        from omb_py.backends.connecting import connect

        return connect({**spec, "meet": link.meet, "host": link.host})

    return _measure(link, join, ignore_interrupts)


def ignore_interrupts() -> None:
    """Ignore SIGINT from now on: all is told, and nobody would say why this rank failed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def measure_on(link: Channel, session: Session, before_end: Callable[[], None]) -> int:
    """Measure in a process that a foreign launcher started, and that has joined its world. Returns the exit code.

    `before_end` is called when all is told, before the library ends.
    """
    return _measure(link, lambda spec: session, before_end)


def _measure(link: Channel, connect: Callable[[LaunchSpec], Session], before_end: Callable[[], None]) -> int:
    times = StartTimes(process_start_ns())
    times.end("Python and report")
    spec = link.spec()
    times.end("parent's answer")
    position = Position()
    position.start = times
    link.watch(position)
    try:
        session = connect(spec)
        times.end("imports and library")
        position.session = session
        link.joined(min(session.local), session.size)
        if session.size != spec["ranks"]:
            return int(link.done())  # the parent reports the failure
        run_cells(session, spec, link, position)
        code = int(link.done())
        before_end()
        session.close()
        return code
    except _NothingLeft as error:
        # the library ends on all ranks before one of them exits: a launcher kills those that are still in it
        before_end()
        session.close()
        link.send("error", code=error.exit_code, text=str(error), everywhere=True)
        return int(link.done())
    except OmbError as error:
        code = error.exit_code
        link.send("error", code=code, text=str(error))
    except Exception as error:
        code = EnvironmentProblem.exit_code
        if spec.get("debug"):
            import traceback

            traceback.print_exc()
        link.send("error", code=code, text=_explain(error, position))
    link.done()
    # MPI may be in any state now, so it is not finalised; the parent ends the other ranks
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code_for_caller(code))


def _explain(error: Exception, position: Position) -> str:
    from omb_py.engine.session import StepFailed
    from omb_py.plug_ins import described

    where = f" in {position.label} ({position.phase})" if position.label else ""
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        todo = "take a smaller -m or fewer ranks (-n), or raise its limit (ulimit -v)"
        return f"{_find_own_name()} ran out of memory{where}: {todo}"
    if isinstance(error, StepFailed) and position.session is not None:
        return f"{position.session.doing(error.step)} failed{where}: {error.text}"
    return f"{_find_own_name()} failed{where}: {described(error)}"


def _find_own_name() -> str:
    import socket

    from omb_py.engine.rank.launcher_variables import environment_rank

    rank, _ = environment_rank(os.environ)
    return f"{'a rank' if rank is None else f'rank {rank}'} on {socket.gethostname()} (pid {os.getpid()})"


def main() -> int:
    """Entry point of a rank process that omb-py started. Returns the exit code."""
    from omb_py.engine.rank.link import Link
    from omb_py.engine.rank.reporting import LinkRefused
    from omb_py.orchestrate.supervision.agent_start import agent_of_this_node

    try:
        link = Link.from_environment(timeout=60, agent=agent_of_this_node)
    except LinkRefused as problem:
        print(f"omb-py: {problem}", file=sys.stderr)
        return problem.exit_code
    if link is None:
        print("omb-py: this module is started by omb-py, not by hand; try: omb-py --help", file=sys.stderr)
        return UsageError.exit_code
    return serve(link)


if __name__ == "__main__":
    sys.exit(main())
