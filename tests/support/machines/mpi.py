"""Starting real MPI ranks from a test: the mpiexec beside this Python, a time limit, nothing left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[3]
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
"""Open MPI refuses root without both; the other libraries do not look at them."""
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
YIELD = {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
"""Where there are more ranks than cores: those that wait must let others run."""


@cache
def mpiexec() -> tuple[str, ...]:
    """The command that starts ranks, allowed to start more of them than there are cores."""
    beside = str(Path(sys.executable).parent)
    found = shutil.which("mpiexec", path=beside) or shutil.which("mpiexec")
    assert found, f"no mpiexec beside {sys.executable} nor in PATH: pip install mpich"
    told = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=30, check=False)
    if "Open MPI" in told.stdout or "OpenRTE" in told.stdout:
        return (found, "--oversubscribe", "--bind-to", "none")
    return (found,)


def environment(**more: str) -> dict[str, str]:
    """The variables of the ranks: those of this process, Open MPI's leave for root, and the checkout on the path."""
    path = os.pathsep.join(part for part in (str(ROOT), os.environ.get("PYTHONPATH", "")) if part)
    return {**os.environ, **AS_ROOT, **ONE_THREAD, "PYTHONPATH": path, **more}


def run_command(
    words: Sequence[str | Path],
    timeout: float = PATIENCE_S,
    cwd: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    check: bool = False,
    **more: str,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, with what it prints as text, in `env` or else in that of ranks with `more`."""
    variables = environment(**more) if env is None else env
    return subprocess.run(
        words,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=timeout,
        cwd=cwd,
        env=variables,
        check=check,
    )


def run_omb_py(*words: str, **how: Any) -> subprocess.CompletedProcess[str]:
    """Run ``omb-py`` of the checkout, as :func:`run_command` does."""
    return run_command([sys.executable, "-m", "omb_py", *words], **how)


def torchrun(ranks: int) -> tuple[str, ...]:
    """The command by which PyTorch's launcher starts ranks."""
    words = ("--standalone", "--nproc-per-node", str(ranks), "--max-restarts", "0", "--no-python")
    return (sys.executable, "-m", "torch.distributed.run", *words)


def start(words: list[str], ranks: int, by: tuple[str, ...] = (), **more: str) -> subprocess.CompletedProcess[str]:
    """Run `words` as `ranks` ranks, `by` mpiexec or another launcher. Kills all and raises after PATIENCE_S."""
    crowded = ranks > len(os.sched_getaffinity(0))
    child = subprocess.Popen(
        [*(by or (*mpiexec(), "-n", str(ranks))), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env=environment(**({**YIELD, **more} if crowded else more)),
        start_new_session=True,
    )
    try:
        out, err = child.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGTERM)  # mpiexec ends its ranks, which may be in sessions of their own
        try:
            out, err = child.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            out, err = child.communicate()
        raise AssertionError(f"ranks not done within {PATIENCE_S} s: {words}\n{out[-3000:]}\n{err[-3000:]}") from None
    return subprocess.CompletedProcess(child.args, child.returncode, out, err)


def report(module: str, ranks: int, *arguments: Any, by: tuple[str, ...] = (), **more: str) -> Any:
    """What rank 0 of a module in tests/support wrote: run as ``python -m MODULE FILE ARGUMENT…`` on all ranks.

    Arguments are passed as JSON; the module writes JSON to FILE.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.json"
        words = [sys.executable, "-m", module, str(file), *map(json.dumps, arguments)]
        done = start(words, ranks, by, **more)
        assert done.returncode == 0, f"{words}\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
        return json.loads(file.read_text())
