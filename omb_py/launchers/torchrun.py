"""torchrun: PyTorch's launcher, on one machine. What it sets is also read where the user set it without torchrun."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from omb_py.errors import UsageError
from omb_py.launchers.core_binding import bind_cores
from omb_py.launchers.launcher import LaunchCommand, Launcher, RankRequest, RankVariables

if TYPE_CHECKING:
    from omb_py.launchers.machine import LaunchMachine


class Torchrun(Launcher):
    def missing(self, machine: LaunchMachine) -> str:
        import subprocess  # ranks load this module

        from omb_py.distribution import pip_install

        program = "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"
        child = subprocess.run([machine.python, "-c", program], capture_output=True, stdin=subprocess.DEVNULL)
        return "" if child.returncode == 0 else f"torchrun not found: {pip_install('gloo')}"

    def command(self, ranks: RankRequest, machine: LaunchMachine) -> LaunchCommand:
        if ranks.hosts:
            raise UsageError(
                "torchrun starts ranks on this machine only: start it on each host yourself, or use mpiexec"
            )
        placed = bind_cores(ranks.count, machine.cores)
        words = (
            machine.python,
            "-m",
            "torch.distributed.run",
            "--standalone",
            f"--nproc-per-node={ranks.count}",
            "--max-restarts=0",
            "--no-python",
            *ranks.extra,
            *ranks.program,
        )
        return LaunchCommand("torchrun", words, machine.rank_environ(), True, placed.oversubscribed, placed.notes)


TORCHRUN: Final = RankVariables(
    "torchrun",
    ("RANK",),
    ("WORLD_SIZE",),
    ("LOCAL_RANK",),
    ("LOCAL_WORLD_SIZE",),
    address=("MASTER_ADDR", "MASTER_PORT"),
    joins_by_mpi=False,
    detected=lambda environ: "TORCHELASTIC_RUN_ID" in environ,
    precedence=0,
)
_UNKNOWN: Final = replace(TORCHRUN, name="RANK and WORLD_SIZE", detected=lambda environ: False, precedence=100)
"""Set by the user, or by a launcher of PyTorch's that is unknown here: read last, and no sign of a launcher."""
LAUNCHER: Final = Torchrun("torchrun", "PyTorch's launcher, on one machine", (TORCHRUN, _UNKNOWN))
