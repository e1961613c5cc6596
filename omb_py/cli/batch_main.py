"""Runs a command line inside a batch job: ``python -m omb_py.cli.batch_main FILE WORDS…``.

Its exit code goes into FILE, because sbatch tells only the highest of an array, and 1 for a job that was killed.
"""

import sys
from pathlib import Path

from omb_py.cli import main
from omb_py.cli.output import write_file
from omb_py.errors import EnvironmentProblem


def run(file: Path, words: list[str]) -> int:
    """Run a command line, then write its exit code to `file`, which does not exist before; returns the code."""
    file.unlink(missing_ok=True)
    sys.argv = ["omb-py", *words]  # what is stored and printed is what the user wrote
    code = main(words)
    try:
        write_file(file, f"{code}\n")  # whole or not at all: it is read as soon as it is there
    except EnvironmentProblem as problem:
        print(f"omb-py: error: {problem}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]), sys.argv[2:]))
