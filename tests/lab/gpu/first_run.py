"""First run on a machine with one GPU: the most evidence within one call of nine minutes.

``python -m tests.lab.gpu.first_run OUT [--device cuda] [--call 1|2] [--mpi FOLDER] [--programs FOLDER]``: steps in the order
in which a failure explains the later ones, each with a time limit of its own. Read OUT/summary.txt from the top: the
first FAILED explains the others; OUT/log.txt has all that was printed, with Python's stack where a step hung.
``--mpi`` is a folder with bin/ and lib/ of an MPI library, ``--programs`` one with built programs of
nccl-tests. Nothing is installed or built. ``--device sim``, with the stand-in library in OMB_PY_NCCL, is its dry run.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Final, TextIO

from omb_py.launchers.mpi_library import mpi_library
from omb_py.launchers.mpiexec import find_mpiexec
from tests.lab.gpu import cells
from tests.lab.gpu.parts import parts
from tests.lab.gpu.processes import run_within
from tests.support.machines.mpi import environment, torchrun

SIZES, ITERATIONS = "8,64K", 5
LIMIT_S: Final = 520.0
LEAST_S: Final = 12.0
"""A step that has less time than this is left out."""
SHOWN: Final = re.compile(r"FAILED|BAD|HANGS|rror|ailure|WARN")
OMB: Final = (sys.executable, "-m", "omb_py")
FACTS: Final = (
    "nvidia-smi -L; nvidia-smi -q | grep -iE -A2 'compute mode|fabric|driver version|cuda version|mig mode'; "
    "nvidia-smi topo -m; ls /dev/nvidia*; ip -br a; df -h /dev/shm /tmp; ulimit -a; uname -r; nproc; "
    "ldconfig -p | grep -E 'libmpi|libnccl|libcuda'; "
    f"{sys.executable} -m pip list | grep -iE 'numpy|cupy|nccl|numba|llvm|mpi4py|torch|cuda|pandas|pyarrow'; true"
)


@dataclass(frozen=True, slots=True)
class Kit:
    """What the steps have."""

    device: str
    out: Path
    sizes: str = SIZES
    iterations: int = ITERATIONS
    programs: Path | None = None

    @property
    def real(self) -> bool:
        return self.device != "sim"

    @property
    def patience(self) -> float:
        """How many times its seconds a step may take: no dry run fails because much else runs on the machine."""
        return 1.0 if self.real else 6.0


@dataclass(frozen=True, slots=True)
class FirstRunStep:
    """A command with a time limit."""

    name: str
    limit_s: float
    words: Sequence[str]
    code: int = 0
    says: str = ""
    """What it must print."""
    environ: Mapping[str, str] = field(default_factory=dict)
    without: str = ""
    """Why it is left out; empty where it is not."""


def first_call(kit: Kit) -> Iterator[FirstRunStep]:
    """Facts, the device alone, one rank, and two ranks that share the GPU: bytes of these mean something, times do not."""
    yield FirstRunStep("facts", 60, ("bash", "-c", FACTS))
    yield FirstRunStep("device layer", 100, _module("tests.lab.gpu.probe", kit.device))
    doctor = (*OMB, "doctor", "--device", kit.device)
    yield FirstRunStep("doctor", 60, doctor, without="" if kit.real else "it looks at GPUs")
    for names in [[name] for name in cells.GROUPS] if kit.real else [list(cells.GROUPS)]:  # as parts below
        words = _module("tests.lab.gpu.cells", *names)
        limit_s, without = 50 * len(names), cells.missing(names[0], kit.device)
        yield FirstRunStep(f"one rank: {', '.join(names)}", limit_s, words, without=without)
    yield from _beside_nccl_tests(kit, "all_reduce_perf")
    log = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": str(kit.out / "nccl.%p.txt")}
    yield FirstRunStep("two ranks: log of NCCL", 40, _shared(kit), environ=log)
    limits_s = {"nccl": 110, "mpi mixed": 45, "mpi direct": 60, "nccl settings": 60, "gloo": 40}
    yield from _parts(kit, {**limits_s, "mpi managed": 40})  # last: a driver may hang in it


def second_call(kit: Kit) -> Iterator[FirstRunStep]:
    """Python bindings, staged MPI, ranks of other launchers, what must be refused, and more beside nccl-tests."""
    yield from _parts(kit, {"nccl bindings": 170, "nccl 2.29": 60, "mpi staged": 130})
    joined = _shared(kit, launched=False)
    lacks_torch = "" if find_spec("torch") else "PyTorch is not here"
    yield FirstRunStep("torchrun", 60, (*torchrun(2), *joined), without=lacks_torch)
    yield FirstRunStep("mpiexec", 60, (*_mpiexec(), "-n", "2", *joined))
    one = ("-m", "8:8", "-i", "5", "--no-store")
    nccl = (*OMB, "allreduce", "--backend", "nccl", "-d", kit.device, "-n", "2")
    yield FirstRunStep("refused: two ranks on a GPU", 60, (*nccl, *one), 3, "--share-device")
    large = ("--share-device", "-m", "200G:200G", "-i", "1", "--no-store")
    yield FirstRunStep("refused: more than there is", 60, (*nccl, *large), 2, "choose a smaller -m")
    hidden = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "", "OMB_PY_SIM_DEVICES": "0"}
    yield FirstRunStep("refused: no GPU", 60, (*nccl, *one), 3, "visible", environ=hidden)
    # in a dry run that of the first call stands for all
    for program in "all_gather_perf reduce_scatter_perf broadcast_perf reduce_perf alltoall_perf".split() * kit.real:
        yield from _beside_nccl_tests(kit, program)


def _mpiexec() -> tuple[str, ...]:
    """The mpiexec of the library that mpi4py loads: the first in PATH may be the system's."""
    found = find_mpiexec(mpi_library(), os.environ)
    return (found.path, *(("--oversubscribe", "--bind-to", "none") if found.vendor == "Open MPI" else ()))


