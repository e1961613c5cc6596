"""The text of the Intel MPI Benchmarks 2021.11: its header, its tables with columns of 13 places, its last line.

A time of one number is the largest of the ranks' mean samples, as in IMB; t_min, t_max and t_avg are over the ranks.
MB/s are messages × size / the largest time, MB = 10^6 B (User Guide 2021.8, "Output Format Overview"; which messages
count: :mod:`omb_py.results.dialects.imb.names`). The header says that omb-py measured.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from omb_py import __version__
from omb_py.engine.program.dtypes import DTYPES
from omb_py.errors import UsageError
from omb_py.grammar.graphs import dims_create
from omb_py.grammar.rank_groups import by_group, groups_of_row
from omb_py.results.caveats import columns_line
from omb_py.results.dialects.dialect import OWN_TEXT, Provenances, TextOptions, Transcript
from omb_py.results.dialects.imb.names import FORMS, GROUP_RANKS, Form, counts_a_block, reduces
from omb_py.results.store.row import Row
from omb_py.results.store.schema import stored_floats

if TYPE_CHECKING:
    from omb_py.engine.rank.launch_facts import LaunchFacts, NodeFacts

CLOSING: Final = "\n\n# All processes entering MPI_Finalize\n\n"
WIDTH = 13
_HEADS: Final[Mapping[str, tuple[str, ...]]] = {
    "time": ("t[usec]", "Mbytes/sec"),
    "range_rate": ("t_min[usec]", "t_max[usec]", "t_avg[usec]", "Mbytes/sec"),
    "range": ("t_min[usec]", "t_max[usec]", "t_avg[usec]"),
    "rate": ("Mbytes/sec", "Msg/sec"),
    "overlap": ("t_ovrl[usec]", "t_pure[usec]", "t_CPU[usec]", "overlap[%]"),
    "messages": ("t[usec]", "Mbytes/sec", "Msg/sec"),
    "passive": ("t_pure[usec]", "t_ovrl[usec]"),
    "mean_rate": ("t_avg[usec]", "Mbytes/sec", "Msg/sec"),
}
_ONE_ELEMENT: Final = ("fop_latency", "cas_latency")
_MT_COLUMNS = 6
"""Columns above which IMB-MT draws its rules, also where a table has fewer."""
_USUAL_LENGTHS: Final = (0, 1 << 22)
"""IMB's own shortest and longest message, which it also says where a benchmark has no size."""
_EXPLAINED: Final = {
    "Compare_and_swap": ("Uses MPI_INT data type",),
    "Truly_passive_put": (
        "The benchmark measures execution time of MPI_Put for 2 cases:",
        "1) The target is waiting in MPI_Barrier call (t_pure value)",
        "2) The target performs computation and then enters MPI_Barrier routine (t_ovrl value)",
    ),
}
"""Lines below a name in the list of benchmarks."""
_AS_PRINTED: Final = ("IMB", OWN_TEXT)
"""Sources whose rows have IMB's own figures, which are not computed again."""
_BACKEND: Final = "mpi"
"""What IMB measures; of any other backend the text says what measured."""
_GRIDS: Final = {"stencil2d": 2, "stencil3d": 3}


def closing(form: Form) -> str:
    """The text after the last table: IMB-MT ends with a blank line."""
    return "\n" if form.part == "MT" else CLOSING


def why_refused(row: Row, each_group: bool = False, groups: bool = False, otherwise: str = "table") -> str:
    """Return why IMB has no text of a row; empty where it has one.

    Args:
        row: the row; of a request that is only planned, benchmark, unit and parameters.
        each_group: whether each group of ranks has a line (``-multi 1``).
        groups: whether there are groups of which the row says nothing.
        otherwise: the form to recommend.
    """
    name = str(row["benchmark"])
    if name not in FORMS or row.get("unit") not in ("us", "MB/s"):
        return f"{name}: IMB has no such benchmark: --format {otherwise}"
    if lacking := next((key for key in ("ranks", "value") if row.get(key, 0) is None), ""):
        return f"{name}: IMB's text says its {lacking}, which this row lacks: --format {otherwise}"
    sync = (row.get("parameters") or {}).get("sync", "flush")
    if sync not in ("flush", "flush_local"):
        return f"{name} -s {sync}: IMB has passive targets only: use -s flush, or --format {otherwise}"
    if each_group and not (groups or groups_of_row(row) or _is_of_group(row)):
        return f"{name}: --format imb-multi has a line for each group: add --groups, or use --format imb"
    if each_group and FORMS[name].layout.endswith("overlap"):
        return f"{name}: the overlap of each group is not kept: use --format imb"
    return ""


