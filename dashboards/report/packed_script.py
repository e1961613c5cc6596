"""Texts that stand compressed in a page, for pages that are mailed."""

from __future__ import annotations

import base64
import gzip
from functools import lru_cache

LEVEL = 6
"""Of gzip: 9 takes a third more processor time for two thousandths less."""


@lru_cache(maxsize=1)
def packed_script(script: str) -> str:
    """:func:`packed` of a script that many pages hold: plotly.js takes 2.0 MB instead of 4.8."""
    return packed(script)


def packed(text: str) -> str:
    """A text as gzip in base64, which ``assets/unpack.js`` reads."""
    return base64.b64encode(gzip.compress(text.encode(), LEVEL, mtime=0)).decode("ascii")
