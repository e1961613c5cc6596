"""Several nodes on one machine: each rank's host name in a UTS namespace of its own, through MPICH's launcher."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

from tests.support.mpi import mpiexec

_AGENT = """#!/bin/sh
# called by the launcher as: agent [OPTION...] HOST COMMAND...
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec unshare -u sh -c "hostname $host; exec $*"
"""


@cache
def why_not() -> str:
    """Why there can be no several nodes here; empty when there can."""
    if shutil.which("unshare") is None or shutil.which("hostname") is None:
        return "unshare or hostname is not installed"
    tried = subprocess.run(
        ["unshare", "-u", "hostname", "other"], capture_output=True, text=True, timeout=20, check=False
    )
    if tried.returncode:
        return f"this machine allows no namespaces: {tried.stderr.strip()}"
    told = subprocess.run([mpiexec()[0], "--version"], capture_output=True, text=True, timeout=30, check=False)
    return "" if "HYDRA" in told.stdout else "only MPICH's launcher takes an agent that makes host names"


def launcher(folder: Path, nodes: int, ranks_per_node: int) -> list[str]:
    """The words that start ranks on nodes called node0, node1, …; the agent is written into `folder`."""
    agent = folder / "agent"
    agent.write_text(_AGENT)
    agent.chmod(0o755)
    hosts = ",".join(f"node{n}" for n in range(nodes))
    return [
        mpiexec()[0], "-launcher", "ssh", "-launcher-exec", str(agent), "-iface", "lo", "-hosts", hosts,
        "-n", str(nodes * ranks_per_node), "-ppn", str(ranks_per_node),
    ]  # fmt: skip
