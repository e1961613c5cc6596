"""Read a suite's ``[accept]`` and ``[[criterion]]`` tables (docs/accept.md). Nothing in them is evaluated."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from omb_py.backends.registry import capabilities_of
from omb_py.engine.program.benchmark import Benchmark
from omb_py.engine.program.dtypes import OPS, parse_dtype
from omb_py.errors import EnvironmentProblem, UsageError, nearest
from omb_py.grammar.values import UNITS, Quantity, one_size, parse_quantity, parse_share, parse_size, parse_sizes
from omb_py.options.table import TABLE
from omb_py.orchestrate.accept.criterion_cells import mock_up, words_of
from omb_py.orchestrate.suites import toml_values as toml
from omb_py.orchestrate.suites.suite_file import Suite
from omb_py.orchestrate.suites.toml_values import TomlSetting, TomlTable, kind
from omb_py.results.accept.criteria import METRICS, Criterion, Range, Source
from omb_py.results.analysis.cost_model import lower_bound_us
from omb_py.results.statistics.sequential import UNDECIDED, AcceptRule
from omb_py.suites import find, names

RULE_KEYS = tuple(
    "launches most-launches confidence undecided nodes allow-missing-nodes baseline background-job".split()
)
SHARES: Mapping[str, Source] = {
    "baseline": "baseline",
    "efficiency": "lower bound",
    "drift": "drift",
    "interference": "interference",
}
"""Key whose value is a share -> source of the bound."""
WHERE = {"entry": "entry", "ranks": "ranks", "backend": "backend", "binding": "binding", "type": "dtype", "op": "op"}
"""Key of a criterion -> column of the store that it filters."""
CRITERION_KEYS = (
    "id",
    "text",
    "benchmark",
    "message-size",
    "metric",
    "max",
    "min",
    *SHARES,
    "guideline",
    "tolerance",
    "promise",
    "peak",
    "unit",
    *WHERE,
)
_BOUNDS = ("max", "min", *SHARES, "guideline", "promise")
_TOLERANCE = 0.10
_MOST_COUNT = 1000


@dataclass(frozen=True, slots=True)
class Accepting:
    """The table ``[accept]`` of a suite."""

    rule: AcceptRule = field(default_factory=AcceptRule)
    nodes: int | None = None
    """Number of nodes that must take part; None: as many as there are."""
    allow_missing_nodes: bool = False
    """True if the run goes on without nodes that do not answer; the report names them."""
    baseline: str | None = None
    """Side of :func:`omb_py.results.compare.select_launches.read_side` to use if the command line names none."""
    background_job: tuple[str, ...] = ()
    """Command line of the job that runs at the same time, for criteria about interference."""


def read_accepting(suite: Suite) -> Accepting:
    """Read the table ``[accept]``. Raises UsageError with file, line and key."""
    table = suite.accept
    options = {option.long for option in TABLE}.difference(RULE_KEYS)
    for setting in table.settings if table else ():
        if setting.key in options:
            raise setting.error("holds for what is measured: write it under [defaults]")
    keys = {} if table is None else table.by_key(RULE_KEYS)
    usual, no_words = AcceptRule(), tuple[str, ...]()
    given = toml.read(keys, "launches", _count, None)
    most = toml.read(keys, "most-launches", _count, max(usual.most, given or 0))
    launches = given or min(usual.launches, most)
    if most < launches:
        raise keys["most-launches"].error(f"{most} is less than launches, {launches}")
    confidence = toml.read(keys, "confidence", lambda s: parse_share(toml.text(s), 0.5, 0.9999), usual.confidence)
    undecided = toml.read(keys, "undecided", lambda s: toml.one_of(s, UNDECIDED), usual.undecided)
    return Accepting(
        AcceptRule(launches, most, confidence, undecided),
        toml.read(keys, "nodes", _count, None),
        toml.read(keys, "allow-missing-nodes", toml.flag, False),
        toml.read(keys, "baseline", toml.text, None),
        toml.read(keys, "background-job", _job, no_words),
    )


def read_criteria(suite: Suite) -> list[Criterion]:
    """Read the tables ``[[criterion]]``.

    Raises:
        UsageError: a key, benchmark, metric or unit is unknown, a bound is impossible, or two criteria have one id. The
            message has file, line, key and the nearest valid one.
    """
    criteria: dict[str, Criterion] = {}
    entries = [entry.name for entry in suite.entries if entry.name]
    for table in suite.criteria:
        criterion = _criterion(table)
        at = next((s for s in table.settings if s.key == "entry"), None)
        if at is not None and at.value not in entries:
            raise at.error(f"no entry is called {at.value!r}: {nearest(str(at.value), entries)}")
        if criterion.id in criteria:
            at = next(s for s in table.settings if s.key == "id")
            raise at.error(f"{criterion.id!r} is the id of {criteria[criterion.id].at} already")
        criteria[criterion.id] = criterion
    return list(criteria.values())


def _criterion(table: TomlTable) -> Criterion:
    keys = table.by_key(CRITERION_KEYS)
    for needed in ("id", "benchmark"):
        if needed not in keys:
            raise table.error(f"no key {needed!r}: expected a text")
    name = toml.identifier(keys["id"])
    benchmark = _find_benchmark(toml.text(keys["benchmark"]), keys["benchmark"])
    bounds = [key for key in _BOUNDS if key in keys]
    if not bounds:
        raise table.error(f"no bound: expected one of {', '.join(_BOUNDS)}")
    if len(bounds) > 1 and bounds != ["max", "min"]:
        raise keys[bounds[1]].error(
            f"stands beside {bounds[0]!r}: one criterion has one bound (max and min are a range)"
        )
    if "guideline" in keys and "type" in keys:
        raise keys["type"].error("both sides of a guideline have elements of int32: leave it out")
    if "peak" in keys and "promise" not in keys:
        raise keys["peak"].error("stands where nothing is promised: add promise = true, or leave it out")
    if "tolerance" in keys and "guideline" not in keys:
        raise keys["tolerance"].error("belongs to a guideline: leave it out, the bound says it itself")
    ranges = _ranges(keys)
    metric = _metric(keys, benchmark)
    sizes: tuple[int, ...] = ()
    sizes = toml.read(keys, "message-size", lambda s: _sizes(s, benchmark), sizes)
    if None not in ranges and ranges:
        if sizes:
            raise keys["message-size"].error(f"the sizes stand in {bounds[0]!r} already: leave one of them out")
        sizes = tuple(size for size in ranges if size is not None)
    share = 0.0
    program = words = ""
    source: Source = "contract"
    if bounds[0] in SHARES:
        source = SHARES[bounds[0]]
        reach = (0.0001, 100.0) if source == "lower bound" else (0.0,)
        share = toml.read(keys, bounds[0], lambda s: parse_share(toml.text(s), *reach), 0.0)
    elif bounds[0] == "guideline":
        source = "guideline"
        program, words = toml.read(keys, "guideline", lambda s: _mock_up(s, benchmark), ("", ""))
        share = toml.read(keys, "tolerance", lambda s: parse_share(toml.text(s)), _TOLERANCE)
    elif bounds[0] == "promise":
        source = "promise"
        _check_promise(keys, benchmark)
        share = toml.read(keys, "peak", lambda s: parse_share(toml.text(s), 0.0001, 100.0), 0.0)
    at = f"{table.file}:{table.line}"
    unit = toml.read(keys, "unit", lambda s: toml.one_of(s, tuple(UNITS[METRICS[metric].dimension])), "")
    return Criterion(
        name,
        source,
        benchmark.name,
        metric,
        toml.read(keys, "text", toml.text, ""),
        sizes,
        {column: toml.read(keys, key, _READ[key], "") for key, column in WHERE.items() if key in keys},
        ranges,
        share,
        program,
        words,
        at,
        unit,
    )


def _check_promise(keys: Mapping[str, TomlSetting], benchmark: Benchmark) -> None:
    """Check the keys of a criterion whose bound is a supplier's. Raises LocatedError."""
    if not toml.flag(keys["promise"]):
        raise keys["promise"].error("expected true: the bound is in the file of --contract")
    if "unit" not in keys:
        raise keys["promise"].error("needs a key 'unit': the table of a contract has one unit a row")
    if "peak" in keys and benchmark.metric.unit != "MB/s":
        raise keys["peak"].error(f"is about rates, and {benchmark.name} prints a time")


