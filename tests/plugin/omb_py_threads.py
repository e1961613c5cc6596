"""A backend in one module: ranks are threads of one process, and a message is copied through a queue."""

import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from threading import Barrier

import numpy as np

from omb_py.plugin import (
    Backend,
    Capabilities,
    Inspection,
    Objects,
    OwnOption,
    RankStart,
    Runner,
    Session,
    compile_stage,
    index_of,
    request_count,
    usable,
)

CAPABILITIES = Capabilities(
    "threads",
    bindings=usable("python"),
    steps=frozenset({"send", "recv", "isend", "irecv", "wait", "waitall", "barrier", "compute"}),
    dtypes=("char", "int32", "float32"),
    refused={"cache": {"rotate": "backend threads copies through queues, so it takes no --cache rotate: leave it out"}},
    in_process=True,
    start=RankStart(prefixes=("QUEUE_",)),
    inspection=Inspection(library="queue.SimpleQueue", version="1.0", facts={"what it is": "threads of one process"}),
    option=OwnOption("MICROSECONDS", "Time that a message takes longer.", "0", run_wide=True),
)


class ThreadsSession(Session):
    """All ranks, as threads that meet when a cell runs."""

    backend, binding, library, library_version = "threads", "python", "queue.SimpleQueue", "1.0"
    thread_level = "multiple"

    def __init__(self, spec):
        self.size = spec["ranks"]
        self.local, self.hosts = tuple(range(self.size)), ("here",) * self.size
        self.delay_s = float(spec.get("settings") or 0) / 1e6

    def load(self, cell, programs):
        """The programs of all ranks, ready to run."""
        return ThreadsRunner(self, programs)


class ThreadsRunner(Runner):
    """One cell; messages travel through a queue for each pair of ranks and tag."""

    def __init__(self, session, programs):
        self.programs, self.delay_s = programs, session.delay_s
        self.buffers = {
            rank: {b.name: np.zeros(max(1, b.nbytes), np.uint8) for b in program.buffers}
            for rank, program in programs.items()
        }
        self.requests = {rank: [None] * request_count(program) for rank, program in programs.items()}
        self.queues, self.together = defaultdict(SimpleQueue), Barrier(session.size)
        self.threads = ThreadPoolExecutor(session.size)

    def memory(self, rank, buffer):
        """The bytes of a buffer."""
        return self.buffers[rank][buffer]

    def enter(self, stage, results):
        """Make a Python loop of each rank's steps."""
        self.loops = {}
        for rank, program in self.programs.items():
            objects = Objects({b.name: b.nbytes for b in program.buffers}, program.stages[stage].copies)
            self.loops[rank] = compile_stage(program.stages[stage], partial(self.render, rank, objects), results)

    def run(self, stage, first, iterations):
        """Nanoseconds of each rank, shape (iterations, laps)."""
        ranks = {r: self.threads.submit(loop.run, first, iterations) for r, loop in self.loops.items()}
        return {rank: future.result() for rank, future in ranks.items()}

    def close(self):
        """End the threads."""
        self.threads.shutdown()

    def render(self, rank, objects, step, names, k):
        """One Python statement for a step."""
        if step.op == "barrier":
            return f"{names.bind(self.together.wait)}()"
        if step.op == "waitall":
            group = step["requests"]
            return f"for q in {names.bind(self.requests[rank])}[{group.first}:{group.first + group.count}]: q()"
        request = step.operands.get("request")
        slot = f"{names.bind(self.requests[rank])}[{index_of(request, k)}]" if request else ""
        if step.op == "wait":
            return f"{slot}()"
        word, peer = ("send", (rank, step["peer"])) if step.op.endswith("send") else ("recv", (step["peer"], rank))
        view = objects.text(step[word], step[word], names, k, partial(self.view, rank))
        call = names.bind(partial(getattr(self, word), self.queues[(*peer, step["tag"])]))
        if not slot:
            return f"{call}({view})"
        if word == "recv":
            return f"{slot} = {names.bind(partial)}({call}, {view})"
        return f"{call}({view}); {slot} = {names.bind(int)}"

    def view(self, rank, region):
        """The bytes of a region."""
        return self.buffers[rank][region.buffer][region.offset : region.offset + region.nbytes]

    def send(self, queue, view):
        """A copy of the bytes, into the queue."""
        until = time.perf_counter() + self.delay_s
        queue.put(view.copy())
        while time.perf_counter() < until:
            pass

    def recv(self, queue, view):
        """The next bytes of the queue."""
        view[:] = queue.get()


BACKEND = Backend(CAPABILITIES, ThreadsSession)
