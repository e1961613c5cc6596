"""Machine code for a lowered stage: LLVM text, one call site a step, operands read from the table.

What is generated depends only on the *shape* of a table: how many calls there are, how many operands a call has, which
of them move with the pass or are loaded from memory.  Addresses of functions and buffers, handles, counts and sizes
stay in the table, so all sizes of a sweep share one piece of code.  The code holds no address and no constant that lies
elsewhere, so it serves every process wherever it is put (:mod:`.machine_code`).

Why code and not an interpreter: each step gets a call instruction of its own, whose target never changes; it is read
from the table, as a C program reads it from its table of the library's functions.
An interpreter calls everything from one instruction, which the processor mispredicts after a library's own loops: that
cost 3–5 % of an 8-byte latency (docs/decisions/0006).

Why 64-bit operands are right for ``int`` parameters too: in the System V x86-64 and AArch64 Linux calling conventions
an integer argument takes one 64-bit register or one 8-byte stack slot, and the callee reads the low half; values are
kept sign-extended.
"""

from __future__ import annotations

from collections.abc import Sequence

from omb_py.engine.native import opcodes as R
from omb_py.engine.native import round_time

Shape = tuple[tuple[tuple[int, ...], ...], ...]
"""For each variant, the row fields that generated code depends on; the cache key."""

_HELPERS = """
define private i64 @now(ptr %clock, i64 %id) #0 {
  %ts = alloca [2 x i64]
  %rc = call i32 %clock(i64 %id, ptr %ts)
  %s = load i64, ptr %ts
  %p = getelementptr i64, ptr %ts, i64 1
  %ns = load i64, ptr %p
  %whole = mul i64 %s, 1000000000
  %all = add i64 %whole, %ns
  ret i64 %all
}
define private void @spin(ptr %clock, i64 %id, i64 %ns, ptr %work) #0 {
entry:
  %begin = call i64 @now(ptr %clock, i64 %id)
  %until = add i64 %begin, %ns
  br label %look
look:
  %t = call i64 @now(ptr %clock, i64 %id)
  %more = icmp slt i64 %t, %until
  br i1 %more, label %row, label %end
row:
  %r = phi i64 [ 0, %look ], [ %r1, %rowend ]
  br label %col
col:
  %c = phi i64 [ 0, %row ], [ %c1, %col ]
  %sum = phi float [ 0.0, %row ], [ %sum1, %col ]
  %at = mul i64 %r, 25
  %rc = add i64 %at, %c
  %pa = getelementptr float, ptr %work, i64 %rc
  %a = load float, ptr %pa
  %vc = add i64 %c, 625
  %pv = getelementptr float, ptr %work, i64 %vc
  %v = load float, ptr %pv
  %m = fmul float %a, %v
  %sum1 = fadd float %sum, %m
  %c1 = add i64 %c, 1
  %cend = icmp eq i64 %c1, 25
  br i1 %cend, label %rowend, label %col
rowend:
  %out = add i64 %r, 650
  %po = getelementptr float, ptr %work, i64 %out
  store float %sum1, ptr %po
  %r1 = add i64 %r, 1
  %rend = icmp eq i64 %r1, 25
  br i1 %rend, label %look, label %row
end:
  ret void
}
"""
"""Reading the clock, and the dummy computation: 25 x 25 matrix-vector products until the time is over."""

SIGNATURE = "i64 @run(ptr %table, i64 %first, i64 %count, ptr %out, i64 %width, ptr %word, ptr %clockwords, ptr %work)"


_CALLS = (R.CALL, R.MATMUL, R.POLL)
_STRIDE, _TURN = 1, 2
"""Bits of an operand's kind: it moves with the pass, with the iteration."""


def shape_of(table: Sequence[Sequence[int]], bounds: Sequence[int]) -> Shape:
    """The fields of a table's rows on which its code depends."""
    variants = []
    for start, stop in zip(bounds[::2], bounds[1::2], strict=True):
        variants.append(tuple(_row_shape(table[number]) for number in range(start, stop)))
    return tuple(variants)


