"""What a start costs beside C's: ``python -m tests.lab.startup`` (needs mpicc; strace for the files).

Whole commands, two ranks of ``latency -m 8:8 -i 1 -x 0``, in a random order: a C program (startup.c, or ``osu_latency`` of
the folder OMB_BIN) under mpiexec, and omb-py without and with a store. Wall time, processor time of all processes, calls
that look for files and the files of a rank, and memory of a rank. Prints medians and ratios.

``--slow-open 2`` shows instead how long the start of 2 to 64 ranks takes where each open of a file outside of /proc,
/sys and /dev waits so long (slow_open.c, preloaded), as on a parallel file system that many use.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.lab.fidelity.reference import BUILD, NoCompiler, beside_python
from tests.support.machines.mpi import ROOT, environment, mpiexec, run_command

START = ("latency", "-m", "8:8", "-i", "1", "-x", "0")
LONG = ("latency", "-m", "8:8", "-i", "1000", "-x", "0", "--repeat-for", "2s")
_OPEN = re.compile(r'(?:open|openat)\([^"]*"([^"]*)".* = \d+')
_RANDOM = re.compile(r"(?<=/tmp/hydra_hwloc_xmlfile_)\w+")
"""Part of a name that MPICH draws by lot for each process."""
_STAT = "stat,lstat,newfstatat,statx,access,faccessat,faccessat2,readlink,readlinkat"


def run(words: Sequence[str]) -> tuple[float, float]:
    """(wall seconds, processor seconds of the command and all that it waited for). Raises RuntimeError."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = run_command(words, timeout=300, cwd=ROOT)
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}: {done.stderr}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def interleaved(commands: Mapping[str, Sequence[str]], rounds: int) -> dict[str, tuple[float, float]]:
    """Median wall and processor seconds of each command, run in turn after one round that is not counted."""
    order, took = random.Random(0), defaultdict(list)
    for number in range(rounds + 1):
        for name in order.sample(sorted(commands), len(commands)):
            if number:
                took[name].append(run(commands[name]))
            else:
                run(commands[name])
    return {name: tuple(map(statistics.median, zip(*values, strict=True))) for name, values in took.items()}


def c_program() -> Path:
    """OMB's program where OMB_BIN names its folder, else ours. Raises NoCompiler."""
    if folder := os.environ.get("OMB_BIN"):
        return next(Path(folder).rglob("osu_latency"))
    mpicc, program = beside_python("mpicc"), BUILD / f"startup-{Path(sys.prefix).name}"
    if mpicc is None:
        raise NoCompiler(f"no mpicc beside {sys.executable} nor on the PATH")
    BUILD.mkdir(parents=True, exist_ok=True)
    subprocess.run([mpicc, "-O2", "-o", program, Path(__file__).with_suffix(".c")], check=True)
    return program


def files_of(words: Sequence[str], mark: str) -> tuple[int, int, list[set[str]]]:
    """(calls that look for files, those that open one, files of disks that each rank opens, fewest first).

    Ranks have `mark` in their command. What lies in /proc, /sys and /dev is the kernel's. The first rank of a node
    opens more: it tells of the node.
    """
    with tempfile.TemporaryDirectory() as folder:
        trace = [
            "strace",
            "-f",
            "-ff",
            "-qq",
            "-s",
            "500",
            "-e",
            f"trace=execve,openat,open,{_STAT}",
            "-o",
            f"{folder}/t",
        ]
        run([*trace, *words])
        threads = [file.read_text(errors="replace").splitlines() for file in Path(folder).iterdir()]
    looks = sum(len(lines) for lines in threads)
    opens = [[match[1] for line in lines if (match := _OPEN.match(line))] for lines in threads]
    ranks = [n for n, lines in enumerate(threads) if any("execve(" in line and mark in line for line in lines)]
    stored = [
        {_RANDOM.sub("N", path) for path in opens[n] if not path.startswith(("/proc", "/sys", "/dev"))} for n in ranks
    ]
    return looks - sum(map(len, opens)), sum(map(len, opens)), sorted(stored, key=len)[-2:]


