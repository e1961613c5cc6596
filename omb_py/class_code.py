"""The methods that :mod:`dataclasses` generates, compiled once for each user and kept (:mod:`omb_py.user_cache`).

Compiling them is two fifths of the processor time of a short command and a fifth of a rank's imports. What is kept is
found by the text that it was compiled from, so it is never out of date.
"""

from __future__ import annotations

import marshal
import sys
from types import CodeType

from omb_py import user_cache

_PYTHON = f"{sys.implementation.cache_tag}-{sys.hexversion:x}-{sys.flags.optimize}"
_MOST = 4000
"""Texts after which the file begins anew: a command needs some 700."""


class ClassCode:
    """Takes the place of ``exec`` in :mod:`dataclasses`: the code of a text that was met before is not compiled."""

    def __init__(self, program: str) -> None:
        self._file = f"{_PYTHON}-{program}.methods"
        self._kept = self._load()
        self._fresh: dict[str, bytes] = {}

    def __call__(self, text: str, names: dict[str, object], made: dict[str, object]) -> None:
        if not str(names.get("__name__")).startswith("omb_py."):
            exec(text, names, made)
            return
        kept = self._kept.get(text)
        code: CodeType
        if kept is not None:
            code = marshal.loads(kept)
        else:
            code = compile(text, "<dataclass>", "exec")
            self._fresh[text] = marshal.dumps(code)
        exec(code, names, made)

    def save(self) -> None:
        """Keep what was compiled here, beside what other processes have kept meanwhile."""
        if self._fresh:
            kept = self._load()
            kept = self._fresh if len(kept) > _MOST else kept | self._fresh
            user_cache.save(self._file, marshal.dumps(kept))
            self._fresh = {}

    def _load(self) -> dict[str, bytes]:
        content = user_cache.view(self._file)
        return marshal.loads(content) if content else {}


_installed: list[ClassCode] = []


def install(program: str) -> None:
    """Use what is kept for a program (``command`` or ``rank``), which this process is.

    It is for programs of omb-py: in others :mod:`dataclasses` stays as it is.
    """
    import dataclasses

    if not _installed:
        _installed.append(ClassCode(program))
        vars(dataclasses)["exec"] = _installed[0]


def is_program() -> bool:
    """Whether this process is a program of omb-py, and not one that imports it."""
    return bool(_installed)


def save() -> None:
    """Keep what was compiled in this process, where :func:`install` was called."""
    for code in _installed:
        code.save()
