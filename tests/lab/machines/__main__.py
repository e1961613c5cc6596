"""``make machines``: a part of the tests, and real runs, on seventeen machines that this one is made to look like.

``python -m tests.lab.machines [--machine NAME] [--times 3] [TEST …]``. Each machine is a mount and PID namespace
(:mod:`tests.lab.machines.machines`), so nothing of this one changes. Linux, as root, with a C compiler. What the tests
printed is in ``build/machines/NAME-TIME.log``. Exit code 1 where a test or a run fails.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.architecture.graph import ROOT
from tests.lab.machines import control_group
from tests.lab.machines.machines import MACHINES, NOBODY, Machine
from tests.support.c_library import STRICT, shared_library
from tests.support.machines.mpi import AS_ROOT
from tests.support.machines.namespace import apart

BOOK = ROOT / "build" / "machines"
TESTS = (
    *("tests/engine/rank", "tests/engine/test_devices.py", "tests/engine/measuring/test_cache_rotation.py"),
    *("tests/engine/measuring/test_host_memory.py", "tests/results/store", "tests/backends/mock/test_session.py"),
    *("tests/orchestrate/launching", "tests/orchestrate/info/test_doctor.py", "tests/cli/test_errors.py"),
)
"""Whatever looks at caches, memory, cores, clocks, users and paths; of the quick tests those without real ranks."""
QUICK = ("-m", "not slow and not mpi")
ROOM = 'mount -t tmpfs none /tmp && mount -t tmpfs none /dev/shm && { SETUP\n} && cd "WHERE" && exec "$@"'


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one pass on a machine gave."""

    machine: str
    time: int
    passed: int
    failed: int
    skipped: int
    runs: int
    """Real runs, of :mod:`tests.lab.machines.runs`."""
    wrong: tuple[str, ...]
    """Those that went wrong, and tests that failed."""
    seconds: float


def command(machine: Machine, words: Sequence[str], library: Path | None, folder: Path | None) -> list[str]:
    """The command line that runs `words` on a machine.

    Args:
        words: what is run there.
        library: the preloaded part of a C library.
        folder: the control group, for a machine with little memory.
    """
    setup = [machine.setup or ":"]
    if folder is not None:
        setup.append(control_group.joining(folder))
    if machine.memory:
        setup.append(control_group.told(machine.memory))
    script = ROOM.replace("SETUP", "\n".join(setup)).replace("WHERE", machine.root)
    user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if machine.as_nobody else []
    loaded = ["env", f"LD_PRELOAD={library}"] if library is not None else []
    return [*apart(), "bash", "-c", script, machine.name, *user, *loaded, *words]


def environment(machine: Machine) -> dict[str, str]:
    """The variables of a machine, and the three paths that its setup knows."""
    known = {
        "ROOT": str(ROOT),
        "PREFIX": sys.prefix,
        "BASE": sys.base_prefix,
        "PYTHONPATH": machine.root.replace("$ROOT", str(ROOT)),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    given = {**os.environ, **AS_ROOT, **known, **machine.environment}
    return {name: value for name, value in given.items() if value is not None}


def compiled() -> Path:
    """The library that is preloaded. Raises CalledProcessError."""
    BOOK.mkdir(parents=True, exist_ok=True)
    made = BOOK / f"preload-{threading.get_ident()}.so"
    return shared_library(Path(__file__).with_name("preload.c"), made, *STRICT)


def on(machine: Machine, tests: Sequence[str], time_of: int, workers: int) -> Outcome:
    """Run the tests and the real runs on a machine."""
    library = compiled() if machine.preloaded else None
    started = time.monotonic()
    parallel = ["-n", str(workers), "--dist", "loadfile"] if workers else []
    flags = ["-q", "-p", "no:benchmark", *parallel, "--basetemp", machine.temporary]
    pytest = [sys.executable, "-m", "pytest", *tests, *QUICK, *flags]
    runs = [sys.executable, "-m", "tests.lab.machines.runs", *(["small-shm"] if machine.small_shm else [])]
    printed = []
    look = [sys.executable, "-m", "tests.lab.machines.look", machine.name]
    for words in (pytest, runs, look):
        with control_group.group(machine.memory) as folder:
            done = subprocess.run(
                command(machine, words, library, folder),
                cwd=ROOT,
                env=environment(machine),
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                check=False,
            )
        printed.append(done.stdout + done.stderr)
    (BOOK / f"{machine.name}-{time_of}.log").write_text("\n".join(printed))
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|skipped|error)", printed[0])}
    wrong = [line for line in printed[2].splitlines() if line]
    wrong += re.findall(r"^(?:FAILED|ERROR) (\S+)", printed[0], re.M)
    if not counts.get("passed"):
        wrong.append("no test ran: " + printed[0][-300:])
    told = re.search(r"^\{.*\}$", printed[1], re.M)
    real = json.loads(told[0]) if told else {"runs": 0, "wrong": ["no run: " + printed[1][-300:]]}
    return Outcome(
        machine.name,
        time_of,
        counts.get("passed", 0),
        counts.get("failed", 0) + counts.get("error", 0),
        counts.get("skipped", 0),
        real["runs"],
        (*wrong, *real["wrong"]),
        time.monotonic() - started,
    )


def table(outcomes: Sequence[Outcome]) -> str:
    """A row for each machine: tests and runs of each time, and how many went wrong."""
    lines = ["| machine | times | tests | failed | real runs | wrong |", "|---|--:|--:|--:|--:|--:|"]
    for machine in MACHINES.values():
        mine = [outcome for outcome in outcomes if outcome.machine == machine.name]
        if mine:
            tests = " ".join(f"{o.passed + o.failed:,}" for o in mine)
            wrong = sum(len([text for text in o.wrong if "::" not in text]) for o in mine)
            lines.append(
                f"| {machine.means} | {len(mine)} | {tests} | {sum(o.failed for o in mine)} "
                f"| {sum(o.runs for o in mine)} | {wrong} |"
            )
    return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> int:
    """Run what is asked for, and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.lab.machines", description="Tests and runs on other machines."
    )
    parser.add_argument("tests", nargs="*", default=list(TESTS), help="instead of the chosen part")
    parser.add_argument("--machine", action="append", choices=MACHINES, help="only this one; may be given again")
    parser.add_argument("--times", type=int, default=1, help="how often")
    parser.add_argument("--jobs", type=int, default=1, help="how many machines at once")
    parser.add_argument("--workers", type=int, default=0, help="processes of pytest; 0: one without helpers")
    given = parser.parse_args(words)
    apart()
    if os.geteuid() or ROOT.is_relative_to("/tmp"):
        raise SystemExit("needs root, since it mounts, and a checkout that is not below /tmp: move it, or become root")
    BOOK.mkdir(parents=True, exist_ok=True)
    passes = [(name, number) for number in range(given.times) for name in given.machine or MACHINES]
    with ThreadPoolExecutor(given.jobs) as pool:
        running = [pool.submit(on, MACHINES[name], given.tests, number, given.workers) for name, number in passes]
        for done in as_completed(running):
            outcome = done.result()
            with (BOOK / "outcomes.jsonl").open("a") as book:
                book.write(json.dumps(asdict(outcome)) + "\n")
            tests = f"{outcome.passed} passed, {outcome.failed} failed, {outcome.skipped} skipped"
            wrong = " ".join(outcome.wrong)
            print(f"{outcome.machine}: {tests}, {outcome.runs} real runs, {outcome.seconds:.0f} s {wrong}", flush=True)
    outcomes = [done.result() for done in running]
    print(f"\n{table(outcomes)}")
    return int(any(outcome.wrong for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
