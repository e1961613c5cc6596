"""Convert results of nccl-tests and rccl-tests to rows: names, sizes, counts, verdicts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from omb_py.results.caveats import MEASURED
from omb_py.results.dialects.dialect import OWN_TEXT
from omb_py.results.dialects.nccl.text import BENCHMARKS, REPLAYS, TYPES, itemsize
from omb_py.results.dialects.reading import INT32, BadTable, ImportedRow, quote_piece, whole
from omb_py.results.statistics.bandwidth import FORMULAS

NCCL, RCCL = "nccl-tests", "rccl-tests"
_LIBRARIES = {NCCL: "NCCL", RCCL: "RCCL"}
_DEVICES = {NCCL: "cuda", RCCL: "rocm"}
_BLOCKS = frozenset({"all_gather", "gather", "scatter", "alltoall", "alltoallv", "hypercube"})
"""Collectives whose *count* is that of one rank's block, and whose *size* is that of all blocks together."""
_TYPES = {text: dtype for dtype, text in TYPES.items() if dtype != "char"}
_OLD_TYPES = {"char": "char", "int": "int32", "fp8_e4m3": "float8e4m3", "fp8_e5m2": "float8e5m2"}
_EXACT, _HALF_DIGIT = 1.0, 0.0051
"""GB/s from which on two decimals tell numbers of ranks apart, and half of the last."""
_PERF = re.compile(r"\b([a-z_]{4,20})_perf(?:_\w{1,20})?\b")
"""The name of a program, with the suffix that nccl-tests' ``NAME_SUFFIX`` gives it."""


@dataclass(frozen=True, slots=True)
class RankPlace:
    """A line of the list of devices."""

    rank: int
    group: int
    """The communicator of this rank, where ``NCCL_TESTS_SPLIT`` made several; else 0."""
    host: str


@dataclass(frozen=True, slots=True)
class NcclLine:
    """The operation of a line, whose halves are its placements."""

    size: int
    """Bytes of the whole operation."""
    count: int | None
    """Elements as passed to NCCL."""
    dtype: str
    op: str | None
    root: int | None


@dataclass(slots=True)
class Launch:
    """Facts about all rows of one start of the tool; None or empty where the file does not state them."""

    source: str = NCCL
    version: str | None = None
    library_version: str | None = None
    collective: str | None = None
    """The collective under nccl-tests' name: ``all_reduce``."""
    ranks: int | None = None
    """Of a communicator."""
    places: list[RankPlace] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    """Host of each rank."""
    nodes: int | None = None
    devices: int | None = None
    parameters: dict[str, str] = field(default_factory=dict)
    device_names: set[str] = field(default_factory=set)
    iterations: int | None = None
    warmup: int | None = None
    batch: int | None = None
    timing: str | None = None
    facts: dict[str, object] = field(default_factory=dict)
    own: Mapping[str, str] | None = None
    """Columns that omb-py's own text says; None for that of another tool."""

    def take_own(self, version: str, said: Mapping[str, str]) -> None:
        """Take what omb-py's own text says of itself."""
        self.source, self.version, self.own = OWN_TEXT, version[:60], said
        self.timing = said.get("timing", self.timing)
        self.ranks = whole(said["ranks"], INT32) if "ranks" in said else self.ranks

    def take_graph(self, launches: str) -> None:
        """Take ``-G``: how often the captured graph was launched; 0 where there is none."""
        if launches != "0":
            self.timing = "graph"
            self.parameters |= {REPLAYS: launches} if launches != "1" else {}

    @property
    def measured(self) -> dict[str, str | None]:
        """What measured: of omb-py's own text what it says, else the library and the devices of the tool."""
        if self.own is not None:
            return {name: self.own.get(name) for name in MEASURED}
        return {
            "backend": "nccl",
            "library": _LIBRARIES[self.source],
            "library_version": self.library_version,
            "binding": "c",
            "device": _DEVICES[self.source],
        }


@dataclass(frozen=True, slots=True)
class Placement:
    """One of the two halves of a line. Bandwidths are in GB/s (10^9 bytes/s)."""

    in_place: bool
    time_us: float | None
    algbw: float | None
    busbw: float | None
    wrong: float | None
    """Number of wrong elements; None when not checked."""
    samples: Sequence[float] = ()
    """Times of the iterations, in µs."""
    is_checked: bool = False
    """Whether its last column is a result of the check, which the footer judges where it is no number of elements."""


def collective_of(text: str) -> str | None:
    """The collective with a name in any spelling: ``all_reduce_perf``, ``AllReduce``, ``allreduce``."""
    plain = re.sub(r"[^a-z]", "", text.lower().partition("_perf")[0])
    return next((name for name in BENCHMARKS if plain in (name.replace("_", ""), BENCHMARKS[name])), None)


def collective_in(texts: Sequence[str]) -> str | None:
    """The collective whose program is the last one named in these lines, for example in a command."""
    for text in reversed(texts):
        for word in reversed(_PERF.findall(text)):
            if collective := collective_of(word):
                return collective
    return None


def collective_named(name: str) -> str | None:
    """The collective that is named in a file's name, such as ``nccl-all_gather-8gpus.log``."""
    plain = re.sub(r"[^a-z]", "", name.lower())
    matches = [known for known in BENCHMARKS if known.replace("_", "") in plain]
    return max(matches, key=len, default=None)


def dtype_of(text: str) -> str:
    """Convert a type to omb-py's name. Raises BadTable."""
    dtype = _TYPES.get(text) or _OLD_TYPES.get(text)
    if dtype is None:
        raise BadTable(f"unknown type {quote_piece(text)}")
    return dtype


