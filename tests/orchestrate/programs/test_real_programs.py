"""Real programs of others: a C ping-pong over MPI, omb-py started as any other program, a script on Gloo."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest

from omb_py.errors import NoVerdict
from omb_py.orchestrate.programs.exchanged import parse_expected
from omb_py.orchestrate.programs.reading import reading_of
from omb_py.orchestrate.programs.session import compare_programs
from omb_py.results.dialects.named_metrics import parse_metric
from tests.orchestrate.programs.conftest import Make
from tests.support.c_library import shared_library
from tests.support.machines.mpi import AS_ROOT, environment, mpiexec
from tests.support.optional import needs_torch
from tests.support.patience import PATIENCE_S
from tests.support.ping_pong import compile_ping_pong, why_no_ping_pong

SLOW = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
double MPI_Wtime(void) {
  static double (*real)(void);
  if (!real) real = (double (*)(void)) dlsym(RTLD_NEXT, "MPI_Wtime");
  return 1e4 * real();
}
"""
"""By its clock all takes ten thousand times as long: more than a busy machine can add to one side alone."""


@pytest.fixture
def ping_pong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The command of a C program on two ranks, compiled against the MPI library beside this Python."""
    for name, value in AS_ROOT.items():
        monkeypatch.setenv(name, value)
    if why := why_no_ping_pong():
        pytest.skip(why)
    return compile_ping_pong(tmp_path)


@pytest.mark.slow
@pytest.mark.mpi
def test_a_c_program_with_a_slower_library_before_it_is_found(ping_pong: str, design: Make, tmp_path: Path) -> None:
    (tmp_path / "slow.c").write_text(SLOW)
    slow = shared_library(tmp_path / "slow.c", tmp_path / "libslow.so")
    settings = {"NEW": {"LD_PRELOAD": str(slow)}}
    expected = parse_expected([f"NEW:libslow.so={slow}", f"BASE:libmpi.so={Path(sys.executable).parent.parent}/lib"])
    report = compare_programs(design(ping_pong, ping_pong, settings, expected=expected))
    # ratios alone: how launches spread, and so what can be shown with eight, depends on what else runs here
    assert all(judged.answers["median"].ratio > 1.5 for judged in report.judged)
    assert report.unmeasured == []
    assert {row["ranks"] for row in report.base.rows} == {2}
    libraries = {Path(str(entry["path"])).name for entry in report.new.provenances[0]["loaded_libraries"]}
    assert {"ping_pong", "libslow.so"} <= libraries


@pytest.mark.mpi
def test_a_c_program_that_does_not_load_the_other_library_gets_no_verdict(
    ping_pong: str, design: Make, tmp_path: Path
) -> None:
    (tmp_path / "libother.so").write_bytes(b"")
    with pytest.raises(NoVerdict, match=r"NEW was to load libraries from .* and loaded none from there"):
        compare_programs(design(ping_pong, ping_pong, {"NEW": {"LD_LIBRARY_PATH": str(tmp_path)}}))
    wanted = parse_expected([f"NEW:libmpi.so={tmp_path}"])
    with pytest.raises(NoVerdict, match=r"NEW was to load libmpi.so from .* and ran with .*libmpi.so"):
        compare_programs(design(ping_pong, ping_pong, {"NEW": {"A": "1"}}, expected=wanted))


@pytest.mark.mpi
@pytest.mark.slow
def test_omb_py_itself_is_a_program_as_any_other(design: Make) -> None:
    words = f"{sys.executable} -m omb_py latency -n 2 -m 1024:1024 -i 100 --no-store --quiet"
    variables = {"PYTHONPATH": environment()["PYTHONPATH"]}
    settings = {"BASE": variables, "NEW": {**variables, "MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}}
    report = compare_programs(design(words, words, settings, launches=2))
    assert report.base.count == report.new.count == 2
    assert {row["source"] for row in report.base.rows} == {"OMB"}


@needs_torch
@pytest.mark.slow
def test_a_script_on_gloo_is_judged_by_the_number_that_it_prints(design: Make, tmp_path: Path) -> None:
    script = tmp_path / "reduce.py"
    script.write_text(
        "import os, sys, time\nimport torch\nimport torch.distributed as dist\n"
        # loaded once for both ranks: all else takes a tenth of that time
        "child = os.fork()\nmeeting = f'file://{sys.argv[0]}.{os.getpid() if child else os.getppid()}'\n"
        "dist.init_process_group('gloo', meeting, rank=int(not child), world_size=2)\n"
        "data = torch.ones(1 << int(sys.argv[1]))\n"
        "took = []\n"
        "for _ in range(20):\n"
        "    began = time.perf_counter()\n    dist.all_reduce(data)\n    took.append(time.perf_counter() - began)\n"
        # what a busy machine adds is not in the shortest
        "if dist.get_rank() == 0:\n    print(f'all_reduce took {min(took) * 1e3:.4f} ms')\n"
        "dist.destroy_process_group()\n"
    )
    start = f"{sys.executable} {script}"
    reading = reading_of("", [parse_metric("all_reduce ms lower took ([0-9.]+) ms")])
    report = compare_programs(design(f"{start} 12", f"{start} 22", reading=reading, launches=2, timeout_s=PATIENCE_S))
    assert report.judged[0].answers["median"].ratio > 1.5
    assert "2 launches a side, and a change needs 6" in report.unmeasured[0]


@pytest.mark.slow
def test_times_of_pytest_benchmark_are_samples(design: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a real run of it, which writes its JSON into a file."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)  # it measures nothing beside other workers
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # the others take longer to load than a test to run
    (tmp_path / "test_loop.py").write_text(
        "import os\n\ndef test_loop(benchmark):\n"
        "    benchmark.pedantic(lambda: sum(range(int(os.environ['STEPS']))), rounds=20)\n"
    )
    pytest_alone = f"{sys.executable} -m pytest -q -p benchmark -p no:cacheprovider"
    command = f"{pytest_alone} {tmp_path}/test_loop.py --benchmark-json={{out}}"
    settings = {"BASE": {"STEPS": "20000"}, "NEW": {"STEPS": "80000"}}
    report = compare_programs(design(command, command, settings, launches=2))
    (judged,) = report.judged
    assert judged.answers["median"].ratio > 1.5 and set(judged.answers) == {"median", "tail"}


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.skipif("OMB_BIN" not in os.environ, reason="OMB_BIN names no folder of OMB's programs")
def test_programs_of_omb_in_c_are_read_as_they_are(design: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in AS_ROOT.items():
        monkeypatch.setenv(name, value)
    words = shlex.join([*mpiexec(), "-n", "2", str(Path(os.environ["OMB_BIN"], "osu_latency")), "-m", "8:1024"])
    report = compare_programs(design(words, words, {"NEW": {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}}, launches=2))
    assert report.base.count == report.new.count == 2 and len(report.judged) == 8
