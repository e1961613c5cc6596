"""A signal that comes before ranks run, or while none runs, ends a command by the contract."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from omb_py.cli.early_signals import as_interrupts
from tests.support.machines.mpi import ROOT, run_command

KILLED_WHILE_IMPORTING = """
import os, signal, sys
number, module = int(sys.argv[1]), sys.argv[2]
if len(sys.argv) > 3:
    signal.signal(number, signal.SIG_IGN)

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            os.kill(os.getpid(), number)

sys.meta_path.insert(0, Watch())
from omb_py.__main__ import main
sys.exit(main(["latency", "--backend", "mock", "-m", "8:8", "-i", "2", "--no-store", "--quiet"]))
"""
HALF_WAY = "omb_py.options.table"
"""Half the imports are done, and no supervisor is there."""


def killed(number: int, *more: str, module: str = HALF_WAY, **environ: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", KILLED_WHILE_IMPORTING, str(number), module, *more]
    launchers = ("PMI", "OMPI_", "SLURM_", "MPI_", "FLUX_", "RANK", "TORCHELASTIC")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(launchers)}
    return run_command(words, cwd=ROOT, env={**kept, **environ})


NUMBERS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_during_imports_has_the_exit_code_of_the_contract(number: int) -> None:
    done = killed(number)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "omb-py: error: interrupted\n")


@pytest.mark.slow
def test_what_nohup_ignores_stays_ignored() -> None:
    done = killed(signal.SIGHUP, "ignored")
    assert done.returncode == 0 and "# OSU MPI Latency Test" in done.stdout, done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_rank_of_a_foreign_launcher_dies_of_the_signal(number: int) -> None:
    """Open MPI's mpirun never ended where a rank left MPI_Init with exit code 130."""
    done = killed(number, OMPI_COMM_WORLD_RANK="1", OMPI_COMM_WORLD_SIZE="2")
    assert (done.returncode, done.stderr) == (-number, "")


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_before_the_command_line_is_there_ends_it_without_a_word(number: int) -> None:
    done = killed(number, module="omb_py.cli.early_signals")
    assert (done.returncode, done.stdout, done.stderr) == (-number, "", "")


def test_handlers_are_put_back_and_threads_leave_them_alone() -> None:
    before = [signal.getsignal(number) for number in NUMBERS[1:]]
    with pytest.raises(KeyboardInterrupt), as_interrupts({}):
        signal.raise_signal(signal.SIGTERM)
    assert [signal.getsignal(number) for number in NUMBERS[1:]] == before
    seen: list[object] = []

    def inside() -> None:
        with as_interrupts({}):
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert seen == before[:1]
