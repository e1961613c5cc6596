"""What makers of launches share, whether they start benchmarks or programs: the plan, its words, what is stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from omb_py.orchestrate.compare.interleaving import CompareDesign, CompareListener
from omb_py.orchestrate.compare.pilot import Pilot
from omb_py.orchestrate.compare.stored_pairs import StoredPairs
from omb_py.results.compare.judge import CompareRules
from omb_py.results.compare.match import PILOT_ROUND, SIDES, Side, rule_tags
from omb_py.results.compare.tags import COMPARE_PAIR, COMPARE_ROUND, COMPARE_ROUNDS, COMPARE_SIDE
from omb_py.results.store.row import Row
from omb_py.results.units import counted

if TYPE_CHECKING:
    from omb_py.results.store.provenance import Provenance


class ResumableMeasurer(CompareListener):
    """Says how a comparison goes on, keeps what a pilot chose, and holds what both sides have measured."""

    def __init__(
        self, run_id: str, rules: CompareRules, note: Callable[[str], None], keep_plan: Callable[[CompareDesign], None]
    ) -> None:
        """Begin without a launch.

        Args:
            run_id: the run of all launches.
            rules: those of the launches; a pilot may choose fewer rounds.
            note: takes a sentence for the user.
            keep_plan: keeps what the pairs of a pilot chose.
        """
        self.run_id, self.rules, self.note, self._keep_plan = run_id, rules, note, keep_plan
        self.rows: dict[Side, list[Row]] = {side: [] for side in SIDES}
        """The rows that are judged."""
        self.provenances: dict[Side, list[Provenance]] = {side: [] for side in SIDES}
        self.stored = StoredPairs()
        self.index = 0
        """Index of the next launch."""
        self._resumed = False

    def resume(self, stored: StoredPairs) -> None:
        """Take the results of these launches instead of making them again."""
        self.stored, self.index, self._resumed = stored, stored.next_index, True
        self.provenances = stored.provenances
        self.note(f"run {self.run_id} is resumed: {len(stored.waiting)} launches are in the store")

    def planned(self, pilot: Pilot, design: CompareDesign) -> None:
        """Say what the first pairs show; where they chose the launches, a resumed comparison keeps these."""
        if design.first_pair:
            self.rules = design.rules
            self._keep_plan(design)
        if not self._resumed:  # what was taken from the store took no time
            self.note(pilot.sentence(design.rules, design.launches, chosen=design.first_pair > 0))

    def begins(self, design: CompareDesign, number: int, cells: Sequence[int]) -> None:
        """Say what a round measures."""
        what = counted(len(cells), "cell")
        if number == PILOT_ROUND:
            self.note(f"{what}, {design.launches} launches a side to plan by, which are not judged")
            return
        subject = what if number == 1 else f"{what} still UNCLEAR, measured again"
        rounds = f"round {number} of up to {design.rules.rounds}"
        self.note(f"{rounds}: {subject}, {design.launches} launches a side, interleaved")

    def tags(self, side: Side, number: int, pair: int) -> dict[str, str]:
        """The tags by which the rows of a launch are found again."""
        tags = {
            COMPARE_SIDE: side,
            COMPARE_ROUND: str(number),
            COMPARE_ROUNDS: str(self.rules.rounds),
            COMPARE_PAIR: str(pair),
        }
        return {**tags, **rule_tags(self.rules)}
