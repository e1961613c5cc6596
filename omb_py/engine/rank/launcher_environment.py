"""What a process reads of its launcher in the environment, for those who read ranks there."""

from __future__ import annotations

from collections.abc import Mapping


def by_torchrun(environ: Mapping[str, str]) -> bool:
    """Whether torchrun started this process: inside a batch step, too, whose variables name another rank."""
    return "TORCHELASTIC_RUN_ID" in environ
