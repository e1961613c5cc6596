"""Text of ``omb-py explain``: the steps of each rank, the timed ones among them, and the formula of the result."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill, wrap

from omb_py.backends.registry import default, find
from omb_py.engine.program.benchmark import LARGE_MESSAGE_BYTES, Benchmark, Cell, World, halves
from omb_py.engine.program.datatype_layouts import volume_of
from omb_py.engine.program.dtypes import DTYPES
from omb_py.engine.program.language import Body, Host, Lap, Program, Repeat, Stage, Stamp, Step
from omb_py.engine.program.rma import WINDOWS
from omb_py.engine.program.step_text import describe
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.options.table import make_cell, usual_cell
from omb_py.orchestrate.planning.availability import backend_problem
from omb_py.orchestrate.planning.rules import check_ranks
from omb_py.orchestrate.supervision.rank_state import numbers
from omb_py.results.dialects.omb.titles import origin
from omb_py.suites.imb.threads import IN_THREADS, threads_of

MAX_WIDTH = 100
"""Most columns for programs side by side; wider ones stand below each other."""
FACT_WIDTH = 120
"""Width of the lines below the programs."""
_TIMED, _UNTIMED = "| ", "  "


def default_size(benchmark: Benchmark) -> int:
    """Return the size that is explained by default: 8 bytes, or the benchmark's smallest size if that is larger."""
    return 0 if benchmark.sizes is None else max(8, benchmark.sizes.minimum)


def explain(
    benchmark: Benchmark,
    ranks: int,
    size: int | None = None,
    window: int | None = None,
    backend: str | None = None,
    window_kind: str | None = None,
    sync: str | None = None,
) -> str:
    """Describe what a benchmark does on each rank.

    Args:
        benchmark: the benchmark.
        ranks: world size.
        size: message size in bytes; None: :func:`default_size`.
        window: messages in flight, for benchmarks with a window.
        backend: name of the backend; None: the default one.
        window_kind: kind of the window, for one-sided benchmarks.
        sync: synchronization, for one-sided benchmarks.

    Raises:
        UsageError: the benchmark does not admit `ranks`, `size` holds no element, or no backend has the name.
        EnvironmentProblem: the backend cannot do the benchmark.
    """
    check_ranks(benchmark, ranks)
    nbytes = default_size(benchmark) if size is None else size
    item = DTYPES[benchmark.dtype].itemsize
    if 0 < nbytes < item:
        raise UsageError(f"{nbytes} bytes hold no element of {benchmark.dtype} ({item} bytes): use {item} or more")
    given = {"window": window, "window_kind": window_kind, "sync": sync}
    (nbytes,) = benchmark.sizes_for(benchmark.dtype, (nbytes,))
    backend = backend or default()
    cell = make_cell(benchmark, backend, "native", nbytes, **{name: value for name, value in given.items() if value})
    offer = find(backend).capabilities
    if why := backend_problem(offer, benchmark, [cell]):
        raise EnvironmentProblem(why)
    cell = offer.fitted(benchmark, cell, usual_cell(benchmark))
    hosts = halves(ranks) if benchmark.ranks.over_nodes else ()
    programs = [benchmark.program(World(rank, ranks, hosts), cell) for rank in range(ranks)]
    head = fill(f"{benchmark.name}: {benchmark.summary} ({origin(benchmark.name)})", FACT_WIDTH)
    message = f", messages of {nbytes} B ({nbytes // item} × {benchmark.dtype})" if benchmark.sizes else ""
    if benchmark.once:
        note = "Measured while the ranks start, before there is a loop: one sample a launch."
        return "\n".join([head, "", note, "", *_facts(benchmark, cell, ranks, window)])
    title = f"What each of the {ranks} ranks does in one iteration{message}; lines with | are timed:"
    return "\n".join([head, "", title, "", *_listing(programs), "", *_facts(benchmark, cell, ranks, window)])