def _row_shape(row: Sequence[int]) -> tuple[int, ...]:
    op = int(row[R.OP])
    if op in _CALLS:
        kinds = (
            int(row[R.LOAD0 + j]) | (_STRIDE if row[R.STRIDE0 + j] else 0) | (_TURN if row[R.TURN0 + j] else 0)
            for j in range(int(row[R.ARITY]))
        )  # a load is 0, 4 or 8 bytes wide
        return (op, int(row[R.STEP]), *kinds)
    if op in (R.LAP, R.STAMP):
        return (op, 0, int(row[R.FN]))
    if op == R.UNTIL:
        return (op, 0, int(row[R.ARITY]))
    if op == R.FLIP:
        return (op, 0, _TURN if row[R.TURN0] else 0)
    return (op, int(row[R.STEP]) if op in (R.COMPUTE, R.GATE) else 0)


class LlvmWriter:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.block = "entry"
        self.fails: list[tuple[str, str, int]] = []
        self._number = 0

    def fresh(self) -> str:
        self._number += 1
        return f"%v{self._number}"

    def put(self, text: str) -> None:
        self.lines.append("  " + text)

    def let(self, text: str) -> str:
        name = self.fresh()
        self.put(f"{name} = {text}")
        return name

    def start(self, block: str) -> None:
        self.lines.append(f"{block}:")
        self.block = block

    def label(self) -> str:
        self._number += 1
        return f"b{self._number}"

    def cell(self, row: int, column: int) -> str:
        at = self.let(f"getelementptr i64, ptr %table, i64 {row * R.WIDTH + column}")
        return self.let(f"load i64, ptr {at}")

    def function(self, row: int) -> str:
        """The function that a row calls."""
        return self.let(f"inttoptr i64 {self.cell(row, R.FN)} to ptr")

    def billion(self) -> str:
        """The nanoseconds of a second."""
        return self.let("load double, ptr %pbillion")

    def now(self) -> str:
        return self.let("call i64 @now(ptr %clock, i64 %id)")

    def watch(self, step: int) -> None:
        """Write the step into the watched word."""
        self.put(f"store i64 {step}, ptr %wstep")

    def slot(self, slot: int) -> str:
        return self.let(f"getelementptr i64, ptr %line, i64 {slot}")


def llvm_text(shape: Shape, seconds: bool = False) -> str:
    """The module of a shape: one function ``run``. With `seconds` laps are read from a clock like ``MPI_Wtime``.

    ``run(table, first, count, out, width, word, clock, work)`` runs `count` iterations of the table's rows.

    - table: int64 (rows, :data:`~omb_py.engine.native.opcodes.WIDTH`), the variants' rows one after the other;
    - first: number of the first iteration (chooses the variant, written to `word`);
    - out: int64 (count, width), nanoseconds of each lap; laps are added;
    - word: the watched word: [1] iteration, [2] step, on error [3] the function's return code;
    - clock: [address of clock_gettime, clock id, address of a function without operands that returns seconds], then the
      constants 1e9 and 0.5 (double) and 1 (float): the code holds none;
    - work: float32 (27, 25), operands of the dummy computation.

    It returns 0, or 1 + the step whose function did not return 0.
    """
    w = LlvmWriter()
    w.start("entry")
    for text in (
        "%clock = load ptr, ptr %clockwords",
        "%pid = getelementptr i64, ptr %clockwords, i64 1",
        "%id = load i64, ptr %pid",
        "%witer = getelementptr i64, ptr %word, i64 1",
        "%wstep = getelementptr i64, ptr %word, i64 2",
        "%pwtime = getelementptr i64, ptr %clockwords, i64 2",
        "%wtime = load ptr, ptr %pwtime",
        "%pbillion = getelementptr i64, ptr %clockwords, i64 3",
        "%phalf = getelementptr i64, ptr %clockwords, i64 4",
        "%pone = getelementptr i64, ptr %clockwords, i64 5",
        "%last = alloca i64",
        "store i64 0, ptr %last",
        "%any = icmp sgt i64 %count, 0",
    ):
        w.put(text)
    if any(_continues(variant) for variant in shape):
        _lap(w, -1, seconds)
    w.put("br i1 %any, label %iteration, label %end")
    w.start("iteration")
    for text in (
        "%i = phi i64 [ 0, %entry ], [ %i1, %next ]",
        "%number = add i64 %first, %i",
        "store i64 %number, ptr %witer",
        "%skip = mul i64 %i, %width",
        "%line = getelementptr i64, ptr %out, i64 %skip",
    ):
        w.put(text)
    _turn(w, shape)
    _choose(w, len(shape))
    row = 0
    for number, variant in enumerate(shape):
        w.start(f"variant{number}")
        _body(w, variant, row, seconds)
        row += len(variant)
        w.put("br label %next")
    w.start("next")
    w.put("%i1 = add i64 %i, 1")
    w.put("%over = icmp eq i64 %i1, %count")
    w.put("br i1 %over, label %end, label %iteration")
    w.start("end")
    w.put("ret i64 0")
    _failures(w)
    # the weights !0 make the branch to a failure unlikely, so that LLVM places it out of the way
    # `run` is first, so that it is where the code begins
    return (
        f"define {SIGNATURE} #0 {{\n"
        + "\n".join(w.lines)
        + f'\n}}\n{_HELPERS}attributes #0 = {{ nounwind "no-jump-tables"="true" }}\n'
        + '!0 = !{!"branch_weights", i32 1000000, i32 1}\n'
    )


