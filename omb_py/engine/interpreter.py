"""The compiled interpreter: one loop that runs a lowered program of steps.

A lowered program is an ``int64`` table, one row a step (:mod:`omb_py.engine.rows` names the columns).
A call row holds the address of a C function and its operands, all 64 bits wide; the interpreter knows
only how to call a function of N such operands.  Nothing that is compiled here depends on a
communication library, so one Numba cache serves all of them.

Why 64-bit operands are right for ``int`` parameters too: in the System V x86-64 and AArch64 Linux calling
conventions an integer argument takes one 64-bit register or one 8-byte stack slot, and the callee reads the
low half; values are kept sign-extended.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from omb_py.engine.rows import (
    ARG0,
    ARITY,
    CALL,
    CALLX,
    COMPUTE,
    END,
    FLIP,
    FN,
    GATE,
    LAP,
    LOAD0,
    MAX_ARITY,
    MAX_DEPTH,
    OP,
    REPEAT,
    STAMP,
    STEP,
    STRIDE0,
    WIDTH,
)

LAYOUT = "6a60f503"
"""Digest of :mod:`omb_py.engine.rows`: Numba's cache looks at this file alone, so it must change with the columns."""

_I64 = ir.IntType(64)
_I32 = ir.IntType(32)


def _caller(arity: int) -> Any:
    """An intrinsic ``call(address, operands)``: call a C function with the `arity` int64 that lie at `operands`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        operands = builder.inttoptr(args[1], _I64.as_pointer())
        loaded = [builder.load(builder.gep(operands, [ir.Constant(_I32, j)])) for j in range(arity)]
        function = builder.inttoptr(args[0], ir.FunctionType(_I32, [_I64] * arity).as_pointer())
        return builder.sext(builder.call(function, loaded), _I64)

    def call(typingctx: Any, fn: Any, operands: Any) -> Any:
        return types.int64(types.int64, types.int64), codegen

    return intrinsic(call)


(
    _call1, _call2, _call3, _call4, _call5, _call6, _call7,
    _call8, _call9, _call10, _call11, _call12, _call13,
) = (_caller(n) for n in range(1, MAX_ARITY + 1))  # fmt: skip


@intrinsic
def _load64(typingctx, address):  # type: ignore[no-untyped-def]
    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.load(builder.inttoptr(args[0], _I64.as_pointer()))

    return types.int64(types.int64), codegen


@intrinsic
def _load32(typingctx, address):  # type: ignore[no-untyped-def]
    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.sext(builder.load(builder.inttoptr(args[0], _I32.as_pointer())), _I64)

    return types.int64(types.int64), codegen


@intrinsic
def _look64(typingctx, address):  # type: ignore[no-untyped-def]
    """Read a word that another thread may change: an ordinary load would be moved out of a waiting loop."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.load_atomic(builder.inttoptr(args[0], _I64.as_pointer()), "acquire", 8)

    return types.int64(types.int64), codegen