def form_of(row: Row, each_group: bool = False) -> Form:
    """The form of a row in IMB. Raises UsageError where IMB has no such benchmark, or not with these options."""
    if why := why_refused(row, each_group):
        raise UsageError(why)
    form, parameters = FORMS[str(row["benchmark"])], row.get("parameters") or {}
    if parameters.get("sync") == "flush_local" and form.name.startswith("Unidir"):
        form = replace(form, name=f"{form.name.removeprefix('Unidir_').capitalize()}_local")
    if form.mode and (row.get("window") or 1) > 1:
        form = replace(form, mode="AGGREGATE")
    if groups_of_row(row) or _group_count(row):
        wide = form.layout == "time" and not _is_of_group(row)
        form = replace(form, name=f"Multi-{form.name}", layout="range_rate" if wide else form.layout)
    elif form.part == "MPI-1" and form.layout == "time" and "message_rate" in (row.get("metrics") or {}):
        form = replace(form, part="IMB-P2P", layout="messages")  # a program that has these benchmarks too
    return replace(form, mode=parameters["mode"].upper()) if "mode" in parameters else form


def _group_count(row: Row) -> int:
    """The number of groups at once, of a row that was imported; 0 where all ranks were one."""
    text = str((row.get("parameters") or {}).get("groups", ""))
    return int(text) if text.isdecimal() else 0


def _is_of_group(row: Row) -> bool:
    """Whether an imported row is the line of one group (``-multi 1``)."""
    return "group" in (row.get("parameters") or {})


@dataclass(frozen=True, slots=True)
class Header:
    """The facts above the tables."""

    form: Form
    names: Sequence[str]
    """IMB's names of the benchmarks."""
    sizes: Sequence[int]
    """The messages in bytes."""
    row: Row
    """The first row: it says library, types and operation."""
    command: str
    when: datetime
    standard: str = ""
    """The version of the MPI standard; empty where it is not known: then the library stands in its place."""
    machine: Mapping[str, object] = field(default_factory=dict)
    """What is known of the machine that measured, as lines of IMB's header."""
    reducing: Row | None = None
    """The first row that reduces, which may come after others; where None, the first row where it does."""
    moving: Row | None = None
    """The first row of messages that are not reduced, likewise."""

    def text(self) -> str:
        """The header of IMB-MPI1, -NBC and -RMA, that of IMB-P2P, whose lines all begin with #, or IMB-MT's title."""
        measured = "" if self.row.get("backend") in (None, _BACKEND) else f"{columns_line(self.row)}\n"
        if self.form.part == "MT":
            rule = f"#{'-' * 66}\n"
            who = f"omb-py {__version__} in the layout of Intel(R) MPI Benchmarks 2021.11, MT part"
            return f"{rule}#    {who}    \n{rule}{measured}#\n"
        plain = self.form.part == "IMB-P2P"
        rule = f"#{'-' * (60 if plain else 64)}\n"
        gap, end = ("#\n", "") if plain else ("\n", " ")
        library = f"{self.row.get('library') or ''} {self.row.get('library_version') or ''}".strip()
        names = "".join(
            f"# {name}\n" + "".join(f"#     {text}\n" for text in _EXPLAINED.get(name, ()))
            for name in dict.fromkeys(name.removeprefix("Multi-") for name in self.names)
        )
        lengths = _lengths(self.sizes)
        facts = {
            "Date": f"{self.when:%a %b} {self.when.day:2d} {self.when:%H:%M:%S %Y}",
            **{name: self.machine.get(name, "") for name in ("Machine", "System", "Release", "Version")},
            "MPI Version": self.standard or library,
        }
        lines = "".join(f"# {name:<22}: {value}\n" for name, value in facts.items())
        head = (
            f"{rule}#    omb-py {__version__} in the layout of Intel(R) MPI Benchmarks 2021.11, {self.form.part} part\n"
            f"{rule}{measured}{lines}# MPI Thread Environment:{end}\n{gap}{'' if plain else gap}"
            f"# Calling sequence was:{end}\n{gap}# {self.command}{end}\n{gap}"
        )
        title = f"# List of Benchmarks to run:\n{gap}{names}"
        if plain:
            return f"{head}{title}#\n{lengths}"
        return f"{head}{lengths}{self._types()}\n{title}"

    def _types(self) -> str:
        """The types as IMB names them: bytes for messages, floats for reductions; what was asked for, where it was.

        The type or operation of a row that another tool measured and did not name has no line.
        """
        row = self.row
        reducing = self.reducing or (row if _reduces(row) else None)
        moving = self.moving or (row if _is_moving(row) else None)
        moved = "MPI_BYTE" if moving is None or moving.get("dtype") in ("char", "byte") else _mpi_type(moving)
        reduced = _mpi_type(reducing) if reducing else "MPI_FLOAT"
        op = str(reducing.get("op") or "") if reducing else "sum"
        after = "" if self.form.part in ("MPI-NBC", "MPI-RMA") else " "
        blank = "#\n" if self.form.part == "MPI-NBC" else "# \n"
        lines = {
            f"# {'MPI_Datatype':<31}:   {moved} \n": moved,
            f"# {'MPI_Datatype for reductions':<31}:   {reduced}{after}\n": reduced,
            f"# {'MPI_Op':<31}:   MPI_{op.upper()}  \n": op,
        }
        return "".join(text for text, known in lines.items() if known) + 2 * blank


