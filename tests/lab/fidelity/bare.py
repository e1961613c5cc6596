"""The barest mpi4py loops: what a person would write to time a call, with nothing else in the loop.

Prints nothing, keeps one sum. The same formulas as the C reference; messages are what the person would pass: a
NumPy array for numbers, ``[array, MPI.CHAR]`` for characters, made once.
"""

from __future__ import annotations

from typing import Any

from mpi4py import MPI


def latency(comm: MPI.Intracomm, send: Any, recv: Any, iterations: int, warmup: int, window: int) -> float:
    total = 0.0
    comm.Barrier()
    if comm.Get_rank() == 0:
        for i in range(iterations + warmup):
            start = MPI.Wtime()
            comm.Send(send, 1, 1)
            comm.Recv(recv, 1, 1)
            stop = MPI.Wtime()
            if i >= warmup:
                total += stop - start
    else:
        for _ in range(iterations + warmup):
            comm.Recv(recv, 0, 1)
            comm.Send(send, 0, 1)
    return total * 1e6 / (2 * iterations)


def bw(comm: MPI.Intracomm, send: Any, recv: Any, iterations: int, warmup: int, window: int) -> float:
    total = 0.0
    requests = [MPI.REQUEST_NULL] * window
    size = send[0].nbytes
    reply = [(recv if comm.Get_rank() == 0 else send)[0][:1], MPI.CHAR]
    comm.Barrier()
    if comm.Get_rank() == 0:
        for i in range(iterations + warmup):
            start = MPI.Wtime()
            for k in range(window):
                requests[k] = comm.Isend(send, 1, 100)
            MPI.Request.Waitall(requests)
            comm.Recv(reply, 1, 101)
            stop = MPI.Wtime()
            if i >= warmup:
                total += stop - start
        return float(size / 1e6 * iterations * window / total)
    for _ in range(iterations + warmup):
        for k in range(window):
            requests[k] = comm.Irecv(recv, 0, 100)
        MPI.Request.Waitall(requests)
        comm.Send(reply, 0, 101)
    return 0.0


def bcast(comm: MPI.Intracomm, send: Any, recv: Any, iterations: int, warmup: int, window: int) -> float:
    total = 0.0
    comm.Barrier()
    for i in range(iterations + warmup):
        start = MPI.Wtime()
        comm.Bcast(send, 0)
        stop = MPI.Wtime()
        if i >= warmup:
            total += stop - start
        comm.Barrier()
    return averaged(comm, total, iterations)


def allreduce(comm: MPI.Intracomm, send: Any, recv: Any, iterations: int, warmup: int, window: int) -> float:
    total = 0.0
    comm.Barrier()
    for i in range(iterations + warmup):
        start = MPI.Wtime()
        comm.Allreduce(send, recv, MPI.SUM)
        stop = MPI.Wtime()
        if i >= warmup:
            total += stop - start
        comm.Barrier()
    return averaged(comm, total, iterations)


def averaged(comm: MPI.Intracomm, total: float, iterations: int) -> float:
    """The mean over the ranks of this rank's mean, in µs."""
    ranks = comm.Get_size()
    return float(comm.allreduce(total * 1e6 / iterations) / ranks)


LOOPS = {"latency": latency, "bw": bw, "bcast": bcast, "allreduce": allreduce}
