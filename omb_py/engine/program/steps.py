"""Constructors of steps, so that a benchmark reads like the loop it stands for."""

from __future__ import annotations

from typing import Final

from omb_py.engine.program.language import Blocks, Operand, Region, Requests, RequestSlot, Result, Step

COLLECTIVES: Final = tuple(
    (
        "barrier bcast reduce allreduce reduce_scatter reduce_scatter_block gather gatherv scatter scatterv "
        "allgather allgatherv alltoall alltoallv alltoallw"
    ).split()
)
"""Blocking forms; each has a non-blocking (``i…``) and a persistent one (``…_init``)."""
_OVER_EDGES: Final = ("allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw")
NEIGHBORHOOD: Final = tuple(f"neighbor_{op}" for op in _OVER_EDGES)
"""The same over the edges of a graph."""
REDUCTIONS: Final = frozenset({"reduce", "allreduce", "reduce_scatter", "reduce_scatter_block"})
PREFIXES: Final = ("scan", "exscan")
"""Reductions over the ranks up to each; only guidelines use them."""


RESIZED: Final = ("comm_shrink", "comm_grow")
"""Communicators with fewer or more ranks than the one that they come from."""
COMMUNICATORS: Final = ("comm_dup", "comm_split", "comm_create", *RESIZED, "comm_free")


TWO_SLOTS: Final = Requests(0, 2)
"""Request slots of an exchange that names none."""


def base(op: str) -> str:
    """The blocking form of an operation: ``allreduce`` of ``iallreduce`` and ``allreduce_init``."""
    if op.endswith("_init"):
        return op.removesuffix("_init")
    return op.removeprefix("i")


def send(buf: Region, to: int, dtype: str, tag: int = 1) -> Step:
    """Blocking send of `buf` to rank `to`."""
    return Step("send", {"send": buf, "peer": to, "dtype": dtype, "tag": tag})


def recv(buf: Region, source: int, dtype: str, tag: int = 1) -> Step:
    """Blocking receive into `buf` from rank `source`."""
    return Step("recv", {"recv": buf, "peer": source, "dtype": dtype, "tag": tag})


def isend(buf: Region, to: int, dtype: str, request: RequestSlot, tag: int = 1) -> Step:
    """Non-blocking send; `request` is complete once the buffer may be reused."""
    return Step("isend", {"send": buf, "peer": to, "dtype": dtype, "tag": tag, "request": request})


def irecv(buf: Region, source: int, dtype: str, request: RequestSlot, tag: int = 1) -> Step:
    """Non-blocking receive."""
    return Step("irecv", {"recv": buf, "peer": source, "dtype": dtype, "tag": tag, "request": request})


def recv_any(buf: Region, source: int, dtype: str, tag: int = 1) -> Step:
    """Blocking receive from any rank (MPI_ANY_SOURCE). For the check `source` is the rank that sends with this tag."""
    return Step("recv_any", recv(buf, source, dtype, tag).operands)


def recv_next(buf: Region, senders: tuple[int, ...], dtype: str, tag: int = 1) -> Step:
    """Blocking receive of the message that comes first from any rank (MPI_ANY_SOURCE).

    `senders` are the ranks that send with this tag. For the check each of them comes once, in any order, to the
    receives of a body that name the same senders and tag.
    """
    return Step("recv_next", {"recv": buf, "senders": senders, "dtype": dtype, "tag": tag})


def answer(buf: Region, senders: tuple[int, ...], dtype: str, tag: int = 1) -> Step:
    """Blocking send to the rank whose message the last :func:`recv_next` received: one of `senders`.

    All of them get the same bytes, and receive them as :func:`answered` says.
    """
    return Step("answer", {"send": buf, "senders": senders, "dtype": dtype, "tag": tag})


def sendrecv(
    send: Region, to: int, recv: Region, source: int, dtype: str, requests: Requests = TWO_SLOTS, tag: int = 1
) -> Step:
    """Blocking exchange in one call: `send` goes to rank `to`, `recv` comes from rank `source`.

    `requests` are two slots for backends that do it as a send and a receive. Leave them out, unless a request that is
    open meanwhile has one of the usual two.
    """
    operands: dict[str, Operand] = {"send": send, "target": to, "recv": recv, "source": source}
    return Step("sendrecv", {**operands, "dtype": dtype, "tag": tag, "requests": requests})


def sendrecv_replace(
    buf: Region, to: int, source: int, dtype: str, requests: Requests = TWO_SLOTS, tag: int = 1
) -> Step:
    """Do :func:`sendrecv` with one region, whose bytes are sent and then replaced by those received."""
    operands: dict[str, Operand] = {"replaced": buf, "target": to, "source": source}
    return Step("sendrecv_replace", {**operands, "dtype": dtype, "tag": tag, "requests": requests})


def wait(request: RequestSlot) -> Step:
    """Wait for one request."""
    return Step("wait", {"request": request})