def _turn(w: LlvmWriter, shape: Shape) -> None:
    """The copy of the buffers that this iteration uses: its number modulo theirs, never negative."""
    rows = [row for variant in shape for row in variant]
    kinds_of_row = [row[2:] if row[0] in _CALLS else row[2:] if row[0] == R.FLIP else () for row in rows]
    row = next((number for number, kinds in enumerate(kinds_of_row) if any(kind & _TURN for kind in kinds)), None)
    if row is None:
        return
    copies = w.cell(row, R.COPIES)
    remainder = w.let(f"srem i64 %number, {copies}")
    lifted = w.let(f"add i64 {remainder}, {copies}")
    w.put(f"%copy = srem i64 {lifted}, {copies}")


def _choose(w: LlvmWriter, variants: int) -> None:
    """Go to the variant of this iteration: its number modulo theirs, never negative."""
    if variants == 1:
        w.put("br label %variant0")
        return
    remainder = w.let(f"srem i64 %number, {variants}")
    lifted = w.let(f"add i64 {remainder}, {variants}")
    chosen = w.let(f"srem i64 {lifted}, {variants}")
    cases = " ".join(f"i64 {n}, label %variant{n}" for n in range(1, variants))
    w.put(f"switch i64 {chosen}, label %variant0 [ {cases} ]")


def _failures(w: LlvmWriter) -> None:
    """The block to which every call branches that did not return 0."""
    if not w.fails:
        return
    w.start("fail")
    code = w.let("phi i32 " + ", ".join(f"[ {rc}, %{block} ]" for rc, block, _ in w.fails))
    step = w.let("phi i64 " + ", ".join(f"[ {step + 1}, %{block} ]" for _, block, step in w.fails))
    wide = w.let(f"sext i32 {code} to i64")
    at = w.let("getelementptr i64, ptr %word, i64 3")
    w.put(f"store i64 {wide}, ptr {at}")
    w.put(f"ret i64 {step}")


def _continues(variant: tuple[tuple[int, ...], ...]) -> bool:
    """Whether a variant begins with a lap since the end of the iteration before; the first one begins with the loop."""
    return next((row[2] >= 0 for row in variant if row[0] in (R.LAP, R.UNTIL)), False)


def _lap(w: LlvmWriter, slot: int, seconds: bool) -> None:
    """Read the clock; unless this starts it, add what has passed since the reading before."""
    before, now = _read(w, seconds)
    if slot >= 0:
        _add(w, slot, before, now, seconds)


def _read(w: LlvmWriter, seconds: bool) -> tuple[str, str]:
    """Read the clock. Returns (reading before, this one)."""
    kind = "double" if seconds else "i64"
    now = w.let("call double %wtime()") if seconds else w.now()
    before = w.let(f"load {kind}, ptr %last")
    w.put(f"store {kind} {now}, ptr %last")
    return before, now


