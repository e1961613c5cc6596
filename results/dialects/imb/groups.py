"""IMB's text with a line for each group of ranks (``-multi 1``), in place of one for all of them (``-multi 0``)."""

from __future__ import annotations

from collections.abc import Iterable

from omb_py.errors import UsageError
from omb_py.grammar.rank_groups import by_group, groups_of_row
from omb_py.results.dialects.imb import text
from omb_py.results.dialects.imb.names import Form
from omb_py.results.dialects.imb.text import Row


def check(benchmark: str, form: Form, groups: bool) -> None:
    """Raises UsageError where a benchmark has nothing of each group; `groups` says whether there are several."""
    if not groups:
        raise UsageError(
            f"{benchmark}: --format imb-multi has a line for each group: add --groups, or use --format imb"
        )
    if form.layout.endswith("overlap"):
        raise UsageError(f"{benchmark}: the overlap of each group is not kept: use --format imb")


def form_of(row: Row) -> Form:
    """IMB's form of a row. Raises UsageError where there is nothing of each group."""
    form = text.form_of(row)
    check(row["benchmark"], form, bool(groups_of_row(row)))
    return form


def title(row: Row) -> str:
    """The lines before the rows of a table, with the column ``Group`` first. Raises UsageError as :func:`form_of`."""
    form_of(row)
    return text.title(row, each_group=True)


def line(row: Row) -> str:
    """A blank line, and a line of the cell for each group.

    Its defects are the group's; where an older row does not say how many those were, those of all groups.
    """
    groups = groups_of_row(row)
    parameters = {name: value for name, value in row["parameters"].items() if name != "groups"}
    return "\n" + "".join(
        f"{number:>{text.WIDTH}d}"
        + text.line({**row, **_alone(row, number, means), "ranks": len(group), "parameters": parameters})
        for number, (group, means) in enumerate(zip(groups, by_group(row["rank_mean_us"], groups), strict=True))
    )


def _alone(row: Row, group: int, means: list[float]) -> dict[str, object]:
    wrong = (row.get("metrics") or {}).get(f"group_{group}_wrong_bytes", row.get("wrong_bytes"))
    return {"rank_mean_us": means, "value": sum(means) / len(means), "wrong_bytes": wrong}


def to_imb_multi(rows: Iterable[Row]) -> str:
    """Rows of the store as :func:`~omb_py.results.dialects.imb.text.to_imb`, with a line for each group.

    Rows of all ranks together, and of an overlap, are left out too.

    Raises:
        UsageError: there are rows, and all of them are left out.
    """
    return text.to_imb(rows, title, line, form_of)