def waitall(requests: Requests) -> Step:
    """Wait for several requests."""
    return Step("waitall", {"requests": requests})


def test(request: RequestSlot) -> Step:
    """Test one request for completion, without waiting."""
    return Step("test", {"request": request})


def barrier() -> Step:
    """Synchronise all ranks."""
    return Step("barrier", {})


def bcast(buf: Region, root: int, dtype: str) -> Step:
    """Broadcast `buf` from `root`."""
    return Step("bcast", {"buf": buf, "root": root, "dtype": dtype})


def allreduce(send: Region, recv: Region, dtype: str, op: str) -> Step:
    """Reduce `send` of all ranks with `op` into `recv` on every rank."""
    return Step("allreduce", {"send": send, "recv": recv, "dtype": dtype, "op": op})


def allgather(send: Region, recv: Region, dtype: str) -> Step:
    """Gather `send` of every rank into `recv`, block r from rank r, on every rank."""
    return Step("allgather", {"send": send, "recv": recv, "dtype": dtype})


def alltoall(send: Region, recv: Region, dtype: str) -> Step:
    """Send block d of `send` to rank d; block s of `recv` comes from rank s."""
    return Step("alltoall", {"send": send, "recv": recv, "dtype": dtype})


def reduce(send: Region, recv: Region, root: int, dtype: str, op: str) -> Step:
    """Reduce `send` of all ranks with `op` into `recv` on `root`."""
    return Step("reduce", {"send": send, "recv": recv, "root": root, "dtype": dtype, "op": op})


def reduce_scatter_block(send: Region, recv: Region, dtype: str, op: str) -> Step:
    """Reduce `send` of all ranks with `op`; rank r gets block r of the result into `recv`."""
    return Step("reduce_scatter_block", {"send": send, "recv": recv, "dtype": dtype, "op": op})


def scan(send: Region, recv: Region, dtype: str, op: str) -> Step:
    """Reduce `send` of the ranks up to and with this one with `op` into `recv`."""
    return Step("scan", {"send": send, "recv": recv, "dtype": dtype, "op": op})


def exscan(send: Region, recv: Region, dtype: str, op: str) -> Step:
    """Reduce `send` of the ranks before this one with `op` into `recv`; rank 0 gets nothing."""
    return Step("exscan", {"send": send, "recv": recv, "dtype": dtype, "op": op})


def reduce_local(send: Region, recv: Region, dtype: str, op: str) -> Step:
    """Reduce `send` and `recv` of this rank with `op` into `recv`, without communication."""
    return Step("reduce_local", {"send": send, "recv": recv, "dtype": dtype, "op": op})


def gather(send: Region, recv: Region, root: int, dtype: str) -> Step:
    """Gather `send` of every rank into `recv` on `root`, block r from rank r."""
    return Step("gather", {"send": send, "recv": recv, "root": root, "dtype": dtype})


def scatter(send: Region, recv: Region, root: int, dtype: str) -> Step:
    """Block r of `send` on `root` goes into `recv` of rank r."""
    return Step("scatter", {"send": send, "recv": recv, "root": root, "dtype": dtype})


def reduce_scatter(send: Region, recv: Region, counts: tuple[int, ...], dtype: str, op: str) -> Step:
    """Reduce `send` of all ranks with `op`; rank r gets ``counts[r]`` elements of the result into `recv`."""
    return Step("reduce_scatter", {"send": send, "recv": recv, "counts": counts, "dtype": dtype, "op": op})


def allgatherv(send: Region, recv: Blocks, dtype: str) -> Step:
    """Gather `send` of every rank, block r from rank r, on every rank; the blocks may differ in size."""
    return Step("allgatherv", {"send": send, "recv": recv, "dtype": dtype})


def gatherv(send: Region, recv: Blocks, root: int, dtype: str) -> Step:
    """Gather `send` of every rank on `root`, block r from rank r; the blocks may differ in size."""
    return Step("gatherv", {"send": send, "recv": recv, "root": root, "dtype": dtype})


def scatterv(send: Blocks, recv: Region, root: int, dtype: str) -> Step:
    """Block r of `send` on `root` goes into `recv` of rank r; the blocks may differ in size."""
    return Step("scatterv", {"send": send, "recv": recv, "root": root, "dtype": dtype})


def alltoallv(send: Blocks, recv: Blocks, dtype: str) -> Step:
    """Send block d to rank d; block s of `recv` comes from rank s; the blocks may differ in size."""
    return Step("alltoallv", {"send": send, "recv": recv, "dtype": dtype})


def alltoallw(send: Blocks, recv: Blocks, dtype: str) -> Step:
    """Do :func:`alltoallv` with a datatype for each block (here all the same) and displacements in bytes."""
    return Step("alltoallw", {"send": send, "recv": recv, "dtype": dtype})


Ranks = tuple[int, ...]


