"""Parts of a document that a command makes, between two markers that name it."""

from __future__ import annotations

import re


def replaced(text: str, name: str, module: str, part: str) -> str:
    """The text with the part between the markers of `name` made anew. Raises ValueError where it has none."""
    begin, end = f"<!-- {name}: made by python -m {module} -->", f"<!-- end of {name} -->"
    new, count = re.subn(
        f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: f"{begin}\n{part}\n{end}", text, flags=re.S
    )
    if count != 1:
        raise ValueError(f"there is not one part {name!r} between {begin} and {end}, but {count}")
    return new
