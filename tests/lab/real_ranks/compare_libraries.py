"""Comparisons on real ranks, on a quiet machine: three MPI libraries, planted slowdowns, switches, A against A.

    python -m tests.lab.real_ranks.compare_libraries --env MPICH=PATH --env "Open MPI=PATH" --env "Intel MPI=PATH" --out FOLDER

Every part prints the commands that it runs, what they print and a table of what was found, and writes all of it to
FOLDER/NAME.md; the launches go to FOLDER/store. Parts: libraries, planted, switch, aa; all of them where none is named.
Exit code 1 where a part finds other than it should: a planted change neither found nor UNCLEAR with the launches
needed, a switch that is not found or not named, a false alarm.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.lab.quiet import wait_for_quiet

PARTS = ("libraries", "planted", "switch", "aa")
SIZES = "8,1024,65536"
PLANTED_SIZE = 65536
SWITCHES: dict[str, tuple[tuple[str, ...], ...]] = {
    # what lies between two ranks of one node: not shared memory but the network's path. The first that changes the
    # number on this machine is taken: builds differ in what they have
    "Open MPI": (("OMPI_MCA_pml=ob1", "OMPI_MCA_btl=self,tcp"), ("UCX_TLS=tcp,self",), ("OMPI_MCA_btl=self,tcp",)),
    "MPICH": (("MPIR_CVAR_NOLOCAL=1", "UCX_TLS=tcp,self"), ("MPIR_CVAR_NOLOCAL=1",), ("MPIR_CVAR_CH4_SHM_ENABLE=0",)),
    "Intel MPI": (("I_MPI_FABRICS=ofi", "FI_PROVIDER=tcp"), ("I_MPI_FABRICS=ofi",), ("I_MPI_SHM=off",)),
}
PROOF_LAUNCHES = 3
"""With the switch and without, in turn."""
PROVEN = 1.25
"""By what factor all launches with the switch must differ from all without, at some size."""
TAIL_EVERY = 33
"""Three calls in a hundred."""
TAIL_FACTOR = 10

Report = dict[str, Any]


class Transcript:
    """Runs commands and keeps what they print."""

    def __init__(self, path: Path, title: str, args: argparse.Namespace, store: str = "store") -> None:
        self.path, self.args, self.store = path, args, args.out / store
        path.write_text(f"# {title}\n", encoding="utf-8")
        print(f"\n# {title}", flush=True)

    def say(self, text: str) -> None:
        """To the screen and into the file."""
        print(text, flush=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """What a part has found, as Markdown."""
        lines = ["| " + " | ".join(row) + " |" for row in (heads, ["---"] * len(heads), *rows)]
        self.say("\n" + "\n".join(lines))

    def run(self, env: str, words: list[str]) -> tuple[int, Report]:
        """One omb-py command; its exit code and the report that it wrote, empty where it wrote none."""
        before = set((self.store / ".reports").glob("*.report"))
        words = [*words, "-i", str(self.args.iterations), "--store", str(self.store)]
        done = subprocess.run(
            [python_of(env), "-m", "omb_py", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.say(f"\n```console\n$ omb-py {' '.join(words)}\n{done.stdout.rstrip()}\n```\nexit code {done.returncode}")
        new = set((self.store / ".reports").glob("*.report")) - before
        newest = max(new, key=lambda file: file.stat().st_mtime, default=None)
        return done.returncode, json.loads(newest.read_text(encoding="utf-8")) if newest else {}

    def medians(self, env: str, words: list[str], variables: Sequence[str] = ()) -> dict[int, float] | None:
        """The median of each size in one launch, which is not stored; None where it could not be made."""
        environ = {**os.environ, **dict(text.split("=", 1) for text in variables)}
        words = [*words, "-i", str(self.args.iterations), "--no-store", "--format", "json", "--quiet"]
        done = subprocess.run(
            [python_of(env), "-m", "omb_py", *words], capture_output=True, text=True, check=False, env=environ
        )
        if done.returncode:
            self.say(f"cannot be measured: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
            return None
        return {int(row["size_bytes"]): float(row["median_us"]) for row in json.loads(done.stdout)}


def python_of(env: str) -> str:
    """The Python of a virtual environment."""
    return str(Path(env) / "bin" / "python")


def found(answer: Report) -> str:
    """``1.10 SLOWER``, ``0.99 UNCLEAR (needs 40)``."""
    needs = f" (needs {answer['needed']})" if answer["verdict"] == "UNCLEAR" else ""
    return f"{answer['ratio']:.2f} {answer['verdict']}{needs}"


def by_size(report: Report) -> dict[str, str]:
    """What was found at each size: of the median, and of the tail where that has changed."""
    told = {}
    for cell in sorted(report.get("cells", ()), key=lambda cell: cell["size_bytes"]):
        tail = cell["tail"]["verdict"]
        more = f", tail {found(cell['tail'])}" if tail in ("SLOWER", "FASTER") else ""
        told[f"{cell['size_bytes']} B"] = found(cell["median"]) + more
    return told


def settled(report: Report, question: str) -> bool:
    """SLOWER, or UNCLEAR with how many launches would tell: never SAME, never silently nothing."""
    answers = [cell[question] for cell in report.get("cells", ())]
    return bool(answers) and all(
        a["verdict"] == "SLOWER" or (a["verdict"] == "UNCLEAR" and a["needed"]) for a in answers
    )


def libraries(envs: dict[str, str], args: argparse.Namespace) -> bool:
    """Each library against each other."""
    out = Transcript(args.out / "libraries.md", "Three MPI libraries", args)
    fine, rows = True, []
    for base, new in itertools.combinations(envs, 2):
        out.say(f"\n## {base} against {new}")
        words = [
            "compare",
            "--env",
            f"BASE={envs[base]}",
            "--env",
            f"NEW={envs[new]}",
            args.benchmark,
            "-n",
            "2",
            "-m",
            SIZES,
            "--launches",
            str(args.launches),
        ]
        code, report = out.run(envs[base], words)
        fine &= code in (0, 1) and bool(report)
        rows.append([f"{base} → {new}", *(by_size(report).values() or ["not measured"])])
    out.table([f"{args.benchmark}, 2 ranks", *(f"{size} B" for size in SIZES.split(","))], rows)
    return fine


def planted(envs: dict[str, str], args: argparse.Namespace) -> bool:
    """+10 % by a busy wait inside the lap of NEW, and 3 % of the calls ten times slower."""
    from omb_py.results.compare.report import percent

    out = Transcript(args.out / "planted.md", "Planted slowdowns", args)
    fine, rows = True, []
    aim = [args.benchmark, "-n", "2", "-m", f"{PLANTED_SIZE}:{PLANTED_SIZE}"]
    for name, env in envs.items():
        out.say(f"\n## {name}")
        seen = [one[PLANTED_SIZE] for _ in range(PROOF_LAUNCHES) if (one := out.medians(env, aim))]
        if not seen:
            fine = False
            continue
        median_ns = 1000 * statistics.median(seen)
        out.say(f"\nmedian of {PLANTED_SIZE} B: {median_ns / 1000:.2f} µs ({len(seen)} launches)")
        for kind, fault, question in (
            ("+10 %", f"busy:0:{round(0.1 * median_ns)}", "median"),
            (
                f"3 % of the calls × {TAIL_FACTOR}",
                f"busy:0:{round((TAIL_FACTOR - 1) * median_ns)}:{TAIL_EVERY}",
                "tail",
            ),
        ):
            words = ["compare", "--option", f"NEW:inject={fault}", *aim, "--launches", str(args.launches)]
            code, report = out.run(env, words)
            good = code in (0, 1) and settled(report, question)
            fine &= good
            if not good:
                out.say(f"NOT FOUND: {kind} of {name}")
            for cell in report.get("cells", ()):
                answer = cell[question]
                rows.append(
                    [
                        name,
                        kind,
                        answer["statistic"],
                        found(answer),
                        percent(answer["detectable"] or math.inf),
                        "yes" if good else "NO",
                    ]
                )
    out.table(["library", "planted", "of", "found", "could have found", "as it should be"], rows)
    return fine


def switch(envs: dict[str, str], args: argparse.Namespace) -> bool:
    """A switch of each library that is proven to change the number; the comparison must find it and name it."""
    out = Transcript(args.out / "switch.md", "A switch of the library", args)
    fine, rows = True, []
    aim = ["latency", "-n", "2", "-m", SIZES]
    for name, env in envs.items():
        if name not in SWITCHES:
            continue
        out.say(f"\n## {name}")
        chosen = next((one for one in SWITCHES[name] if proven(out, env, aim, one)), None)
        if chosen is None:
            out.say("NOT PROVEN: no switch changes the number here")
            rows.append([name, "none changes the number", *[""] * (len(SIZES.split(",")) + 1)])
            fine = False
            continue
        sets = [word for variable in chosen for word in ("--set", f"NEW:{variable}")]
        code, report = out.run(env, ["compare", *sets, *aim, "--launches", str(args.launches)])
        changed = any(cell["median"]["verdict"] in ("SLOWER", "FASTER") for cell in report.get("cells", ()))
        named = {difference["what"] for difference in report.get("differences", ())}
        missing = {f"variable {variable.partition('=')[0]}" for variable in chosen} - named
        for wrong, text in ((code not in (0, 1) or not changed, "NOT FOUND"), (missing, f"NOT NAMED: {missing}")):
            if wrong:
                out.say(text)
                fine = False
        told = by_size(report).values() or [""] * len(SIZES.split(","))
        rows.append([name, " ".join(chosen), *told, "no" if missing else "yes"])
    out.table(["library", "switch", *(f"{size} B" for size in SIZES.split(",")), "named"], rows)
    return fine


def proven(out: Transcript, env: str, aim: list[str], variables: Sequence[str]) -> bool:
    """Whether all launches with the variables differ from all without, at some size, by :data:`PROVEN`."""
    out.say(f"\nDoes {' '.join(variables)} change the number? {PROOF_LAUNCHES} launches without and with, in turn:")
    without, with_it = [], []
    for _ in range(PROOF_LAUNCHES):
        for kept, given in ((without, ()), (with_it, variables)):
            if (one := out.medians(env, aim, given)) is None:
                return False
            kept.append(one)
    proof = False
    for size in without[0]:
        base, new = ([one[size] for one in side] for side in (without, with_it))
        apart = max(min(new) / max(base), min(base) / max(new))
        proof |= apart >= PROVEN
        out.say(f"{size} B: {min(base):.2f} … {max(base):.2f} µs without, {min(new):.2f} … {max(new):.2f} µs with")
    out.say("yes" if proof else f"no: at no size are they apart by a factor of {PROVEN}")
    return proof


def against_itself(envs: dict[str, str], args: argparse.Namespace) -> bool:
    """Reports on disjoint launches of one library: 59 without an alarm show a rate of at most 5 %."""
    from omb_py.results.compare.false_alarm_rate import bound, site_rate

    name, env = next(iter(envs.items()))
    out = Transcript(args.out / "aa.md", f"{name} against itself", args, "store-aa")
    words = [
        "aa",
        args.benchmark,
        "-n",
        "2",
        "-m",
        SIZES,
        "--launches",
        str(args.aa_launches),
        "--rounds",
        "1",
        "--reports",
        str(args.reports),
        "--quiet",
    ]
    code, _ = out.run(env, words)
    rate = site_rate(out.store)
    out.table(
        ["library", "launches a side", "reports", "with a false alarm", "cells", "false alarms", "at most, of reports"],
        [
            [
                name,
                str(args.aa_launches),
                str(rate.reports),
                str(rate.alarmed),
                str(rate.cells),
                str(rate.alarms),
                f"{bound(rate.alarmed, rate.reports):.1%}" if rate.reports else "-",
            ]
        ],
    )
    return code == 0 and rate.alarms == 0


def main() -> int:
    """Run the parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all by default")
    parser.add_argument("--env", action="append", required=True, metavar="NAME=PATH", help="a library's environment")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--benchmark", default="allreduce")
    parser.add_argument("--launches", type=int, default=10)
    parser.add_argument("--iterations", type=int, default=300, help="of each cell: 100 and more for the tail")
    parser.add_argument("--reports", type=int, default=59)
    parser.add_argument("--aa-launches", type=int, default=10)
    parser.add_argument("--patience", type=float, default=60, help="seconds to wait for a quiet machine before a part")
    args = parser.parse_args()
    unknown = [part for part in args.parts if part not in PARTS]
    if unknown:
        parser.error(f"no part {unknown[0]}: {', '.join(PARTS)}")
    envs = dict(text.split("=", 1) for text in args.env)
    args.out.mkdir(parents=True, exist_ok=True)
    runs = {"libraries": libraries, "planted": planted, "switch": switch, "aa": against_itself}
    verdicts = {}
    for part in args.parts or PARTS:
        wait_for_quiet(args.patience)
        verdicts[part] = runs[part](envs, args)
    for part, fine in verdicts.items():
        print(f"{part}: {'fine' if fine else 'NOT as it should be'}", flush=True)
    return 0 if all(verdicts.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
