"""Constructors of steps, so that a benchmark reads like the loop it stands for."""

from __future__ import annotations

from omb_py.engine.program import Operand, Region, Request, Requests, Result, Step


def send(buf: Region, to: int, dtype: str, tag: int = 1) -> Step:
    """Blocking send of `buf` to rank `to`."""
    return Step("send", {"send": buf, "peer": to, "dtype": dtype, "tag": tag})


def recv(buf: Region, source: int, dtype: str, tag: int = 1) -> Step:
    """Blocking receive into `buf` from rank `source`."""
    return Step("recv", {"recv": buf, "peer": source, "dtype": dtype, "tag": tag})


def isend(buf: Region, to: int, dtype: str, request: Request, tag: int = 1) -> Step:
    """Non-blocking send; `request` is complete once the buffer may be reused."""
    return Step("isend", {"send": buf, "peer": to, "dtype": dtype, "tag": tag, "request": request})


def irecv(buf: Region, source: int, dtype: str, request: Request, tag: int = 1) -> Step:
    """Non-blocking receive."""
    return Step("irecv", {"recv": buf, "peer": source, "dtype": dtype, "tag": tag, "request": request})


def wait(request: Request) -> Step:
    """Wait for one request."""
    return Step("wait", {"request": request})


def waitall(requests: Requests) -> Step:
    """Wait for several requests."""
    return Step("waitall", {"requests": requests})


def test(request: Request) -> Step:
    """Test one request for completion, without waiting."""
    return Step("test", {"request": request})


def barrier() -> Step:
    """Synchronise all ranks."""
    return Step("barrier", {})


def ibarrier(request: Request) -> Step:
    """Non-blocking barrier."""
    return Step("ibarrier", {"request": request})


def bcast(buf: Region, root: int, dtype: str) -> Step:
    """Broadcast `buf` from `root`."""
    return Step("bcast", {"buf": buf, "root": root, "dtype": dtype})


def allreduce(send: Region, recv: Region, dtype: str, op: str) -> Step:
    """Reduce `send` of all ranks with `op` into `recv` on every rank."""
    return Step("allreduce", {"send": send, "recv": recv, "dtype": dtype, "op": op})


def iallreduce(send: Region, recv: Region, dtype: str, op: str, request: Request) -> Step:
    """Non-blocking allreduce."""
    operands: dict[str, Operand] = {"send": send, "recv": recv, "dtype": dtype, "op": op, "request": request}
    return Step("iallreduce", operands)


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


def gather(send: Region, recv: Region, root: int, dtype: str) -> Step:
    """Gather `send` of every rank into `recv` on `root`, block r from rank r."""
    return Step("gather", {"send": send, "recv": recv, "root": root, "dtype": dtype})


def scatter(send: Region, recv: Region, root: int, dtype: str) -> Step:
    """Block r of `send` on `root` goes into `recv` of rank r."""
    return Step("scatter", {"send": send, "recv": recv, "root": root, "dtype": dtype})


def compute(nanoseconds: int | Result) -> Step:
    """Keep the processor busy with a small matrix-vector product (OMB's dummy computation)."""
    return Step("compute", {"ns": nanoseconds})


def flip(buf: Region, iteration: int = -1) -> Step:
    """Invert the first byte of `buf`, in one iteration or in all (-1): an injected fault."""
    return Step("flip", {"recv": buf, "iteration": iteration})
