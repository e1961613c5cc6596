"""A rank process: it joins the others, measures the cells of a launch and streams their results.

It loads no analysis package. Imports stand in functions, so that a rank connects to its parent before it loads NumPy.
"""

from __future__ import annotations

import base64
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from omb_py.engine.devices.registry import find_kind
from omb_py.engine.rank.start_times import StartTimes, process_start_ns
from omb_py.errors import EnvironmentProblem, OmbError, UsageError

KEPT = 32
"""Bytes of a rank for each iteration: its time in ns and in µs, the maximum over ranks and the average."""
CHECKING = 3
"""Buffers that validation adds: the expected content, its inverse and a mask."""


if TYPE_CHECKING:
    from omb_py.engine.program.benchmark import Benchmark, Cell
    from omb_py.engine.session import Session

    Sweep = list[tuple[int, Cell]]


class Channel(Protocol):
    """Where a rank's messages go: a link to the parent, or a function in the same process."""

    def send(self, type: str, **fields: Any) -> None:
        """Send one message of this type."""

    def settle(self) -> None:
        """Wait until the parent is done with all that was sent before: its work does not belong into samples."""


class Position:
    """The current activity of this rank, which heartbeats report."""

    def __init__(self) -> None:
        self.phase, self.cell, self.label = "start", -1, ""
        self.session: Session | None = None
        self.start: StartTimes | None = None
        """Until the first call: what the start is made of."""

    def __call__(self) -> dict[str, Any]:
        """The fields of a heartbeat."""
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


def encode(values: Any) -> dict[str, str]:
    """Encode an array as base64 of little-endian float64."""
    return {"f8": base64.b64encode(values.astype("<f8").tobytes()).decode()}


def run_cells(session: Session, spec: Mapping[str, Any], channel: Channel, position: Position) -> None:
    """Measure the cells of a launch in order. The process with rank 0 streams each one when it is done.

    Args:
        session: the joined ranks.
        spec: the launch, as :func:`omb_py.orchestrate.running.run.spec_of` gives it.
        channel: where messages go.
        position: kept up to date for heartbeats.

    Raises:
        OmbError: the ranks cannot measure these cells.
    """
    from omb_py.engine.measuring.cache_rotation import rotation_marks
    from omb_py.engine.measuring.energy import uncounted
    from omb_py.engine.measuring.host_memory import settle_heap
    from omb_py.engine.measuring.measure import measure, messages, worlds_of
    from omb_py.engine.measuring.pairs import as_round, measure_pairs
    from omb_py.engine.measuring.validate import Log
    from omb_py.engine.program.benchmark import cell_from
    from omb_py.engine.program.requirements import check_needs
    from omb_py.suites.registry import find

    cells = [cell_from(cell) for cell in spec["cells"]]
    log = Log(Path(spec["validation_log"])) if spec.get("validation_log") else None
    root = 0 in session.local
    for name in dict.fromkeys(cell.benchmark for cell in cells):
        check_needs(find(name), session)
    session.check_cells(cells, {cell.benchmark: arranged(find(cell.benchmark)) for cell in cells})
    if any(find(cell.benchmark).family == "guideline" for cell in cells):
        settle_heap()  # else the verdict on a cell depends on which others are measured
    halved = reserve(session, cells, worlds_of(session))
    skews = {kind: session.skew(kind) for kind in dict.fromkeys(("barrier", *(cell.process_sync for cell in cells)))}
    skew = skews["barrier"]
    faulty = _with_faults(session, spec.get("inject"))
    facts = launch_facts(session, spec)
    without_energy = uncounted(session) if any(cell.energy for cell in cells) else ""
    if root:
        channel.send("launch", facts={**facts, "skew_us": skew})
        if facts["devices"]:
            channel.send("note", text=device_map(facts["devices"]))
        if session.device_note:
            channel.send("note", text=session.device_note)
        if without_energy:
            channel.send("note", text=f"--energy counts no energy of {without_energy}")
    if position.start:
        position.start.end("facts and buffers")
    deadline = time.monotonic() + spec["repeat_for"] if spec.get("repeat_for") else 0.0
    number = int(bool(deadline))  # of the pass of a soak; 0 without one
    sweeps = [
        list(group) for _, group in groupby(enumerate(cells), key=lambda item: (item[1].sweep, item[1].benchmark))
    ]
    if len(sweeps) > 1:
        sweeps = _possible(session, sweeps, channel)
    while True:
        for sweep in sweeps:
            name = sweep[0][1].benchmark
            benchmark = arranged(faulty(find(name)), halved)
            for index, cell in sweep:
                position.cell, position.label = index, f"{name} {cell.size} B" if benchmark.sizes else name

                def phase(name: str) -> None:
                    position.phase = name
                    if position.start and name in ("validate", "loop"):
                        position.start.end("first cell's code")
                        if root and spec.get("debug"):
                            channel.send("note", text=f"start of rank 0: {position.start.text()}")
                        position.start = None

                if cell.pairs:
                    for pair_round in measure_pairs(session, benchmark, cell, phase):
                        if root:
                            channel.send("cell", index=index, skew_us=skews["barrier"], **as_round(pair_round, encode))
                            channel.settle()
                    position.phase = "start"
                    continue
                measured = measure(session, benchmark, cell, phase, log)
                measured.marks |= rotation_marks(cell, halved)
                if root:
                    for message in messages(measured, benchmark, encode):
                        channel.send("cell", index=index, skew_us=skews[cell.process_sync], number=number, **message)
                    channel.settle()
                position.phase = "start"
                if session.share(measured.validated) is False:
                    deadline = 0.0  # as in OMB, a size that fails ends the sweep, and a soak with it
                    break
        if session.share(time.monotonic() >= deadline):
            break
        number += 1
    position.phase = "done"
    _late_facts(session, facts, skew, channel)