def _facts(b: Benchmark, cell: Cell, ranks: int, window: int | None) -> list[str]:
    count = b.counts
    unit = "µs" if b.metric.unit == "us" else b.metric.unit
    facts = [
        ("printed", f"{b.metric.formula}; in {unit}"),
        ("timed on", f"{b.timed_words}, one sample an iteration: {_sample(b, cell)}"),
        ("ranks", b.ranks.text),
    ]
    if b.sizes is not None:
        facts.append(("sizes", f"{b.sizes.minimum} to {b.sizes.maximum} bytes, doubling, of {b.dtype}"))
        facts.append(
            (
                "iterations",
                f"at most {count.small} after {count.small_warmup} warm-ups; above {LARGE_MESSAGE_BYTES} "
                f"bytes at most {count.large} after {count.large_warmup}",
            )
        )
        facts.append(("in all", f"{volume_of(b, cell, ranks).bytes_total} bytes in the whole operation"))
    else:
        facts.append(("iterations", f"at most {count.small} after {count.small_warmup} warm-ups"))
    if b.bandwidth:
        alone = ", of call and wait alone (pure)" if b.metric.communication else ""
        facts.append(("algbw, busbw", f"formula {b.bandwidth}{alone}"))
    if "window" in b.options:
        facts.append(("window", f"{cell.options.window} messages in flight{'' if window else ' (default)'}"))
    if "window_kind" in b.options:
        kind = cell.options.window_kind
        facts.append(("window made by", f"{WINDOWS[kind]} (-w {kind}), untimed, once a size"))
        facts.append(("completed by", f"-s {cell.options.sync}"))
    if "thread_counts" in b.options:
        facts.append(("threads", f"{_threads(b.name, cell)} (default): thread t of T runs every T-th iteration from t"))
    if "op" in b.options:
        facts.append(("reduction", f"{cell.options.op} (default)"))
    facts.append(("thread level", f"{b.needs.thread_level}; with binding mpi4py multiple, its own default"))
    if "validation" in b.options:
        facts.append(("validation", "with -c the same steps run apart from the timed ones, and every byte is checked"))
    width = max(len(name) for name, _ in facts)
    lines = []
    for name, text in facts:
        lines += wrap(text, FACT_WIDTH, initial_indent=f"{name:<{width}}  ", subsequent_indent=" " * (width + 2))
    return lines


def _sample(b: Benchmark, cell: Cell) -> str:
    if b.metric.adds:
        return f"the sum of the laps {', '.join(b.metric.adds)}"
    parts = b.metric.parts_of(cell)
    return "the lap" + (f" divided by {parts}" if parts != 1 else "")


def _listing(programs: Sequence[Program]) -> list[str]:
    """List the programs, one for all ranks with the same, side by side where they fit."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for rank, program in enumerate(programs):
        groups.setdefault(tuple(_program_lines(program)), []).append(rank)
    columns = [[numbers(members).replace("-", "–"), *lines] for lines, members in groups.items()]
    widths = [max(len(line) for line in column) for column in columns]
    if sum(widths) + 3 * len(widths) > MAX_WIDTH:
        return [line for column in columns for line in [*(f"  {text}".rstrip() for text in column), ""]][:-1]
    height = max(len(column) for column in columns)
    rows = []
    for i in range(height):
        cells = (column[i] if i < len(column) else "" for column in columns)
        rows.append(("  " + "   ".join(f"{cell:<{w}}" for cell, w in zip(cells, widths, strict=True))).rstrip())
    return rows


def _program_lines(program: Program) -> list[str]:
    lines: list[str] = []
    for stage in program.stages:
        lines.extend(_stage_lines(stage, named=len(program.stages) > 1))
    return lines


def _stage_lines(stage: Stage, named: bool) -> list[str]:
    lines = [f"stage {stage.name}"] if named else []
    if stage.setup:
        lines += [_UNTIMED + "before the iterations:", *_lines(stage.setup, False)[0]]
    for number, variant in enumerate(stage.variants):
        if len(stage.variants) > 1:
            lines.append(f"{_UNTIMED}iterations {number}, {number + len(stage.variants)}, …:")
        lines += _lines(variant, False)[0]
    if stage.teardown:
        lines += [_UNTIMED + "after the iterations:", *_lines(stage.teardown, False)[0]]
    return lines


def _next_lap(nodes: Body) -> Lap | None:
    for node in nodes:
        lap = node if isinstance(node, Lap) else _next_lap(node.body) if isinstance(node, Repeat) else None
        if lap is not None:
            return lap
    return None


def _lines(nodes: Body, timed: bool, indent: str = "", after: Body = ()) -> tuple[list[str], bool]:
    """Return the lines of a body, and whether the clock runs at its end.

    The clock runs before a lap with a name; a lap without a name starts it, so what stands before that is untimed.
    """
    lines: list[str] = []
    for position, node in enumerate(nodes):
        mark = (_TIMED if timed else _UNTIMED) + indent
        match node:
            case Lap(name):
                lines.append(_UNTIMED + indent + ("lap start" if name is None else f"lap {name}"))
                following = _next_lap((*nodes[position + 1 :], *after))
                timed = following is not None and following.name is not None
            case Stamp(name):
                lines.append(f"{mark}clock {name}")
            case Repeat(times, (Step() as step,)):
                lines.append(f"{mark}{describe(step)}   × {times}")
            case Repeat(times, inner):
                lines.append(f"{mark}{times} times:")
                inner_lines, timed = _lines(inner, timed, indent + "  ", (*nodes[position + 1 :], *after))
                lines += inner_lines
            case Host(name):
                lines.append(f"{mark}{name}")
            case Step():
                lines.append(mark + describe(node))
    return lines, timed


def _threads(name: str, cell: Cell) -> str:
    return (
        f"{threads_of(cell)} on every rank" if name in IN_THREADS else f"{cell.options.thread_counts} on ranks 0 and 1"
    )