def _add(w: LlvmWriter, slot: int, before: str, now: str, seconds: bool) -> None:
    """Add the time between two readings to a slot. Seconds become nanoseconds here, not between the readings."""
    if seconds:
        scaled = w.let(f"fmul double {w.let(f'fsub double {now}, {before}')}, {w.billion()}")
        half = w.let("load double, ptr %phalf")
        passed = w.let(f"fptosi double {w.let(f'fadd double {scaled}, {half}')} to i64")
    else:
        passed = w.let(f"sub i64 {now}, {before}")
    at = w.slot(slot)
    sum_ = w.let(f"add i64 {w.let(f'load i64, ptr {at}')}, {passed}")
    w.put(f"store i64 {sum_}, ptr {at}")


def _body(w: LlvmWriter, variant: tuple[tuple[int, ...], ...], first_row: int, seconds: bool) -> None:
    passes: list[tuple[str, str, int, str, int]] = []  # of each open repeat: its k, block, line, k outside, row
    k = "0"
    between: tuple[str, str] | None = None  # the readings around what passed since the iteration before
    laps = (number for number, row in enumerate(variant) if row[0] in (R.LAP, R.UNTIL))
    leading = next(laps) if _continues(variant) else -1
    for offset, (op, step, *details) in enumerate(variant):
        row = first_row + offset
        if op == R.CALL:
            _call(w, row, step, details, k)
        elif op == R.MATMUL:
            _multiply(w, row, step, details, k)
        elif op == R.POLL:
            _poll(w, row, step, details, k)
        elif op == R.LAP and offset == leading and not passes:
            between = _read(w, seconds)  # added after the last lap: the next one begins here
        elif op == R.LAP:
            _lap(w, details[0], seconds)
        elif op == R.STAMP:
            at = w.slot(details[0])
            w.put(f"store i64 {w.now()}, ptr {at}")
        elif op == R.REPEAT:
            outside, block = w.block, w.label()
            w.put(f"br label %{block}")
            w.start(block)
            inner = w.fresh()
            passes.append((inner, block, len(w.lines), k, row))
            w.lines.append(outside)  # becomes the phi when the end of the repeat is known
            k = inner
        elif op == R.END:
            inner, block, line, k, start = passes.pop()
            following = w.let(f"add i64 {inner}, 1")
            times = w.cell(start, R.FN)
            again, after = w.let(f"icmp slt i64 {following}, {times}"), w.label()
            outside = w.lines[line]
            w.lines[line] = f"  {inner} = phi i64 [ 0, %{outside} ], [ {following}, %{w.block} ]"
            w.put(f"br i1 {again}, label %{block}, label %{after}")
            w.start(after)
        elif op == R.COMPUTE:
            w.watch(step)
            w.put(f"call void @spin(ptr %clock, i64 %id, i64 {w.cell(row, R.FN)}, ptr %work)")
        elif op == R.FLIP:
            _flip(w, row, bool(details and details[0]))
        elif op == R.GATE:
            _gate(w, row, step)
        elif op == R.ANNOUNCE:
            round_time.announce(w, row, seconds)
        elif op == R.UNTIL:
            round_time.until(w, row, details[0], seconds)
        else:
            raise ValueError(f"row {row} has no op-code of ours: {op}")
    if between:
        _add(w, variant[leading][2], *between, seconds)


def _call(w: LlvmWriter, row: int, step: int, kinds: list[int], k: str) -> None:
    """A C function; stop when it does not return 0."""
    w.watch(step)
    operands = (f"i64 {value}" for value in _operands(w, row, kinds, k))
    rc = w.let(f"call i32 {w.function(row)}({', '.join(operands)})")
    after = w.label()
    _go_on(w, rc, step, after)
    w.start(after)


def _poll(w: LlvmWriter, row: int, step: int, kinds: list[int], k: str) -> None:
    """Call a C function while a word says that something goes on; stop where either ends in an error."""
    w.watch(step)
    operand, address, going = _operands(w, row, kinds, k)
    at, going = w.let(f"inttoptr i64 {address} to ptr"), w.let(f"trunc i64 {going} to i32")
    look, again, over, after = (w.label() for _ in range(4))
    w.put(f"br label %{look}")
    w.start(look)
    state = w.let(f"load volatile i32, ptr {at}")
    w.put(f"br i1 {w.let(f'icmp eq i32 {state}, {going}')}, label %{again}, label %{over}")
    w.start(again)
    rc = w.let(f"call i32 {w.function(row)}(i64 {operand})")
    _go_on(w, rc, step, look)
    w.start(over)
    _go_on(w, state, step, after)
    w.start(after)


