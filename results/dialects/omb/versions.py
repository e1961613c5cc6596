"""Differences between the texts of OMB's versions. omb-py prints its own results like version 7.5."""

from __future__ import annotations

import re
from dataclasses import dataclass

from omb_py.results.dialects.omb.titles import Title

VERSION = "7.5"
DIALECT = f"omb-{VERSION}"

_NAME = re.compile(r"omb-(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class Dialect:
    """The text style of one version of OMB."""

    version: str = VERSION
    """The version as titles state it, such as ``8.0b``."""
    number: tuple[int, int] = (7, 5)

    def blank_first(self, title: Title, pt2pt: bool) -> bool:
        """Whether a blank line precedes a title; point to point has it since 7.4, one-sided and rates since 8.0."""
        if title.layout in ("one_sided", "one_sided_bandwidth", "rate"):
            return self.number >= (8, 0)
        return title.blank_first and not (pt2pt and self.number < (7, 4))

    def latency_head(self, pt2pt: bool) -> str:
        """The head of a latency column; it has Avg for point to point since 7.4."""
        return "Latency (us)" if pt2pt and self.number < (7, 4) else "Avg Latency(us)"

    def datatype_last(self, pt2pt: bool) -> bool:
        """Whether the datatype stands below the head, as for point to point before 7.4."""
        return pt2pt and self.number < (7, 4)

    @property
    def rate_head(self) -> str:
        """The head of mbw_mr's bandwidth column."""
        return "MB/s" if self.number < (8, 0) else "Bandwidth (MB/s)"

    @property
    def titled_init(self) -> bool:
        """Whether osu_init prints a title and its unit."""
        return self.number > (5, 3)


OWN = Dialect()
"""The dialect in which omb-py prints its own results."""


def dialect(name: object) -> Dialect:
    """The dialect for a value of the column ``text_dialect``; version 7.5 when it is not one of OMB's."""
    match = _NAME.match(str(name))
    return Dialect(str(name).removeprefix("omb-"), (int(match[1]), int(match[2]))) if match else OWN
