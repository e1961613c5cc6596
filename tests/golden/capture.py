"""Makes every golden file again and shows what differs, or with ``--update`` writes it.

``python -m tests.golden.capture [--update] [NAME…]``: names of files under ``data/``, or the beginnings of them.
``data/old-store/`` is not made again: it was written by the omb-py of its day, and stays.
"""

from __future__ import annotations

import difflib
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.golden import benchmarks, errors, launches, pages, reports, store, suites
from tests.golden.running import Place, place

DATA = Path(__file__).parent / "data"
Maker = Callable[[Place], str]


def _all() -> dict[str, Maker]:
    made: dict[str, Maker] = {}
    for family, names in benchmarks.FAMILIES.items():
        made |= {f"benchmarks/{family}/{name}.txt": benchmarks.text(name) for name in names}
        made[f"rows/{family}.txt"] = benchmarks.rows(names)
    made |= {f"formats/{name}.txt": benchmarks.form(name) for name in benchmarks.FORMS}
    made |= {f"options/{name}.txt": benchmarks.options(name) for name in benchmarks.OPTIONS}
    for module in (pages, launches, suites, reports, store, errors):
        made |= module.files()
    return made


ALL = _all()
"""Name of a file under ``data/`` -> what makes its text in an empty folder."""


def made(name: str) -> str:
    """The text of a golden file as the code of today makes it."""
    with place(keep_dates=name in store.OF_THE_OLD_STORE) as folder:
        return ALL[name](folder)


def stored(name: str) -> str:
    """The text as it was; empty where there is no file yet."""
    path = DATA / name
    return path.read_text(encoding="utf-8") if path.exists() else ""


def difference(name: str, now: str) -> str:
    """A unified diff from what is stored to `now`; empty where they are the same."""
    lines = difflib.unified_diff(stored(name).splitlines(), now.splitlines(), f"golden {name}", "now", "", "", 2, "")
    found = list(lines)
    more = [f"… and {len(found) - 200} lines more"] if len(found) > 200 else []
    return "\n".join([*found[:200], *more])


def main(words: Sequence[str]) -> int:
    """Compare or update; 1 where anything differs."""
    update, wanted = "--update" in words, tuple(word for word in words if not word.startswith("-"))
    names = [name for name in ALL if not wanted or name.startswith(wanted)]
    began, changed = time.monotonic(), 0
    for name in names:
        now = made(name)
        if now == stored(name):
            continue
        changed += 1
        if update:
            (DATA / name).parent.mkdir(parents=True, exist_ok=True)
            (DATA / name).write_text(now, encoding="utf-8")
            print(f"written: {name}, {len(now)} characters")
        else:
            print(difference(name, now))
    print(f"{len(names)} files, {changed} {'written' if update else 'differ'}, {time.monotonic() - began:.0f} s")
    return int(changed > 0 and not update)


if __name__ == "__main__":
    os.environ["OMB_PY_PROGRESS"] = "never"  # its lines depend on how long something takes
    sys.exit(main(sys.argv[1:]))
