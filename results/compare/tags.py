"""Tags that omb-py writes itself: which suite, comparison or acceptance a row belongs to, not what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from omb_py.results.store.row import Row

SUITE: Final = "suite"
SUITE_HASH: Final = "suite_hash"
SUITE_CELL: Final = "suite_cell"
ACCEPT_PHASE: Final = "accept_phase"
"""Of the rows of ``omb-py accept``, which resumes in its own way: one of the three phases below."""
ACCEPT_ROUND: Final = "accept_look"
GUIDELINE_ROUND: Final = "guideline_look"
"""As ``2/3`` for the second of three rounds."""
COMPARE_ROUND: Final = "compare_look"
"""The number of a comparison's round, from 1."""
COMPARE_ROUNDS: Final = "compare_looks"
"""How many rounds were declared."""
COMPARE_SIDE: Final = "compare_side"
COMPARE_PAIR: Final = "compare_pair"
"""The number of a pair of launches, whose order was drawn at random."""
COMPARE_ALPHA: Final = "compare_alpha"
"""The chance of a false verdict that one of several comparisons was given, as each setting's in a tuning's proof."""
COMPARE_DELTA: Final = "compare_delta"
"""The smallest change of a median that mattered in a comparison, where it was not the usual one."""
COMPARE_TAIL_DELTA: Final = "compare_tail_delta"
"""The smallest change of a tail that mattered, where it was not the usual one."""
COMPARE_WORK: Final = "compare_work"
"""What both sides of a comparison do, where it is about workloads: they have other programs, and do the same work."""
LINKS_PART: Final = "links_part"
"""The part of a run of ``omb-py links`` to which a launch belongs."""
TUNE_SETTING: Final = "tune_setting"
"""Name of the setting of a launch with which ``omb-py tune`` searches."""
TUNE_PROOF: Final = "tune_proof"
"""Name of the setting of a fresh launch with which ``omb-py tune`` proves what it found."""
TUNE_DEFAULT: Final = "default"
"""Name of the setting that is the library as it is."""
TUNE_BLOCK: Final = "tune_block"
"""Number of the block of such a launch: the launches of a block were made one after the other."""
CORRECTNESS: Final = "correctness"
"""Value of :data:`ACCEPT_PHASE`: few calls, of which every byte is checked; their times are no measurement."""
PERFORMANCE: Final = "performance"
"""Value of :data:`ACCEPT_PHASE`: calls that are timed as in any run."""
BESIDE: Final = "beside"
"""Value of :data:`ACCEPT_PHASE`: calls that are timed while another job runs."""
BOOKKEEPING: Final = frozenset(
    {
        SUITE,
        SUITE_HASH,
        SUITE_CELL,
        ACCEPT_ROUND,
        GUIDELINE_ROUND,
        COMPARE_ROUND,
        COMPARE_ROUNDS,
        COMPARE_PAIR,
        COMPARE_ALPHA,
        COMPARE_DELTA,
        COMPARE_TAIL_DELTA,
        COMPARE_WORK,
        LINKS_PART,
        TUNE_BLOCK,
    }
)
"""Tags that number rows; rows that differ in nothing else measured the same thing."""

_USUAL = frozenset({(ACCEPT_PHASE, PERFORMANCE), (TUNE_SETTING, TUNE_DEFAULT), (TUNE_PROOF, TUNE_DEFAULT)})


def distinguishing_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """Select the tags that say what was measured: a user's, a side of a comparison, an unusual phase, a tuned setting.

    A launch of a tuning with the library as it is measured what any launch does, so it has no tag that tells.

    >>> distinguishing_tags({"suite": "quick", "suite_cell": "1f2e", "accept_phase": "performance", "rack": "a3"})
    {'rack': 'a3'}
    >>> distinguishing_tags({"tune_proof": "ring", "compare_look": "1"})
    {'tune_proof': 'ring'}
    """
    return {name: value for name, value in tags.items() if name not in BOOKKEEPING and (name, value) not in _USUAL}


def leave_unusual_phases_out(rows: Sequence[Row]) -> Sequence[Row]:
    """Leave out what an acceptance did besides timing as in any run: few calls whose bytes are checked, and calls
    beside another job. Where there is nothing else, all rows."""
    usual = [row for row in rows if dict(row["tags"] or {}).get(ACCEPT_PHASE, PERFORMANCE) == PERFORMANCE]
    return usual or rows
