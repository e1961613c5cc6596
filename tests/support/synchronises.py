"""Leaving out one synchronise, as a careless change of the code would."""

from __future__ import annotations


def leave_out(which: str) -> None:
    """Take one synchronise out of the running code; empty: none."""
