"""The programs of :mod:`tests.orchestrate.programs`, for gates."""

from __future__ import annotations

from tests.orchestrate.programs.conftest import calm, osu

__all__ = ["calm", "osu"]
