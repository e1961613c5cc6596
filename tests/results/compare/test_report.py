from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from omb_py.printing.writers import to_json, to_junit, to_markdown
from omb_py.results.compare import report as r
from omb_py.results.compare.false_alarm_rate import SiteRate, keep, site_rate
from omb_py.results.compare.judge import CompareRules
from omb_py.results.compare.select_launches import SideLaunches
from omb_py.results.statistics.launch_kinds import LaunchKinds
from omb_py.results.store.keys import comparability_key
from omb_py.results.store.provenance import SIMULATION

Row = dict[str, Any]


@pytest.fixture
def side(make_row: Callable[..., Row]) -> Callable[..., SideLaunches]:
    """Interleaved launches whose median has a factor and a small spread."""

    def make(
        which: str, factor: float = 1.0, launches: int = 8, sizes: tuple[int, ...] = (8,), **more: Any
    ) -> SideLaunches:
        rows = []
        for k in range(launches):
            at = 2 * k + (which == "NEW")
            for size in sizes:
                time = 10.0 * factor * (1 + 0.002 * (k % 3) * (1 if which == "NEW" else -1))
                row = make_row(
                    **{
                        "run_id": which,
                        "launch_id": f"{which}-{k}",
                        "launch_index": k,
                        "binding": "native",
                        "started_at": f"2026-11-21T10:{at:02}:00",
                        "size_bytes": size,
                        "ranks": 2,
                        "library": "MPI|X",
                        "library_version": "1",
                        "median_us": time,
                        "mean_us": time,
                        "p99_us": 2 * time,
                        **more,
                    }
                )
                row["comparability_key"] = comparability_key(row, "p")
                rows.append(row)
        return SideLaunches(which, rows, [])

    return make


def test_words_and_exit_codes(side: Callable[..., SideLaunches]) -> None:
    slower = r.report_of(side("BASE"), side("NEW", 1.1), CompareRules())
    assert r.exit_code(slower) == 1 and r.headline(slower) == "1 slower"
    faster = r.report_of(side("BASE", 1.1), side("NEW"), CompareRules())
    assert r.exit_code(faster) == 0 and r.headline(faster) == "0 slower, 1 faster"
    same = r.report_of(side("BASE"), side("NEW"), CompareRules())
    assert r.exit_code(same, strict=True) == 0 and r.headline(same) == "0 slower, 1 same"
    other = r.report_of(side("BASE"), side("NEW", ranks=4), CompareRules())
    assert r.exit_code(other) == 0 and r.exit_code(other, strict=True) == 4
    assert "not comparable: allreduce 8 B: ranks 2 against 4" in r.document_of(other).notes


@pytest.mark.parametrize(
    ("times", "fields", "kind", "strict", "said"),
    [
        (1.1, {}, r.COMPARE, False, ""),
        (1.0, {}, r.COMPARE, False, ""),
        (1.0, {"ranks": 4}, r.COMPARE, False, "with --strict the exit code is 4, since nothing was decided"),
        (1.0, {"ranks": 4}, r.COMPARE, True, ""),
        (1.0, {"ranks": 4}, r.AA, False, ""),
    ],
)
def test_what_strict_would_say_of_what_is_open(
    side: Callable[..., SideLaunches], times: float, fields: dict[str, object], kind: str, strict: bool, said: str
) -> None:
    report = r.report_of(side("BASE"), side("NEW", times, **fields), CompareRules(), kind)
    assert [note for note in r.document_of(report, strict).notes if "--strict" in note] == ([said] if said else [])


