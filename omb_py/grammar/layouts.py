"""The grammar of ``-D``: ``cont``, ``vect:STRIDE:BLOCK`` or ``indx:FILE``, as in OMB, and ``once:FILE``.

A file has a line ``displacement, length`` for each piece, in elements, and ``#`` before comments. Ranks get them as
the text ``indx:0+2,4+1``, so that other hosts need no file.
"""

from __future__ import annotations

from pathlib import Path

from omb_py.errors import UsageError
from omb_py.grammar.line_file import entries
from omb_py.grammar.values import pair_of

_MOST = 1 << 30
_DEFAULT_VECTOR = "8:4"
"""OMB's ``vect`` without numbers."""


def parse_layout(text: str) -> str:
    """Read a layout, and return it as the text that ranks get (:mod:`omb_py.engine.program.datatype_layouts`).

    >>> parse_layout("vect:8:4"), parse_layout("cont")
    ('vect:8:4', 'cont')

    Raises:
        UsageError: another form, a block longer than its stride, or a file that cannot be read or has a bad line.
    """
    kind, colon, rest = text.strip().partition(":")
    if kind == "cont" and not colon:
        return "cont"
    if kind == "vect":
        return _vector(text, rest if colon else _DEFAULT_VECTOR)
    if kind in ("indx", "once") and rest:
        return f"{kind}:" + ",".join(f"{place}+{length}" for place, length in _pieces_of(Path(rest)))
    raise UsageError(f"datatype {text!r}: write cont, vect:STRIDE:BLOCK, indx:FILE or once:FILE")


def _vector(text: str, rest: str) -> str:
    numbers = pair_of(rest, ":")
    if numbers is None or not 1 <= numbers[1] <= numbers[0] <= _MOST:
        raise UsageError(
            f"datatype {text!r}: write vect:STRIDE:BLOCK with a block of 1 to STRIDE elements, as vect:8:4"
        )
    return f"vect:{numbers[0]}:{numbers[1]}"


def _pieces_of(path: Path) -> list[tuple[int, int]]:
    pieces: list[tuple[int, int]] = []
    end = 0
    for number, body in entries(path, "file", "-D indx:FILE with lines DISPLACEMENT, LENGTH"):
        piece = pair_of(body, ",")
        if piece is None or piece[1] < 1 or max(piece) > _MOST:
            raise UsageError(f"{path}:{number}: {body!r} is no piece: write DISPLACEMENT, LENGTH, such as 4, 2")
        if piece[0] < end:
            raise UsageError(
                f"{path}:{number}: the piece begins at {piece[0]}, but the one before ends at {end}: pieces must stand "
                "in order and not overlap"
            )
        pieces.append(piece)
        end = sum(piece)
    if not pieces:
        raise UsageError(f"file {path} has no piece: write lines DISPLACEMENT, LENGTH, such as 4, 2")
    return pieces