def library_version(code: int) -> str | None:
    """Convert a version code of ``ncclGetVersion`` to text: 23007 is ``2.30.7``; None for a code of 0 or less."""
    if code <= 0:
        return None
    if code < 10000:
        return f"{code // 1000}.{code % 1000 // 100}.{code % 100}"
    return f"{code // 10000}.{code % 10000 // 100}.{code % 100}"


def take_places(launch: Launch) -> None:
    """Learn ranks, nodes and devices from the list of devices.

    The list may have gaps, where somebody took lines away. A rank number that stands in it twice is one of another run
    whose output is in the same file: nccl-tests built without MPI and started several times.
    """
    places = sorted(launch.places, key=lambda place: place.rank)
    numbers = {place.rank for place in places}
    of_group = Counter(place.group for place in places)
    if not places:
        return
    launch.ranks = launch.devices = max(numbers) + 1
    if len(numbers) < len(places) or len(numbers) < launch.ranks:
        return
    launch.nodes = len({place.host for place in places})
    if len(of_group) == 1:
        launch.hosts = [place.host for place in places]
    else:
        sizes = set(of_group.values())
        launch.ranks = sizes.pop() if len(sizes) == 1 else None
        launch.parameters["groups"] = str(len(of_group))


def copies_in(launch: Launch) -> int:
    """How many runs wrote the list of devices."""
    return max(Counter(place.rank for place in launch.places).values(), default=1)


def contradicts(ranks: int, name: str, halves: Sequence[Placement]) -> bool:
    """Whether no printed pair of bandwidths fits this number of ranks: lines of the list of devices are missing."""
    formula = FORMULAS.get(name)
    pairs = [(half.algbw, half.busbw) for half in halves if half.algbw and half.busbw and half.busbw >= _EXACT]
    if formula is None or not pairs:
        return False
    ratio = formula.bus(ranks)
    return all(abs(busbw - ratio * algbw) > _HALF_DIGIT * (1 + ratio) for algbw, busbw in pairs)


def settle(launch: Launch, lines: Sequence[NcclLine]) -> str:
    """The collective of a table, inferred from its lines when the tool does not name it. Raises BadTable: not exactly
    one fits."""
    if launch.collective:
        return launch.collective
    fits = [name for name in ("all_reduce", "reduce", "broadcast", "reduce_scatter") if _fits(name, lines)]
    if len(fits) != 1:
        raise BadTable("which collective? the log does not say it; give --benchmark NAME, as all_gather or alltoall")
    return fits[0]


def _fits(name: str, lines: Sequence[NcclLine]) -> bool:
    """Whether the lines fit a collective, judged by reduction, root and the ratio of size to count."""
    countable = [line for line in lines if line.size and line.count]
    whole = all(line.size == (line.count or 0) * (itemsize(line.dtype) or 0) for line in countable)
    reduces = all(line.op is not None for line in countable)
    copies = all(line.op is None for line in countable)
    rooted = all(line.root is not None for line in countable)
    free = all(line.root is None for line in countable)
    if not countable:
        return False
    return {
        "all_reduce": whole and reduces and free,
        "reduce": whole and reduces and rooted,
        "broadcast": whole and copies and rooted,
        "reduce_scatter": not whole and reduces and free,
    }[name]


def make_row(launch: Launch, name: str, line: NcclLine, half: Placement) -> ImportedRow:
    """The row of one placement of one line."""
    item = itemsize(line.dtype)
    message: int | None = line.size
    if name in _BLOCKS:
        message = line.count * item if line.count is not None and item else None
        if message is None and launch.ranks:
            message = line.size // launch.ranks
    nodes = launch.nodes or len(set(launch.hosts)) or None
    spread = launch.ranks if launch.hosts else None
    metrics: dict[str, float] = {}
    if line.count is not None and name == "reduce_scatter":
        metrics["nccl_count"] = float(line.count)
    if half.wrong is not None:
        metrics["wrong_elements"] = half.wrong
    row: ImportedRow = {
        "source": launch.source,
        "benchmark": BENCHMARKS[name],
        **launch.measured,
        "family": "pt2pt" if name == "sendrecv" else "collective",
        "binding_version": f"{launch.source} {launch.version}" if launch.version else None,
        "device_name": next(iter(launch.device_names)) if len(launch.device_names) == 1 else None,
        "dtype": line.dtype,
        "op": line.op,
        "in_place": half.in_place,
        "root": line.root,
        "timing": launch.timing,
        "batch": launch.batch,
        "ranks": launch.ranks,
        "nodes": nodes,
        "devices": launch.devices or (launch.ranks if launch.own is None else None),
        "ranks_per_node": spread // nodes if spread and nodes and spread % nodes == 0 else None,
        "size_bytes": message,
        "bytes_per_rank": message,
        "bytes_total": line.size,
        "count": message // item if message is not None and item else None,
        "metric": "latency",
        "unit": "us",
        "value": half.time_us,
        "algbw_gbps": half.algbw,
        "busbw_gbps": None if launch.ranks == 1 else half.busbw,
        "bw_formula": f"nccl-tests:{name}" if name in FORMULAS else None,
        "metrics": metrics,
        "iterations": launch.iterations,
        "warmup": launch.warmup,
        "hosts": launch.hosts or None,
        "validated": None if half.wrong is None else half.wrong == 0,
        "parameters": dict(launch.parameters),
    }
    return row | _summarise_samples(half.samples)


def _summarise_samples(samples: Sequence[float]) -> ImportedRow:
    from omb_py.results.statistics.summary import summarise

    if not samples:
        return {}
    return {"samples_us": list(samples), **summarise(samples), "iterations": len(samples)}
