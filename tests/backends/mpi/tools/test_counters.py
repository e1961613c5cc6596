"""``--pvar`` on real ranks: what the library counted is what the benchmark sent."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from omb_py.backends.mpi.tools.knobs import library_knobs
from tests.support.machines.mpi import run_command

pytestmark = [pytest.mark.mpi, pytest.mark.each_library]
SIZE = "pml_monitoring_messages_size"
LINE = "latency -n 2 -m 8:16 -i 10 -x 0 --no-store --format json --quiet --pvar"


def run(name: str, **more: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "omb_py", *LINE.split(), name]
    return run_command(words, **more)


def test_bytes_are_those_that_were_sent() -> None:
    done = run(SIZE, OMPI_MCA_pml_monitoring_enable="1")
    if not library_knobs().pvars:
        assert done.returncode == 3 and "counts nothing that can be read: leave --pvar out" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    metrics = [dict(row["metrics"]) for row in json.loads(done.stdout)]
    sent = [10 * size for size in (8, 16)]
    assert [m[f"pvar.{SIZE}"] for m in metrics] == [2 * nbytes for nbytes in sent]
    assert [(m[f"pvar.{SIZE}.min"], m[f"pvar.{SIZE}.max"]) for m in metrics] == [(n, n) for n in sent]


@pytest.mark.slow
def test_a_name_is_checked_before_and_after_mpi_begins() -> None:
    done = run(SIZE)
    assert done.returncode == 3
    if library_knobs().pvars:
        assert f"Open MPI counts {SIZE} with monitoring alone: set OMPI_MCA_pml_monitoring_enable=1" in done.stderr
        wrong = run("pml_monitoring_message_size")
        assert wrong.returncode == 2 and f"did you mean {SIZE}?" in wrong.stderr
