"""NCCL's own log: which algorithm, protocol and channels it took for a call (``NCCL_DEBUG_SUBSYS=TUNING``).

NCCL reads these variables once, when a process first calls it, and rank 0 writes a line for each call.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from pathlib import Path
from typing import Final

_LINE: Final = re.compile(
    r"(?P<call>\w+)(?: \[(?P<way>[\w ]+)\])?: (?P<bytes>\d+) Bytes -> (?:"
    r"Algo (?P<algorithm>\w+) proto (?P<protocol>\w+) channel\{Lo\.\.Hi\}=\{(?P<low>\d+)\.\.(?P<high>\d+)\}"
    r"|Kernel (?P<kernel>\S+) nchannels (?P<channels>\d+)"
    r"|(?P<engine>cudaMemcpy|(?:Rail \S+ )?RMA proxy \+ CE))"
)
"""The three forms: a kernel of rings and trees; a symmetric kernel (2.27); copies by the copy engines (2.28)."""
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
        self._folder.cleanup()


def _choice(line: re.Match[str]) -> tuple[tuple[str, str], ...]:
    if line["algorithm"]:
        marks = {"algorithm_used": line["algorithm"], "protocol_used": line["protocol"]}
        return (*marks.items(), ("channels_used", f"{line['low']}..{line['high']}"))
    if line["kernel"]:
        channels = f"0..{max(0, int(line['channels']) - 1)}"
        return (("algorithm_used", f"{line['way']} {line['kernel']}".strip()), ("channels_used", channels))
    return (("algorithm_used", f"{line['way'] or 'Copy Engine'}: {line['engine']}"),)


def chosen(text: str, barriers: bool = False) -> dict[str, str]:
    """The choices of most calls in a part of the log, as marks of a row; empty where it names none.

    One-byte reductions are the barriers between calls, so they count with `barriers` alone: where they are measured.

    >>> chosen("NCCL INFO AllReduce: 4096 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}")["algorithm_used"]
    'RING'
    """
    lines = [line for line in _LINE.finditer(text) if barriers or line.group("call", "bytes") != _BARRIER]
    used = Counter(map(_choice, lines))
    if not used:
        return {}
    (marks, _), *others = used.most_common()
    return dict(marks) | ({"algorithms_seen": str(1 + len(others))} if others else {})