def _with_faults(session: Session, text: str | None) -> Callable[[Benchmark], Benchmark]:
    """A function that adds the faults that a test asked for to a benchmark. Slowdowns go into the session instead."""
    if not text:
        return lambda benchmark: benchmark
    from omb_py.testing.faults import inject

    return inject(session, text)


def _possible(session: Session, sweeps: list[Sweep], channel: Channel) -> list[Sweep]:
    """The sweeps that the library can run. For each other one the parent gets the reason."""
    from omb_py.engine.measuring.measure import worlds_of
    from omb_py.suites.registry import find

    def lacking(sweep: Sweep) -> str:
        cells = {(cell.benchmark, cell.dtype, cell.workload): cell for _, cell in sweep}.values()
        programs = (find(c.benchmark).program(world, c) for c in cells for world in worlds_of(session).values())
        return session.lacks(programs)

    gathered = session.gather([lacking(sweep) for sweep in sweeps])
    first = [next(filter(None, by_rank), "") for by_rank in zip(*gathered, strict=True)] if gathered else None
    reasons = session.share(first)
    for sweep, why in zip(sweeps, reasons, strict=True):
        if why and 0 in session.local:
            channel.send("cell", indexes=[index for index, _ in sweep], lacking=why)
    return [sweep for sweep, why in zip(sweeps, reasons, strict=True) if not why]


def arranged(benchmark: Benchmark, halved: int = 0) -> Benchmark:
    """The benchmark with the cache rotation (its span halved so often), synchronisation and timing of its cells."""
    from omb_py.backends.registry import capabilities
    from omb_py.engine.measuring.async_timing import Multiplicity, with_timing
    from omb_py.engine.measuring.cache_rotation import with_cache
    from omb_py.engine.measuring.process_sync import with_sync

    def multiplicity(cell: Cell) -> Multiplicity:
        option = capabilities(cell.backend).option
        return option.multiplicity(cell.settings) if option else Multiplicity()

    return with_timing(with_sync(with_cache(benchmark, halved)), multiplicity)


def reserve(session: Session, cells: list[Any], worlds: Mapping[int, Any]) -> int:
    """Check on all ranks that the largest cell and the times of all its calls fit, then allocate.

    Returns:
        How many times the span of ``--cache rotate`` was halved to fit, on every rank alike.

    Raises:
        UsageError: it does not fit; on every rank alike.
    """
    import numpy as np

    from omb_py.engine.measuring.cache_rotation import MOST_HALVED
    from omb_py.engine.measuring.host_memory import available_bytes

    rank, among = min(session.local), len(session.local)
    neighbours = max(1, session.hosts.count(session.hosts[rank]))
    for halved in range(MOST_HALVED + 1 if any(cell.cache == "rotate" for cell in cells) else 1):
        kinds, ours = _buffers(cells, worlds, halved)
        needed = sum(sum(sizes.values()) for sizes in kinds.values())
        times = KEPT * max((cell.iterations for cell in cells if not cell.auto and cell.time_limit is None), default=0)
        needed += times
        if any(cell.validate for cell in cells):
            needed += CHECKING * max((nbytes for sizes in kinds.values() for nbytes in sizes.values()), default=0)
        free = available_bytes()
        on_device = session.memory_left()
        fits = free // neighbours if on_device is None else min(free // neighbours, on_device)
        short = float(needed > fits) if among == 1 else float(needed * among > free)
        if not session.total(np.array([short]))[0]:
            break
    else:
        raise UsageError(session.share(_shortest(session.gather((fits, needed, times, rank, session.hosts[rank])))))
    for kind, sizes in kinds.items():
        session.reserve(kind, {name: nbytes for name, nbytes in sizes.items() if name in ours[kind]})
    return halved


Sizes = dict[str, dict[str, int]]
"""Kind of buffer -> name -> bytes."""