@intrinsic
def _flip8(typingctx, address):  # type: ignore[no-untyped-def]
    """Invert the byte at `address`: how a fault is injected into real data."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        byte = ir.IntType(8)
        pointer = builder.inttoptr(args[0], byte.as_pointer())
        builder.store(builder.xor(builder.load(pointer), ir.Constant(byte, 0xFF)), pointer)
        return ir.Constant(_I64, 0)

    return types.int64(types.int64), codegen


@njit(inline="always")
def _now(clock):  # type: ignore[no-untyped-def]
    """Nanoseconds of the clock described by `clock` (see :func:`run`)."""
    _call2(clock[0], clock.ctypes.data + 8)
    return clock[3] * 1_000_000_000 + clock[4]


@njit(inline="always")
def _call(fn, arity, operands):  # type: ignore[no-untyped-def]
    if arity == 1:
        return _call1(fn, operands)
    if arity == 2:
        return _call2(fn, operands)
    if arity == 3:
        return _call3(fn, operands)
    if arity == 4:
        return _call4(fn, operands)
    if arity == 5:
        return _call5(fn, operands)
    if arity == 6:
        return _call6(fn, operands)
    if arity == 7:
        return _call7(fn, operands)
    if arity == 8:
        return _call8(fn, operands)
    if arity == 9:
        return _call9(fn, operands)
    if arity == 10:
        return _call10(fn, operands)
    if arity == 11:
        return _call11(fn, operands)
    if arity == 12:
        return _call12(fn, operands)
    return _call13(fn, operands)


@njit(
    "int64(int64[:, ::1], int64[::1], int64, int64, int64[:, ::1], int64[::1], int64[::1], float32[:, ::1])",
    nogil=True,
    cache=True,
    boundscheck=False,
    error_model="numpy",
)
def run(prog, bounds, first, count, out, word, clock, work):  # type: ignore[no-untyped-def]
    """Run `count` iterations of a lowered program.

    Args:
        prog: the table, shape (rows, :data:`~omb_py.engine.rows.WIDTH`).
        bounds: start and end row of each body variant in turn, shape (2 * variants,).
        first: number of the first iteration (chooses the variant, written to `word`).
        count: iterations to run.
        out: nanoseconds per iteration and lap slot, shape (>= count, slots); laps are added.
        word: the watched word: [1] iteration, [2] step; on error [3] the function's return code.
        clock: [address of clock_gettime, clock id, address of clock[3], seconds, nanoseconds].
        work: the operands of the dummy computation, shape (27, 25).

    Returns:
        0, or 1 + the step whose function did not return 0.
    """
    variants = bounds.shape[0] // 2
    table = prog.ctypes.data + 8 * ARG0
    heads = np.zeros(MAX_DEPTH, np.int64)
    counters = np.zeros(MAX_DEPTH, np.int64)
    limits = np.zeros(MAX_DEPTH, np.int64)
    operands = np.zeros(MAX_ARITY, np.int64)
    for i in range(count):
        variant = (first + i) % variants
        pc = bounds[2 * variant]
        stop = bounds[2 * variant + 1]
        word[1] = first + i
        depth = 0
        k = np.int64(0)
        last = np.int64(0)
        while pc < stop:
            op = prog[pc, OP]
            if op <= CALLX:
                word[2] = prog[pc, STEP]
                arity = prog[pc, ARITY]
                if op == CALL:
                    rc = _call(prog[pc, FN], arity, table + 8 * WIDTH * pc)
                else:
                    for j in range(arity):
                        value = prog[pc, ARG0 + j] + k * prog[pc, STRIDE0 + j]
                        width = prog[pc, LOAD0 + j]
                        if width == 4:
                            value = _load32(value)
                        elif width == 8:
                            value = _load64(value)
                        operands[j] = value
                    rc = _call(prog[pc, FN], arity, operands.ctypes.data)
                if rc != 0:
                    word[3] = rc
                    return 1 + prog[pc, STEP]
            elif op == LAP:
                now = _now(clock)
                slot = prog[pc, FN]
                if slot >= 0:
                    out[i, slot] += now - last
                last = now
            elif op == REPEAT:
                heads[depth] = pc
                limits[depth] = prog[pc, FN]
                counters[depth] = 0
                k = 0
                depth += 1
            elif op == END:
                k = counters[depth - 1] + 1
                if k < limits[depth - 1]:
                    counters[depth - 1] = k
                    pc = heads[depth - 1]
                else:
                    depth -= 1
                    k = counters[depth - 1] if depth > 0 else 0
            elif op == COMPUTE:
                word[2] = prog[pc, STEP]
                until = _now(clock) + prog[pc, FN]
                while _now(clock) < until:
                    for row in range(25):
                        total = np.float32(0)
                        for col in range(25):
                            total += work[row, col] * work[25, col]
                        work[26, row] = total
            elif op == STAMP:
                out[i, prog[pc, FN]] = _now(clock)
            elif op == FLIP:
                if prog[pc, ARITY] < 0 or prog[pc, ARITY] == first + i:
                    _flip8(prog[pc, FN])
            elif op == GATE:
                word[2] = prog[pc, STEP]
                while _look64(prog[pc, FN]) < prog[pc, ARITY]:
                    pass
            pc += 1
    return 0