def _machine(facts: LaunchFacts) -> dict[str, object]:
    """The lines on the machine that measured, as far as a launch knows it: that of its first node."""
    nodes = facts.get("node_facts")
    node: NodeFacts = nodes[0] if nodes else {}
    (system, _, release), here = node.get("kernel", "").partition(" "), platform.uname()
    version = here.version if release == here.release else ""  # of another kernel nobody kept it
    return {"Machine": node.get("machine", ""), "System": system, "Release": release, "Version": version}


def _reduces(row: Row) -> bool:
    return bool(row.get("op")) or reduces(FORMS[str(row["benchmark"])].name)


def _is_moving(row: Row) -> bool:
    return not _reduces(row) and row.get("size_bytes") is not None


def _mpi_type(row: Row) -> str | None:
    dtype = str(row.get("dtype"))
    return DTYPES[dtype].mpi if dtype in DTYPES else None


def _lengths(sizes: Sequence[int]) -> str:
    """The lines on the lengths of messages: the shortest and the longest, where the others double between them."""
    low, high = (min(sizes), max(sizes)) if any(sizes) else _USUAL_LENGTHS
    steps = [size for size in sizes if size]
    if any(later != 2 * size for size, later in pairwise(steps)):
        return "# Message lengths were user defined\n#\n"
    return f"# Minimum message length in bytes:   {low}\n# Maximum message length in bytes:   {high}\n#\n"


def title(row: Row, each_group: bool = False) -> str:
    """The lines before the rows of a table, with the names of its columns.

    `each_group` adds the column of the group's number, as ``-multi 1`` does. Raises UsageError as :func:`form_of`.
    """
    form = form_of(row, each_group)
    columns = _columns(form, row)
    if _is_of_group(row):
        columns = ["Group", *columns]
    elif each_group:
        columns = ["Group", *_columns(FORMS[str(row["benchmark"])], row)]
    wide = _MT_COLUMNS if form.part == "MT" else len(columns)
    rule, end = f"#{'-' * (WIDTH * wide - 1)}\n", "" if form.part in ("IMB-P2P", "MT") else " "
    name = f"{form.name}{_grid(row)}"
    mode = f"#\n#    MODE: {form.mode} \n#\n" if form.mode else ""
    heads = "".join(f"{head:>{WIDTH}}" for head in columns)
    return f"\n{rule}# Benchmarking {name}{end}\n{_ranks(row, end)}{rule}{mode}{heads}\n"


