"""A comparison as JSON, Markdown, or JUnit for a build server."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from omb_py.results.compare.judge import Answer, Judged
from omb_py.results.compare.match import Row
from omb_py.results.compare.report import Report, as_dict, closing, fields_text, headline, overall, percent, preamble
from omb_py.results.formats.junit import JunitCase, JunitSuite, Outcome, to_xml

HEADS = (
    "cell",
    "of",
    "BASE µs",
    "NEW µs",
    "ratio",
    "interval",
    "verdict",
    "tail",
    "tail ratio",
    "tail verdict",
    "launches",
    "detectable",
)
"""``of`` says what the times are of where that is not the median."""


def table(report: Report) -> list[tuple[str, ...]]:
    """The rows of the table, a text for each of :data:`HEADS`, in BASE's order."""
    return [row for _, row in grouped(report)]


def grouped(report: Report) -> list[tuple[str, tuple[str, ...]]]:
    """The rows of :func:`table`, each with its benchmark; those of a benchmark stand together."""
    named = report.named
    rows = []
    for cell, judged in zip(report.matched.cells, report.judged, strict=True):
        mark = "*" if cell.limited else ""
        of = "" if cell.statistic == "median" else cell.statistic
        rows.append((str(cell.base["benchmark"]), (named(cell.base) + mark, of, *_answers(judged))))
    before = HEADS.index("verdict") - 1
    after = len(HEADS) - before - 2
    rows += [
        (str(one.base["benchmark"]), (named(one.base), *("",) * before, "NOT COMPARABLE", *("",) * after))
        for one in report.matched.incomparable
    ]
    return sorted(rows, key=lambda row: row[0])


def _answers(judged: Judged) -> tuple[str, ...]:
    median, tail = judged.answers.get("median"), judged.answers.get("tail")
    if median is None:
        return ("",) * 4 + ("UNCLEAR",) + ("",) * 3 + ("0", "")
    return (
        f"{median.base_us:.2f}",
        f"{median.new_us:.2f}",
        f"{median.ratio:.3f}",
        interval(median),
        verdict(median),
        *(("",) * 3 if tail is None else (tail.statistic, f"{tail.ratio:.3f}", verdict(tail))),
        _launches(median),
        percent(median.detectable),
    )


def interval(answer: Answer) -> str:
    """``0.98 … 1.04``; nothing where it is not known."""
    return f"{answer.low:.3f} … {answer.high:.3f}" if answer.low > 0 and answer.high < 1e6 else "unknown"


def verdict(answer: Answer) -> str:
    """The word, and of UNCLEAR how many launches would tell."""
    if answer.verdict != "UNCLEAR" or answer.needed is None:
        return answer.verdict
    return f"UNCLEAR, needs {max(answer.needed, max(answer.launches) + 1)}"


def _launches(answer: Answer) -> str:
    base, new = answer.launches
    each = str(base) if base == new else f"{base}, {new}"
    return f"{each} (round {answer.round})" if answer.round > 1 else each


def to_json(report: Report) -> str:
    """One object; what is in it: :func:`omb_py.results.compare.report.as_dict`."""
    return json.dumps(as_dict(report), indent=1, allow_nan=False, ensure_ascii=False, default=str) + "\n"


def to_markdown(report: Report) -> str:
    """For an issue or a wiki."""
    lines = [f"**{headline(report)}**", "", *(f"- {_escaped(line)}" for line in preamble(report)), ""]
    lines += ["| " + " | ".join(HEADS) + " |", "|" + "|".join("---" for _ in HEADS) + "|"]
    lines += ["| " + " | ".join(map(_escaped, row)) + " |" for row in table(report)]
    return "\n".join([*lines, "", *(f"- {_escaped(line)}" for line in closing(report)[1:])]) + "\n"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")


def to_junit(report: Report, strict: bool = False) -> str:
    """JUnit's XML: a test a cell; SLOWER is a failure, UNCLEAR is skipped (a failure under `strict`), NOT COMPARABLE an
    error."""
    kinds: Mapping[str, Outcome] = {"SLOWER": "failure", "UNCLEAR": "failure" if strict else "skipped"}
    cases = []
    for cell, judged in zip(report.matched.cells, report.judged, strict=True):
        word = overall(judged)
        told = "; ".join(map(_sentence, judged.answers.values()))
        cases.append(JunitCase(*_case_name(cell.base, report), kinds.get(word), f"{word}: {told}"))
    for one in report.matched.incomparable:
        text = f"NOT COMPARABLE: {fields_text(one.base, one.new, one.fields)}"
        cases.append(JunitCase(*_case_name(one.base, report), "error", text))
    properties = {f"line{number}": line for number, line in enumerate(preamble(report), 1)}
    return to_xml([JunitSuite("omb-py compare", cases, properties)])


def _case_name(row: Row, report: Report) -> tuple[str, str]:
    return f"{row['backend']}.{row['benchmark']}", report.named(row)


def _sentence(answer: Answer) -> str:
    return (
        f"{answer.statistic} {answer.base_us:.2f} -> {answer.new_us:.2f} us, "
        f"ratio {answer.ratio:.3f} ({interval(answer)}), {verdict(answer)}, "
        f"launches {_launches(answer)}, detectable {percent(answer.detectable)}"
    )


FORMS: Mapping[str, Callable[[Report], str]] = {"json": to_json, "markdown": to_markdown, "junit": to_junit}
ENDINGS: Mapping[str, str] = {".json": "json", ".md": "markdown", ".xml": "junit"}
"""Of a file's name -> the form that is written to it."""
