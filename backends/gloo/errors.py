"""The meaning of Gloo's errors: a lost peer is another rank's end, which the supervisor names better."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

PATIENCE_S: Final = 10.0
"""Seconds to wait: longer than the supervisor takes to hear of a rank's end and to end the others."""
_LOST: Final = re.compile(
    r"by peer|[Cc]onnection (re|ab|closed)|pair closure|[Bb]roken pipe|[Ss]ocket (closed|timeout)"
)


def is_lost_peer(error: BaseException) -> bool:
    """Whether an error of Gloo or its store says that another rank has gone."""
    return bool(_LOST.search(str(error)))


def first_line(error: BaseException) -> str:
    """An error in one line, without the place in Gloo's sources."""
    text = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return re.sub(r"^\[[^\]]*\]\s*", "", text)


@contextmanager
def peers_speak_first() -> Iterator[None]:
    """Wait, where a peer was lost, until this rank is ended: which rank died is known elsewhere."""
    try:
        yield
    except RuntimeError as error:
        if is_lost_peer(error):
            time.sleep(PATIENCE_S)
        raise