def _ranks(row: Row, end: str) -> str:
    """The number of ranks, or the ranks of each group (IMB's ``-multi 0``: all groups in one line)."""
    groups: Sequence[Sequence[int]] = groups_of_row(row)
    count, size = len(groups), len(groups[0]) if groups else 0
    if imported := _group_count(row):
        listed = str(row["parameters"].get(GROUP_RANKS, ""))
        groups = [[int(rank) for rank in group.split(",")] for group in listed.split(";") if group]
        count, size = imported, int(row["ranks"])
    if not count:
        return f"# #processes = {row['ranks']}{_threads(row)}{end}\n{_window(row)}"
    head = f"# ( {count} groups of {size} processes each running simultaneous ){end}\n"
    members = ("".join(f"{rank:5d}" for rank in group) for group in groups)
    return head + "".join(f"# Group{number:3d}: {ranks}\n#{end}\n" for number, ranks in enumerate(members))


def _threads(row: Row) -> str:
    return f" (threads: {row.get('threads') or 1})" if FORMS[str(row["benchmark"])].part == "MT" else ""


def _window(row: Row) -> str:
    shown = FORMS[str(row["benchmark"])].layout == "mean_rate"
    return f"# window_size = {row.get('window') or 1}\n" if shown else ""


def line(row: Row) -> str:
    """The line of one cell. In threads the repetitions are those of each."""
    form = form_of(row)
    numbers = [] if form.layout.startswith("sync") else [_bytes(form, row)]
    threads = int(row.get("threads") or 1) if form.part == "MT" and row.get("source") not in _AS_PRINTED else 1
    numbers.append((row.get("iterations") or 0) // threads)
    cells = [f"{number:>{WIDTH}d}" for number in numbers]
    heads = _columns(form, row)[len(numbers) :]
    figures = [*_figures(form, row), *([_defects(row)] if heads[-1] == "defects" else [])]
    cells += [f"{v:{WIDTH}.{0 if head == 'Msg/sec' else 2}f}" for head, v in zip(heads, figures, strict=True)]
    return "".join(cells) + "\n"


def to_imb(rows: Iterable[Row], each_group: bool = False, provenance: Provenances = lambda launch: {}) -> str:
    """Rows of the store as IMB would print them: a header for each launch and program, a table for each benchmark.

    Rows of benchmarks that IMB does not have are left out; so are those of all ranks together and of an overlap, where
    each group has a line.

    Args:
        rows: rows of the store.
        each_group: whether each group of ranks has a line (``-multi 1``).
        provenance: the facts of a launch.

    Raises:
        UsageError: there are rows, and IMB has none of their benchmarks.
    """
    launches: dict[tuple[object, ...], dict[tuple[object, ...], list[Row]]] = {}
    refused = ""
    for row in rows:
        if why := why_refused(row, each_group, otherwise="csv"):
            refused = why
            continue
        tables = launches.setdefault((row.get("launch_id"), form_of(row, each_group).part), {})
        tables.setdefault(table_of(row), []).append(row)
    if refused and not launches:
        raise UsageError(f"none of these rows has a text of IMB: {refused}")
    return "".join(_launch(list(tables.values()), each_group, provenance) for tables in launches.values())


def table_of(row: Row) -> tuple[object, ...]:
    parameters = {k: value for k, value in (row.get("parameters") or {}).items() if k not in ("defects", "group")}
    who = ("launch_id", "benchmark", "ranks", "threads", "backend", "library_version", "binding")
    how = ("device", "dtype", "op", "buffer", "window", "root", "in_place", "process_sync", "cache")
    return (*(row.get(name) for name in (*who, *how)), tuple(sorted(parameters.items())))


def _launch(tables: Sequence[Sequence[Row]], each_group: bool, provenance: Provenances) -> str:
    first = tables[0][0]
    facts = provenance(str(first.get("launch_id")))
    imported = facts.get("imported") or {}
    standard = str(facts.get("standard") or imported.get("MPI Version") or "")
    sized = (row for rows in tables for row in rows if row["benchmark"] not in _ONE_ELEMENT)
    sizes = {bytes_of(row, int(row.get("size_bytes") or 0)) for row in sized}
    names = tuple(dict.fromkeys(form_of(rows[0]).name for rows in tables))
    started = datetime.fromisoformat(str(first["started_at"])) if first.get("started_at") else datetime.now()
    reducing = next((rows[0] for rows in tables if _reduces(rows[0])), None)
    moving = next((rows[0] for rows in tables if _is_moving(rows[0])), None)
    command = "omb-py results export"
    machine = imported or _machine(facts)
    header = Header(form_of(first), names, sorted(sizes), first, command, started, standard, machine, reducing, moving)
    body = "".join(title(rows[0], each_group) + "".join(_lines(rows, each_group)) for rows in tables)
    return header.text() + body + closing(header.form)


def _lines(rows: Sequence[Row], each_group: bool) -> Iterator[str]:
    """The lines of a table; above those of the groups at a size stands a blank line."""
    if not _is_of_group(rows[0]):
        yield from map(lines_of_groups if each_group else line, rows)
        return
    first = rows[0]["parameters"]["group"]
    for row in rows:
        group = row["parameters"]["group"]
        yield "\n" * (group == first) + f"{group:>{WIDTH}}{line(row)}"


class ImbTranscript(Transcript):
    """The text of IMB, row by row: a header for each launch and program, a table for each benchmark."""

    def __init__(self, each_group: bool = False) -> None:
        self._each_group = each_group
        self._launch: tuple[object, ...] | None = None
        self._table: tuple[object, ...] | None = None
        self._facts: LaunchFacts = {}
        self._closing = ""
        """The text after the launch's last table."""

    def launch(self, facts: LaunchFacts) -> None:
        self._facts = facts

    def row(self, row: Row, options: TextOptions) -> str:
        form, text = form_of(row), ""
        launch = (row["launch_id"], form.part)
        if launch != self._launch:
            sizes = options.sizes or (row["size_bytes"] or 0,)
            lengths = () if row["benchmark"] in _ONE_ELEMENT else tuple(bytes_of(row, size) for size in sizes)
            command = " ".join(["omb-py", *sys.argv[1:]])
            standard, machine = str(self._facts.get("standard") or ""), _machine(self._facts)
            header = Header(form, (form.name,), lengths, row, command, datetime.now(), standard, machine)
            text = self.end() + header.text()
            self._launch, self._closing = launch, closing(form)
        if table_of(row) != self._table:
            text += title(row, self._each_group)
            self._table = table_of(row)
        return text + (lines_of_groups(row) if self._each_group else line(row))

    def end(self) -> str:
        text = "" if self._launch is None else self._closing
        self._launch = self._table = None
        return text


def lines_of_groups(row: Row) -> str:
    """A blank line, and a line of the cell for each group of ranks, with the group's defects (``-multi 1``)."""
    groups, metrics = groups_of_row(row), row.get("metrics") or {}
    parameters = {name: value for name, value in row["parameters"].items() if name != "groups"}
    text = "\n"
    for number, (group, means) in enumerate(zip(groups, by_group(row["rank_mean_us"], groups), strict=True)):
        wrong = metrics.get(f"group_{number}_wrong_bytes")
        alone = row.copy()
        alone["rank_mean_us"], alone["value"], alone["ranks"] = means, sum(means) / len(means), len(group)
        alone["wrong_bytes"], alone["parameters"] = None if wrong is None else int(wrong), parameters
        text += f"{number:>{WIDTH}d}{line(alone)}"
    return text


def _columns(form: Form, row: Row) -> list[str]:
    bare = form.layout.startswith("sync")
    layout = {"sync": "range", "sync_overlap": "overlap"}.get(form.layout, form.layout)
    checked = ["defects"] if row.get("validated") is not None and not bare and form.part != "MT" else []
    return [*([] if bare else ["#bytes"]), "#repetitions", *_HEADS[layout], *checked]


def _grid(row: Row) -> str:
    """The lengths of a stencil's grid, as IMB prints them."""
    dimensions = _GRIDS.get(str(row["benchmark"]))
    return f" ({' x '.join(map(str, dims_create(int(row['ranks']), dimensions)))})" if dimensions else ""


def _figures(form: Form, row: Row) -> Iterator[float]:
    """The numbers of a line after size and repetitions."""
    metrics, size = row.get("metrics") or {}, _bytes(form, row)
    per_rank = stored_floats(row.get("rank_mean_us")) or _read_imported(form, row, metrics)
    low, high, mean = min(per_rank), max(per_rank), sum(per_rank) / len(per_rank)
    if "rank_min_us" in metrics:
        mean = float(row["value"])
    reported = metrics.get("mbytes_per_s")
    match form.layout:
        case "time":
            us = high / _messages_timed(form, row)
            yield from (us, _rate(reported, size, us))
        case "range_rate":
            yield from (low, high, mean, _rate(reported, form.scale * size, high))
        case "range" | "sync":
            yield from (low, high, mean)
        case "rate":
            messages = _messages_timed(form, row)
            yield from (_rate(reported, messages * size, high), _messages(metrics, messages, high))
        case "mean_rate":  # of one message of a window
            window = 1 if row.get("source") in _AS_PRINTED else int(row.get("window") or 1)
            messages = int(row["ranks"]) // 2 * int(row.get("threads") or 1)
            yield from (mean / window, _rate(reported, size, high / window))
            yield _messages(metrics, messages, mean / window)
        case "overlap" | "sync_overlap":
            overall, pure, compute = (float(metrics[name]) for name in ("overall", "pure", "compute"))
            hidden = (pure + compute - overall) / max(pure, compute) if max(pure, compute) > 0 else 0.0
            share = 100 * max(0.0, min(1.0, hidden))
            yield from (
                overall,
                pure,
                compute,
                float(metrics["overlap_pct"]) if row.get("source") in _AS_PRINTED else share,
            )
        case "messages":
            ranks = int(row["ranks"])
            yield from (mean, _rate(reported, ranks * size, high), _messages(metrics, ranks, high))
        case "passive":
            yield from (float(metrics["pure"]), float(metrics["overall"]))


def _defects(row: Row) -> float:
    """The wrong bytes of a check, or what another tool counted; 1 where a check failed and nobody counted."""
    metrics = row.get("metrics") or {}
    counted = metrics.get("defects", metrics.get("wrong_elements", row.get("wrong_bytes")))
    return float(row.get("validated") is False if counted is None else counted)


def _bytes(form: Form, row: Row) -> int:
    """The bytes that are printed: in threads those of all of them together."""
    size = bytes_of(row, int(row.get("size_bytes") or 0))
    return size * (int(row.get("threads") or 1) if form.part == "MT" else 1)


def bytes_of(row: Row, size: int) -> int:
    """The bytes that IMB prints for `size` in the benchmark of a row: of a reduce-scatter those of a block."""
    version = str(row.get("binding_version") or "").removeprefix("IMB ") if row.get("source") == "IMB" else None
    if not counts_a_block(str(row["benchmark"]), version):
        return size
    groups = groups_of_row(row)
    return size // (len(groups[0]) if groups else int(row["ranks"]))


def _messages_timed(form: Form, row: Row) -> int:
    """How many messages a time has that a rate is made of."""
    if form.layout != "rate":
        return int(row.get("window") or 1) if row.get("unit") == "MB/s" else 1
    pairs = len(groups[0] if (groups := groups_of_row(row)) else range(int(row["ranks"]))) // 2
    return form.scale * int(row.get("window") or 1) * pairs


def _read_imported(form: Form, row: Row, metrics: Mapping[str, float]) -> list[float]:
    """The times of a row that another tool measured: the least and the largest of the ranks', or one number."""
    spread = [float(metrics[name]) for name in ("rank_min_us", "rank_max_us") if name in metrics]
    value = float(row["value"])
    if row.get("unit") == "MB/s" and "mbytes_per_s" not in metrics:
        value = _messages_timed(form, row) * _bytes(form, row) / value if value else 0.0
    return spread or [value]


def _messages(metrics: Mapping[str, float], count: int, us: float) -> float:
    """Messages a second; as reported, where another tool did."""
    reported = metrics.get("message_rate")
    return count / us * 1e6 if reported is None and us > 0 else reported or 0.0


def _rate(reported: float | None, nbytes: int, us: float) -> float:
    """MB/s, with MB = 10^6 B; as reported, where another tool did."""
    return nbytes / us if reported is None and us > 0 else reported or 0.0
