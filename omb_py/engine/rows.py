"""Columns and op-codes of a lowered program: the contract between bindings and the interpreter."""

from __future__ import annotations

from typing import Final

MAX_ARITY: Final = 13
"""The longest call: MPI_Rget_accumulate."""
MAX_DEPTH: Final = 4
"""How deep repeats may stand in each other."""

# columns of a row
OP: Final = 0
FN: Final = 1
"""CALL: the function's address; LAP, STAMP: the slot (-1 starts the clock); REPEAT: how often;
COMPUTE: nanoseconds; FLIP, GATE: an address."""
ARITY: Final = 2
"""CALL: number of operands; FLIP: the iteration (-1 for every one); GATE: the value to wait for."""
STEP: Final = 3
"""Number of the step in the program, for the watchdog and for errors."""
ARG0: Final = 4
STRIDE0: Final = ARG0 + MAX_ARITY
LOAD0: Final = STRIDE0 + MAX_ARITY
WIDTH: Final = LOAD0 + MAX_ARITY

# op-codes; calls come first so that one comparison finds them
CALL: Final = 0
CALLX: Final = 1
"""A call with strided operands (base + k * stride) or operands loaded from memory (4 or 8 bytes)."""
LAP: Final = 2
REPEAT: Final = 3
END: Final = 4
COMPUTE: Final = 5
STAMP: Final = 6
FLIP: Final = 7
GATE: Final = 8
