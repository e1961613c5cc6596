"""Caveats of a row: circumstances under which its bytes moved unlike those of an ordinary run on its device.

Every text that shows a row says them: copies through host memory, buffers in other places than on the device, ranks
that share a device, and ``--cache rotate`` over less memory than twice the last-level cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from omb_py.results.store.row import Row

STAGING: Final[Mapping[str, str]] = {"staged": "copied through host memory", "torch": "copied by PyTorch"}
"""Values of the mark ``staging`` with a copy -> the words for it. The others move bytes from the device itself."""
KEYS: Final[Mapping[str, str]] = {
    "staging": "staging",
    "buffers": "placement",
    "ranks per device": "ranks_per_device",
    "cache rotation": "rotation",
}
"""Caveats in the order in which they are said -> the parameter of the row that holds them."""

MEASURED: Final = ("backend", "library", "library_version", "binding", "device")
"""Columns that say what measured. The text of a tool that cannot have measured a row names them in a comment."""
_ORDINARY: Final = {"buffers": "D D", "ranks per device": "1"}


def caveats(row: Row) -> dict[str, str]:
    """The caveats of a row by name, one of :data:`KEYS`; empty for an ordinary run.

    >>> caveats({"parameters": {"staging": "staged", "ranks_per_device": "2"}})
    {'staging': 'copied through host memory', 'ranks per device': '2'}
    >>> caveats({"parameters": {"staging": "direct", "ranks_per_device": "1"}})
    {}
    """
    parameters = dict(row.get("parameters") or {})
    words = {name: str(parameters.get(key) or "") for name, key in KEYS.items()}
    words["staging"] = STAGING.get(words["staging"], "")
    return {name: word for name, word in words.items() if word and word != _ORDINARY.get(name)}


def caveat_text(row: Row) -> str:
    """The caveats of a row for one cell of a table: ``staging: copied through host memory, ranks per device: 2``."""
    return ", ".join(f"{name}: {word}" for name, word in caveats(row).items())


def caveat_line(caveats: Mapping[str, str]) -> str:
    """Caveats as a comment of OMB's or nccl-tests' text; empty where there is none.

    >>> caveat_line({"buffers": "H D", "ranks per device": "2"})
    '# [ buffers: H D ] [ ranks per device: 2 ]'
    """
    return " ".join(("#", *(f"[ {name}: {word} ]" for name, word in caveats.items()))) if caveats else ""


def columns_line(row: Row, columns: Iterable[str] = MEASURED) -> str:
    """The columns of a row that are known, as a comment like :func:`caveat_line`."""
    return caveat_line({name: str(value) for name in columns if (value := row.get(name)) is not None})


def measured_in(content: str) -> dict[str, str | None]:
    """What measured, as a comment of :func:`columns_line` says it; empty for any other line.

    >>> measured_in("# [ backend: mock ] [ library: mock ]")["backend"], measured_in("# [ ranks: 2 ]")
    ('mock', {})
    """
    named = named_in(content)
    return {name: named.get(name) for name in MEASURED} if "backend" in named else {}


def named_in(content: str) -> dict[str, str]:
    """What a comment names in brackets, as :func:`caveat_line` writes it; empty for any other line.

    >>> named_in("# [ backend: gloo ] [ ranks: 2 ]")
    {'backend': 'gloo', 'ranks': '2'}
    """
    if not (content.startswith("# [ ") and content.endswith(" ]")):
        return {}
    pairs = (part.partition(": ") for part in content[4:-2].split(" ] [ "))
    return {name: word for name, _, word in pairs}


def parameters_of_caveats(content: str) -> dict[str, str]:
    """The parameters that a comment of :func:`caveat_line` names; empty for any other line."""
    values = {words: mark for mark, words in STAGING.items()}
    return {KEYS[name]: values.get(word, word)[:80] for name, word in named_in(content).items() if name in KEYS}