def test_many_cells_are_named_no_more_often_than_one(
    side: Callable[..., SideLaunches], monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[int] = []
    name = r.namer
    monkeypatch.setattr(r, "namer", lambda rows: (times.append(len(rows)), name(rows))[1])
    for sizes in ((8,), (8, 16, 32, 64)):
        report = r.report_of(side("BASE", sizes=sizes), side("NEW", 1.1, sizes=sizes), CompareRules())
        assert r.headline(report) == f"{len(sizes)} slower"
        r.document_of(report)
    assert times.count(4) == times.count(1) > 0  # to look at all rows for each cell took minutes for 1600 of them


def test_an_interval_without_1_beside_unclear_is_explained(side: Callable[..., SideLaunches]) -> None:
    report = r.report_of(side("BASE"), side("NEW"), CompareRules())
    told = "UNCLEAR beside an interval without 1: the verdict allows for chance in all 2 questions"
    for verdict, low, expected in (("UNCLEAR", 1.001, True), ("UNCLEAR", 0.999, False), ("SAME", 1.001, False)):
        for judged in report.judged:
            for question, answer in judged.answers.items():
                judged.answers[question] = replace(answer, verdict=verdict, low=low, high=1.02)
        assert (told in r.document_of(report).notes) == expected


def test_a_side_that_was_simulated_is_called_so(side: Callable[..., SideLaunches]) -> None:
    base = side("BASE")
    simulated = replace(base, provenances=[{"library_string": f"mock 1.0, {SIMULATION}"}])
    assert ", simulated," in r.side_text(simulated) and "simulated" not in r.side_text(base)


def test_rows_that_did_not_validate_are_a_negative_verdict(side: Callable[..., SideLaunches]) -> None:
    wrong = r.report_of(side("BASE"), side("NEW", validated=False), CompareRules())
    assert r.exit_code(wrong) == 1
    assert r.document_of(wrong).headline.endswith("8 rows did not validate: their times are those of wrong results")


def test_cells_of_one_side_are_named(side: Callable[..., SideLaunches]) -> None:
    sizes = (8, 1024, 1536, 1 << 20, 1 << 21, 1 << 22)
    told = r.document_of(r.report_of(side("BASE", sizes=sizes), side("NEW"), CompareRules())).notes
    assert "only in BASE: allreduce 1 KiB, allreduce 1536 B, allreduce 1 MiB, allreduce 2 MiB and 1 more" in told


def test_percent() -> None:
    assert [r.percent(x) for x in (1.034, 2.5, 50.0, math.inf)] == ["3.4 %", "× 2.5", "over × 10", "-"]


def test_json_has_no_number_that_is_none(side: Callable[..., SideLaunches]) -> None:
    single = r.report_of(side("BASE", launches=1), side("NEW", launches=1), CompareRules())
    (cell,) = json.loads(to_json(r.document_of(single)))["cells"]
    assert cell["median"]["high"] is None and cell["median"]["detectable"] is None
    assert cell["verdict"] == "UNCLEAR"


def test_json_keeps_the_names_that_scripts_read(side: Callable[..., SideLaunches]) -> None:
    report = r.report_of(side("BASE"), side("NEW"), CompareRules())
    whole = json.loads(to_json(r.document_of(report)))
    assert list(whole["rules"]) == ["alpha", "delta", "tail_delta", "power", "looks", "trust_sides"]
    assert whole["cells"][0]["median"]["look"] == 1 and "round" not in whole["cells"][0]["median"]


def test_columns_and_groups_of_the_table(side: Callable[..., SideLaunches]) -> None:
    base = side("BASE", sizes=(8, 64))
    new = side("NEW", 1.1, sizes=(8, 64), sync_limited=True)
    (table,) = r.document_of(r.report_of(base, new, CompareRules())).tables
    assert [(row[0], row[4], row[6]) for row in table.rows] == [
        ("allreduce 8 B*", "1.104", "SLOWER"),
        ("allreduce 64 B*", "1.104", "SLOWER"),
    ]
    assert list(table.groups) == ["allreduce"] * 2
    (other,) = r.document_of(r.report_of(side("BASE"), side("NEW", ranks=4), CompareRules())).tables
    assert [[text for text in row if text] for row in other.rows] == [["allreduce 8 B", "NOT COMPARABLE"]]


def test_markdown_is_a_table_whatever_a_library_is_called(side: Callable[..., SideLaunches]) -> None:
    lines = to_markdown(r.document_of(r.report_of(side("BASE"), side("NEW", 1.1), CompareRules()))).splitlines()
    assert lines[0] == "**NEW is slower in 1 of 1 cell (most: allreduce 8 B in its tail, 10.4 %)**"
    assert "- BASE MPI\\|X 1, native, 2 ranks, 8 launches (BASE)" in lines
    rows = [line for line in lines if line.startswith("|")]
    assert len({line.count("|") for line in rows}) == 1 and len(rows) == 3


def test_junit_under_strict(side: Callable[..., SideLaunches]) -> None:
    unclear = r.report_of(side("BASE", launches=2), side("NEW", 1.02, launches=2, ranks=2), CompareRules())
    assert r.headline(unclear) == "0 slower, 1 unclear"
    for strict, tag in ((False, "skipped"), (True, "failure")):
        (case,) = ElementTree.fromstring(to_junit(r.document_of(unclear, strict))).iter("testcase")
        assert [child.tag for child in case] == [tag]
    other = r.report_of(side("BASE"), side("NEW", ranks=4), CompareRules())
    (case,) = ElementTree.fromstring(to_junit(r.document_of(other))).iter("testcase")
    assert [child.get("message") for child in case] == ["NOT COMPARABLE: ranks 2 against 4"]


class TestSite:
    def test_never_measured(self, tmp_path: Path) -> None:
        assert site_rate(tmp_path) == SiteRate()
        assert "not counted yet" in SiteRate().sentence()

    def test_counts_reports_of_a_against_a_only(self, side: Callable[..., SideLaunches], tmp_path: Path) -> None:
        for number, (kind, factor) in enumerate(((r.AA, 1.0), (r.AA, 1.1), (r.COMPARE, 1.1))):
            report = r.report_of(side("BASE", sizes=(8, 64)), side("NEW", factor, sizes=(8, 64)), CompareRules(), kind)
            report.run_id = f"run{number}"
            keep(report, tmp_path)
        assert site_rate(tmp_path) == SiteRate(reports=2, alarmed=1, cells=4, alarms=2)
        assert (
            site_rate(tmp_path).sentence().startswith("false alarms on this machine: 2 of 4 cells, in 1 of 2 reports")
        )

    @pytest.mark.parametrize("text", ["", "[]", '{"kind": "aa"}', '{"kind": "aa", "verdicts": {"SAME": "x"}}', "\x00"])
    def test_passes_over_what_is_no_report(self, text: str, tmp_path: Path) -> None:
        (tmp_path / ".reports").mkdir()
        (tmp_path / ".reports" / "x.report").write_text(text)
        assert site_rate(tmp_path) == SiteRate()


def test_launches_of_two_kinds_are_counted(side: Callable[..., SideLaunches]) -> None:
    report = r.report_of(side("BASE"), side("NEW"), CompareRules())
    (judged,) = report.judged
    kinds = LaunchKinds(0.0, math.log(2), (1, 10), (5, 10), 0.0)
    judged.answers["median"] = replace(judged.answers["median"], kinds=kinds)
    assert (
        "two kinds of launches, 1.00 µs and 2.00 µs, of allreduce 8 B: 5 of 10 launches of NEW and 1 of 10 "
        "of BASE are slow"
    ) in r.document_of(report).notes


@pytest.mark.parametrize(
    ("new", "within", "reason"),
    [
        (8, 0.0, ": 8 of 10 launches of NEW and 1 of 10 of BASE take 2.0 × as long, the others as before)"),
        (8, 0.4, ")"),
        (1, 0.0, ")"),
    ],
    ids=["more are slow", "each kind is slower", "as many are slow"],
)
def test_more_slow_launches_are_the_reason_in_the_answer(
    side: Callable[..., SideLaunches], new: int, within: float, reason: str
) -> None:
    report = r.report_of(side("BASE"), side("NEW"), CompareRules())
    (judged,) = report.judged
    kinds = LaunchKinds(0.0, math.log(2), (1, 10), (new, 10), within)
    judged.answers["median"] = replace(judged.answers["median"], verdict="SLOWER", ratio=1.9, kinds=kinds)
    assert r.document_of(report).headline.endswith(f"(most: allreduce 8 B, 90.0 %{reason}")


def test_what_is_unclear_has_a_bound(side: Callable[..., SideLaunches]) -> None:
    report = r.report_of(side("BASE"), side("NEW"), CompareRules())
    (judged,) = report.judged
    judged.answers["median"] = replace(judged.answers["median"], verdict="UNCLEAR", high=1.042)
    answer = r.document_of(report).headline
    assert answer.startswith("NEW is UNCLEAR in 1 of 1 cell (between ")
    assert answer.endswith("4.2 % slower)")
    judged.answers["tail"] = replace(judged.answers["median"], low=0.2, high=3.0)
    assert r.document_of(report).headline == answer, "it is of the medians"
    judged.answers["median"] = replace(judged.answers["median"], high=math.inf)
    assert r.document_of(report).headline.startswith("NEW is UNCLEAR in 1 of 1 cell")
    assert "slower" not in r.document_of(report).headline


def test_what_nobody_would_measure_cannot_be_decided_here(side: Callable[..., SideLaunches]) -> None:
    report = r.report_of(side("BASE"), side("NEW"), CompareRules())
    (judged,) = report.judged
    for needed, following in (
        (7192, "next: this cannot be decided here"),
        (40, "next: 40 launches a side would probably"),
    ):
        for question, answer in judged.answers.items():
            judged.answers[question] = replace(answer, verdict="UNCLEAR", needed=needed, reason="")
        document = r.document_of(report)
        assert any(fact.startswith(following) for fact in document.facts)
        (row,) = document.tables[0].rows
        assert (f"UNCLEAR (about {needed})" in row) == (needed == 40)


def test_what_can_be_decided_is_told_from_what_cannot(side: Callable[..., SideLaunches]) -> None:
    report = r.report_of(side("BASE"), side("NEW"), CompareRules())
    (judged,) = report.judged
    for question, needed in (("median", 40), ("tail", 7192)):
        judged.answers[question] = replace(judged.answers["median"], verdict="UNCLEAR", needed=needed, reason="")
    (following,) = (fact for fact in r.document_of(report).facts if fact.startswith("next:"))
    report.run_id = "R"
    assert "here the same line with --launches 40 would probably" in "".join(r.document_of(report).facts)
    assert following.startswith("next: use a quieter machine; here 40 launches a side would probably decide 1 of 2")


def test_the_state_of_the_machine_stands_before_how_sure_it_is(side: Callable[..., SideLaunches]) -> None:
    report = r.report_of(side("BASE"), side("NEW"), CompareRules())
    report.machine = {"warnings": ["busy machine: end the others"]}
    busy, spread, sure, *_ = r.document_of(report).facts
    assert (busy, sure[:6]) == ("conditions: busy machine: end the others", "sure: ")
    assert spread.startswith("conditions: launches of a side differ by ")
