"""What OMB's versions print differently; 7.5 is the one that omb-py prints of its own numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from omb_py.results.formats.osu_titles import Title

VERSION = "7.5"
DIALECT = f"omb-{VERSION}"

_NAME = re.compile(r"omb-(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class Dialect:
    """The manner of one version."""

    version: str = VERSION
    """As in the titles, ``8.0b``."""
    number: tuple[int, int] = (7, 5)

    def blank_first(self, title: Title, pt2pt: bool) -> bool:
        """Whether a blank line comes before a title: of point to point since 7.4, of one-sided and rates since 8.0."""
        if title.layout in ("one_sided", "one_sided_bandwidth", "rate"):
            return self.number >= (8, 0)
        return title.blank_first and not (pt2pt and self.number < (7, 4))

    def latency_head(self, pt2pt: bool) -> str:
        """Point to point says Avg since 7.4."""
        return "Latency (us)" if pt2pt and self.number < (7, 4) else "Avg Latency(us)"

    def datatype_last(self, pt2pt: bool) -> bool:
        """7.2 says the datatype of point to point below the head."""
        return pt2pt and self.number < (7, 4)

    @property
    def rate_head(self) -> str:
        """Of mbw_mr."""
        return "MB/s" if self.number < (8, 0) else "Bandwidth (MB/s)"

    @property
    def titled_init(self) -> bool:
        """osu_init has a title, and says its unit."""
        return self.number > (5, 3)


OWN = Dialect()
"""In which omb-py prints what it measured."""


def dialect(name: object) -> Dialect:
    """The dialect of the column ``text_dialect``: 7.5's where it is none of OMB's."""
    said = str(name)
    found = _NAME.match(said)
    return Dialect(said.removeprefix("omb-"), (int(found[1]), int(found[2]))) if found else OWN
