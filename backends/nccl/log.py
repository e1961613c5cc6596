"""NCCL's own log: which algorithm, protocol and channels it took for a call (``NCCL_DEBUG_SUBSYS=TUNING``).

NCCL reads these variables once, when a process first calls it, and rank 0 writes a line for each call.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from pathlib import Path
from typing import Final

_LINE: Final = re.compile(r"(\w+): (\d+) Bytes -> Algo (\w+) proto (\w+) channel\{Lo\.\.Hi\}=\{(\d+)\.\.(\d+)\}")
_BARRIER: Final = ("AllReduce", "1")


def variables(folder: Path) -> dict[str, str]:
    """Variables that must be in the environment before NCCL is first called."""
    return {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "TUNING", "NCCL_DEBUG_FILE": str(folder / "nccl.%h.%p.log")}


class TuningLog:
    """The log of this process, read from where the last reading ended."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="omb-nccl-log-")
        self.variables = variables(Path(self._folder.name))
        self._read = 0

    def new(self) -> str:
        """The text that was written since the last call."""
        text = "".join(path.read_text(errors="replace") for path in sorted(Path(self._folder.name).glob("*.log")))
        new, self._read = text[self._read :], len(text)
        return new

    def close(self) -> None:
        """Remove the log."""
        self._folder.cleanup()


def chosen(text: str) -> dict[str, str]:
    """The choices of most calls in a part of the log, as marks of a row; empty where it names none.

    The one-byte reductions that stand for barriers do not count while there are others.

    >>> chosen("NCCL INFO AllReduce: 4096 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}")["algorithm_used"]
    'RING'
    """
    lines = Counter(_LINE.findall(text))
    counted = {line: count for line, count in lines.items() if line[:2] != _BARRIER} or dict(lines)
    if not counted:
        return {}
    used = Counter[tuple[str, ...]]()
    for (_, _, *how), count in counted.items():
        used[tuple(how)] += count
    (algorithm, protocol, low, high), _ = used.most_common(1)[0]
    marks = {"algorithm_used": algorithm, "protocol_used": protocol, "channels_used": f"{low}..{high}"}
    return marks | ({"algorithms_seen": str(len(used))} if len(used) > 1 else {})
