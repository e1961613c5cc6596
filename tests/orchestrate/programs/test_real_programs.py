"""Real programs of others: a C ping-pong over MPI, omb-py started as any other program, a script on Gloo."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from omb_py.errors import NoVerdict
from omb_py.orchestrate.programs.exchanged import parse_expected
from omb_py.orchestrate.programs.reading import reading_of
from omb_py.orchestrate.programs.session import compare_programs
from omb_py.results.dialects.named_metrics import parse_metric
from tests.orchestrate.programs.conftest import Make
from tests.support.c_library import COMPILER, shared_library
from tests.support.machines.mpi import AS_ROOT, environment, mpiexec
from tests.support.optional import needs_torch

PING_PONG = r"""
#include <mpi.h>
#include <stdio.h>
#include <string.h>
static char buffer[1 << 20];
int main(int argc, char **argv) {
  int rank, size, k, other;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  other = 1 - rank;
  if (rank == 0)
    printf("# OSU MPI Latency Test v7.5\n# Datatype: MPI_CHAR.\n# Size          Avg Latency(us)\n");
  for (size = 1024; size <= 65536; size *= 64) {
    double began = 0;
    for (k = 0; k < 40; k++) {
      if (k == 10) began = MPI_Wtime();
      if (rank == 0) {
        MPI_Send(buffer, size, MPI_CHAR, other, 1, MPI_COMM_WORLD);
        MPI_Recv(buffer, size, MPI_CHAR, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      } else {
        MPI_Recv(buffer, size, MPI_CHAR, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(buffer, size, MPI_CHAR, other, 1, MPI_COMM_WORLD);
      }
    }
    if (rank == 0) printf("%-*d%*.2f\n", 10, size, 18, (MPI_Wtime() - began) * 1e6 / 60);
  }
  MPI_Finalize();
  return 0;
}
"""
SPIN = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
typedef int (*Send)(const void *, int, int, int, int, int);
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
int MPI_Send(const void *data, int count, int type, int peer, int tag, int comm) {
  static Send real;
  double until = now() + 3e-3;
  if (!real) real = (Send) dlsym(RTLD_NEXT, "MPI_Send");
  while (now() < until) {}
  return real(data, count, type, peer, tag, comm);
}
"""


@pytest.fixture
def ping_pong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The command of a C program on two ranks, compiled against the MPI library beside this Python."""
    for name, value in AS_ROOT.items():
        monkeypatch.setenv(name, value)
    beside = Path(sys.executable).parent.parent
    if COMPILER is None or not (beside / "include" / "mpi.h").is_file():
        pytest.skip("no C compiler, or no mpi.h beside this Python")
    source, program, folder = tmp_path / "ping_pong.c", tmp_path / "ping_pong", beside / "lib"
    source.write_text(PING_PONG)
    words = [COMPILER, "-O1", str(source), "-o", str(program), f"-I{beside}/include", f"-L{folder}", "-lmpi"]
    subprocess.run([*words, f"-Wl,-rpath,{folder}"], check=True, capture_output=True)
    return shlex.join([*mpiexec(), "-n", "2", str(program)])


@pytest.mark.mpi
def test_a_c_program_with_a_slower_library_before_it_is_found(ping_pong: str, design: Make, tmp_path: Path) -> None:
    (tmp_path / "spin.c").write_text(SPIN)
    spin = shared_library(tmp_path / "spin.c", tmp_path / "libspin.so")
    settings = {"NEW": {"LD_PRELOAD": str(spin)}}
    expected = parse_expected([f"NEW:libspin.so={spin}", f"BASE:libmpi.so={Path(sys.executable).parent.parent}/lib"])
    report = compare_programs(design(ping_pong, ping_pong, settings, expected=expected))
    # ratios alone: how launches spread, and so what can be shown with eight, depends on what else runs here
    assert all(judged.answers["median"].ratio > 1.5 for judged in report.judged)
    assert report.unmeasured == []
    assert {row["ranks"] for row in report.base.rows} == {2}
    libraries = {Path(str(entry["path"])).name for entry in report.new.provenances[0]["loaded_libraries"]}
    assert {"ping_pong", "libspin.so"} <= libraries


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
        "import sys, time\nimport torch\nimport torch.distributed as dist\n"
        "dist.init_process_group('gloo')\ndata = torch.ones(1 << int(sys.argv[1]))\n"
        "dist.all_reduce(data)\nbegan = time.perf_counter()\n"
        "for _ in range(20):\n    dist.all_reduce(data)\n"
        "if dist.get_rank() == 0:\n    print(f'all_reduce took {(time.perf_counter() - began) / 20 * 1e3:.4f} ms')\n"
        "dist.destroy_process_group()\n"
    )
    start = f"{sys.executable} -m torch.distributed.run --standalone --nproc-per-node 2 {script}"
    reading = reading_of("", [parse_metric("all_reduce ms lower took ([0-9.]+) ms")])
    report = compare_programs(design(f"{start} 16", f"{start} 20", reading=reading, launches=2, timeout_s=120.0))
    assert report.judged[0].answers["median"].ratio > 1.5
    assert "2 launches a side, and a change needs 6" in report.unmeasured[0]