def _beside_nccl_tests(kit: Kit, program: str) -> Iterator[FirstRunStep]:
    """A program of nccl-tests with one rank, and the same command line of omb-py."""
    words = f"-b 8 -e {'128M' if kit.real else '2K'} -f 16 -w 5 -n 20 -g 1".split()
    theirs = kit.programs and kit.programs / program
    there = theirs is not None and os.access(theirs, os.X_OK)
    lacks = "" if there else f"no {program} in --programs"
    yield FirstRunStep(f"one rank: {program} of nccl-tests", 40, (str(theirs), *words), without=lacks)
    ours = (*OMB, program, *words, "--device", kit.device, "--store", str(kit.out / "store"))
    yield FirstRunStep(f"one rank: {program} of omb-py", 60, ours, says="Out of bounds values : 0 OK")


CALLS: Final[Mapping[int, Callable[[Kit], Iterator[FirstRunStep]]]] = {1: first_call, 2: second_call}


def _module(name: str, *words: str) -> tuple[str, ...]:
    return sys.executable, "-X", "faulthandler", "-m", name, *words


def _shared(kit: Kit, launched: bool = True) -> tuple[str, ...]:
    """An allreduce of two ranks that share the device."""
    where = ("-d", kit.device, "--share-device", *(("-n", "2") if launched else ()))
    counts = ("-m", kit.sizes, "-i", str(kit.iterations), "-x", "2", "-c", "--store", str(kit.out / "store"))
    return *OMB, "allreduce", "--backend", "nccl", *where, *counts


def _parts(kit: Kit, limits_s: Mapping[str, float]) -> Iterator[FirstRunStep]:
    """Parts of the check with two ranks: each a step; in a dry run one step, since its start takes longer than a part."""
    if kit.real:
        yield from (_part(kit, limit_s, name) for name, limit_s in limits_s.items())
        return
    lacks_torch = not find_spec("torch")
    yield _part(kit, sum(limits_s.values()), *(name for name in limits_s if not (lacks_torch and name == "gloo")))


def _part(kit: Kit, limit_s: float, *names: str) -> FirstRunStep:
    """A step of one part of the check, or of several."""
    # a part that is over its time stores its rows and ends its ranks, so it ends before the step
    seconds = f"{limit_s * kit.patience - 10:g}"
    limits = ("--limit", seconds, "--part-limit", seconds)
    counts = ("--sizes", kit.sizes, "--iterations", str(kit.iterations), "--warmup", "2")
    words = _module("tests.lab.gpu.check", "--store", str(kit.out / "store"), *counts, *limits, kit.device, *names)
    part = next(part for part in parts(kit.device) if part.name == names[0])
    why = part.applies(kit.device, mpi_library().vendor)
    if names == ("gloo",) and not find_spec("torch"):
        why = "PyTorch is not here"
    return FirstRunStep(f"two ranks: {', '.join(names)}", limit_s, words, without=why)