def _job(setting: TomlSetting) -> tuple[str, ...]:
    try:
        words = shlex.split(toml.text(setting))
    except ValueError as error:
        raise setting.error(f"not a command line: {str(error).lower()}") from None
    words = words[1:] if words[0] == "omb-py" else words
    if not words:
        raise setting.error("expected a benchmark and its options, as 'alltoall -n 2 -m 1M:1M'")
    _find_benchmark(words[0], setting)
    return tuple(words)


def _find_benchmark(word: str, setting: TomlSetting) -> Benchmark:
    try:
        return find(word)
    except UsageError:
        raise setting.error(f"benchmark {word!r} is unknown: {nearest(word, names())}") from None
    except EnvironmentProblem as problem:
        raise setting.error(str(problem)) from None


def _mock_up(setting: TomlSetting, benchmark: Benchmark) -> tuple[str, str]:
    """Return the name of the benchmark that measures the guideline, and its mock-up in words."""
    guideline = mock_up(benchmark.name, toml.text(setting))
    return guideline.name, words_of(guideline)


def _sizes(setting: TomlSetting, benchmark: Benchmark) -> tuple[int, ...]:
    if benchmark.sizes is None:
        raise setting.error(f"{benchmark.name} has no message size: leave it out")
    is_number = isinstance(setting.value, int) and not isinstance(setting.value, bool)
    word = str(setting.value) if is_number else toml.text(setting)
    return parse_sizes(one_size(word), benchmark.sizes.minimum, benchmark.sizes.maximum, benchmark.zero_size)


