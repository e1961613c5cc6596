"""False alarms of sides whose launches were not made in turn: ``python -m tests.lab.error_rates.compare``.

Seeded, so the rates are the same on every machine. Those of launches in turn: :mod:`tests.lab.error_rates.verdicts`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from omb_py.results.compare.judge import CompareRules
from tests.support.synthetic import KINDS, Rates, lower, stored, upper

ALPHA = 0.01
ANY = CompareRules(delta=1e-9, tail_delta=1e-9)
"""Rules by which any change counts, however small: what is shown by chance is then not hidden by the tolerance."""
ORDERS = {
    "in turn by hand, BASE NEW NEW BASE": "BNNB" * 5,
    "a night of each side": "B" * 10 + " " + "N" * 10,
    "six nights of BASE, then six of NEW": " ".join(["BBBBB"] * 6 + ["NNNNN"] * 6),
    "six nights of BASE, then fourteen of NEW": " ".join(["BBBBB"] * 6 + ["NNNNN"] * 14),
    "nights of either side by turns": " ".join(["BBBBB", "NNNNN", "NNNNN", "BBBBB"] * 3),
    "both sides in each of eight nights": " ".join(["BBBNNN"] * 8),
}
"""Orders of stored launches."""
WITHOUT_PROMISE = ("in turn by hand, BASE NEW NEW BASE", "both sides in each of eight nights")
"""Orders that nobody drew: a drift within the night favours the side that is always first (evidence/compare.md)."""
STORED_REPORTS = {1: 200, 10: 20}


def _rate(rates: Rates) -> str:
    return f"{rates.false_reports / rates.reports:.1%} (≤ {upper(rates.false_reports, rates.reports):.1%})"


def _table(heads: list[str]) -> None:
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))


def _false_alarms(title: str, counts: dict[int, int], rates_of: Callable[[str, int], Rates], promised: bool) -> bool:
    """Print a row a kind and a column a size of the family; True where a promise is broken."""
    broken = False
    total = {family: Rates() for family in counts}
    for kind in KINDS:
        cells = []
        for family in counts:
            rates = rates_of(kind, family)
            total[family].reports += rates.reports
            total[family].false_reports += rates.false_reports
            broken |= promised and lower(rates.false_reports, rates.reports, 0.999) > ALPHA
            cells.append(_rate(rates))
        print(f"| {title} | {kind} | {'1 %' if promised else '–'} | {' | '.join(cells)} |", flush=True)
    print(f"| {title} | all | {'1 %' if promised else '–'} | {' | '.join(map(_rate, total.values()))} |", flush=True)
    return broken or (promised and any(lower(one.false_reports, one.reports) > ALPHA for one in total.values()))


def nights() -> bool:
    """False alarms of stored launches, in orders of their own; True where a promise is broken."""
    print("\nReports with any false alarm, A against A, if any change counts (95 % upper bound):\n")
    _table(["launches", "effects", "promised", *(f"{2 * family} questions" for family in STORED_REPORTS)])
    broken = False
    for title, order in ORDERS.items():

        def rates_of(kind: str, family: int, order: str = order) -> Rates:
            return stored(kind, family, STORED_REPORTS[family] * family, order, ANY)

        broken |= _false_alarms(title, STORED_REPORTS, rates_of, title not in WITHOUT_PROMISE)
    return broken


def main() -> int:
    """Print the table; 1 where a promise is broken."""
    broken = nights()
    print("\na promise was broken" if broken else "\nall promises held")
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
