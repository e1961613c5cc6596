"""A C ping-pong over MPI that prints as OMB does: a program of somebody else's, for comparisons."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

from tests.support.c_library import COMPILER
from tests.support.machines.mpi import mpiexec

PING_PONG = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
static char buffer[1 << 20];
int main(int argc, char **argv) {
  int rank, size, k, other, count = argc > 1 ? atoi(argv[1]) : 40, warmup = count / 4;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  other = 1 - rank;
  if (rank == 0)
    printf("# OSU MPI Latency Test v7.5\n# Datatype: MPI_CHAR.\n# Size          Avg Latency(us)\n");
  for (size = 1024; size <= 65536; size *= 64) {
    double began = 0;
    for (k = 0; k < count; k++) {
      if (k == warmup) began = MPI_Wtime();
      if (rank == 0) {
        MPI_Send(buffer, size, MPI_CHAR, other, 1, MPI_COMM_WORLD);
        MPI_Recv(buffer, size, MPI_CHAR, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      } else {
        MPI_Recv(buffer, size, MPI_CHAR, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(buffer, size, MPI_CHAR, other, 1, MPI_COMM_WORLD);
      }
    }
    if (rank == 0) printf("%-*d%*.2f\n", 10, size, 18, (MPI_Wtime() - began) * 1e6 / 2 / (count - warmup));
  }
  MPI_Finalize();
  return 0;
}
"""


def why_no_ping_pong() -> str:
    """Why it cannot be compiled here; empty when it can."""
    has_header = (Path(sys.executable).parent.parent / "include" / "mpi.h").is_file()
    return "" if COMPILER and has_header else "no C compiler, or no mpi.h beside this Python"


def compile_ping_pong(folder: Path, iterations: int = 40) -> str:
    """The command of the program on two ranks, compiled in `folder` against the MPI library beside this Python.

    It makes so many iterations of each size; a quarter of them are warm-up.
    """
    beside = Path(sys.executable).parent.parent
    source, program, libraries = folder / "ping_pong.c", folder / "ping_pong", beside / "lib"
    source.write_text(PING_PONG)
    assert COMPILER, why_no_ping_pong()
    words = [COMPILER, "-O1", str(source), "-o", str(program), f"-I{beside}/include", f"-L{libraries}", "-lmpi"]
    subprocess.run([*words, f"-Wl,-rpath,{libraries}"], check=True, capture_output=True)
    return shlex.join([*mpiexec(), "-n", "2", str(program), str(iterations)])
