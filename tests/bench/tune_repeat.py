"""Does a tuned library stay faster?  Tunes, then repeats default against files in disjoint launches.

    python -m tests.bench.tune_repeat --repeats 3 --folder FOLDER allreduce -n 2 -m 1K,1M -i 20

What follows the options is the command line of ``omb-py tune``, for one number of ranks.  Each repeat is an
``omb-py compare`` with a seed of its own, so no launch serves twice.  Verdicts agree where none says FASTER of a size
that another calls SLOWER or SAME; what a repeat leaves UNCLEAR is counted apart.  Exit code 0 where they agree and the
tuning wrote a rule, else 1.  For a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omb_py.orchestrate.tune.proof import sizes_text
from omb_py.results.formats.units import size_text

OMB_PY = (sys.executable, "-m", "omb_py")
OF_TUNE_ALONE = ("--knob", "--candidate", "--budget", "--seed")
"""Options of ``tune`` that ``compare`` does not take, each with a value."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one proof says of one size."""

    word: str
    ratio: float
    low: float
    high: float

    @classmethod
    def of(cls, answer: dict[str, Any]) -> Verdict:
        """The verdict of an answer in a report's data."""
        return cls(answer["verdict"], answer["ratio"], answer["low"], answer["high"])

    def __str__(self) -> str:
        return f"{self.word} {self.ratio:.3f} ({self.low:.3f} … {self.high:.3f})"


def contradicted(verdicts: Sequence[Verdict]) -> bool:
    """Whether two decided verdicts on a size differ."""
    return len({verdict.word for verdict in verdicts} - {"UNCLEAR"}) > 1


def measured_words(words: Sequence[str], sizes: Sequence[int]) -> list[str]:
    """The words of a tuning that a comparison takes too, with the sizes of the proof."""
    kept, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word in (*OF_TUNE_ALONE, "-m"):
            skip = True
        else:
            kept.append(word)
    return [*kept, "-m", sizes_text(sizes)]


def tuned_words(folder: Path, report: dict[str, Any]) -> list[str]:
    """The variables of ``tuned.env``, or those of the one rule where there is no such file, as words of ``--set``."""
    environment = folder / "tuned.env"
    if environment.exists():
        lines = environment.read_text().splitlines()
        exports = [shlex.split(line)[1] for line in lines if line.startswith("export ")]
    else:
        exports = [f"{name}={value}" for name, value in report["rules"][0]["setting"]["variables"]]
    return [word for export in exports for word in ("--set", f"NEW:{export}")]


def report_of(words: Sequence[str], path: Path, store: Path) -> dict[str, Any]:
    """Run a command of omb-py; its report as data. Raises SystemExit where it makes none."""
    command = [*OMB_PY, *words, "--store", str(store), "-o", str(path), "--quiet"]
    ran = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    if ran.returncode not in (0, 1):
        raise SystemExit(f"{shlex.join(command)} ended with {ran.returncode}")
    report: dict[str, Any] = json.loads(path.read_text())
    return report


def proofs(words: Sequence[str], folder: Path, repeats: int) -> dict[int, list[Verdict]]:
    """Tune, and repeat the proof; size in bytes -> the verdict of the tuning's proof, then those of the repeats."""
    folder.mkdir(parents=True, exist_ok=True)
    files, store = folder / "tuned", folder / "store"
    report = report_of(["tune", *words, "--folder", str(files), "--no-guidelines"], folder / "tune.json", store)
    said = {cell["size_bytes"]: [Verdict.of(cell)] for cell in report["proof"]}
    rules = [f"{rule['first_bytes']}–{rule['last_bytes']} B: {rule['setting']['name']}" for rule in report["rules"]]
    print(f"{report['library']}: {'; '.join(rules) or 'no rule'}", flush=True)
    if not rules:
        return {}
    again = ["compare", *tuned_words(files, report), *measured_words(words, sorted(said))]
    for repeat in range(1, repeats + 1):
        seeded = [*again, "--seed", str(1000 + repeat)]
        compared = report_of(seeded, folder / f"repeat-{repeat}.json", store)
        for cell in compared["cells"]:
            said[int(cell["size_bytes"])].append(Verdict.of(cell["median"]))
    return said


def main(given: Sequence[str] | None = None) -> int:
    """Measure and say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, required=True)
    options, words = parser.parse_known_args(given)
    said = proofs(words, options.folder, options.repeats)
    for size, verdicts in sorted(said.items()):
        print(f"{size_text(size)}: {', '.join(map(str, verdicts))}")
    bad = [size for size, verdicts in said.items() if contradicted(verdicts)]
    unclear = sum(verdict.word == "UNCLEAR" for verdicts in said.values() for verdict in verdicts)
    print(f"contradicted: {len(bad)} of {len(said)} sizes; UNCLEAR: {unclear} verdicts")
    return int(bool(bad) or not said)


if __name__ == "__main__":
    sys.exit(main())
