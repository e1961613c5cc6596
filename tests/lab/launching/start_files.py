"""Files that a rank opens as it starts: ``python -m tests.lab.launching.start_files`` (needs strace).

Runs two ranks under strace and counts each one's calls of openat by where the files lie, and the bytes of its read
calls. Libraries are mapped, not read.
"""

from __future__ import annotations

import argparse
import collections
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.machines.mpi import ROOT, environment

RANKS = """
import sys
from omb_py.orchestrate.running import run
from omb_py.cli import main
words = ["strace", "-f", "-ff", "-qq", "-e", "trace=openat,read,pread64", "-o", sys.argv.pop(1)]
command = run.command_for
run.command_for = lambda launcher, program, *rest, **more: command(
    launcher, ["sh", "-c", 'exec %s/$$ "$@"' % " ".join(words), "sh", *program], *rest, **more)
sys.exit(main())
"""
_OPEN = re.compile(r'openat\([^"]*"([^"]*)".* = (-?\d+)')
_READ = re.compile(r"(?:read|pread64)\(.* = (\d+)$")


def asker(path: str) -> str:
    """Who opens a file, by where it lies."""
    if path.startswith(("/proc", "/sys", "/dev")):
        return "/proc, /sys, /dev"
    if match := re.search(r"site-packages/([a-z0-9]+)", path):
        return match[1]
    if path.startswith(str(ROOT)):
        return "omb-py"
    return "Python" if re.search(r"/python3", path) else "libraries and settings"


def main() -> int:
    """Run, count, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", default=["allreduce", "-m", "8:64", "-i", "10"], help="what to measure")
    words = parser.parse_args().words
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", RANKS, folder, *words, "-n", "2", "--no-store", "--quiet"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment(), cwd=ROOT)
        ranks: dict[str, list[str]] = collections.defaultdict(list)
        for file in sorted(Path(folder).iterdir()):  # one a thread: FOLDER/PID.THREAD
            ranks[file.name.partition(".")[0]] += file.read_text(errors="replace").splitlines()
    for lines in ranks.values():
        opens = [match for line in lines if (match := _OPEN.search(line))]
        succeeded = [match[1] for match in opens if not match[2].startswith("-")]
        read = sum(int(match[1]) for line in lines if (match := _READ.search(line)))
        elsewhere = sum(asker(path) != "/proc, /sys, /dev" for path in succeeded)
        print(
            f"{len(opens)} calls of openat, {len(succeeded)} succeed, {elsewhere} outside /proc, /sys, /dev; "
            f"{read / 1e6:.1f} MB read"
        )
        for who, count in collections.Counter(map(asker, succeeded)).most_common():
            print(f"  {count:>5} {who}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
