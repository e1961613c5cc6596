"""Does a tuned library stay faster?  Tunes, then repeats default against files in disjoint launches.

    python -m tests.lab.real_ranks.tune_repeat --repeats 3 --folder FOLDER allreduce -n 2 -m 1K,1M -i 20

What follows the options is the command line of ``omb-py tune``, for one number of ranks.  Each repeat is a comparison
by the rules of the tuning's own proof, with a seed of its own, so no launch serves twice.  Verdicts agree where none says FASTER of a size
that another calls SLOWER or SAME; what a repeat leaves UNCLEAR is counted apart.  Exit code 0 where they agree and the
tuning wrote a rule, else 1.  For a quiet machine.

    python -m tests.lab.real_ranks.tune_repeat --repeats 3 --folder FOLDER --plant non-overlapping --from 64K \
        reduce_scatter -n 2 -m 64,1M -i 20

Without a search: the files that the library reads get one rule, this algorithm for all messages from that size, and
what follows the options is the command line of the benchmark.  So files are judged that make it slower, too.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omb_py.cli.commands.benchmark import request_of_line
from omb_py.grammar.values import parse_size
from omb_py.options.request import DEFAULT_RANKS
from omb_py.orchestrate.compare.session import SideRun, compare
from omb_py.orchestrate.launching.launch_command import HERE
from omb_py.orchestrate.planning.plan import check
from omb_py.orchestrate.tune.candidates import candidates
from omb_py.orchestrate.tune.conclusion import unproven_files
from omb_py.orchestrate.tune.knobs import library_of
from omb_py.orchestrate.tune.launches import where_of
from omb_py.orchestrate.tune.proof import rules_of, sizes_text
from omb_py.results.tune.elimination import MOST_PAIRS, SearchDesign
from omb_py.results.tune.rules import LibrarySetting, Rule, RuleTable
from omb_py.results.units import size_text

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


def tuned_setting(folder: Path, report: dict[str, Any]) -> LibrarySetting:
    """The variables of ``tuned.env``, or those of the one rule where there is no such file."""
    environment = folder / "tuned.env"
    if environment.exists():
        lines = environment.read_text().splitlines()
        exports = [shlex.split(line)[1] for line in lines if line.startswith("export ")]
        return LibrarySetting(
            "files", tuple((name, value) for name, _, value in (line.partition("=") for line in exports))
        )
    setting = report["rules"][0]["setting"]
    return LibrarySetting(setting["name"], tuple((name, value) for name, value in setting["variables"]))


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
    repeat(measured_words(words, sorted(said)), tuned_setting(files, report), store, repeats, said)
    return said


def planted_proofs(
    words: Sequence[str], folder: Path, repeats: int, algorithm: str, first_bytes: int
) -> dict[int, list[Verdict]]:
    """Plant one rule, and prove its files; size in bytes -> the verdict of each proof.

    Raises SystemExit where the library has no such algorithm.
    """
    request = request_of_line(words)
    library = library_of(request.backends[0])
    settings = {each.name: each for each in candidates(library, request.benchmark)}
    if algorithm not in settings:
        raise SystemExit(f"--plant {algorithm}: {library.title} has {', '.join(settings)}")
    ranks = request.ranks or DEFAULT_RANKS
    rule = Rule(request.benchmark, ranks, first_bytes, None, settings[algorithm], 1.0, 1.0, 1.0)
    files = unproven_files(RuleTable(library.title, (rule,)), library, folder)
    said: dict[int, list[Verdict]] = defaultdict(list)
    print(f"{library.title}: planted {algorithm} from {size_text(first_bytes)}", flush=True)
    repeat(words, LibrarySetting("files", files.variables), folder / "store", repeats, said)
    return said


def repeat(
    words: Sequence[str], setting: LibrarySetting, store: Path, repeats: int, said: dict[int, list[Verdict]]
) -> None:
    """Prove a setting so many times, each time in fresh launches, and add the verdicts of each size."""
    for number in range(1, repeats + 1):
        for size, verdict in proved_again(words, setting, store, 1000 + number).items():
            said[size].append(verdict)
            print(f"repeat {number}, {size_text(size)}: {verdict}", flush=True)


def proved_again(words: Sequence[str], setting: LibrarySetting, store: Path, seed: int) -> dict[int, Verdict]:
    """Compare the default with a setting in fresh launches, by the rules of a tuning's proof; size -> verdict."""
    checked = (check(request_of_line(words)).changed(store=store, seed=seed, quiet=True),)
    sides = (SideRun("BASE", checked, HERE, ""), SideRun("NEW", checked, where_of(setting), setting.name))
    report = compare({side.side: side for side in sides}, rules_of(SearchDesign(), 1), MOST_PAIRS)
    return {
        int(cell.base["size_bytes"]): Verdict(answer.verdict, answer.ratio, answer.low, answer.high)
        for cell, judged in zip(report.matched.cells, report.judged, strict=True)
        if (answer := judged.answers["median"])
    }


def main(given: Sequence[str] | None = None) -> int:
    """Measure and say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--plant", metavar="ALGORITHM")
    parser.add_argument("--from", dest="first", type=parse_size, default=0, metavar="BYTES")
    options, words = parser.parse_known_args(given)
    if options.plant:
        said = planted_proofs(words, options.folder, options.repeats, options.plant, options.first)
    else:
        said = proofs(words, options.folder, options.repeats)
    for size, verdicts in sorted(said.items()):
        print(f"{size_text(size)}: {', '.join(map(str, verdicts))}")
    bad = [size for size, verdicts in said.items() if contradicted(verdicts)]
    unclear = sum(verdict.word == "UNCLEAR" for verdicts in said.values() for verdict in verdicts)
    print(f"contradicted: {len(bad)} of {len(said)} sizes; UNCLEAR: {unclear} verdicts")
    return int(bool(bad) or not said)


if __name__ == "__main__":
    sys.exit(main())