def _go_on(w: LlvmWriter, rc: str, step: int, label: str) -> None:
    """Go to a block where a number is 0; else the step has failed."""
    fine = w.let(f"icmp eq i32 {rc}, 0")
    w.fails.append((rc, w.block, step))
    w.put(f"br i1 {fine}, label %{label}, label %fail, !prof !0")


def _multiply(w: LlvmWriter, row: int, step: int, kinds: list[int], k: str) -> None:
    """BLAS's sgemm of matrices in C's order: out (rows, side) = left (rows, side) · right (side, side)."""
    w.watch(step)
    rows, side, left, right, out = _operands(w, row, kinds, k)
    sizes = ", ".join(f"i64 {value}" for value in (*_CBLAS, rows, side, side))
    one = w.let("load float, ptr %pone")
    w.put(
        f"call void {w.function(row)}({sizes}, float {one}, i64 {left}, i64 {side}, i64 {right}, "
        f"i64 {side}, float 0.0, i64 {out}, i64 {side})"
    )


_CBLAS = (101, 111, 111)
"""CblasRowMajor, and CblasNoTrans for either matrix."""


def _operands(w: LlvmWriter, row: int, kinds: list[int], k: str) -> list[str]:
    """The operands of a call, read from the table and moved to where they are in this pass and iteration."""
    operands = []
    for j, kind in enumerate(kinds):
        value = w.cell(row, R.ARG0 + j)
        if kind & _TURN:
            value = w.let(f"add i64 {value}, {w.let(f'mul i64 %copy, {w.cell(row, R.TURN0 + j)}')}")
        if kind & _STRIDE and k != "0":
            move = w.let(f"mul i64 {k}, {w.cell(row, R.STRIDE0 + j)}")
            value = w.let(f"add i64 {value}, {move}")
        load = kind & ~(_STRIDE | _TURN)
        if load:
            at = w.let(f"inttoptr i64 {value} to ptr")
            if load == 4:
                value = w.let(f"sext i32 {w.let(f'load i32, ptr {at}')} to i64")
            else:
                value = w.let(f"load i64, ptr {at}")
        operands.append(value)
    return operands


def _flip(w: LlvmWriter, row: int, turns: bool) -> None:
    """Invert the byte at an address, in one iteration or in all: this injects a fault into real data."""
    iteration = w.cell(row, R.ARITY)
    always, now = w.let(f"icmp slt i64 {iteration}, 0"), w.let(f"icmp eq i64 {iteration}, %number")
    strike, strikes, after = w.let(f"or i1 {always}, {now}"), w.label(), w.label()
    w.put(f"br i1 {strike}, label %{strikes}, label %{after}")
    w.start(strikes)
    where = w.cell(row, R.FN)
    if turns:
        where = w.let(f"add i64 {where}, {w.let(f'mul i64 %copy, {w.cell(row, R.TURN0)}')}")
    at = w.let(f"inttoptr i64 {where} to ptr")
    flipped = w.let(f"xor i8 {w.let(f'load i8, ptr {at}')}, -1")
    w.put(f"store i8 {flipped}, ptr {at}")
    w.put(f"br label %{after}")
    w.start(after)


def _gate(w: LlvmWriter, row: int, step: int) -> None:
    """Wait until a word that another thread changes is large enough."""
    w.watch(step)
    at = w.let(f"inttoptr i64 {w.cell(row, R.FN)} to ptr")
    threshold, look, after = w.cell(row, R.ARITY), w.label(), w.label()
    w.put(f"br label %{look}")
    w.start(look)
    value = w.let(f"load atomic i64, ptr {at} acquire, align 8")
    w.put(f"br i1 {w.let(f'icmp slt i64 {value}, {threshold}')}, label %{look}, label %{after}")
    w.start(after)
