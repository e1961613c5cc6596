"""What teams met with gates and comparisons that they built by hand; each situation, with our answer."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from omb_py.errors import NO_VERDICT, OK
from omb_py.orchestrate.gate.gate import gate_document, run_gate
from omb_py.orchestrate.gate.gate_file import read_gate
from omb_py.orchestrate.programs import session
from omb_py.orchestrate.programs.execution import Execution
from omb_py.results.analysis.series import SIDE, rows_of, series, units_of
from tests.orchestrate.gate.test_gate import Osu, gated
from tests.orchestrate.programs.conftest import count_launch

HEAD = "# OSU MPI Latency Test v7.5\n# Datatype: MPI_CHAR.\n# Size          Avg Latency(us)\n"


def test_a_benchmark_that_skips_everything_is_not_green(osu: Osu, tmp_path: Path) -> None:
    """ROCm/cvs#310: the gate of RCCL reported green on a run that had not measured anything."""
    (tmp_path / "skips.sh").write_text("echo '# nThread 1 nGpus 1'; echo 'no usable GPU, skipped' >&2; exit 0\n")
    skips = f"sh {tmp_path}/skips.sh"
    document = gate_document(gated(tmp_path, ("all_reduce", skips, f"{skips} new"), top="rounds = 1"))
    assert (document.exit_code, document.headline) == (NO_VERDICT, "gate: NO VERDICT")
    assert "skipped" in document.problems[0]


def test_a_benchmark_that_fails_now_and_then_is_no_regression(tmp_path: Path) -> None:
    """aws/aws-parallelcluster#7565: 27 % of runs failed an OSU benchmark, and no performance had changed."""
    (tmp_path / "fails.sh").write_text(
        f"count={count_launch(tmp_path)}\n"
        "[ $((count % 5)) = 0 ] && { echo 'connection reset' >&2; exit 1; }\n"
        f"printf '{HEAD.replace(chr(10), chr(92) + 'n')}8   1.%02d\\n' $count\n"
    )
    fails = f"sh {tmp_path}/fails.sh"
    report = gated(tmp_path, ("latency", fails, f"{fails} new"), top="rounds = 1")
    assert report.code == NO_VERDICT
    assert "exit code 1" in report.outcomes[0].problem and "connection reset" in report.outcomes[0].problem


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Times in µs that programs print in turn, without being started."""
    times: list[float] = []

    def run(argv: Sequence[str], environ: Mapping[str, str], *more: object) -> Execution:
        return Execution(f"{HEAD}8{times.pop(0):18.2f}\n".encode(), b"", 0, 1.0, 1)

    monkeypatch.setattr(session, "run_program", run)
    return times


def test_a_machine_that_heats_up_makes_no_regression(printed: list[float], tmp_path: Path) -> None:
    """ROCm/rocm-systems#10450: each launch is a little slower than the one before, so sides must be interleaved."""
    noise = random.Random(1)
    printed += [100 * 1.005**launch * noise.gauss(1, 0.01) for launch in range(200)]
    report = gated(tmp_path, ("latency", "true a", "true b"), top="rounds = 3\nlaunches = 10")
    assert report.code == OK and not report.outcomes[0].report.judged[0].alarm  # type: ignore[union-attr]


@pytest.mark.slow
def test_the_base_of_each_gate_is_a_run_of_a_history(printed: list[float], tmp_path: Path) -> None:
    """Changes of 1 % a month creep under every gate; `history` sees them in what gates keep."""
    noise = random.Random(1)
    gate = tmp_path / "gate.toml"
    gate.write_text('rounds = 1\nlaunches = 6\n[[command]]\nname = "latency"\nbase = "true a"\nnew = "true b"\n')
    for month in range(3):
        printed[:] = [100 * 1.01**month * noise.gauss(1, 0.005) for _ in range(14)]
        assert run_gate(read_gate(str(gate)), tmp_path / "store", 1, True, lambda text: None).code == OK
    (bases,) = (one for one in series(rows_of(tmp_path / "store", "latency", {})) if one.facts[SIDE] == "BASE")
    assert [len(unit.points) for unit in units_of(bases.points, "run")] == [6, 6, 6]
