"""Logs that people have of pairs of nodes, as a sweep that ``omb-py links --from`` judges without a launch."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

import numpy as np

from omb_py.engine.program.pair_schedule import DIRECTIONS
from omb_py.errors import UsageError
from omb_py.results.checks import links
from omb_py.results.checks.pair_sweeps import PairSweep, PairTable
from omb_py.results.dialects.log_files import logs_below, read_log
from omb_py.results.dialects.parse import parse
from omb_py.results.dialects.reading import Context, ImportedRow
from omb_py.results.units import counted, natural_key, size_text

_FORM = "'{a}-{b}.log': where the two nodes stand, with text between them; * is any text"
_ENDINGS = frozenset({".gz", ".xz", ".bz2", ".log", ".out", ".txt", ".csv", ".json"})
SMALL = 8
"""Bytes of the message whose time is the latency."""
LARGE = 1 << 20
"""Bytes of the message for bandwidth."""
_NOTED = 8
"""Most logs that are named in the notes."""

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class PairNames:
    """How the name of a file says its two nodes."""

    text: str
    expression: re.Pattern[str]

    def ends(self, name: str) -> Pair | None:
        """The two nodes of a file; None where its name is another."""
        path, shorter = PurePath(name), [name]
        while path.suffix in _ENDINGS:
            path = path.with_suffix("")
            shorter.append(str(path))
        matches = (self.expression.fullmatch(one) for one in reversed(shorter))
        return next(((match["a"], match["b"]) for match in matches if match), None)


def parse_names(text: str) -> PairNames:
    """Read a value of ``--names``.

    >>> parse_names("osu_bw.{a}_{b}.*").ends("logs/osu_bw.n1_n2.7.log")
    ('n1', 'n2')

    Raises:
        UsageError: it has another form.
    """
    pieces = re.split(r"(\{a\}|\{b\}|\*)", text)
    places = [at for at, piece in enumerate(pieces) if piece in ("{a}", "{b}")]
    between = "".join(pieces[places[0] + 1 : places[1]]).partition("*")[0] if len(places) == 2 else ""
    if not between or text.count("{a}") != 1:
        raise UsageError(f"--names takes {_FORM}, not {text!r}")
    name = rf"(?:(?!{re.escape(between)})[^/\s])+?"
    words = {"{a}": f"(?P<a>{name})", "{b}": f"(?P<b>{name})", "*": "[^/]*?"}
    return PairNames(text, re.compile("(?:.*/)?" + "".join(words.get(piece, re.escape(piece)) for piece in pieces)))


USUAL_NAMES = parse_names("{a}-{b}")


@dataclass(frozen=True, slots=True)
class _Measured:
    """What several logs measured in the same way."""

    benchmark: str
    size: int
    is_rate: bool
    """Whether it is a bandwidth, which is of one direction where the pair is in this order."""

    def __str__(self) -> str:
        return f"{self.benchmark} of {size_text(self.size)}"


@dataclass(slots=True)
class _PairTimes:
    """The numbers of all logs."""

    times: dict[_Measured, dict[Pair, list[float]]] = field(default_factory=dict)
    """What was measured -> the two nodes, in order -> the time in µs that each log says."""
    files: dict[Pair, str] = field(default_factory=dict)
    """Two nodes -> a file of theirs."""
    left_out: list[str] = field(default_factory=list)
    tools: dict[str, None] = field(default_factory=dict)
    read: int = 0

    def pairs(self, what: _Measured) -> set[Pair]:
        return {_order(pair) for pair in self.times[what]}


def read_pairs(
    sources: Sequence[str], names: PairNames = USUAL_NAMES, small: int = SMALL, large: int = LARGE
) -> PairSweep:
    """Judge logs of pairs of nodes, of which the k-th of each pair is launch k. What is slow is a suspect.

    The nodes are those of a log's list of devices, or else what the file's name says.

    Args:
        sources: files, or folders with files and folders of files.
        names: how a file's name says its nodes.
        small: bytes of the message whose time is the latency; the nearest size that most logs have counts.
        large: bytes of the message for bandwidth, likewise.

    Raises:
        UsageError: a file cannot be read, or the logs hold too few pairs of too few nodes.
    """
    found = _PairTimes()
    for source in sources:
        for name in logs_below(source) if os.path.isdir(source) else [source]:
            try:
                _read(name, names, found)
            except UsageError as error:
                if name == source:
                    raise UsageError(f"{name}: {error}") from None
                found.left_out.append(f"{name}: {error}")
    chosen = _choose(found, small, large)
    if not chosen:
        why = f", as {found.left_out[0]}" if found.left_out else ""
        raise UsageError(f"no log of a pair of nodes in {', '.join(sources)}{why}")
    nodes, lacking = _select_complete(found, list(chosen.values()))
    if len(nodes) < links.LEAST:
        why = "; ".join([*lacking[:1], *found.left_out[:1]]) or "add logs"  # a gap may be a log that was not read
        raise UsageError(f"fewer than {links.LEAST} nodes have a log of every pair of them: {why}")
    table = _table(found, chosen, nodes)
    suspects = tuple(links.suspects(table.units, len(nodes), fresh=table.fresh, hosts=nodes))
    sweep = PairSweep("of logs", tuple(nodes), table, suspects, None, {})
    return replace(sweep, logs=tuple(_notes(found, chosen, sweep, lacking)))


def _read(name: str, names: PairNames, found: _PairTimes) -> None:
    """Take the rows of a file. Raises UsageError where it is not of a pair."""
    data, _ = read_log(name)
    parsed = parse(data, Context(PurePath(name).name))
    found.left_out += [f"{name}: {problem}" for problem in parsed.problems]
    for table in parsed.tables:
        hosts = list(dict.fromkeys(host for row in table.rows for host in row.get("hosts") or ()))
        ends = (hosts[0], hosts[1]) if len(hosts) == 2 else None if hosts else names.ends(name)
        if ends is None and hosts:
            raise UsageError(f"{counted(len(hosts), 'node')}, no pair: {', '.join(hosts[:3])}")
        if ends is None:
            raise UsageError(f"neither its lines nor its name say the two nodes, as --names {names.text!r} would")
        if ends[0] == ends[1]:
            raise UsageError(f"both nodes are {ends[0]}")
        found.tools[" ".join(filter(None, (table.source, table.version)))] = None
        found.files.setdefault(_order(ends), name)
        found.read += 1
        for row in table.rows:
            if (what := _read_measured(row)) and row["value"] > 0:
                time = what.size / row["value"] if what.is_rate else row["value"]
                found.times.setdefault(what, {}).setdefault(ends, []).append(time)


def _read_measured(row: ImportedRow) -> _Measured | None:
    size, unit = row.get("size_bytes"), row.get("unit")
    if not row.get("value") or row.get("in_place") or unit not in ("us", "MB/s") or (unit == "MB/s" and not size):
        return None
    return _Measured(row["benchmark"], size or 0, unit == "MB/s")


def _choose(found: _PairTimes, small: int, large: int) -> dict[str, _Measured]:
    """What is the latency and what the bandwidth: what most pairs have, then the size that is nearest."""

    def best(those: Iterable[_Measured], size: int) -> _Measured | None:
        wanted = [
            (-len(found.pairs(w)), not w.is_rate, abs(math.log2(max(w.size, 1) / max(size, 1))), str(w), w)
            for w in those
        ]
        return min(wanted, key=lambda w: w[:4])[-1] if wanted else None

    middle = math.sqrt(max(small, 1) * max(large, 1))
    chosen = {
        "latency": best((w for w in found.times if not w.is_rate and w.size <= middle), small),
        "bandwidth": best((w for w in found.times if w.is_rate or w.size > middle), large),
    }
    most = max((len(found.pairs(what)) for what in chosen.values() if what), default=0)
    return {metric: what for metric, what in chosen.items() if what and 2 * len(found.pairs(what)) > most}


def _select_complete(found: _PairTimes, chosen: Sequence[_Measured]) -> tuple[list[str], list[str]]:
    """The nodes of which every pair was measured, and what the others lack: those with the most gaps are left out."""
    nodes = sorted({node for what in chosen for pair in found.times[what] for node in pair}, key=natural_key)
    measured = {what: found.pairs(what) for what in chosen}
    lacking: list[str] = []
    while True:
        gaps = [
            (pair, what)
            for what in chosen
            for i, a in enumerate(nodes)
            for b in nodes[i + 1 :]
            if (pair := _order((a, b))) not in measured[what]
        ]
        if not gaps:
            return nodes, lacking
        worst = max(reversed(nodes), key=lambda node: sum(node in pair for pair, _ in gaps))
        pair, what = next((pair, what) for pair, what in gaps if worst in pair)
        of = f"{found.files[pair]} lacks {what}" if pair in found.files else f"no log of {' and '.join(pair)}"
        lacking.append(f"{worst} is left out: {of}")
        nodes.remove(worst)


def _table(found: _PairTimes, chosen: Mapping[str, _Measured], nodes: Sequence[str]) -> PairTable:
    """The launches of every pair; of a bandwidth with logs of both orders the slower direction counts."""
    place = {node: number for number, node in enumerate(nodes)}
    of_pair = {metric: _split_ways(found.times[what], what, place) for metric, what in chosen.items()}
    launches = min(len(times) for pairs in of_pair.values() for ways in pairs.values() for times in ways if times)
    table = PairTable(tuple(range(len(nodes))), [1] * launches, hosts=list(nodes))
    for metric, what in chosen.items():
        for pair, ways in of_pair[metric].items():
            for direction, times in zip(DIRECTIONS, ways, strict=True):
                for launch, time in enumerate(times[:launches]):
                    sample = np.array([[time]])
                    if metric == "latency":
                        table.latency(launch, (pair,), sample)
                    if metric == "bandwidth" or "bandwidth" not in chosen:  # without one the map shows the latency's
                        table.bandwidth(launch, direction, (pair,), sample, max(what.size, 1))
    table.values = {metric: table.values[metric] for metric in chosen}
    return table


def _split_ways(
    times: Mapping[Pair, Sequence[float]], what: _Measured, place: Mapping[str, int]
) -> dict[tuple[int, int], tuple[list[float], list[float]]]:
    """Two nodes -> what their logs say, there and back; one list where there is no direction."""
    has_direction = what.is_rate and "bibw" not in what.benchmark
    ways: dict[tuple[int, int], tuple[list[float], list[float]]] = {}
    for (a, b), own in times.items():
        if a in place and b in place:
            first, second = sorted((place[a], place[b]))
            back = has_direction and place[a] > place[b]
            ways.setdefault((first, second), ([], []))[back].extend(own)
    return ways


def _notes(found: _PairTimes, chosen: Mapping[str, _Measured], sweep: PairSweep, lacking: Sequence[str]) -> list[str]:
    nodes, table = sweep.names, sweep.first
    measured = "; ".join(f"{metric}: {what}" for metric, what in chosen.items())
    launches = counted(len(table.shares), "launch")
    notes = [f"{measured}; {counted(found.read, 'table')} of {', '.join(found.tools)}, {launches} of each pair"]
    if not table.fresh:
        notes.append("one launch of each pair: what was slow in it only cannot be told from what is slow for good")
    for one, more in ((lacking, "nodes"), (found.left_out, "parts of logs left out")):
        notes += [*one[:_NOTED], *([f"{len(one) - _NOTED} more {more}"] if len(one) > _NOTED else [])]
    if sweep.suspects:
        effects = [links.take_apart(links.usual_value(v, table.fresh)[0], len(nodes)) for v in table.units.values()]
        hosts = ",".join(nodes[member] for member in links.choose_again(sweep.suspects, effects))
        words = f"omb-py links --hosts {hosts}{_options(found, chosen)}"
        notes.append(f"nothing was measured: to confirm or clear what may be slow, {words}")
    return notes


def _options(found: _PairTimes, chosen: Mapping[str, _Measured]) -> str:
    """Options by which omb-py measures what the logs did."""
    words = " --backend nccl" if all(tool.startswith(("nccl-tests", "rccl-tests")) for tool in found.tools) else ""
    for metric, option, usual in (("latency", "small", SMALL), ("bandwidth", "large", LARGE)):
        if metric in chosen and chosen[metric].size not in (0, usual):
            words += f" --{option} {chosen[metric].size}"
    return words


def _order(pair: Pair) -> Pair:
    return min(pair), max(pair)
