"""What varies from run to run, made the same: ids, times, folders, versions, the last digits of numbers."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import itertools
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

RUN = re.compile(r"\b(?!00000000)\d{8}T\d{6}-[0-9a-f]{6}\b")
MOMENT = re.compile(r"\b\d{4}-\d\d-\d\d([T ])\d\d:\d\d(:\d\d)?(\.\d+)?(\+00:00|Z)?")
DATE = re.compile(r"\b20\d\d-\d\d-\d\d\b")
LONG = re.compile(r"(?<![\w.])-?\d+(?:\.\d{5,}(?:e[+-]?\d+)?|(?:\.\d+)?e-?\d+)(?![\w.])")
"""A number that may have more digits than two machines must agree on."""
SECONDS = (
    (re.compile(r'("(?:seconds|elapsed_s)": )[\d.e-]+'), r"\g<1>0"),
    (re.compile(r'(\btime=")[\d.e-]+"'), r'\g<1>0"'),
    (re.compile(r"(launch(?:es)?, )[\d.]+ s\b"), r"\g<1>0 s"),
    (re.compile(r"(\ba side|\brounds|going on with \d+) \(\d[^()]*?( at most)?\)"), r"\g<1> (0 s\g<2>)"),
)
WRITTEN = re.compile(r"(<version>, )[\d-]+ [\d:]+ UTC")
"""When a page was written."""
FACTS = (
    re.compile(r"(<h3>)\d+( facts of the first launch</h3>)"),
    re.compile(r"(<td>(?:took|measured by)</td><td>)[^<]*(</td>)"),
    re.compile(r'(data-kind="configuration">(?:(?!</figure>).)*<summary>Table, )\d+( rows)', re.S),
)
"""How many a machine can say of itself depends on the machine."""
ENVIRONMENT = re.compile(r'("environment_key": ")[0-9a-f]{32}"')
PYTHON = re.compile(r'("(?:python_version|machine)": )"[^"]*"')
SHA256 = re.compile(r"\b[0-9a-f]{64}\b")
COMMIT = re.compile(r" \(commit [0-9a-f]{9}\)")
"""What --version says of a checkout."""
HEADER = (
    re.compile(r"^((?:stdout: )?# (?:Date|Machine|System|Release|Version) +: ).*", re.M),
    re.compile(r"((?:^.*# Calling sequence was:.*\n)(?:^(?:stdout: ?)?#?\n)(?:stdout: )?# ).*", re.M),
)
"""What the header of IMB's text says of the machine and the command."""
REVISION = re.compile(r'("revision": )"[0-9a-f]+(-dirty|\+)?"')


class Normal:
    """Normalises the texts of one folder; a run's id becomes its number in the order of appearance."""

    def __init__(self, root: Path, keep_dates: bool = False) -> None:
        self._folders = [str(root), str(root.parent)]
        self._runs: dict[str, str] = {}
        self._keep_dates = keep_dates

    def __call__(self, text: str) -> str:
        """`text` as it is on every machine, on every day."""
        if text.startswith("run_id,") and not self._keep_dates:
            text = _csv(text)
        for folder, name in zip(self._folders, ("/work", "/tmp"), strict=True):
            text = text.replace(folder, name)
        text = re.sub(rf"(?<![\w.])(v?){re.escape(version())}(?![\w.])", r"\1<version>", text)
        if not self._keep_dates:
            text = RUN.sub(lambda found: self._number(found[0]), text)
            text = MOMENT.sub(_zeros, text)
            text = DATE.sub("0000-00-00", text)
            text = ENVIRONMENT.sub(r'\g<1><environment>"', text)
            text = SHA256.sub("<sha256>", text)
        text = COMMIT.sub("", text)
        text = WRITTEN.sub(r"\g<1>0000-00-00 00:00 UTC", text)
        text = PYTHON.sub(r'\g<1>"…"', text)
        text = REVISION.sub(r'\g<1>"<revision>"', text)
        for pattern in HEADER:
            text = pattern.sub(r"\g<1>…", text)
        for pattern, into in SECONDS:
            text = pattern.sub(into, text)
        return LONG.sub(lambda found: number(found[0]), text)

    def _number(self, run: str) -> str:
        return self._runs.setdefault(run, f"00000000T000000-{len(self._runs) + 1:06d}")


@cache
def version() -> str:
    """Of omb-py, as it says itself."""
    import contextlib

    from omb_py.cli import main

    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        main(["--version"])
    return said.getvalue().split()[1]


def page(text: str) -> str:
    """An HTML page, a tag a line: without styles, and without plotly's own code and pictures."""
    text = re.sub(r"<style.*?</style>", "<style>…</style>", text, flags=re.S)
    packed = re.search(r'<script type="text/plain" id="figures">(.*?)</script>', text)
    specs = json.loads(gzip.decompress(base64.b64decode(packed[1])))["specs"] if packed else []
    text = re.sub(r"(<script[^>]*>)(.*?)</script>", lambda found: _script(found, specs), text, flags=re.S)
    text = re.sub(r"data:[\w/+;-]+base64,[\w/+=]+", "data:…", text)
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uuid>", text)
    for pattern in FACTS:
        text = pattern.sub(r"\1…\2", text)
    lines = (line.strip() for line in re.sub(r">\s*<(?!/)", ">\n<", text).splitlines())
    return "\n".join(line for line in lines if line)


def _script(found: re.Match[str], specs: list[Any]) -> str:
    """Of the views of a page their tables and commands; of code nothing."""
    if 'id="views"' not in found[1]:
        return f"{found[1]}…</script>"
    tables = json.loads(found[2])
    for above, row in (pair for table in tables for pair in itertools.pairwise(table["rows"])):
        row += above[len(row) :]  # as assets/report.js does
    views = itertools.zip_longest(tables, specs)
    return "".join(f"\nview {number}: {_view(view, spec)}" for number, (view, spec) in enumerate(views))


def _view(view: dict[str, Any], spec: dict[str, Any] | None) -> str:
    rest = {key: value for key, value in view.items() if key not in ("columns", "rows")}
    lines = [json.dumps(rest, ensure_ascii=False), json.dumps(view.get("columns"), ensure_ascii=False)]
    lines += [json.dumps(row, ensure_ascii=False) for row in view.get("rows") or () if not _of_the_machine(row)]
    traces = [f"{trace.get('type')} {trace.get('name')}" for trace in (spec or {}).get("data", ())]
    return "\n  ".join([*lines, f"drawn: {traces}"])


def _of_the_machine(row: list[Any]) -> bool:
    return str(row[0]).startswith(("node_facts.", "software.", "took", "measured by"))


def number(text: str) -> str:
    """Nine significant digits: exponentials and sums may differ in the last ones between processors."""
    value = float(text)
    if abs(value) < 1e-12:
        return "0.0"
    short = f"{value:.9g}"
    return short if re.search(r"[.e]", short) else f"{short}.0"


def _csv(text: str) -> str:
    """A table of rows with the environment's key, which is of this machine, blank."""
    head, *rows = csv.reader(io.StringIO(text))
    at = head.index("environment_key") if "environment_key" in head else len(head)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([head, *([*row[:at], *(["<environment>"] * (at < len(row))), *row[at + 1 :]] for row in rows)])
    return out.getvalue()


def _zeros(found: re.Match[str]) -> str:
    seconds = ":00" if found[2] else ""
    return f"0000-00-00{found[1]}00:00{seconds}{found[4] or ''}"
