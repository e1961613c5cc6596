"""Answers of programs that stay true while some files stay as they are; kept in the user's cache."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from omb_py import user_cache
from omb_py.digests import hex_digest

Answer: TypeAlias = Mapping[str, str]
Stamp: TypeAlias = list[int]
"""Device, inode, size and time of change of a file or folder; empty where there is none."""


def recall(question: str) -> Answer | None:
    """The answer that was kept, if all that it was made from is as it was."""
    kept = user_cache.load(_name_of(question))
    if kept is None:
        return None
    entry = json.loads(kept)
    unchanged = all(_stamp(path) == stamp for path, stamp in entry["stamps"].items())
    return entry["answer"] if unchanged else None


def keep(question: str, answer: Answer, paths: Iterable[str]) -> None:
    """Keep an answer for as long as the files and folders `paths` stay as they are."""
    entry = {"stamps": {path: _stamp(path) for path in paths}, "answer": dict(answer)}
    user_cache.save(_name_of(question), json.dumps(entry).encode())


def _name_of(question: str) -> str:
    return f"{hex_digest(question)}.answer"


def _stamp(path: str) -> Stamp:
    try:
        facts = os.stat(path)
    except OSError:
        return []
    return [facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns]
