"""Programs in turn: what is slower is found, what was not measured is never green, what was made is kept."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from omb_py.errors import NO_VERDICT, OK, Interrupted, LaunchFailed, NoVerdict, UsageError
from omb_py.orchestrate.compare.stored import compare_stored
from omb_py.orchestrate.programs import session
from omb_py.orchestrate.programs.execution import Execution, run_program
from omb_py.orchestrate.programs.reading import reading_of
from omb_py.orchestrate.programs.session import compare_programs
from omb_py.orchestrate.running.resume import find_unfinished
from omb_py.orchestrate.supervision.processes import identify
from omb_py.results.compare.judge import CompareRules
from omb_py.results.compare.match import SIDES
from omb_py.results.compare.report import as_dict, document_of, exit_code, headline, overall
from omb_py.results.dialects.named_metrics import parse_metric
from omb_py.results.store.provenance import provenance_of
from omb_py.results.store.read import files, load
from tests.orchestrate.programs.conftest import Make, count_launch
from tests.results.dialects.nccl_texts import FOURTH

Osu = Callable[..., str]


@pytest.mark.slow
def test_a_program_that_is_slower_is_found_stored_and_shown_again(osu: Osu, design: Make, tmp_path: Path) -> None:
    report = compare_programs(design(osu(1), osu(1.1)))
    assert [overall(judged) for judged in report.judged] == ["SLOWER"] * 3
    assert exit_code(report) == 1
    again = compare_stored([str(report.run_id)], tmp_path / "store", CompareRules())
    assert again.judged == report.judged
    assert [d.what for d in report.differences] == ["program"]
    assert report.differences[0].base.startswith("… 1 ")
    assert report.differences[0].new.startswith("… 1.1 ")
    facts = provenance_of(tmp_path / "store")(str(report.base.rows[0]["launch_id"]))
    assert facts["run"]["exit_code"] == 0
    assert facts["run"]["elapsed_s"] > 0
    assert facts["run"]["output"].startswith("# OSU MPI Latency Test")


def test_a_report_shown_again_has_the_tolerance_it_was_measured_with(osu: Osu, design: Make, tmp_path: Path) -> None:
    report = compare_programs(design(osu(1, "8"), osu(1.1, "8"), rules=CompareRules(delta=0.3)))
    assert [overall(judged) for judged in report.judged] == ["SAME"]
    names, store = [str(report.run_id)], tmp_path / "store"
    assert compare_stored(names, store, CompareRules()).judged == report.judged
    assert headline(compare_stored(names, store, CompareRules(), asked=["delta"])) == "1 slower"


def test_the_sides_of_one_command_are_named_with_what_is_set(osu: Osu, design: Make) -> None:
    asked = design(osu(1, "8"), osu(1, "8"))
    asked = replace(asked, programs={s: replace(p, setting=f"mpi/{s}") for s, p in asked.programs.items()})
    report = compare_programs(replace(asked, may_be_equal=True, launches=2))
    assert [s.word.rpartition(" with ")[2] for s in (report.base, report.new)] == ["mpi/BASE", "mpi/NEW"]
    assert json.loads(json.dumps(as_dict(report), default=str))["sides"]["BASE"]["libraries"] == []


@pytest.mark.slow
def test_a_busy_machine_is_told_when_the_report_is_shown_again(
    osu: Osu, design: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cores = os.cpu_count() or 1
    monkeypatch.setattr(session.OtherWork, "cores", lambda self: float(cores))
    report = compare_programs(design(osu(1), osu(1)))
    (warning,) = [text for text in report.machine["warnings"] if text.startswith("busy machine")]
    assert f"other programs used {cores:.1f} of {cores} cores during the launches" in warning
    again = compare_stored([str(report.run_id)], tmp_path / "store", CompareRules())
    assert [text.split("(")[0] for text in again.machine["warnings"]] == [warning.split("(")[0]]


@pytest.mark.slow
def test_a_launch_keeps_its_own_cores_of_others(
    osu: Osu, design: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = iter(range(100))
    monkeypatch.setattr(session.OtherWork, "cores", lambda self: 1.5 if next(seen) % 2 else None)
    report = compare_programs(design(osu(1), osu(1)))
    look = provenance_of(tmp_path / "store")
    launches = sorted(
        {int(row["launch_index"]): row["launch_id"] for row in (*report.base.rows, *report.new.rows)}.items()
    )
    assert [look(str(launch))["launch"]["other_cores"] for _, launch in launches] == [None, 1.5] * 8


@pytest.mark.slow
def test_a_program_against_itself_is_the_same(osu: Osu, design: Make) -> None:
    report = compare_programs(design(osu(1, name="a"), osu(1, name="b"), launches=10))
    assert {overall(judged) for judged in report.judged} == {"SAME"}
    assert exit_code(report) == OK


@pytest.mark.slow
def test_the_sides_are_interleaved_in_a_drawn_order(osu: Osu, design: Make, tmp_path: Path) -> None:
    compare_programs(design(osu(1), osu(1.1)))
    sides = []
    look = provenance_of(tmp_path / "store")
    for path in sorted(files(tmp_path / "store"), key=lambda path: int(path.stem.rpartition("-")[2])):
        sides.append(look(path.stem)["launch"]["config"]["side"])
    pairs = [tuple(sides[k : k + 2]) for k in range(0, 16, 2)]
    assert all(sorted(pair) == ["BASE", "NEW"] for pair in pairs)
    assert len(set(pairs)) == 2  # seed 1 draws both orders


@pytest.mark.slow
def test_a_bandwidth_is_judged_as_what_it_is(design: Make, tmp_path: Path) -> None:
    script = tmp_path / "bw.py"
    script.write_text(
        "import sys\n"
        "print('# OSU MPI Bandwidth Test v7.5\\n# Datatype: MPI_CHAR.\\n# Size      Bandwidth (MB/s)')\n"
        "print(f'1024      {float(sys.argv[1]) * (1 + int(sys.argv[2]) % 7 / 1000):.2f}')\n"
    )
    python = f"{sys.executable} -S {script}"
    base, new = (f"sh -c '{python} {rate} {count_launch(tmp_path)}'" for rate in (3000, 2000))
    report = compare_programs(design(base, new))
    assert [overall(judged) for judged in report.judged] == ["SLOWER"]
    (row,) = document_of(report).tables[0].rows
    assert "MB/s" in row[2] and row[2].startswith("30")
    assert "MB/s" in row[3] and row[3].startswith("20")


@pytest.mark.slow
def test_any_program_is_judged_by_a_number_in_its_text(design: Make, tmp_path: Path) -> None:
    def command(rate: int) -> str:
        return f"sh -c 'echo handled $(({rate}00000 + 37 * {count_launch(tmp_path)} % 1000)) requests per second'"

    metric = parse_metric("rate req/s higher handled ([0-9]+) requests")
    report = compare_programs(design(command(9), command(8), reading=reading_of("", [metric])))
    assert [overall(judged) for judged in report.judged] == ["SLOWER"]


@pytest.mark.slow
def test_the_file_that_a_program_writes_is_read(design: Make, tmp_path: Path) -> None:
    script = tmp_path / "bench.py"
    script.write_text(
        "import json, sys\n"
        "times = [float(sys.argv[1]) * (1 + (int(sys.argv[3]) * k) % 11 / 1000) for k in range(1, 6)]\n"
        "entry = {'fullname': 'test_it', 'stats': {'data': times, 'mean': sum(times) / 5}}\n"
        "json.dump({'machine_info': {}, 'benchmarks': [entry]}, open(sys.argv[2], 'w'))\n"
    )
    python = f"{sys.executable} -S {script}"
    base, new = (f"sh -c '{python} {seconds} {{out}} {count_launch(tmp_path)}'" for seconds in (0.25, 0.5))
    report = compare_programs(design(base, new))
    assert [overall(judged) for judged in report.judged] == ["SLOWER"]
    assert report.judged[0].answers["median"].base_us == pytest.approx(250_000, rel=0.02)


@pytest.mark.slow
def test_each_side_has_its_environment(design: Make, tmp_path: Path) -> None:
    command = f"sh -c 'echo took $((${{SLOW:-1}}00000 + 37 * {count_launch(tmp_path)} % 1000)) s'"
    metric = parse_metric("time s lower took ([0-9]+) s")
    report = compare_programs(design(command, command, {"NEW": {"SLOW": "2"}}, reading=reading_of("", [metric])))
    assert [overall(judged) for judged in report.judged] == ["SLOWER"]
    assert [str(difference) for difference in report.differences] == ["variable SLOW: not set → 2"]


@pytest.mark.slow
def test_a_size_that_one_side_lacks_is_never_green(osu: Osu, design: Make, tmp_path: Path) -> None:
    report = compare_programs(design(osu(1, "8,1024", "a"), osu(1, "8", "b"), launches=10))
    assert exit_code(report) == NO_VERDICT
    document = document_of(report)
    assert document.headline.startswith("NO VERDICT, since not all was measured; NEW is ")
    assert any("NEW lacks latency 1 KiB" in note for note in document.notes)
    assert any(case.outcome == "error" and "lacks" in case.message for case in document.cases)
    again = compare_stored([str(report.run_id)], tmp_path / "store", CompareRules())
    assert exit_code(again) == NO_VERDICT


@pytest.mark.slow
def test_fewer_launches_than_the_rule_needs_are_never_green(osu: Osu, design: Make) -> None:
    report = compare_programs(design(osu(1, name="a"), osu(1, name="b"), launches=3))
    assert exit_code(report) == NO_VERDICT
    assert "3 launches a side, and a change needs 6" in report.unmeasured[0]


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        ("true", "printed nothing"),
        ("sh -c 'echo oh dear >&2'", "stderr: oh dear"),
        ("printf '# OSU MPI Latency Test v7.5\\n# Size          Avg Latency(us)\\n8      1.0'", "cut or damaged"),
        (
            "printf '# OSU MPI Latency Test v7.5\\n# Datatype: MPI_CHAR.\\n# Size          Avg Latency(us)\\n'",
            "no rows",
        ),
        (
            "printf '# OSU MPI Latency Test v7.5\\n# Datatype: MPI_CHAR.\\n"
            "# Size       Avg Latency(us)        Validation\\n8      1.00      Fail\\n'",
            "did not validate",
        ),
    ],
)
def test_an_output_that_is_no_measurement_is_never_green(osu: Osu, design: Make, new: str, reason: str) -> None:
    with pytest.raises(NoVerdict, match=reason):
        compare_programs(design(osu(1, "8"), new))


def test_a_program_that_prints_a_stored_result_is_never_green(osu: Osu, design: Make, tmp_path: Path) -> None:
    cached = tmp_path / "cached.txt"
    lines = [f"{1 << k:<24}{1234.56 + k:.2f}" for k in range(12)]
    cached.write_text(
        "\n".join(["# OSU MPI Latency Test v7.5", "# Datatype: MPI_CHAR.", "# Size    Avg Latency(us)", *lines, ""])
    )
    with pytest.raises(NoVerdict, match="repeats a stored result"):
        compare_programs(design(f"cat {cached}", f"cat {cached} /dev/null"))


def test_fewer_ranks_than_asked_are_never_green(design: Make, tmp_path: Path) -> None:
    mpirun = tmp_path / "mpirun"
    table = (
        "#---------------------------------------------------\\n# Benchmarking PingPong\\n# #processes = 2\\n"
        "#---------------------------------------------------\\n"
        "       #bytes #repetitions      t[usec]   Mbytes/sec\\n            0         1000         1.00         0.00\\n"
    )
    mpirun.write_text(f"#!/bin/sh\nprintf '{table}'\n")
    mpirun.chmod(0o755)
    with pytest.raises(NoVerdict, match="NEW ran on 2 ranks, and 4 were asked for"):
        compare_programs(design(f"{mpirun} -n 2 imb", f"{mpirun} -n 4 imb", launches=8))


@pytest.mark.parametrize("side", ["BASE", "NEW"])
def test_another_device_is_never_green(design: Make, tmp_path: Path, side: str) -> None:
    """Between the sides, or from one launch to the next."""
    (tmp_path / "log").write_text(FOURTH)
    script = tmp_path / "rccl.sh"
    script.write_text(
        f"count={count_launch(tmp_path)}\n"
        f"[ $1 = other ] || [ $1 = later -a $count -gt 4 ] && gpu='AMD Instinct MI300X'\n"
        f'sed "s/NVIDIA GH200 120GB/${{gpu-AMD Instinct MI250X}}/; s/195.40/195.$((count + 10))/" {tmp_path}/log\n'
    )
    words = ["other", "usual"] if side == "BASE" else ["usual", "later"]
    with pytest.raises(NoVerdict, match=r"AMD Instinct MI(300X|250X), then on AMD Instinct MI(300X|250X)"):
        compare_programs(design(*(f"sh {script} {word}" for word in words)))


@pytest.mark.slow
def test_a_launch_that_lacks_what_it_had_before_is_never_green(design: Make, tmp_path: Path) -> None:
    script = tmp_path / "shrinks.sh"
    script.write_text(
        f"count={count_launch(tmp_path)}\n"
        "printf '# OSU MPI Latency Test v7.5\\n# Datatype: MPI_CHAR.\\n# Size    Avg Latency(us)\\n'\n"
        "printf '8     1.%02d\\n' $count\n"
        "[ $count -gt 4 ] || printf '16     2.00\\n'\n"
    )
    with pytest.raises(NoVerdict, match=r"lacks latency 16 B in this launch.*--resume="):
        compare_programs(design(f"sh {script}", f"sh {script} new"))


@pytest.mark.parametrize(
    ("new", "kind", "reason"),
    [
        ("no-such-program", UsageError, "NEW: no program 'no-such-program'"),
        ("sh -c 'exit 3'", LaunchFailed, "ended with exit code 3"),
        ("sh -c 'echo Segfault ahead >&2; kill -SEGV $$'", LaunchFailed, "signal SIGSEGV"),
        ("sleep 60", LaunchFailed, "killed after 0.5 s"),
        ("echo hello", UsageError, "OMB text.*nccl-tests JSON.*--metric"),
    ],
)
def test_bad_programs_end_in_one_line(osu: Osu, design: Make, new: str, kind: type[Exception], reason: str) -> None:
    with pytest.raises(kind, match=reason) as caught:
        compare_programs(design(osu(1), new, timeout_s=0.5 if new.startswith("sleep") else 20.0))
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_what_was_measured_before_a_failure_is_kept_and_resumed(osu: Osu, design: Make, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    new = f"sh -c '[ -e {gate} ] && {osu(1.1)}'"
    broken = tmp_path / "broken.sh"
    broken.write_text(f"echo x >> {tmp_path}/count\n[ $(wc -l < {tmp_path}/count) = 6 ] && rm -f {gate}\n{osu(1)}\n")
    base = f"sh {broken}"
    with pytest.raises(LaunchFailed, match=r"What was measured is kept .*: 6 launches of BASE and 5 launches of NEW"):
        compare_programs(design(base, new))
    stored = len(files(tmp_path / "store"))
    gate.touch()
    report = compare_programs(design(base, new), resume="last")
    assert report.base.count == report.new.count == 8
    assert stored == 11
    assert len(files(tmp_path / "store")) == 16
    assert [overall(judged) for judged in report.judged] == ["SLOWER"] * 3


@pytest.mark.slow
def test_with_nothing_interrupted_it_begins_and_says_so(
    osu: Osu, design: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare_programs(design(osu(1), osu(1), quiet=False), resume="last").base.count == 8
    assert capsys.readouterr().err.count("--resume: no interrupted comparison in ") == 1


def test_another_command_does_not_resume(osu: Osu, design: Make, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    new = f"sh -c '[ ! -e {gate} ] && touch {gate} && {osu(1.1)}'"
    with pytest.raises(LaunchFailed):
        compare_programs(design(osu(1), new))
    with pytest.raises(UsageError, match="begun with"):
        compare_programs(design(osu(1), osu(1.2)), resume="last")


@pytest.mark.slow
def test_no_process_of_a_killed_launch_is_left(
    design: Make, osu: Osu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = tmp_path / "pid"
    script = tmp_path / "forks.sh"
    script.write_text(f"setsid sleep 600 & echo $! > {pid}.part\nmv {pid}.part {pid}\nsleep 600\n")
    # its time is over once it has started the other process, however long that takes
    clock = SimpleNamespace(monotonic=lambda: 100.0 * pid.exists(), sleep=time.sleep)
    monkeypatch.setattr("omb_py.orchestrate.programs.execution.time", clock)
    with pytest.raises(LaunchFailed, match="killed"):
        compare_programs(design(osu(1), f"sh {script}"))
    assert identify(int(pid.read_text())) is None


def test_the_output_of_a_failed_launch_is_kept(design: Make, osu: Osu, tmp_path: Path) -> None:
    with pytest.raises(LaunchFailed) as caught:
        compare_programs(design(osu(1), "sh -c 'echo half a table; echo why >&2; exit 1'"))
    path = Path(str(caught.value).partition("its output: ")[2].partition(". ")[0])
    assert path.read_text() == "half a table\n\n--- stderr ---\nwhy\n\n"


@pytest.mark.slow
def test_secrets_in_an_output_are_not_stored(design: Make, tmp_path: Path) -> None:
    command = "sh -c 'echo API_TOKEN=abc123; echo took 1 s'"
    metric = parse_metric("time s lower took ([0-9]+) s")
    compare_programs(design(command, f"{command} ", {"NEW": {"A": "1"}}, reading=reading_of("", [metric]), launches=2))
    for path in files(tmp_path / "store"):
        assert b"abc123" not in path.read_bytes()


@pytest.mark.slow
def test_the_report_says_what_was_not_measured(osu: Osu, design: Make) -> None:
    report = compare_programs(design(osu(1, "8,64", "a"), osu(1, "8", "b")))
    data = json.loads(json.dumps(document_of(report).data(), default=str))
    assert data["unmeasured"] == ["NEW lacks latency 64 B"]
    assert set(data["sides"]) == set(SIDES)


def test_no_launch_is_made_for_a_single_launch(osu: Osu, design: Make) -> None:
    with pytest.raises(UsageError, match="needs 2 or more"):
        compare_programs(replace(design(osu(1), osu(1.1)), launches=1))


@pytest.mark.slow
def test_a_budget_chooses_the_launches_and_keeps_the_choice(osu: Osu, design: Make, tmp_path: Path) -> None:
    rules = CompareRules(rounds=3)
    asked = design(osu(1, "8", "a"), osu(1, "8", "b"), rules=rules, launches=4, budget_s=3600.0)
    report = compare_programs(asked)
    assert report.base.count == report.new.count >= 10, "the three pairs of the pilot are none of them"
    again = compare_stored([report.run_id], tmp_path / "store", rules)
    assert headline(again) == headline(report) and again.base.count == report.base.count
    assert len(load(tmp_path / "store")) == 2 * (report.base.count + 3)


@pytest.mark.slow
def test_a_budget_too_small_for_a_change_is_refused(osu: Osu, design: Make, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"the time is enough for 0 more launches a side.*a change needs 6: give it"):
        compare_programs(design(osu(1), osu(1.1), budget_s=0.001))
    assert find_unfinished(tmp_path / "store", "last", {}) is None


@pytest.mark.slow
def test_an_interruption_after_the_pilot_keeps_its_choice(
    osu: Osu, design: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = design(osu(1, "8", "a"), osu(1, "8", "b"), rules=CompareRules(rounds=3), launches=4, budget_s=3600.0)
    real, started = session.run_program, []

    def run(*words: object, **more: object) -> Execution:
        started.append(words)
        if len(started) == 2 + 6 + 9:  # tried once each, three pairs of the pilot, and some that are judged
            raise KeyboardInterrupt
        return real(*words, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(session, "run_program", run)
    with pytest.raises(Interrupted, match="4 launches of"):
        compare_programs(asked)
    report = compare_programs(asked, "last")
    assert len(started) == 2 + 6 + 9 + 2 + 2 * report.base.count - 8, (
        "neither the pilot nor what is stored is made again"
    )
    assert report.base.count == report.new.count >= 10


@pytest.mark.slow
def test_an_interrupted_comparison_keeps_its_launches(
    osu: Osu, design: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []

    def run(*words: object) -> object:
        started.append(words)
        if len(started) == 6:
            raise KeyboardInterrupt
        return run_program(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(session, "run_program", run)
    with pytest.raises(Interrupted, match=r"^interrupted: what was measured is kept .*--resume="):
        compare_programs(design(osu(1), osu(1.1)))
    report = compare_programs(design(osu(1), osu(1.1)), resume="last")
    assert report.base.count == report.new.count == 8
    assert len(started) == 6 + 2 + 16 - 3  # what was interrupted, the launches that are not judged, and what was left


def test_sides_that_print_other_units_have_no_verdict(osu: Osu, design: Make) -> None:
    bandwidth = (
        "printf '# OSU MPI Bandwidth Test v7.5\\n# Datatype: MPI_CHAR.\\n# Size      Bandwidth (MB/s)\\n8      3.25\\n'"
    )
    with pytest.raises(
        NoVerdict, match=r"no cell in common: benchmark latency against bw, metric .*unit us against MB/s"
    ):
        compare_programs(design(osu(1, "8"), bandwidth))
