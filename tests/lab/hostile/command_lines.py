"""Command lines that nobody means: no traceback, no bug of ours, no raw escape, an exit code of the contract.

``python -m tests.lab.hostile.command_lines [LINES [SEED]]`` prints the lines that broke a promise, and the exit codes.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import re
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence

from omb_py.cli import main as omb_py
from omb_py.cli.registry import OURS
from omb_py.errors import INTERRUPTED
from omb_py.options.table import TABLE
from omb_py.suites import BENCHMARKS

COMMANDS = sorted({*OURS} - {"dashboard", "completion"})
"""A dashboard serves until it is ended."""
CODES = {0, 1, 2, 3, 4}
LIMIT_S = 30
"""A command line that measures for longer is interrupted, as by Ctrl-C: what it says then counts too."""
ODD = (
    "",
    " ",
    "-",
    "--",
    "nope",
    "a" * 300,
    "a/" * 3000,
    "../../etc/passwd",
    "/dev/null",
    ".",
    "no/such/file.toml",
    "\x1b]0;x\x07",
    "\udcff",
    "µ∞",
    "a\nb",
    "0",
    "-1",
    "9" * 30,
    "1e999",
    "nan",
    "8:8",
    "8:",
    ":",
    "8,",
    ",",
    "=",
    "a=b",
    "NEW:a=b",
    "K=",
    "50,99",
    "max",
    "auto",
    "mock",
    "mock,mock",
    "%s{}",
    "'",
)
FLAGS = tuple(flag for option in TABLE for flag in option.flags.split() if flag != "--debug")
"""Without the one that shows tracebacks."""
OTHERS = (
    "--resume",
    "--output",
    "--rounds",
    "--where",
    "--baseline",
    "--by",
    "--set",
    "--tag",
    "--env",
    "--help",
    "-h",
)
VERBS = {
    "results": ("list", "show", "export", "import", "check", "delete", "compact", "nope"),
    "suite": ("list", "show", "check", "nope"),
}
SHORT = {"--backend": "mock", "-m": "8:16", "-i": "2", "--launches": "2"}
_RAW = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def command_line(rng: random.Random) -> list[str]:
    """Words of a command line that starts no real rank and listens nowhere."""
    first = rng.choice((rng.choice(COMMANDS), rng.choice(sorted(BENCHMARKS)), rng.choice(ODD)))
    words = [first, *([rng.choice(VERBS[first])] if first in VERBS else [])]
    for _ in range(rng.randint(0, 5)):
        words.append(rng.choice((*FLAGS, *OTHERS)) if rng.random() < 0.6 else rng.choice(ODD))
        if rng.random() < 0.3:
            words.append(rng.choice(("8:8", "mock", "2", *ODD)))
    # ranks that are asked for are simulated; what is measured is short
    if first == "rehearse":  # with real nodes it becomes the command, and this process with it
        words.insert(1, "--simulated")
    if first in OURS:
        taken = {flag for param in OURS[first].make().params for flag in param.opts}
        words += [word for flag, value in SHORT.items() if flag in taken for word in (flag, value)]
    elif first in BENCHMARKS:
        words += ["--backend", "mock", "-i", "2", "-m", "8:16"]
    return words


def run_line(words: Sequence[str]) -> tuple[int | str, str, str]:
    """(exit code or exception, stdout, stderr) of a command line in this process."""
    out, err, environ = io.StringIO(), io.StringIO(), dict(os.environ)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code: int | str = omb_py(list(words))
        except BaseException as error:  # whatever comes out is a broken promise
            code = f"{type(error).__name__}: {error}"
        finally:  # --mpi stays in the environment
            os.environ.clear()
            os.environ.update(environ)
    return code, out.getvalue(), err.getvalue()


def broken_promise(words: Sequence[str]) -> tuple[str, int | str]:
    """(the promise that a command line breaks, empty for none; its exit code)."""
    code, _, err = run_line(words)
    if code not in {*CODES, INTERRUPTED}:
        return f"ended with {code}", code
    if "this is a bug" in err or "Traceback" in err:
        return err.strip().splitlines()[-1][:300], code
    if any(_RAW.search(line) for line in err.splitlines() if line.startswith("omb-py: error:")):
        return "a raw control character", code
    if code == 2 and "omb-py: error: " not in err and "Usage" not in err:
        return "no word of what is wrong", code
    return "", code


def main(lines: int = 3000, seed: int = 43) -> int:
    """Print the outcomes; 1 where a promise was broken."""
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what it starts beside itself ignore it
    rng, codes, broken = random.Random(seed), Counter[int | str](), 0
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        os.environ["XDG_STATE_HOME"] = folder
        for number in range(1, lines + 1):
            words = command_line(rng)
            signal.alarm(LIMIT_S)
            promise, code = broken_promise(words)
            if not signal.alarm(0):
                print(f"interrupted after {LIMIT_S} s: {words!r}"[:300], flush=True)
            if number % 250 == 0:
                print(f"{number} of {lines}, {broken} broken promises", flush=True)
            codes[code] += 1
            if promise:
                broken += 1
                print(f"{promise}\n    {words!r}"[:1500], flush=True)
    print(f"{lines} command lines, {broken} broken promises, exit codes {dict(codes)}")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