def _ranges(keys: Mapping[str, TomlSetting]) -> dict[int | None, Range]:
    """Read the bounds of a contract by size, and check both ends against each other."""
    none: dict[int | None, Quantity] = {}
    ends = {key: toml.read(keys, key, read_quantities, none) for key in ("max", "min") if key in keys}
    if len(ends) == 2 and set(ends["max"]) != set(ends["min"]):
        raise keys["min"].error("other sizes than 'max': give both ends of each range")
    kinds = {q.dimension for bounds in ends.values() for q in bounds.values()}
    if len(kinds) > 1:
        raise keys[next(reversed(ends))].error(
            f"mixes {' and '.join(sorted(kinds))}: bounds of one criterion have one kind"
        )
    ranges: dict[int | None, Range] = {}
    for size in next(iter(ends.values()), {}):
        low, high = ends.get("min", {}).get(size), ends.get("max", {}).get(size)
        if low and high and low.value > high.value:
            raise keys["min"].error(f"{low.text} is more than max, {high.text}: nothing can keep both")
        given = (low.text if low else "", high.text if high else "")
        ranges[size] = Range(low.value if low else None, high.value if high else None, given)
    return ranges


def read_quantities(setting: TomlSetting) -> dict[int | None, Quantity]:
    """Read ``"5 us"``, or ``{ 8 = "5 us" }`` by message size. Raises UsageError."""
    value = setting.value
    if isinstance(value, dict):
        if not value or not all(isinstance(text, str) for text in value.values()):
            raise setting.error('expected a table of sizes, as { 8 = "5 us", 1M = "300 us" }')
        quantities: dict[int | None, Quantity] = {}
        for size, text in value.items():
            if parse_size(size) in quantities:
                raise setting.error(f"size {size} is listed twice")
            quantities[parse_size(size)] = parse_quantity(text)
        return quantities
    if not isinstance(value, str):
        raise setting.error(f'expected a text with a unit, as "5 us", or a table of them by size, got {kind(value)}')
    return {None: parse_quantity(value)}


def _metric(keys: Mapping[str, TomlSetting], benchmark: Benchmark) -> str:
    """Return the metric, given or implied by the bound; it must suit the bound and the benchmark."""
    rates = benchmark.metric.unit == "MB/s"
    usual = "bandwidth" if rates else "median"
    given = keys.get("max") or keys.get("min")
    dimension = None
    if given is not None:
        dimension = next(iter(read_quantities(given).values())).dimension
        usual = {"time": "median", "rate": "bandwidth" if rates else "busbw", "share": "overlap"}[dimension]
        if dimension == "share" and benchmark.name == "noise":
            usual = "stolen"
    name = toml.read(keys, "metric", lambda s: toml.one_of(s, tuple(METRICS)), usual)
    at = keys.get("metric") or given or keys["benchmark"]
    metric = METRICS[name]
    if dimension is not None and metric.dimension != dimension:
        raise at.error(f"{name} is a {metric.dimension}, and the bound {_first_text(given)!r} is a {dimension}")
    if name == "bandwidth" and not rates:
        raise at.error(f"{benchmark.name} prints a time: its bandwidths are algbw and busbw")
    if name in ("algbw", "busbw") and not benchmark.bandwidth:
        raise at.error(f"{benchmark.name} has no {name}: bound its {'bandwidth' if rates else 'median, a time'}")
    if name == "overlap" and benchmark.metric.lap != "overall":
        raise at.error(f"{benchmark.name} has no overlap: non-blocking collectives have")
    timed = [key for key in ("efficiency", "guideline") if key in keys]
    if timed and (rates or metric.dimension != "time"):
        raise keys[timed[0]].error(f"is about times, and {name if not rates else benchmark.name} is none")
    if timed == ["efficiency"] and lower_bound_us(benchmark.bandwidth, benchmark.name, 8, 2, 1.0, 1.0) is None:
        raise keys["efficiency"].error(
            f"no lower bound is known for {benchmark.name}: collectives and barrier have one"
        )
    return name


def _first_text(given: TomlSetting | None) -> str:
    value = given.value if given is not None else ""
    return next(iter(value.values())) if isinstance(value, dict) else str(value)


def _backend(setting: TomlSetting) -> str:
    return toml.one_of(setting, tuple(capabilities_of([toml.text(setting)])))


def _binding(setting: TomlSetting) -> str:
    from omb_py.backends.registry import backends

    offers = capabilities_of()
    # installed backends are loaded only for a binding that none of ours has
    if not any(toml.text(setting) in offer.bindings for offer in offers.values()):
        offers = capabilities_of(backends())
    return toml.one_of(setting, tuple(dict.fromkeys(name for offer in offers.values() for name in offer.bindings)))


def _count(setting: TomlSetting) -> int:
    return toml.whole(setting, 1, _MOST_COUNT)


_READ: Mapping[str, Callable[[TomlSetting], Any]] = {
    "entry": toml.text,
    "ranks": _count,
    "backend": _backend,
    "binding": _binding,
    "type": lambda s: parse_dtype(toml.text(s)),
    "op": lambda s: toml.one_of(s, OPS),
}
