"""Reasons of what is left out, in one line."""

from __future__ import annotations

from omb_py.results.skip import Skip, most_reasons


def test_a_line_is_short_however_many_parts_are_left_out() -> None:
    skips = [Skip(f"b{k}", f"reason {min(k, 5)}") for k in range(400)] + [Skip("b0", "reason 0")]
    assert most_reasons(skips) == "reason 5 (b5 and 394 more); reason 0 (b0); 4 more for other reasons"
    assert most_reasons([]) == ""
