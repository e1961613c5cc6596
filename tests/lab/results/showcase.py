"""A real store for the pictures of the docs: two MPI libraries and Gloo, on 2 and 4 ranks, and a comparison.

    python -m tests.lab.results.showcase --env PATH --env PATH --store DIR [--launches N] [--iterations N]

Each --env is a virtual environment with omb-py and one MPI library; the first has torch too. Exit code 1 where a
command fails; what was measured before stays in the store.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

RANKS = ("2", "4")
SIZES = "8:1M:4"
COLLECTIVES = ("allreduce", "bcast")


def commands(envs: list[str], store: Path, launches: int, iterations: str) -> list[list[str]]:
    """What is typed, with the Python of an environment in front."""
    kept = ["-i", iterations, "--store", str(store), "--quiet"]
    made = []
    for number, env in enumerate(envs):
        python = [str(Path(env) / "bin" / "python"), "-m", "omb_py"]
        several = ["--launches", str(launches)]
        made.append([*python, "latency", "-n", "2", "-m", SIZES, *several, *kept])
        for ranks in RANKS:
            for name in COLLECTIVES:
                backends = ["mpi", "gloo"] if number == 0 and name == COLLECTIVES[0] else ["mpi"]
                made += [
                    [*python, name, "--backend", backend, "-n", ranks, "-m", SIZES, *several, *kept]
                    for backend in backends
                ]
    if len(envs) > 1:
        made.append(
            [
                str(Path(envs[0]) / "bin" / "python"),
                "-m",
                "omb_py",
                "compare",
                "--env",
                f"BASE={envs[0]}",
                "--env",
                f"NEW={envs[1]}",
                COLLECTIVES[0],
                "-n",
                "2",
                "-m",
                "8:1M:8",
                "-i",
                iterations,
                "--launches",
                str(max(launches, 5)),
                "--rounds",
                "1",
                "--store",
                str(store),
                "--quiet",
            ]
        )
    return made


def main(words: list[str] | None = None) -> int:
    """Run all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--env", action="append", required=True, metavar="PATH", help="a virtual environment")
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--launches", type=int, default=5)
    parser.add_argument("--iterations", default="auto")
    args = parser.parse_args(words)
    failed = 0
    for command in commands(args.env, args.store, args.launches, args.iterations):
        print("$", " ".join(command), flush=True)
        code = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
        if code not in (0, 1):  # 1 is the verdict SLOWER
            print(f"exit code {code}", flush=True)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
