"""Columns and op-codes of a lowered program: the contract between a library's calls and the generated code."""

from __future__ import annotations

from typing import Final

MAX_ARITY: Final = 13
"""The longest call: MPI_Rget_accumulate."""

# columns of a row
OP: Final = 0
FN: Final = 1
"""CALL, MATMUL: the function's address; LAP, STAMP: the slot (-1 starts the clock); REPEAT: how often;
COMPUTE: nanoseconds; FLIP, GATE: an address."""
ARITY: Final = 2
"""CALL: number of operands; FLIP: the iteration (-1 for every one); GATE: the value to wait for."""
STEP: Final = 3
"""Number of the step in the program, for the watchdog and for errors."""
ARG0: Final = 4
STRIDE0: Final = ARG0 + MAX_ARITY
LOAD0: Final = STRIDE0 + MAX_ARITY
TURN0: Final = LOAD0 + MAX_ARITY
COPIES: Final = TURN0 + MAX_ARITY
"""CALL, FLIP: how many copies of the buffers iterations use in turn; in copy c an operand is ``base + c * turn``."""
WIDTH: Final = COPIES + 1

# op-codes
CALL: Final = 0
"""A C function; an operand may move with the pass (base + k * stride) or be loaded from memory (4 or 8 bytes)."""
LAP: Final = 1
REPEAT: Final = 2
END: Final = 3
COMPUTE: Final = 4
STAMP: Final = 5
FLIP: Final = 6
GATE: Final = 7
ANNOUNCE: Final = 8
UNTIL: Final = 9
"""ANNOUNCE, UNTIL: FN is the address of the start (``START``); UNTIL: ARITY is the slot for the ns missed."""
MATMUL: Final = 10
"""A call of BLAS's cblas_sgemm; the operands are those of :func:`omb_py.engine.native.matmul.call`."""
POLL: Final = 11
"""A C function that is called with the first operand while the 32-bit word at the second is the third; it ends well
where the word is 0 then."""
