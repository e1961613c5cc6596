"""Machine code of round-time: announcing a moment, and waiting for it (:mod:`omb_py.engine.measuring.process_sync`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omb_py.engine.native import opcodes as R

if TYPE_CHECKING:
    from omb_py.engine.native.codegen import LlvmWriter


def _reading(w: LlvmWriter, seconds: bool) -> str:
    if not seconds:
        return w.now()
    scaled = w.let(f"fmul double {w.let('call double %wtime()')}, {w.billion()}")
    return w.let(f"fptosi double {scaled} to i64")


def _word(w: LlvmWriter, row: int, number: int, kind: str) -> str:
    at = w.let(f"inttoptr i64 {w.let(f'add i64 {w.cell(row, R.FN)}, {8 * number}')} to ptr")
    return at if kind == "ptr" else w.let(f"load {kind}, ptr {at}")


def announce(w: LlvmWriter, row: int, seconds: bool) -> None:
    """Rank 0 announces the next start time: now plus the lead."""
    moment = w.let(f"add i64 {_reading(w, seconds)}, {_word(w, row, 4, 'i64')}")
    w.put(f"store i64 {moment}, ptr {_word(w, row, 0, 'ptr')}")


def until(w: LlvmWriter, row: int, slot: int, seconds: bool) -> None:
    """Wait for the announced moment by this rank's clock, and start the laps there; note by how much it was missed."""
    moment = _word(w, row, 0, "i64")
    slope, intercept, origin = (_word(w, row, number, "double") for number in (1, 2, 3))
    age = w.let(f"fsub double {w.let(f'sitofp i64 {moment} to double')}, {origin}")
    ahead = w.let(f"fadd double {intercept}, {w.let(f'fmul double {slope}, {age}')}")
    local = w.let(f"sub i64 {moment}, {w.let(f'fptosi double {ahead} to i64')}")
    missed = w.let(f"sub i64 {_reading(w, seconds)}, {local}")
    is_late = w.let(f"icmp sgt i64 {missed}, 0")
    at = w.slot(slot)
    w.put(f"store i64 {w.let(f'select i1 {is_late}, i64 {missed}, i64 0')}, ptr {at}")
    look, after = w.label(), w.label()
    w.put(f"br label %{look}")
    w.start(look)
    early = w.let(f"icmp slt i64 {_reading(w, seconds)}, {local}")
    w.put(f"br i1 {early}, label %{look}, label %{after}")
    w.start(after)
    if seconds:
        start_ns = w.let(f"sitofp i64 {local} to double")
        w.put(f"store double {w.let(f'fdiv double {start_ns}, {w.billion()}')}, ptr %last")
    else:
        w.put(f"store i64 {local}, ptr %last")