def _children(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            yield child
            yield from _children(child)


def memory_of(words: Sequence[str], mark: str) -> tuple[float, float]:
    """The largest RSS and PSS of a rank, MB, looked at ten times a second while the command runs."""
    most = 0.0, 0.0
    with subprocess.Popen(
        words, env=environment(), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as command:
        while command.poll() is None:
            time.sleep(0.1)
            try:
                for pid in list(_children(command.pid)):
                    if mark in Path(f"/proc/{pid}/cmdline").read_text() and not list(_children(pid)):
                        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
                        seen = [int(re.search(rf"^{name}:\s+(\d+)", text, re.M)[1]) / 1024 for name in ("Rss", "Pss")]
                        most = max(most[0], seen[0]), max(most[1], seen[1])
            except (OSError, TypeError):  # it has ended meanwhile
                continue
    return most


@contextmanager
def load(processes: int) -> Iterator[None]:
    """So many processes that compute meanwhile."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def start_table(program: Path, rounds: int) -> None:
    """Wall and processor time of starts, quiet and beside a load of two."""
    ours = [sys.executable, "-m", "omb_py", *START, "-n", "2"]
    own = os.environ.get("OMB_BIN")
    with tempfile.TemporaryDirectory() as store:
        commands = {
            "C": [*mpiexec(), "-n", "2", str(program), *(START[1:] if own else ())],
            "omb-py": [*ours, "--no-store"],
            "omb-py with store": [*ours, "--store", store],
        }
        for processes in (0, 2):
            with load(processes):
                took = interleaved(commands, rounds)
            for name, (wall, spent) in took.items():
                ratios = f"{wall / took['C'][0]:6.1f} {spent / took['C'][1]:6.1f} x C"
                print(f"load {processes}  {name:<18} {wall:6.3f} s wall {spent:6.3f} s processor {ratios}", flush=True)


def rank_table(program: Path) -> None:
    """Files and memory of a rank."""
    own = os.environ.get("OMB_BIN")
    ours, theirs = [sys.executable, "-m", "omb_py"], [*mpiexec(), "-n", "2", str(program)]
    last = ["-n", "2", "--no-store"]
    marks = {"C": program.name, "omb-py": "running/rank_start.py"}
    if shutil.which("strace"):
        starts = {"C": [*theirs, *(START[1:] if own else ())], "omb-py": [*ours, *START, *last]}
        seen = {name: files_of(words, marks[name]) for name, words in starts.items()}
        for name, (looks, opens, files) in seen.items():
            more = [len(of_rank - seen["C"][2][-1]) for of_rank in files]
            ratio = looks / seen["C"][0]
            print(f"{name:<18} {looks:6} looks for files ({ratio:.1f} x C), {opens} opens")
            print(f"{name:<18} {more[0]:6} files of a rank beyond C's, {more[1]} of the first of a node")
        if os.environ.get("STARTUP_FILES"):
            print("\n".join(sorted(seen["omb-py"][2][-1] - seen["C"][2][-1])))
    long = ("-m", "8:8", "-i", "4000000") if own else ("2",)
    runs = {"C": [*theirs, *long], "omb-py": [*ours, *LONG, *last]}
    for name, words in runs.items():
        rss, pss = memory_of(words, marks[name])
        print(f"{name:<18} {rss:6.0f} MB RSS {pss:6.0f} MB PSS of a rank", flush=True)


def slow_library() -> Path:
    """The preload library that makes opens slow. Raises NoCompiler."""
    library = BUILD / "slow_open.so"
    if (compiler := shutil.which("cc")) is None:
        raise NoCompiler("no cc on the PATH")
    BUILD.mkdir(parents=True, exist_ok=True)
    source = Path(__file__).with_name("slow_open.c")
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


def slow_table(program: Path, wait_us: int, most: int, rounds: int) -> None:
    """Wall time of starts where opens are slow, and beside it without."""
    ours = [sys.executable, "-m", "omb_py", "allreduce", "-m", "8:8", "-i", "1", "-x", "0", "--no-store", "--quiet"]
    slow = ["env", f"LD_PRELOAD={slow_library()}", f"OMB_SLOW_OPEN_US={wait_us}"]
    for ranks in (n for n in (2, 4, 16, 64) if n <= most):
        commands = {"C": [*mpiexec(), "-n", str(ranks), str(program)], "omb-py": [*ours, "-n", str(ranks)]}
        took = interleaved(commands | {f"{name}, slow": [*slow, *words] for name, words in commands.items()}, rounds)
        print(f"{ranks:4} ranks  " + "  ".join(f"{name} {wall:.2f} s" for name, (wall, _) in took.items()), flush=True)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="starts of each command (default: %(default)s)")
    parser.add_argument("--slow-open", metavar="MS", type=float, help="let each open of a file wait so many ms")
    parser.add_argument("--most-ranks", type=int, default=64, help="with --slow-open (default: %(default)s)")
    chosen = parser.parse_args()
    try:
        program = c_program()
    except NoCompiler as error:
        print(f"the C side cannot be built: {error}", file=sys.stderr)
        return 3
    if chosen.slow_open:
        slow_table(program, round(1000 * chosen.slow_open), chosen.most_ranks, chosen.rounds)
        return 0
    start_table(program, chosen.rounds)
    rank_table(program)
    return 0


if __name__ == "__main__":
    sys.exit(main())
