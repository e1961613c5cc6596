"""Numbers that the user names: by a regular expression over a program's text, or by a path into its JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from omb_py.errors import UsageError, nearest
from omb_py.grammar.json_values import JsonValue
from omb_py.results.dialects.reading import BadTable, Context, ImportedTable, Parsed, Problem, quote_piece
from omb_py.results.dialects.sampled import HIGHER, LOWER, sampled_row

FORM = "NAME UNIT lower|higher REGEX"
_JSON = "json:"
_SOURCE = "metric"
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d{1,9}|\*)\]")


@dataclass(frozen=True, slots=True)
class NamedMetric:
    """A number of a program: where it stands, its unit, and which is better."""

    name: str
    unit: str
    better: str
    where: str
    """A regular expression, or ``json:`` and a path."""

    def values(self, text: str) -> dict[int | None, list[float]]:
        """The numbers in an output by message size; None: without a size. Raises BadTable where one is no number."""
        sizes: dict[int | None, list[float]] = {}
        if self.where.startswith(_JSON):
            numbers = list(_find_numbers(_load(text), self.where.removeprefix(_JSON)))
            return {None: numbers} if numbers else {}
        for match in re.finditer(self.where, text, re.MULTILINE):
            named = match.groupdict()
            number = named.get("value") or match.group(1)
            size = named.get("size")
            try:
                sizes.setdefault(int(size) if size else None, []).append(float(number.replace(",", "")))
            except (ValueError, AttributeError):
                raise BadTable(f"{quote_piece(match.group())}: {quote_piece(str(number))} is no number") from None
        return sizes


def parse_metric(text: str) -> NamedMetric:
    """Read a value of ``--metric``.

    >>> parse_metric("rate req/s higher handled ([0-9.]+) per second").unit
    'req/s'

    Raises:
        UsageError: it has another form, the expression is wrong or marks no number.
    """
    fields = text.split(maxsplit=3)
    if len(fields) < 4:
        raise UsageError(f"--metric takes '{FORM}' or 'NAME UNIT lower|higher json:PATH', not {text!r}")
    name, unit, better, where = fields
    if better not in (LOWER, HIGHER):
        raise UsageError(f"--metric {name}: {better!r} does not say which numbers are better: {LOWER} or {HIGHER}")
    if not re.fullmatch(r"[A-Za-z][\w.-]{0,60}", name):
        raise UsageError(f"--metric {name!r}: a name begins with a letter and has letters, digits, '.', '_' and '-'")
    if not where.startswith(_JSON):
        try:
            pattern = re.compile(where, re.MULTILINE)
        except re.error as error:
            raise UsageError(f"--metric {name}: {where!r} is no regular expression: {error}") from None
        if pattern.groups == 0:
            raise UsageError(f"--metric {name}: put parentheses around the number in {where!r}, as 'took ([0-9.]+) s'")
        if pattern.groups > 1 and "value" not in pattern.groupindex:
            raise UsageError(
                f"--metric {name}: {where!r} has {pattern.groups} pairs of parentheses: name that of the number, as "
                "(?P<value>[0-9.]+), and that of a message size (?P<size>[0-9]+); the others are (?:...)"
            )
    return NamedMetric(name, unit, better, where)


class MetricReader:
    """Reads the numbers that were named, and nothing else."""

    name = "--metric"

    def __init__(self, metrics: Sequence[NamedMetric]) -> None:
        self.metrics = metrics

    def claims(self, text: str) -> bool:
        """Every text: the user has said so."""
        return True

    def read_whole(self, text: str, context: Context) -> Parsed:
        """A table for each metric; one that does not occur is a problem."""
        parsed = Parsed()
        for metric in self.metrics:
            try:
                sizes = metric.values(text)
                if not sizes:
                    raise BadTable(f"no line has what {metric.where!r} looks for")
                rows = [
                    sampled_row(_SOURCE, metric.name, metric.unit, metric.better, values, size)
                    for size, values in sizes.items()
                ]
                parsed.tables.append(ImportedTable(_SOURCE, None, metric.name, 1, 0, rows))
            except BadTable as error:
                parsed.problems.append(Problem(1, f"metric {metric.name}: {error}"))
        return parsed


def _load(text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadTable(f"the output is no JSON: {error}") from None
    return value


def _find_numbers(value: JsonValue, path: str) -> Iterator[float]:
    """The numbers at a path, as ``results[0].mean`` or ``runs[*].values[*]``. Raises BadTable."""
    path = path.strip().removeprefix("$")
    if not path:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise BadTable(f"{quote_piece(json.dumps(value))} is no number")
        yield float(value)
        return
    step = _STEP.match(path)
    if step is None:
        raise BadTable(f"{quote_piece(path)} is no path as results[0].mean or values[*]")
    rest, (key, index) = path[step.end() :], step.groups()
    if key is not None:
        if not isinstance(value, dict) or key not in value:
            choices = nearest(key, map(str, value)) if isinstance(value, dict) else "there is no object"
            raise BadTable(f"the JSON has no {key!r} there: {choices}")
        yield from _find_numbers(value[key], rest)
        return
    if not isinstance(value, list) or (index != "*" and int(index) >= len(value)):
        raise BadTable(f"the JSON has no element [{index}] there")
    for element in value if index == "*" else [value[int(index)]]:
        yield from _find_numbers(element, rest)
