"""No launcher: the rank is started as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omb_py.errors import UsageError
from omb_py.launchers.launcher import LaunchCommand, Launcher, RankRequest

if TYPE_CHECKING:
    from omb_py.launchers.machine import LaunchMachine


class NoLauncher(Launcher):
    def command(self, ranks: RankRequest, machine: LaunchMachine) -> LaunchCommand:
        if ranks.count != 1:
            raise UsageError(f"--launcher none starts 1 rank, not {ranks.count}: choose another launcher, or -n 1")
        return LaunchCommand("none", ranks.program, machine.rank_environ(), True)


LAUNCHER: Final = NoLauncher("none", "no launcher: one rank")
