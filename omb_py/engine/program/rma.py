"""One-sided steps: operations on a peer's window, and what synchronises them.

In all of them `place` is the region of the *target's* window buffer; every rank's window has one layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from omb_py.engine.program.language import Operand, Region, RequestSlot, Step, Window
from omb_py.errors import EnvironmentProblem

WINDOWS: Final = {
    "create": "MPI_Win_create",
    "allocate": "MPI_Win_allocate",
    "dynamic": "MPI_Win_create_dynamic",
    "shared": "MPI_Win_allocate_shared",
}
"""Window kind -> the function that makes it. OMB has all but ``shared``."""
OF_THE_LIBRARY: Final = frozenset({"allocate", "shared"})
"""Kinds whose memory comes from the library."""
SYNCS: Final = {
    "flush": "MPI_Win_flush",
    "flush_local": "MPI_Win_flush_local",
    "lock": "MPI_Win_lock/unlock",
    "lock_all": "MPI_Win_lock_all/unlock_all",
    "pscw": "MPI_Win_post/start/complete/wait",
    "fence": "MPI_Win_fence",
}
"""Synchronisation -> its functions, in OMB's words."""
ACTIVE: Final = frozenset({"pscw", "fence"})
"""Synchronisations in which the target takes part."""
EXPOSED: Final = "exposed"
"""The step that only notes an operation of a peer on this rank's window."""
ADDING: Final = frozenset({"accumulate", "get_accumulate", "fetch_and_op"})
"""Operations that find a different content of the window each time."""
OPERATIONS: Final = frozenset({"put", "get", "rput", "rget", "compare_and_swap"}) | ADDING
SYNCHRONISATIONS: Final = tuple(
    (
        "win_lock win_unlock win_lock_all win_unlock_all win_flush win_flush_local win_flush_all "
        "win_flush_local_all win_fence win_post "
        "win_start win_complete win_wait"
    ).split()
)


def check_hosts(window: Window, hosts: Sequence[str]) -> None:
    """Raises EnvironmentProblem when ranks on several nodes would share memory."""
    nodes = sorted(set(hosts))
    if window.kind == "shared" and len(nodes) > 1:
        raise EnvironmentProblem(
            f"-w shared needs all ranks on one node, but they run on {', '.join(nodes)}: use -w allocate"
        )


def put(send: Region, place: Region, target: int, dtype: str) -> Step:
    """Write `send` to `place` on rank `target`."""
    return Step("put", {"send": send, "window": place, "peer": target, "dtype": dtype})


def get(recv: Region, place: Region, target: int, dtype: str) -> Step:
    """Read `place` on rank `target` into `recv`."""
    return Step("get", {"recv": recv, "window": place, "peer": target, "dtype": dtype})


def with_request(call: Step, request: RequestSlot) -> Step:
    """The form with a request, of a put or get: ``rput``, ``rget``; waiting completes it at the origin."""
    return Step(f"r{call.op}", {**call.operands, "request": request})


def accumulate(send: Region, place: Region, target: int, dtype: str, op: str) -> Step:
    """Reduce `send` into `place` on rank `target`."""
    return Step("accumulate", {"send": send, "window": place, "peer": target, "dtype": dtype, "op": op})


def get_accumulate(send: Region, recv: Region, place: Region, target: int, dtype: str, op: str) -> Step:
    """Read `place` on rank `target` into `recv`, and reduce `send` into it."""
    operands: dict[str, Operand] = {"send": send, "recv": recv, "window": place, "peer": target, "dtype": dtype}
    return Step("get_accumulate", {**operands, "op": op})


def fetch_and_op(send: Region, recv: Region, place: Region, target: int, dtype: str, op: str) -> Step:
    """Do :func:`get_accumulate` for one element."""
    return Step("fetch_and_op", get_accumulate(send, recv, place, target, dtype, op).operands)


def compare_and_swap(send: Region, compare: Region, recv: Region, place: Region, target: int, dtype: str) -> Step:
    """Read the element at `place` on rank `target` into `recv`; replace it by `send` if it equals `compare`."""
    operands: dict[str, Operand] = {"send": send, "compare": compare, "recv": recv, "window": place}
    return Step("compare_and_swap", {**operands, "peer": target, "dtype": dtype})


def exposed(call: Step, origin: int) -> Step:
    """Note for the check that rank `origin` does `call` to this rank's window; no call is made."""
    kept = {name: value for name, value in call.operands.items() if name in ("window", "dtype", "op")}
    return Step(EXPOSED, {"call": call.op, **kept, "peer": origin})


def win_lock(target: int, exclusive: bool = False) -> Step:
    """Open a passive epoch to rank `target`, with a shared or an exclusive lock."""
    return Step("win_lock", {"peer": target, **({"exclusive": 1} if exclusive else {})})


def win_unlock(target: int) -> Step:
    """Close the epoch to rank `target`: all is complete on both sides."""
    return Step("win_unlock", {"peer": target})


def win_lock_all() -> Step:
    """Open a passive epoch to all ranks."""
    return Step("win_lock_all", {})


def win_unlock_all() -> Step:
    """Close the epoch to all ranks."""
    return Step("win_unlock_all", {})


def win_flush(target: int) -> Step:
    """Complete everything to rank `target`, there too."""
    return Step("win_flush", {"peer": target})


def win_flush_local(target: int) -> Step:
    """Complete everything to rank `target` here: the origin's buffers may be used again."""
    return Step("win_flush_local", {"peer": target})


def win_flush_all() -> Step:
    """Complete everything to all ranks, there too."""
    return Step("win_flush_all", {})


def win_flush_local_all() -> Step:
    """Complete everything to all ranks here: the origin's buffers may be used again."""
    return Step("win_flush_local_all", {})


def win_fence() -> Step:
    """Collective: end one epoch and begin the next."""
    return Step("win_fence", {})


def win_post(origin: int) -> Step:
    """Expose the window to rank `origin`."""
    return Step("win_post", {"peer": origin})


def win_start(target: int) -> Step:
    """Begin an access epoch to rank `target`, which posts."""
    return Step("win_start", {"peer": target})


def win_complete(target: int) -> Step:
    """End the access epoch."""
    return Step("win_complete", {"peer": target})


def win_wait(origin: int) -> Step:
    """Wait until rank `origin` has completed its access epoch."""
    return Step("win_wait", {"peer": origin})
