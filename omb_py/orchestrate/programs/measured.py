"""Did a launch measure? Each way of not measuring is found here, before anything of it is judged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from omb_py.errors import NoVerdict
from omb_py.orchestrate.programs.command import SideProgram
from omb_py.results.compare.cell_names import name
from omb_py.results.compare.match import Side
from omb_py.results.store.row import Row
from omb_py.results.units import counted

_BY_CHANCE = 3
"""So many digits of a number may be equal in two launches by chance."""
_CERTAIN = 12
"""Equal digits beyond those, in all further launches together, with which launches cannot have measured anew."""


def check_rows(program: SideProgram, rows: Mapping[str, Row], usual: Mapping[str, Row]) -> None:
    """Raise NoVerdict where the numbers of a launch are no measurement of what was asked.

    Args:
        program: its side.
        rows: what it printed, by cell.
        usual: what the first launch of the side printed; empty for that launch itself.
    """
    for row in rows.values():
        if row.get("validated") is False:
            raise NoVerdict(f"{program.side}: {name(row)} did not validate: times of wrong results are not judged")
        ranks = row.get("ranks")
        if program.asked_ranks is not None and ranks is not None and ranks < program.asked_ranks:
            raise NoVerdict(
                f"{program.side} ran on {counted(ranks, 'rank')}, and {program.asked_ranks} were asked for: the "
                "launcher and the library do not belong together"
            )
        hosts = set(row.get("hosts") or ())
        if program.asked_nodes is not None and hosts and len(hosts) < program.asked_nodes:
            raise NoVerdict(
                f"{program.side} ran on {counted(len(hosts), 'node')} ({_nodes(row)}), and {program.asked_nodes} were "
                "asked for"
            )
    if why := why_elsewhere(usual, rows):
        raise NoVerdict(f"{program.side}: {why}, from one launch to the next")
    lost = [row for key, row in usual.items() if key not in rows]
    if lost:
        raise NoVerdict(f"{program.side} lacks {name(lost[0])} in this launch, and had it before: its output is cut")


def why_elsewhere(first: Mapping[str, Row], second: Mapping[str, Row]) -> str:
    """Why two launches measured on other devices or nodes, as far as their outputs say it; empty where they did not."""
    for key in first.keys() & second.keys():
        for place in (_device, _nodes):
            before, after = place(first[key]), place(second[key])
            if before and after and before != after:
                return f"{name(first[key])} was measured on {before}, then on {after}"
    return ""


def _device(row: Row) -> str:
    return row.get("device_name") or ""


def _nodes(row: Row) -> str:
    return ", ".join(sorted(set(row.get("hosts") or ())))


@dataclass(slots=True)
class Repetitions:
    """Finds launches that printed the numbers of an earlier launch again."""

    _launches: defaultdict[tuple[tuple[str, float], ...], list[Side]] = field(default_factory=lambda: defaultdict(list))

    def check(self, side: Side, rows: Mapping[str, Row]) -> None:
        """Raise NoVerdict where so many numbers have come again that they cannot have been measured anew."""
        numbers = tuple(sorted((key, float(row["value"])) for key, row in rows.items() if row.get("value")))
        sides = self._launches[numbers]
        sides.append(side)
        digits = sum(max(0, _printed_digits(rows[key]) - _BY_CHANCE) for key, _ in numbers)
        if len(sides) > 1 and digits * (len(sides) - 1) >= _CERTAIN:
            raise NoVerdict(
                f"{len(sides)} launches ({', '.join(dict.fromkeys(sides))}) printed the same "
                f"{counted(len(numbers), 'number')} to the last digit: the program repeats a stored result"
            )


def _printed_digits(row: Row) -> int:
    """Digits of the number of a row. The mean of few coarse numbers has many; their sum has as few as they."""
    value = float(row["value"])
    return min(significant_digits(value), significant_digits(value * (row.get("iterations") or 1)))


def significant_digits(value: float) -> int:
    """Digits of a number as it was printed, without zeros at its ends.

    >>> [significant_digits(x) for x in (0.26, 123.45, 1500.0)]
    [2, 5, 2]
    """
    return len(f"{value:.15g}".partition("e")[0].replace(".", "").replace("-", "").strip("0"))
