"""The answer of a bisection, for people and as data."""

from __future__ import annotations

from functools import partial

from omb_py.errors import INCONCLUSIVE, OK
from omb_py.orchestrate.bisect.search import Bisection, TriedCommit
from omb_py.results.document import Document, TextTable
from omb_py.results.repro_command import storing
from omb_py.results.units import counted

_HEADS = ("commit", "subject", "verdict", "ratio", "interval", "launches")
_LEFT = ("commit", "subject", "verdict")


def bisect_document(found: Bisection) -> Document:
    """The document: the commit first, then how sure that is, then every comparison."""
    commits, between = found.design.commits, found.between
    one = len(found.possible) == 1
    named = f"{found.possible[0]} made it slower" if one else f"one of {len(found.possible)} commits made it slower"
    change = (
        f"{found.ends.named(found.row)}: --bad takes {between.ratio:.3f} times as long as --good "
        f"({between.low:.3f} … {between.high:.3f})"
    )
    facts = [change, f"the chance that this is right is about {100 * found.certainty:.0f} %"]
    if not one:
        facts.append("possible: " + ", ".join(map(str, found.possible)))
    launches = sum(tried.launches for tried in found.tried) + max(between.launches)
    notes = [
        f"{counted(len(found.tried) + 1, 'comparison')} with {commits.good}, {launches} launches a side",
        f"the builds are kept in {found.design.builds.folder}; when they are removed: git worktree prune",
        f"--good and --bad in full: {storing(f'omb-py compare {found.ends.run_id}', found.design.store)}",
    ]
    return Document(
        "omb-py bisect",
        named,
        OK if one else INCONCLUSIVE,
        partial(_data, found),
        facts,
        (TextTable(_HEADS, [_line(tried) for tried in found.tried], _LEFT),),
        problems=[f"passed over: {t.commit}: {t.problem}" for t in found.tried if t.problem],
        notes=notes,
    )


def _line(tried: TriedCommit) -> tuple[str, ...]:
    answer = tried.answer
    numbers = ("", "") if answer is None else (f"{answer.ratio:.3f}", f"{answer.low:.3f} … {answer.high:.3f}")
    return (tried.commit.short, tried.commit.subject, tried.verdict, *numbers, str(tried.launches or ""))


def _data(found: Bisection) -> dict[str, object]:
    between = found.between
    return {
        "kind": "bisect",
        "good": found.design.commits.good.name,
        "bad": found.design.commits.bad.name,
        "cell": found.ends.named(found.row),
        "ratio": between.ratio,
        "interval": [between.low, between.high],
        "possible": [commit.name for commit in found.possible],
        "certainty": found.certainty,
        "tried": [
            {
                "commit": tried.commit.name,
                "verdict": tried.verdict,
                "ratio": tried.answer.ratio if tried.answer else None,
                "launches": tried.launches,
                "problem": tried.problem or None,
            }
            for tried in found.tried
        ],
    }
