"""Comparisons on real ranks, on a quiet machine: three MPI libraries, planted slowdowns, switches, A against A.

    python -m tests.bench.compare_libraries --env MPICH=PATH --env "Open MPI=PATH" --env "Intel MPI=PATH" --out FOLDER

Every part prints the commands that it runs and what they print, and writes both to FOLDER/NAME.md; the launches go to
FOLDER/store. Parts: libraries, planted, switch, aa; all of them where none is named. Exit code 1 where a part finds
other than it should: a planted change neither found nor UNCLEAR with the launches needed, a false alarm.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
from pathlib import Path

from tests.bench.quiet import wait_for_quiet

PARTS = ("libraries", "planted", "switch", "aa")
SIZES = "8,1024,65536"
PLANTED_SIZE = 65536
SWITCHES = {
    # what lies between two ranks of one node: not shared memory but the network's path
    "Open MPI": ("OMPI_MCA_pml=ob1", "OMPI_MCA_btl=self,tcp"),
    "MPICH": ("MPIR_CVAR_NOLOCAL=1", "UCX_TLS=tcp,self"),
    "Intel MPI": ("I_MPI_FABRICS=ofi",),
}
TAIL_EVERY = 33
"""Three calls in a hundred."""
TAIL_FACTOR = 10


class Transcript:
    """Runs commands and keeps what they print."""

    def __init__(self, path: Path, title: str) -> None:
        self.path = path
        path.write_text(f"# {title}\n", encoding="utf-8")
        print(f"\n# {title}", flush=True)

    def say(self, text: str) -> None:
        print(text, flush=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")

    def run(self, python: str, words: list[str]) -> int:
        """One omb-py command; returns its exit code."""
        done = subprocess.run(
            [python, "-m", "omb_py", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        self.say(f"\n```console\n$ omb-py {' '.join(words)}\n{done.stdout.rstrip()}\n```\nexit code {done.returncode}")
        return done.returncode


def python_of(env: str) -> str:
    return str(Path(env) / "bin" / "python")


def newest(store: Path) -> dict:
    """The report that was written last."""
    path = max((store / "reports").glob("*.json"), key=lambda file: file.stat().st_mtime)
    return json.loads(path.read_text(encoding="utf-8"))


def settled(report: dict, question: str) -> bool:
    """SLOWER, or UNCLEAR with how many launches would tell: never SAME, never silently nothing."""
    answers = [cell[question] for cell in report["cells"]]
    return all(a["verdict"] == "SLOWER" or (a["verdict"] == "UNCLEAR" and a["needed"]) for a in answers)


def libraries(envs: dict[str, str], args: argparse.Namespace) -> bool:
    """Each library against each other."""
    out = Transcript(args.out / "libraries.md", "Three MPI libraries")
    fine = True
    for base, new in itertools.combinations(envs, 2):
        out.say(f"\n## {base} against {new}")
        words = ["compare", "--env", f"BASE={envs[base]}", "--env", f"NEW={envs[new]}", args.benchmark, "-n", "2",
                 "-m", SIZES, "--launches", str(args.launches), "--store", str(args.out / "store")]  # fmt: skip
        fine &= out.run(python_of(envs[base]), words) in (0, 1)
    return fine


def planted(envs: dict[str, str], args: argparse.Namespace) -> bool:
    """+10 % by a busy wait inside the lap of NEW, and 3 % of the calls ten times slower."""
    out = Transcript(args.out / "planted.md", "Planted slowdowns")
    fine = True
    for name, env in envs.items():
        out.say(f"\n## {name}")
        store = str(args.out / "store")
        aim = [args.benchmark, "-n", "2", "-m", f"{PLANTED_SIZE}:{PLANTED_SIZE}"]
        code = out.run(python_of(env), ["aa", *aim, "--launches", "5", "--looks", "1", "--store", store])
        fine &= code in (0, 1)
        if code not in (0, 1):
            continue
        median_ns = 1000 * newest(args.out / "store")["cells"][0]["median"]["base_us"]
        for kind, fault, question in (
            ("+10 %", f"busy:0:{round(0.1 * median_ns)}", "median"),
            (
                "3 % of the calls ten times slower",
                f"busy:0:{round((TAIL_FACTOR - 1) * median_ns)}:{TAIL_EVERY}",
                "tail",
            ),
        ):
            out.say(f"\n{kind}:")
            words = [
                "compare",
                "--option",
                f"NEW:inject={fault}",
                *aim,
                "--launches",
                str(args.launches),
                "--store",
                store,
            ]
            code = out.run(python_of(env), words)
            if code not in (0, 1) or not settled(newest(args.out / "store"), question):
                out.say(f"NOT FOUND: {kind} of {name}")
                fine = False
    return fine


def switch(envs: dict[str, str], args: argparse.Namespace) -> bool:
    """A switch of each library: one launch with and without it, then the comparison, which must name it."""
    out = Transcript(args.out / "switch.md", "A switch of the library")
    fine = True
    for name, env in envs.items():
        if name not in SWITCHES:
            continue
        out.say(f"\n## {name}: {' '.join(SWITCHES[name])}")
        sets = [word for variable in SWITCHES[name] for word in ("--set", f"NEW:{variable}")]
        aim = ["latency", "-n", "2", "-m", SIZES, "--store", str(args.out / "store")]
        out.say("\nDoes it change the number at all? Two launches of each side:")
        fine &= out.run(python_of(env), ["compare", *sets, *aim, "--launches", "2", "--looks", "1"]) in (0, 1)
        out.say("\nThe comparison:")
        fine &= out.run(python_of(env), ["compare", *sets, *aim, "--launches", str(args.launches)]) in (0, 1)
        named = {difference["what"] for difference in newest(args.out / "store")["differences"]}
        wanted = {f"variable {variable.partition('=')[0]}" for variable in SWITCHES[name]}
        if not wanted <= named:
            out.say(f"NOT NAMED: {', '.join(sorted(wanted - named))}")
            fine = False
    return fine


def against_itself(envs: dict[str, str], args: argparse.Namespace) -> bool:
    """Reports on disjoint launches of one library: 59 without an alarm show a rate of at most 5 %."""
    name, env = next(iter(envs.items()))
    out = Transcript(args.out / "aa.md", f"{name} against itself")
    words = ["aa", args.benchmark, "-n", "2", "-m", SIZES, "-i", "300", "--launches", str(args.aa_launches), "--looks", "1",
             "--reports", str(args.reports), "--quiet", "--store", str(args.out / "store-aa")]  # fmt: skip
    return out.run(python_of(env), words) == 0


def main() -> int:
    """Run the parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="which; all by default")
    parser.add_argument("--env", action="append", required=True, metavar="NAME=PATH", help="a library's environment")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--benchmark", default="allreduce")
    parser.add_argument("--launches", type=int, default=10)
    parser.add_argument("--reports", type=int, default=59)
    parser.add_argument("--aa-launches", type=int, default=10)
    parser.add_argument("--patience", type=float, default=60, help="seconds to wait for a quiet machine before a part")
    args = parser.parse_args()
    envs = dict(text.split("=", 1) for text in args.env)
    args.out.mkdir(parents=True, exist_ok=True)
    runs = {"libraries": libraries, "planted": planted, "switch": switch, "aa": against_itself}
    code = 0
    for part in args.parts or PARTS:
        wait_for_quiet(args.patience)
        fine = runs[part](envs, args)
        print(f"{part}: {'fine' if fine else 'NOT as it should be'}", flush=True)
        code |= not fine
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