def neighbor(op: str, send: Region | Blocks, recv: Region | Blocks, dtype: str, sources: Ranks, targets: Ranks) -> Step:
    """A collective over the edges of a graph: `op` is ``allgather``, ``allgatherv``, ``alltoall``, …

    Args:
        send: one block for all (allgather), else block j for rank ``targets[j]``.
        recv: block j comes from rank ``sources[j]``.
        sources: ranks with an edge to this one. A rank may be listed twice.
        targets: ranks with an edge from this one.
    """
    operands: dict[str, Operand] = {"send": send, "recv": recv, "dtype": dtype, "sources": sources, "targets": targets}
    return Step(f"neighbor_{op}", operands)


def comm_dup() -> Step:
    """Duplicate the communicator; the new one goes into the only slot for one."""
    return Step("comm_dup", {})


def comm_split(parts: int) -> Step:
    """Split the communicator: rank r goes into part r modulo `parts`."""
    return Step("comm_split", {"parts": parts})


def comm_create() -> Step:
    """Create a communicator from the group of all ranks."""
    return Step("comm_create", {})


def comm_shrink(staying: Ranks) -> Step:
    """Create a communicator of the ranks that stay, without the others, which do not call it."""
    return Step("comm_shrink", {"group": staying})


def comm_grow(old: Ranks) -> Step:
    """Create a communicator of all ranks from that of the old ones; the others join."""
    return Step("comm_grow", {"old": old})


def comm_free() -> Step:
    """Free the communicator that the last of these steps made."""
    return Step("comm_free", {})


def in_place(call: Step) -> Step:
    """The call with MPI_IN_PLACE: its `send` (`recv` at the root of a scatter) is taken from the other region."""
    return Step(call.op, {**call.operands, "in_place": 1})


def answered(receive: Step) -> Step:
    """The receive of a message that is sent with :func:`answer`."""
    return Step(receive.op, {**receive.operands, "answered": 1})


def nonblocking(call: Step, request: RequestSlot) -> Step:
    """The non-blocking form of a collective: ``iallreduce`` of ``allreduce``."""
    return Step(f"i{call.op}", {**call.operands, "request": request})


def persistent(call: Step, request: RequestSlot) -> Step:
    """The initialisation of a persistent operation, for a setup: ``send_init`` of ``send``."""
    return Step(f"{call.op}_init", {**call.operands, "request": request})


def psend(buf: Region, to: int, dtype: str, partitions: int, tag: int = 1) -> Step:
    """A partitioned send of `buf`, in equal parts; only its persistent form exists."""
    return Step("psend", {"send": buf, "peer": to, "dtype": dtype, "tag": tag, "partitions": partitions})


def precv(buf: Region, source: int, dtype: str, partitions: int, tag: int = 1) -> Step:
    """A partitioned receive into `buf`; only its persistent form exists."""
    return Step("precv", {"recv": buf, "peer": source, "dtype": dtype, "tag": tag, "partitions": partitions})


def pready(request: RequestSlot, partition: int) -> Step:
    """Declare a part of a started partitioned send ready."""
    return Step("pready", {"request": request, "partition": partition})


def parrived(request: RequestSlot, partition: int) -> Step:
    """Ask whether a part of a started partitioned receive is there, without waiting."""
    return Step("parrived", {"request": request, "partition": partition})


def start(request: RequestSlot) -> Step:
    """Start a persistent operation."""
    return Step("start", {"request": request})


def startall(requests: Requests) -> Step:
    """Start several persistent operations."""
    return Step("startall", {"requests": requests})


def free(request: RequestSlot) -> Step:
    """Free a persistent request, in a teardown."""
    return Step("free", {"request": request})


def compute(nanoseconds: int | Result) -> Step:
    """Keep the processor busy with a small matrix-vector product (OMB's dummy computation)."""
    return Step("compute", {"ns": nanoseconds})


MATMUL: Final = "matmul"
MATRICES: Final = ("activations", "weights", "products")
"""Buffers of :func:`matmul`: left matrix, right matrix, product."""
_FLOAT_BYTES: Final = 4


def matmul(rows: int, side: int) -> Step:
    """Multiply a matrix (rows, side) by one of (side, side), both float32, into the buffers :data:`MATRICES`."""
    sizes = (rows * side * _FLOAT_BYTES, side * side * _FLOAT_BYTES, rows * side * _FLOAT_BYTES)
    left, right, out = (Region(name, 0, nbytes) for name, nbytes in zip(MATRICES, sizes, strict=True))
    return Step(MATMUL, {"left": left, "right": right, "out": out, "rows": rows, "side": side})


def zero(buf: Region) -> Step:
    """Zeros in `buf`, which a mock-up expects: for :attr:`omb_py.engine.program.language.Stage.check`, not run."""
    return Step("zero", {"send": buf})


def flip(buf: Region, iteration: int = -1) -> Step:
    """Invert the first byte of `buf`, in one iteration or in all (-1): an injected fault."""
    return Step("flip", {"recv": buf, "iteration": iteration})
