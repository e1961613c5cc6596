"""The parts of a page of which a reader chooses one: tabs, and the curves of one benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from omb_py.dashboards.base.view import View
from omb_py.printing.writers.html import escape

if TYPE_CHECKING:
    from omb_py.dashboards.report.html_page import Section


def tab_list(sections: Sequence[Section]) -> str:
    """The row of tabs. Without a script each is a link to its part, and all parts are there."""
    tabs = "".join(
        f'<a role="tab" id="tab-{escape(section.name)}" href="#{escape(section.name)}" '
        f'aria-controls="{escape(section.name)}">{escape(section.title)}</a>'
        for section in sections
    )
    return f'<header class="tabs"><div role="tablist" aria-label="Parts of the report">{tabs}</div></header>'


def panel(section: Section) -> str:
    """The attributes of a tab's part."""
    return f' class="tab" role="tabpanel" aria-labelledby="tab-{escape(section.name)}"' if section.tab else ""


def switch(views: Sequence[View]) -> str:
    """A button for each quantity that the curves of several ranks can show; empty where they can show but one."""
    drawn = [view.spec["layout"].get("meta", {}).get("switch", ()) for view in views if view.spec is not None]
    names = list(dict.fromkeys(["time", *(known["name"] for several in drawn for known in several)]))
    if len(names) < 2:
        return ""
    buttons = "".join(
        f'<button type="button" data-quantity="{escape(name)}" aria-pressed="{str(name == names[0]).lower()}">'
        f"{escape(name)}</button>"
        for name in names
    )
    return f'<div class="chips" role="group" aria-label="Quantity" hidden>{buttons}</div>'


def chips(views: Sequence[View]) -> str:
    """A button for each benchmark whose curves are among the views; empty where there is only one."""
    names = list(dict.fromkeys(view.choice for view in views if view.choice))
    if len(names) < 2:
        return ""
    buttons = "".join(f'<button type="button" data-choose="{escape(name)}">{escape(name)}</button>' for name in names)
    return f'<div class="chips" role="group" aria-label="Benchmark" hidden>{buttons}</div>'