def run_steps(
    steps: Iterator[FirstRunStep], kit: Kit, limit_s: float, clock: Callable[[], float] = time.monotonic
) -> list[str]:
    """Run steps within a time limit; a line for each goes to the terminal and into OUT/summary.txt.

    Returns:
        the names of those that failed.
    """
    end, failed = clock() + limit_s, []
    with open(kit.out / "log.txt", "a") as log, open(kit.out / "summary.txt", "a") as summary:
        say = partial(_say, summary)
        for step in steps:
            began = clock()
            most = min(step.limit_s * kit.patience, end - began - 5)
            if step.without or most < LEAST_S:
                say(f"left out {step.name}: {step.without or 'no time'}")
                continue
            code, out, err = run_within(most, step.words, environment(**{**variables(kit), **step.environ}))
            print(f"===== {step.name}: {' '.join(step.words)}\n{out}{err}", file=log, flush=True)
            why = problem_of(step, code, out + err)
            say(f"{'FAILED' if why else 'ok'} {step.name} ({clock() - began:.1f} s) {why}".rstrip())
            if why:
                failed.append(step.name)
                lines = [line for line in (out + err).splitlines() if SHOWN.search(line)]
                print(*(f"  {line[:240]}" for line in lines[-8:]), sep="\n", flush=True)
    return failed


def _say(summary: TextIO, line: str) -> None:
    for file in (sys.stdout, summary):
        print(line, file=file, flush=True)


def problem_of(step: FirstRunStep, code: int | None, text: str) -> str:
    """What is wrong with how a step ended; empty where nothing is."""
    if code is None:
        return "over its time"
    if code != step.code:
        return f"exit status {code}, not {step.code}"
    return "" if step.says in text else f"it does not say {step.says!r}"


def variables(kit: Kit) -> dict[str, str]:
    """Variables of all steps."""
    own = {"OMB_PY_TEST_DEVICE": kit.device, "PYTHONUNBUFFERED": "1", "OMB_PY_SIM_DEVICES": "1"}
    # one machine: no binding of ranks that share cores, no network, and no search for a domain of NVLink
    usual = {"I_MPI_PIN": "0", "I_MPI_FABRICS": "shm", "NCCL_DEBUG": "WARN", "NCCL_MNNVL_ENABLE": "0"}
    return {**own, **{name: os.environ.get(name, value) for name, value in usual.items()}}


def use_mpi(folder: Path) -> None:
    """Take the MPI library of a folder. mpi4py would load the first libmpi.so of the system, whose mpiexec is another."""
    (library,) = [path for path in sorted(folder.glob("lib/libmpi.so*")) if path.is_file()][:1]
    os.environ["MPI4PY_LIBMPI"] = str(library)
    for name, sub in (("PATH", "bin"), ("LD_LIBRARY_PATH", "lib")):
        os.environ[name] = os.pathsep.join(filter(None, (str(folder / sub), os.environ.get(name, ""))))


def main(given: Sequence[str] | None = None) -> int:
    """Exit status 1 when anything failed."""
    words = argparse.ArgumentParser(prog="python -m tests.lab.gpu.first_run")
    words.add_argument("out", type=Path)
    words.add_argument("--device", default="cuda", choices=("cuda", "rocm", "sim"))
    words.add_argument("--call", type=int, default=1, choices=CALLS)
    words.add_argument("--limit", type=float, default=LIMIT_S, metavar="S")
    words.add_argument("--mpi", type=Path, metavar="FOLDER")
    words.add_argument("--programs", type=Path, metavar="FOLDER")
    words.add_argument("--sizes", default=SIZES, metavar="M")
    words.add_argument("--iterations", type=int, default=ITERATIONS, metavar="N")
    read = words.parse_args(given)
    if read.mpi:
        use_mpi(read.mpi.resolve())
    kit = Kit(read.device, read.out.resolve(), read.sizes, read.iterations, read.programs)
    kit.out.mkdir(parents=True, exist_ok=True)
    return int(bool(run_steps(CALLS[read.call](kit), kit, read.limit)))


if __name__ == "__main__":
    sys.exit(main())
