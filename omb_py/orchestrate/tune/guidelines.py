"""Guidelines of the tuned collectives: those that the library violates as it is are measured again with the files.

Each check has its own launches and verdicts (docs/guidelines.md), so what is called mended was shown twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from omb_py.errors import Interrupted, OmbError
from omb_py.options.request import Request
from omb_py.orchestrate.checks.guidelines import check_guidelines
from omb_py.orchestrate.launching.rank_environment import HERE, Where
from omb_py.orchestrate.tune.launches import Launcher
from omb_py.orchestrate.tune.proof import sizes_text
from omb_py.results.checks.guideline_report import Report
from omb_py.results.checks.guidelines import Rules
from omb_py.results.tune.mended import Mended, pairs
from omb_py.results.tune.rules import Rule
from omb_py.suites.guidelines.patterns import GUIDELINES


def mended(
    rules: Sequence[Rule], sizes: Iterable[tuple[str, int, int]], request: Request, tuned: Where, launcher: Launcher
) -> list[Mended]:
    """Check the guidelines of tuned collectives at their tuned sizes, by default and, where violated, with the files.

    Args:
        rules: the rules that were proved.
        sizes: collective, ranks and bytes of each size that was proved.
        request: options of the launches.
        tuned: the environment with the files.
        launcher: knows the budget, and says what is done.

    Returns:
        The violated ones, each with its verdict under the files. A check that fails is left out, with a note.

    Raises:
        Interrupted: the user pressed Ctrl-C.
    """
    lines: list[Mended] = []
    for collective, ranks in dict.fromkeys((rule.collective, rule.ranks) for rule in rules):
        own = [rule for rule in rules if (rule.collective, rule.ranks) == (collective, ranks)]
        of_rules = sorted({s for c, n, s in sizes if (c, n) == (collective, ranks) and any(r.holds(s) for r in own)})
        names = [guideline.name for guideline in GUIDELINES.values() if guideline.left == collective]
        if not names or not of_rules:
            continue
        try:
            lines += _of_collective(replace(request, ranks=ranks), names, of_rules, tuned, launcher)
        except Interrupted:
            raise
        except OmbError as error:
            launcher.run.note(f"guidelines of {collective} on {ranks} ranks were not checked: {error}")
    return lines


def _of_collective(
    request: Request, names: Sequence[str], sizes: Sequence[int], tuned: Where, launcher: Launcher
) -> list[Mended]:
    before = _checked(request, names, sizes, HERE, launcher)
    violated = [each for each in before.judged if each.verdict == "VIOLATED"] if before else []
    if not violated:
        return []
    names = list(dict.fromkeys(each.pair.name for each in violated))
    after = _checked(request, names, sorted({each.pair.size_bytes for each in violated}), tuned, launcher)
    return pairs(request.ranks or 0, violated, after.judged if after else [])


def _checked(
    request: Request, names: Sequence[str], sizes: Sequence[int], where: Where, launcher: Launcher
) -> Report | None:
    """The verdicts in one environment; None where the budget is spent."""
    if launcher.left_s <= 0:
        launcher.run.note("the budget is spent: guidelines were not checked (omb-py guidelines)")
        return None
    within = launcher.left_s if math.isfinite(launcher.left_s) else None
    plain = replace(request, op=None, in_place=False, dtypes=(), workload=None, validate=False)
    wanted = replace(plain, sizes=sizes_text(sizes))
    return check_guidelines(wanted, names, Rules(), within_s=within, where=where)