def _buffers(cells: list[Any], worlds: Mapping[int, Any], halved: int) -> tuple[Sizes, dict[str, set[str]]]:
    """The buffers of all cells, and of each kind the names of those that are allocated here."""
    from omb_py.engine.measuring.measure import buffers_needed
    from omb_py.suites.registry import find

    kinds: Sizes = {}
    ours: dict[str, set[str]] = {}
    for name in dict.fromkeys(cell.benchmark for cell in cells):  # in one order on all ranks
        same = [cell for cell in cells if cell.benchmark == name]
        benchmark = arranged(find(name), halved)
        for world in worlds.values():
            allocated = set(buffers_needed(benchmark, same, world, ours=True))
            for buffer, nbytes in buffers_needed(benchmark, same, world).items():
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


def launch_facts(session: Session, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Facts of the library, of each rank and of each node. They are complete in the process with rank 0."""
    from omb_py.engine.rank.system_info import node_facts, rank_facts, software
    from omb_py.results.store.redact import allowed_environment, redact_text

    hosts = list(session.hosts)
    on_node = numbers_on_node(hosts)
    ranks = [rank_facts(rank, on_node[rank]) for rank in session.local]
    nodes = [node_facts()] if any(on_node[rank] == 0 for rank in session.local) else []
    for kind in sorted({str(place["device"]).partition(":")[0] for place in session.places}) if nodes else ():
        if (gpus := find_kind(kind).machine_facts()) is not None:
            nodes[0]["gpus"] = gpus
    for node in nodes:  # kernel parameters may hold secrets, as variables may
        node["kernel_command_line"] = redact_text(node["kernel_command_line"] or "")
    gathered = session.gather((ranks, nodes))
    return {
        "ranks": session.size,
        "hosts": hosts,
        "library": session.library,
        "library_version": session.library_version,
        "library_string": session.library_string,
        "binding_version": session.binding_version,
        "thread_level": session.thread_level,
        "device_name": session.device_name,
        "devices": list(session.places),
        "rank_facts": [fact for part, _ in gathered for fact in part],
        "node_facts": [fact for _, part in gathered for fact in part],
        # of rank 0 alone: the reader of package versions is as large as all else of the standard library here
        "software": software({"library": f"{session.library} {session.library_version}"}) if 0 in session.local else {},
        "environment": allowed_environment(os.environ) if 0 in session.local else {},
    }


def numbers_on_node(hosts: Sequence[str]) -> list[int]:
    """The number of each rank on its node, counted from 0."""
    counters: defaultdict[str, Iterator[int]] = defaultdict(count)
    return [next(counters[host]) for host in hosts]


def device_map(places: list[Mapping[str, Any]]) -> str:
    """The device of each rank, in one line."""
    # ranks that each see a device of their own all call it by the same number, so its identity is added
    numbers = len({(place["host"], place["device"]) for place in places})
    alike = numbers < len({(place["host"], place["identity"]) for place in places})
    parts = [f"{p['rank']} → {p['host']} {p['device']}{' ' + str(p['identity']) if alike else ''}" for p in places]
    names = dict.fromkeys(str(place["name"]) for place in places)
    return f"rank → device: {', '.join(parts)} ({', '.join(names)})"


def _late_facts(session: Session, facts: dict[str, Any], skew: float | None, channel: Channel) -> None:
    """Send the facts with the list of loaded libraries. It is read after the last cell, because that takes a while."""
    from omb_py.engine.rank.system_info import loaded_libraries

    if 0 in session.local:
        channel.send("launch", facts={**facts, "skew_us": skew, "loaded_libraries": loaded_libraries()})


def serve(link: Any) -> int:
    """Measure as a rank process that omb-py started. Returns the exit code."""

    def connect(spec: Mapping[str, Any]) -> Session:
        from omb_py.backends.registry import find

        return find(spec["backend"]).connect({**spec, "meet": link.meet, "host": link.host})

    return _measure(link, connect)


def measure_on(link: Any, session: Session) -> int:
    """Measure in a process that a foreign launcher started, and that has joined its world. Returns the exit code."""
    return _measure(link, lambda spec: session)


def _measure(link: Any, connect: Callable[[Mapping[str, Any]], Session]) -> int:
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
        session.close()
        return code
    except OmbError as error:
        link.send("error", code=error.exit_code, text=str(error))
    except Exception as error:
        if spec.get("debug"):
            import traceback

            traceback.print_exc()
        link.send("error", code=EnvironmentProblem.exit_code, text=_explain(error, position))
    link.done()
    # MPI may be in any state now, so it is not finalised; the parent ends the other ranks
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(EnvironmentProblem.exit_code)


def _explain(error: Exception, position: Position) -> str:
    from omb_py.engine.session import StepFailed

    where = f" in {position.label} ({position.phase})" if position.label else ""
    if isinstance(error, StepFailed) and position.session is not None:
        return f"{position.session.doing(error.step)} failed{where}: {error.text}"
    return f"a rank failed{where}: {type(error).__name__}: {error}"


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
